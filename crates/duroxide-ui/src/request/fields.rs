//! [`Fields`]: the fields of a query or a form.

use std::str::FromStr;

use crate::failure::Failure;

/// The fields of a query or a form, in order. A name may occur several times.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl From<Vec<(String, String)>> for Fields {
    fn from(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }
}

impl Fields {
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// The first value with this name.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The first value with this name, unless it is blank. A blank field of a form filters nothing.
    pub(crate) fn filled(&self, name: &str) -> Option<&str> {
        self.one(name).map(str::trim).filter(|value| !value.is_empty())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The first value with this name. It is an error if it is missing or blank.
    pub(crate) fn needed(&self, name: &str) -> Result<&str, Failure> {
        self.filled(name).ok_or_else(|| Failure::BadRequest(format!("`{name}` is missing: fill it in")))
    }

    /// The first value with this name as a number; `None` if it is missing or blank.
    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Failure> {
        let parse = |value: &str| {
            value.parse().map_err(|_| Failure::BadRequest(format!("`{name}` must be a number")))
        };
        self.filled(name).map(parse).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_occur_several_times_and_blank_values_are_not_filled() {
        let fields = Fields::parse(b"id=a%20b&id=c%2Fd&name=++&n=12&m=x");
        assert_eq!(fields.all("id").collect::<Vec<_>>(), ["a b", "c/d"]);
        assert_eq!(fields.filled("name"), None);
        assert_eq!(fields.number::<u32>("n").unwrap(), Some(12));
        assert_eq!(fields.number::<u32>("absent").unwrap(), None);
        assert!(fields.number::<u32>("m").is_err());
        assert!(fields.needed("name").is_err());
    }
}
