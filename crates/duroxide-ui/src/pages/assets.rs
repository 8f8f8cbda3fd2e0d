//! The files that come with the console: style, script and icon.

use axum::{
    extract::Path,
    http::header,
    response::{IntoResponse, Response},
};

use crate::failure::Failure;

/// A file's name, content type and content. `htmx.min.js` is version 2.0.11 as published; its licence is in the same folder.
const FILES: &[(&str, &str, &str)] = &[
    ("console.css", "text/css; charset=utf-8", include_str!("../../assets/console.css")),
    ("console.js", "text/javascript; charset=utf-8", include_str!("../../assets/console.js")),
    ("htmx.min.js", "text/javascript; charset=utf-8", include_str!("../../assets/htmx.min.js")),
    ("icon.svg", "image/svg+xml", include_str!("../../assets/icon.svg")),
];

/// The version in links to files, so that a changed file has another address.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) async fn file(Path(name): Path<String>) -> Result<Response, Failure> {
    let file = FILES.iter().find(|(file, ..)| *file == name);
    let (_, content_type, content) =
        file.ok_or_else(|| Failure::NotFound("There is no such file.".to_owned()))?;
    let headers = [(header::CONTENT_TYPE, *content_type), (header::CACHE_CONTROL, "public, max-age=3600")];
    Ok((headers, *content).into_response())
}
