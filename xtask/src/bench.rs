//! `cargo xtask bench`: the workloads of `bench/`, on ours and on published crates, in one run.

mod build;
mod chart;
mod document;
mod durability;
mod machine;
mod plan;
mod postgres;
mod program;
mod results;
mod sample;
mod table;
mod verdict;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use plan::{Plan, Row};
use program::Programs;
use results::{Cell, Measured, Results};

/// Where results are kept.
const RESULTS_FOLDER: &str = "bench/results";

/// Where the workloads keep their data: on the disk that holds the build output, never in memory.
const SCRATCH_FOLDER: &str = "bench/target/scratch";

/// The options of a measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Small sizes and few stores, in less than 5 minutes once the packages are built. This is the default.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All sizes and stores, in less than 40 minutes.
    #[arg(long)]
    full: bool,
    /// Only these workloads, for example `--only hello,timers`.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Measure only our own implementation.
    #[arg(long)]
    skip_published: bool,
    /// How often each measurement is repeated, instead of the plan's own count; an odd number has a true median.
    #[arg(long)]
    repeat: Option<usize>,
    /// Put the table and the chart into PERFORMANCE.md.
    #[arg(long, conflicts_with_all = ["only", "skip_published"])]
    update: bool,
    /// Measure on a throw-away PostgreSQL server instead: ours, `duroxide-pg` and `durare`.
    #[arg(long, conflicts_with_all = ["quick", "full", "update"])]
    postgres: bool,
}

impl Options {
    fn plan(&self) -> Result<Plan, String> {
        let mut plan = if self.full { Plan::full() } else { Plan::quick() };
        plan.keep_only(&self.only)?;
        if self.skip_published {
            plan.skip_other_crates();
        }
        if self.skip_published || !self.only.is_empty() {
            // A part does not replace the results of a whole run.
            plan.name = "partial";
        }
        if let Some(count) = self.repeat {
            plan.repeat(count);
        }
        Ok(plan)
    }
}

/// Builds the packages, measures, prints a table and writes JSON and a chart.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    if options.postgres {
        return postgres::run(&options.only, options.repeat, options.skip_published);
    }
    let plan = options.plan()?;
    let programs = build::programs(!options.skip_published)?;
    let scratch = Scratch::new()?;
    let machine = machine::describe();
    let begin = Instant::now();
    let rows = measure_all(&plan, &programs, &scratch.0);
    let durability = durability::observe(&programs, &scratch.0);
    let results = Results {
        profile: plan.name.to_owned(),
        machine,
        durability,
        seconds: begin.elapsed().as_secs(),
        rows,
    };
    println!("{}", table::render(&results));
    for file in write(&results)? {
        println!("wrote {}", file.display());
    }
    if options.update { document::update(&results) } else { Ok(()) }
}

/// Row by row; within a row the implementations take turns, so that a busy minute of the machine hits all of them.
fn measure_all(plan: &Plan, programs: &Programs, scratch: &Path) -> Vec<Measured> {
    let count = plan.rows.len();
    let rows = plan.rows.iter().enumerate();
    rows.map(|(index, row)| {
        eprintln!("[{}/{count}] {}", index + 1, row.title);
        measure(row, programs, scratch)
    })
    .collect()
}

fn measure(row: &Row, programs: &Programs, scratch: &Path) -> Measured {
    let mut cells: Vec<Cell> = row
        .runs
        .iter()
        .map(|run| Cell { side: run.side, args: run.args.clone(), runs: Vec::new() })
        .collect();
    for _ in 0..row.repeat {
        for cell in &mut cells {
            let result = programs.run(cell.side, &cell.args, scratch);
            eprintln!("    {:<11} {}", cell.side.title(), results::brief(&result, &row.lines));
            cell.runs.push(result);
        }
    }
    Measured { row: row.clone(), cells }
}

fn write(results: &Results) -> Result<Vec<PathBuf>, String> {
    let folder = Path::new(RESULTS_FOLDER);
    let json = serde_json::to_string_pretty(results).map_err(|error| error.to_string())?;
    let texts = [("json", json), ("md", table::render(results)), ("svg", chart::render(results))];
    fs::create_dir_all(folder).map_err(|error| format!("cannot make {RESULTS_FOLDER}: {error}"))?;
    let mut files = Vec::new();
    for (extension, text) in texts {
        let file = folder.join(format!("{}.{extension}", results.profile));
        fs::write(&file, text + "\n").map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        files.push(file);
    }
    Ok(files)
}

/// The folder below which workloads make theirs; removed at the end, with the files of killed workloads.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, String> {
        let path = Path::new(SCRATCH_FOLDER).join(std::process::id().to_string());
        fs::create_dir_all(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        let path = path.canonicalize().map_err(|error| error.to_string())?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}
