//! [`Filter`]: the criteria of a list, from and to a URL.

use duroxide::InstanceQuery;

use crate::{Limits, failure::Failure, fields::Fields, format, links};

/// Instances per page if the URL does not say.
const DEFAULT_SIZE: u32 = 50;

/// The criteria of a list, as fields of the URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) id: String,
    pub(crate) status: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) parent: String,
    pub(crate) roots: bool,
    /// `2026-11-17T07:38`, UTC.
    pub(crate) from: String,
    pub(crate) before: String,
    pub(crate) limit: u32,
    pub(crate) cursor: String,
    from_ms: Option<u64>,
    before_ms: Option<u64>,
}

impl Filter {
    pub(crate) fn new(fields: &Fields, limits: &Limits) -> Result<Self, Failure> {
        let text = |name| fields.filled(name).unwrap_or_default().to_owned();
        let (from, before) = (text("from"), text("before"));
        Ok(Self {
            id: text("prefix"),
            status: text("status"),
            name: text("name"),
            version: text("version"),
            parent: text("parent"),
            roots: fields.one("roots") == Some("yes"),
            from_ms: moment("from", &from)?,
            before_ms: moment("before", &before)?,
            from,
            before,
            limit: fields.number("limit")?.unwrap_or(DEFAULT_SIZE).clamp(1, limits.page_size_max),
            cursor: text("cursor"),
        })
    }

    /// The query for the store.
    pub(crate) fn query(&self) -> InstanceQuery {
        let text = |value: &String| (!value.is_empty()).then(|| value.clone());
        let mut query = InstanceQuery::default().limit(self.limit);
        query.id_prefix = text(&self.id);
        query.status = text(&self.status);
        query.orchestration_name = text(&self.name);
        query.orchestration_version = text(&self.version);
        query.parent = text(&self.parent);
        query.roots_only = self.roots;
        query.created_from = self.from_ms;
        query.created_before = self.before_ms;
        query.cursor = text(&self.cursor);
        query
    }

    /// The criteria that are set, as fields of a form or a query, without the position in the list.
    pub(crate) fn fields(&self) -> Vec<(&'static str, &str)> {
        let texts = [
            ("prefix", &self.id),
            ("status", &self.status),
            ("name", &self.name),
            ("version", &self.version),
            ("parent", &self.parent),
            ("from", &self.from),
            ("before", &self.before),
        ];
        let set = texts.into_iter().filter(|(_, value)| !value.is_empty());
        let mut fields: Vec<_> = set.map(|(name, value)| (name, value.as_str())).collect();
        if self.roots {
            fields.push(("roots", "yes"));
        }
        fields
    }

    /// The query of this page's URL.
    pub(crate) fn to_query(&self) -> String {
        let mut pairs: Vec<String> =
            self.fields().iter().map(|(name, value)| format!("{name}={}", links::encode(value))).collect();
        if self.limit != DEFAULT_SIZE {
            pairs.push(format!("limit={}", self.limit));
        }
        if !self.cursor.is_empty() {
            pairs.push(format!("cursor={}", links::encode(&self.cursor)));
        }
        pairs.join("&")
    }

    /// The same list, beginning at `cursor`.
    pub(crate) fn at(&self, cursor: &str) -> Self {
        Self { cursor: cursor.to_owned(), ..self.clone() }
    }
}

fn moment(name: &str, text: &str) -> Result<Option<u64>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let parsed = format::parse_time(text);
    parsed.map(Some).ok_or_else(|| {
        Failure::BadRequest(format!(
            "`{name}` must be a time in UTC such as 2026-11-17T07:38, or be left out"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(query: &str) -> Filter {
        Filter::new(&Fields::parse(query.as_bytes()), &Limits::default()).unwrap()
    }

    #[test]
    fn a_url_is_printed_as_it_was_given() {
        let query = "prefix=order%2F&status=Failed&name=a%20b&version=1.0.0&parent=p&from=2026-11-17T07%3A38&roots=yes&limit=20&cursor=c%3D";
        assert_eq!(filter(query).to_query(), query);
        assert_eq!(filter("status=&name=+").to_query(), "");
    }

    #[test]
    fn every_criterion_reaches_the_store() {
        let query = filter("prefix=o&status=Failed&name=n&version=1.0.0&parent=p&from=2026-11-17T07:38&before=2026-11-18T00:00&roots=yes&limit=20&cursor=c").query();
        let expected = InstanceQuery::default()
            .id_prefix("o")
            .status("Failed")
            .orchestration_name("n")
            .orchestration_version("1.0.0")
            .parent("p")
            .roots_only()
            .created_from(1_794_901_080_000)
            .created_before(1_794_960_000_000)
            .limit(20)
            .after("c");
        assert_eq!(query, expected);
    }

    #[test]
    fn a_limit_is_at_most_a_page() {
        assert_eq!(filter("limit=1000000").limit, Limits::default().page_size_max);
        assert_eq!(filter("limit=0").limit, 1);
        let wrong = Filter::new(&Fields::parse(b"limit=many"), &Limits::default());
        assert!(matches!(wrong, Err(Failure::BadRequest(_))));
        let wrong = Filter::new(&Fields::parse(b"from=yesterday"), &Limits::default());
        assert!(matches!(wrong, Err(Failure::BadRequest(_))));
    }
}
