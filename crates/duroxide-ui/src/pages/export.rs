//! The history of an instance as a file that a test replays.

use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};

use crate::{failure::Failure, format, visit::Visit};

/// Downloads the current execution. Refused if the console hides payloads, because a history with replaced payloads
/// would not replay.
pub(crate) async fn file(visit: Visit) -> Result<Response, Failure> {
    if visit.console.redact.is_set() {
        return Err(Failure::Forbidden(
            "This console hides payloads, and a file to replay needs them. Export it with the command line: `duroxide export`.",
        ));
    }
    let id = visit.instance()?;
    let history = visit.console.client.export_history(id).await?;
    let json = history.to_json().map_err(|error| Failure::Internal(error.to_string()))?;
    let disposition = format!("attachment; filename=\"{}.json\"", file_name(id));
    let disposition =
        HeaderValue::from_str(&disposition).map_err(|error| Failure::Internal(error.to_string()))?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, json).into_response())
}

/// An id reduced to characters that are safe in a file name and in a header.
fn file_name(id: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = id.chars().map(|c| if is_safe(c) { c } else { '_' }).collect();
    format::beginning(&name, 100).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_has_nothing_of_a_path_or_a_header() {
        assert_eq!(file_name("order-1"), "order-1");
        assert_eq!(file_name("../e\r\nX: \"y\".é"), "___e__X___y___");
        assert_eq!(file_name(&"a".repeat(500)).len(), 100);
    }
}
