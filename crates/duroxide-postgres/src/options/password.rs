//! Passwords that are asked for when a connection is made.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

type Asked = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// Asks for the password of each new connection: a token that lives for minutes, or a password that is changed while the
/// program runs.
///
/// ```
/// use duroxide_postgres::{PasswordSource, PostgresOptions};
///
/// async fn fresh_token() -> Result<String, std::io::Error> {
///     Ok("token".to_owned())
/// }
///
/// let mut options = PostgresOptions::new("postgres://app@db.internal/orders")?;
/// options.password = Some(PasswordSource::new(fresh_token));
/// # Ok::<(), tokio_postgres::Error>(())
/// ```
#[derive(Clone)]
pub struct PasswordSource(Arc<dyn Fn() -> Asked + Send + Sync>);

impl PasswordSource {
    /// Calls `ask` whenever a connection is made. It runs on a thread of the store, within the time limit of the connection.
    pub fn new<F, A, E>(ask: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<String, E>> + Send + 'static,
        E: fmt::Display,
    {
        Self(Arc::new(move || {
            let asked = ask();
            Box::pin(async move { asked.await.map_err(|error| error.to_string()) })
        }))
    }

    pub(crate) async fn ask(&self) -> Result<String, String> {
        (self.0)().await
    }
}

impl fmt::Debug for PasswordSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordSource")
    }
}
