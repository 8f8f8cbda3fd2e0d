//! The console in the large: Chromium for its tests and pictures, and its measurement.

use std::path::Path;

use crate::{postgres::set_up_one, step::Step};

/// Where Debian installs them.
const PROGRAMS: [&str; 2] = ["/usr/bin/chromium", "/usr/bin/chromedriver"];

/// Installs Debian's packages if they are missing and apt-get may. Without a browser the tests skip themselves; with `CI=true`
/// they fail.
pub(crate) fn set_up() {
    set_up_one("Chromium", &["chromium", "chromium-driver"], is_installed);
}

fn is_installed() -> bool {
    PROGRAMS.iter().all(|program| Path::new(program).is_file())
}

/// Makes the pictures of the documents.
pub(crate) fn screenshots() -> Result<(), String> {
    set_up();
    Step::cargo("Pictures of the console", "run --quiet --package browser --bin screenshots -- docs/pictures")
        .run()
}

/// Measures the console on a large store. It needs no browser, but the same stores.
pub(crate) fn measure(options: &MeasureOptions) -> Result<(), String> {
    Step::cargo(
        "The console on a large store",
        "run --quiet --profile measure --package browser --bin measure-console --",
    )
    .arg("--instances")
    .arg(options.instances.to_string())
    .run()
}

/// The options of a measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct MeasureOptions {
    /// How many instances the store has.
    #[arg(long, default_value_t = 1_000_000)]
    instances: u32,
}
