//! The session cookie: names a token and an expiry time, and is signed with a key derived from that token.
//!
//! The server keeps no sessions, so all replicas of a service accept the cookie. Changing the token ends its sessions.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, header};

use super::{Key, same};

/// The cookie's name.
pub(crate) const COOKIE: &str = "duroxide_console";

/// How long a session lasts.
pub(crate) const SESSION_SECONDS: u64 = 12 * 60 * 60;
const LIFETIME: Duration = Duration::from_secs(SESSION_SECONDS);

const PURPOSE: &str = "session";

/// The cookie value of a new session for the token with this number.
pub(super) fn seal(key: &Key, number: usize, nonce: &Key, now: SystemTime) -> String {
    let ends = seconds(now) + LIFETIME.as_secs();
    let claim = format!("{number}.{ends}.{}", nonce.to_text());
    let signature = key.sign(PURPOSE, &claim);
    format!("{claim}.{signature}")
}

/// The number of the token that a session names. Do not trust it before [`is_valid`] has checked the session.
pub(super) fn claimed_number(value: &str) -> Option<usize> {
    value.split('.').next()?.parse().ok()
}

/// Whether this key has signed the session and it has not ended.
pub(super) fn is_valid(key: &Key, value: &str, now: SystemTime) -> bool {
    let Some((claim, signature)) = value.rsplit_once('.') else { return false };
    let ends = claim.split('.').nth(1).and_then(|ends| ends.parse::<u64>().ok());
    same(signature, &key.sign(PURPOSE, claim)) && ends.is_some_and(|ends| seconds(now) < ends)
}

/// The value of the request's session cookie.
pub(super) fn cookie_value(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Key {
        Key::new([byte; 32])
    }

    #[test]
    fn a_session_is_valid_for_its_key_until_it_ends() {
        let now = SystemTime::now();
        let value = seal(&key(1), 3, &key(9), now);
        assert_eq!(claimed_number(&value), Some(3));
        assert!(is_valid(&key(1), &value, now));
        assert!(!is_valid(&key(2), &value, now));
        assert!(is_valid(&key(1), &value, now + LIFETIME - Duration::from_secs(1)));
        assert!(!is_valid(&key(1), &value, now + LIFETIME));
    }

    #[test]
    fn a_changed_session_is_not_valid() {
        let now = SystemTime::now();
        let value = seal(&key(1), 1, &key(9), now);
        let other_number = value.replacen('1', "0", 1);
        let (number, rest) = value.split_once('.').unwrap();
        let later = format!("{number}.9{rest}");
        let (unsigned, _) = value.rsplit_once('.').unwrap();
        let no_signature = format!("{unsigned}.");
        for forged in
            [other_number.as_str(), &later, unsigned, &no_signature, "", ".", "1", "1.9999999999.x."]
        {
            assert!(!is_valid(&key(1), forged, now), "{forged}");
        }
    }
}
