//! Building the packages.

use crate::step::Step;

use super::program::Programs;

pub(super) const DURARE: &str =
    "build --release --locked --manifest-path bench/durare/Cargo.toml --target-dir bench/target";

/// Builds the needed packages, into one shared target folder.
pub(super) fn programs(with_published: bool) -> Result<Programs, String> {
    Step::cargo(
        "Building the workloads against ours",
        "build --release --manifest-path bench/ours/Cargo.toml --target-dir bench/target",
    )
    .run()?;
    if with_published {
        Step::cargo(
            "Building the workloads against the published crate",
            "build --release --locked --manifest-path bench/published/Cargo.toml --target-dir bench/target",
        )
        .run()?;
        Step::cargo("Building the workloads against durare", DURARE).run()?;
    }
    Ok(Programs { folder: "bench/target/release".into(), with_published })
}
