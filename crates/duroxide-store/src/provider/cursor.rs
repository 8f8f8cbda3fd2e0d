//! Cursors: positions in the list of all instances.

use duroxide_provider::ProviderError;

/// Marks the form of a cursor, so that one of another form is refused instead of misread.
const PREFIX: &str = "row-";

/// The cursor of the page behind a row. Rows are numbered in the order in which they were made and no number is used
/// twice, so the position stays valid, also if the instance is deleted.
pub(crate) fn behind(row: u64) -> String {
    format!("{PREFIX}{row}")
}

/// The row that a page ended with.
pub(crate) fn row_of(cursor: &str) -> Result<u64, ProviderError> {
    let row = cursor.strip_prefix(PREFIX).and_then(|row| row.parse().ok());
    // `parse` takes a plus sign and leading zeros; a page never had such a cursor.
    row.filter(|row| behind(*row) == cursor).ok_or_else(|| ProviderError::invalid_cursor(cursor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_row() {
        for row in [0, 1, u64::MAX] {
            assert_eq!(row_of(&behind(row)), Ok(row));
        }
    }

    #[test]
    fn a_malformed_cursor_is_a_permanent_error() {
        for cursor in
            ["", "7", "row-", "row--7", "row-+7", "row-07", "row-7 ", "row-x", "row-18446744073709551616"]
        {
            let refused = row_of(cursor).unwrap_err();
            assert!(refused.is_invalid_cursor() && !refused.is_retryable(), "{cursor}: {refused}");
        }
    }
}
