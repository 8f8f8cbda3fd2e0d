//! Opens the store that the user names. Creates and upgrades nothing, and shows no secret of a URL.

use std::{fmt, path::Path, sync::Arc};

#[cfg(feature = "postgres")]
use duroxide::providers::postgres::{OpenError, PostgresOptions, PostgresProvider, SchemaName};
use duroxide::{
    Client, ClientError, InstanceInfo, InstanceQuery, ProviderAdmin,
    providers::{Provider, sqlite::SqliteProvider},
};
use duroxide_provider::store::StoreSnapshot;

use crate::exit::{Failure, Outcome};

const HOW_TO_NAME: &str =
    "name a store with --store or DUROXIDE_STORE: sqlite:orders.db or postgres://app@host/app";

/// Whether a store is opened for reading or for changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// An open store.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) client: Client,
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    Sqlite(Arc<SqliteProvider>),
    #[cfg(feature = "postgres")]
    Postgres(Arc<PostgresProvider>),
}

impl Store {
    pub(crate) async fn open(address: &Address, access: Access) -> Outcome<Self> {
        let backend = match &address.kind {
            Kind::Sqlite => open_sqlite(address, access).await?,
            #[cfg(feature = "postgres")]
            Kind::Postgres => {
                let mut options = address.postgres_options()?;
                // A command that only reads waits for nothing, so it needs no connection that listens.
                options.notifications = access == Access::Write;
                let opened = PostgresProvider::open_existing(options).await;
                Backend::Postgres(Arc::new(opened.map_err(|error| address.open_failure(&error))?))
            }
        };
        Ok(Self { client: Client::new(backend.provider()), backend })
    }

    pub(crate) fn provider(&self) -> Arc<dyn Provider> {
        self.backend.provider()
    }

    pub(crate) fn admin(&self) -> Outcome<&dyn ProviderAdmin> {
        let admin = match &self.backend {
            Backend::Sqlite(store) => store.as_management_capability(),
            #[cfg(feature = "postgres")]
            Backend::Postgres(store) => store.as_management_capability(),
        };
        Ok(admin.ok_or(ClientError::ManagementNotAvailable)?)
    }

    /// The whole content.
    pub(crate) async fn snapshot(&self) -> Outcome<StoreSnapshot> {
        Ok(match &self.backend {
            Backend::Sqlite(store) => store.snapshot().await?,
            #[cfg(feature = "postgres")]
            Backend::Postgres(store) => store.snapshot().await?,
        })
    }

    /// An instance, also if no node has begun it.
    pub(crate) async fn instance(&self, id: &str) -> Outcome<InstanceInfo> {
        Ok(self.client.find_instance(id).await?)
    }

    /// An instance that a node has begun. No other instance has a history to delete, prune or export.
    pub(crate) async fn begun_instance(&self, id: &str) -> Outcome<InstanceInfo> {
        let info = self.instance(id).await?;
        if info.status == InstanceQuery::PENDING {
            return Err(Failure::refused(format!(
                "no node has begun instance '{id}', so it has no history yet"
            ))
            .advise("`explain` says what its start waits for; `cancel` ends it as soon as a node takes it"));
        }
        Ok(info)
    }
}

impl Backend {
    fn provider(&self) -> Arc<dyn Provider> {
        match self {
            Self::Sqlite(store) => store.clone(),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.clone(),
        }
    }
}

async fn open_sqlite(address: &Address, access: Access) -> Outcome<Backend> {
    address.refuse_missing_file()?;
    let opened = match access {
        Access::Read => SqliteProvider::open_read_only(&address.url).await,
        Access::Write => SqliteProvider::open_existing(&address.url, None).await,
    };
    Ok(Backend::Sqlite(Arc::new(opened.map_err(|error| Failure::failed(error.message))?)))
}

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    kind: Kind,
    url: String,
    /// The schema of a PostgreSQL database.
    schema: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sqlite,
    #[cfg(feature = "postgres")]
    Postgres,
}

impl Address {
    pub(crate) fn parse(url: Option<&str>, schema: Option<&str>) -> Outcome<Self> {
        let Some(url) = url.filter(|url| !url.is_empty()) else {
            return Err(Failure::usage("no store is named").advise(HOW_TO_NAME));
        };
        let kind = kind_of(url)?;
        if schema.is_some() && kind == Kind::Sqlite {
            return Err(
                Failure::usage("a schema is named, but a SQLite file has none").advise("leave --schema out")
            );
        }
        Ok(Self { kind, url: url.to_owned(), schema: schema.map(str::to_owned) })
    }

    /// The URL of a SQLite file.
    #[cfg(feature = "postgres")]
    pub(crate) fn sqlite_url(&self) -> Outcome<&str> {
        match self.kind {
            Kind::Sqlite => {
                self.refuse_missing_file()?;
                Ok(&self.url)
            }
            Kind::Postgres => Err(Failure::usage("a copy begins with a SQLite file")
                .advise("name it with --store sqlite:…, and the database with --to postgres://…")),
        }
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn postgres_options(&self) -> Outcome<PostgresOptions> {
        if self.kind != Kind::Postgres {
            return Err(Failure::usage(format!("{self} is no PostgreSQL database"))
                .advise("write postgres://user@host/database"));
        }
        let mut options =
            PostgresOptions::new(&self.url).map_err(|error| self.open_failure(&error.into()))?;
        if let Some(schema) = &self.schema {
            options.schema = SchemaName::new(schema).map_err(|error| Failure::usage(error.to_string()))?;
        }
        Ok(options)
    }

    /// The failure to open the store, without the secrets of the URL.
    #[cfg(feature = "postgres")]
    pub(crate) fn open_failure(&self, error: &OpenError) -> Failure {
        let text = self.without_secrets(&error.to_string());
        if let OpenError::Url { .. } = error {
            return Failure::usage(text);
        }
        let is_missing = matches!(error, OpenError::Missing { .. });
        if is_missing { Failure::not_found(text) } else { Failure::failed(text) }
    }

    /// `text` without the passwords of this URL.
    #[cfg(feature = "postgres")]
    pub(crate) fn without_secrets(&self, text: &str) -> String {
        secrets(&self.url).iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
    }

    /// Refuses a missing file with a clear message. SQLite would only say that it cannot open the file.
    fn refuse_missing_file(&self) -> Outcome<()> {
        let path = self.url.strip_prefix("sqlite:").unwrap_or(&self.url);
        let path = path.strip_prefix("//").unwrap_or(path).split('?').next().unwrap_or(path);
        // Other forms of URLs are left to the store, which does not create a file either.
        let is_plain = !path.starts_with("file:") && !path.contains('%') && !path.contains(":memory:");
        if is_plain && !Path::new(path).exists() {
            return Err(Failure::not_found(format!("there is no store at {path}")).advise(
                "the command line makes none: start your program on this path once, which makes it; or correct the path",
            ));
        }
        Ok(())
    }
}

fn kind_of(url: &str) -> Outcome<Kind> {
    if url.starts_with("sqlite:") {
        return Ok(Kind::Sqlite);
    }
    let is_postgres = url.starts_with("postgres://") || url.starts_with("postgresql://");
    #[cfg(feature = "postgres")]
    if is_postgres {
        return Ok(Kind::Postgres);
    }
    if is_postgres {
        return Err(Failure::usage("this program was built without PostgreSQL")
            .advise("build duroxide-cli with its feature postgres"));
    }
    // The text itself is not shown: it may be a connection string with a password.
    Err(Failure::usage("the store's URL begins with neither sqlite: nor postgres://").advise(HOW_TO_NAME))
}

/// The secrets of a URL: the password before the `@`, and every `password=` of its parameters.
fn secrets(url: &str) -> Vec<String> {
    if url.starts_with("sqlite:") {
        return Vec::new();
    }
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let user = rest.rsplit_once('@').map(|(user, _)| user);
    let password = user.and_then(|user| user.split_once(':')).map(|(_, password)| password);
    let parameters = url.split(['?', '&']).filter_map(|parameter| parameter.strip_prefix("password="));
    let mut found: Vec<String> = password.into_iter().chain(parameters).map(str::to_owned).collect();
    found.retain(|secret| !secret.is_empty());
    found
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = secrets(&self.url)
            .iter()
            .fold(self.url.clone(), |url, secret| url.replace(secret.as_str(), "***"));
        f.write_str(&shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    fn shown(url: &str) -> String {
        Address::parse(Some(url), None).unwrap().to_string()
    }

    #[test]
    fn a_store_must_be_named() {
        for url in [None, Some("")] {
            let failure = Address::parse(url, None).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.to_string().contains("DUROXIDE_STORE"), "{failure}");
        }
        let failure = Address::parse(Some("host=db password=hunter2"), None).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(!failure.to_string().contains("hunter2"), "{failure}");
    }

    #[test]
    fn only_a_database_has_schemas() {
        assert_eq!(Address::parse(Some("sqlite:a.db"), Some("b")).unwrap_err().exit, Exit::Usage);
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn a_password_is_never_shown() {
        assert_eq!(shown("postgres://app:hunter2@db/app"), "postgres://app:***@db/app");
        assert_eq!(shown("postgres://app:p@ss:w@db/app"), "postgres://app:***@db/app");
        assert_eq!(
            shown("postgres://db/app?user=a&password=hunter2"),
            "postgres://db/app?user=a&password=***"
        );
        assert_eq!(shown("postgres://app@db/app"), "postgres://app@db/app");
        let address = Address::parse(Some("postgres://app:hunter2@db/app"), None).unwrap();
        assert_eq!(format!("{address:?}"), "postgres://app:***@db/app");
        assert_eq!(address.without_secrets("no hunter2 here"), "no *** here");
    }

    #[test]
    fn a_file_has_no_secrets() {
        assert_eq!(shown("sqlite:a:b@c.db"), "sqlite:a:b@c.db");
    }
}
