//! The version of this build of duroxide.

use semver::Version;

/// The version text that every event is stamped with.
pub(crate) const BUILD_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of this build of duroxide.
pub fn current_build_version() -> Version {
    Version::parse(BUILD_VERSION).unwrap_or(Version::new(0, 0, 0))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_build_version_is_the_package_version() {
        assert_eq!(super::current_build_version().to_string(), env!("CARGO_PKG_VERSION"));
    }
}
