//! Lock tokens: `{row}-{nonce}`. The row finds the lock, the nonce fences it.

/// The token of a lock on this row.
pub fn lock_token(row: u64, nonce: u128) -> String {
    format!("{row}-{nonce:032x}")
}

/// The row a token is for; `None` if the text is no token.
pub fn token_row(token: &str) -> Option<u64> {
    token.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_row() {
        assert_eq!(lock_token(7, 255), "7-000000000000000000000000000000ff");
        assert_eq!(token_row(&lock_token(7, u128::MAX)), Some(7));
        assert_eq!(token_row("nonsense"), None);
        assert_eq!(token_row("x-1"), None);
    }
}
