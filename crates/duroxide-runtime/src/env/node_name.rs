//! Names of nodes that people can read and that no two nodes share.

use std::{env, fs, process};

/// The longest part of a host name that is used.
const HOST_LENGTH_MAX: usize = 24;

/// `{host}-{process id}-{random digits}`. The digits make the name unique; the rest names the place where the node
/// runs.
pub(super) fn node_name(random: u128) -> String {
    let host = host().map(|host| readable(&host)).filter(|host| !host.is_empty());
    format!("{}-{}-{random:032x}", host.as_deref().unwrap_or("node"), process::id())
}

/// The name of this machine or container. The standard library has no call for it.
fn host() -> Option<String> {
    let written =
        ["/proc/sys/kernel/hostname", "/etc/hostname"].iter().find_map(|path| fs::read_to_string(path).ok());
    written.or_else(|| env::var("HOSTNAME").ok()).or_else(|| env::var("COMPUTERNAME").ok())
}

/// The host name without its domain, of letters, digits and `-` only: a store may make a file name of it.
fn readable(host: &str) -> String {
    let first = host.trim().split('.').next().unwrap_or_default();
    let allowed = |char: char| if char.is_ascii_alphanumeric() { char } else { '-' };
    let name: String = first.chars().map(allowed).take(HOST_LENGTH_MAX).collect();
    name.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_where_the_node_runs_and_ends_in_random_digits() {
        let name = node_name(7);
        let end = format!("-{}-00000000000000000000000000000007", process::id());
        let host = name.strip_suffix(&end).unwrap();
        assert!(!host.is_empty());
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{name}");
    }

    #[test]
    fn a_host_name_becomes_part_of_a_file_name() {
        assert_eq!(readable("web-1.shop.example\n"), "web-1");
        assert_eq!(readable("büro_pc/../x"), "b-ro-pc");
        assert_eq!(readable(&"x".repeat(300)), "x".repeat(HOST_LENGTH_MAX));
        assert_eq!(readable("\n"), "");
    }
}
