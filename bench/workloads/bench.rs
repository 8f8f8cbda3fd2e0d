//! The workloads: one source, compiled against each implementation through the API they share.
//!
//! A run executes one workload, checks every result while it measures, and prints one line of JSON. Everything that
//! differs between implementations is in the package's `adapter`.

mod activity;
mod batch;
mod children;
mod continue_as_new;
mod event;
mod fan_out;
mod handlers;
mod hello;
mod idle;
mod long;
mod node;
mod outcome;
mod payload;
mod process;
mod replay;
mod report;
mod restart;
mod scratch;
mod sequence;
mod setting;
mod spread;
mod store_calls;
mod timers;
mod two_processes;

use std::process::ExitCode;

#[allow(unused_imports, reason = "an adapter without steps runs this activity")]
pub use activity::incremented;

use clap::{Parser, Subcommand};

use outcome::Outcome;
use report::Report;
use scratch::Scratch;
use setting::Setting;

/// Runs one workload and prints its measurements as one line of JSON.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, Subcommand)]
enum Workload {
    Hello(hello::AtOnce),
    Latency(hello::OneByOne),
    Sequence(sequence::Sequence),
    Step(sequence::steps::Alone),
    Steps(sequence::steps::InARow),
    StepsAtOnce(sequence::steps::AtOnce),
    FanOut(fan_out::FanOut),
    Children(children::Children),
    Timers(timers::Timers),
    Event(event::Event),
    EventAcross(event::EventAcross),
    Long(long::Long),
    ContinueAsNew(continue_as_new::ContinueAsNew),
    Idle(idle::Idle),
    Restart(restart::Restart),
    Takeover(restart::takeover::Takeover),
    Payload(payload::Payload),
    Replay(replay::Replay),
    TwoProcesses(two_processes::TwoProcesses),
    #[command(hide = true)]
    Victim(restart::Victim),
    #[command(hide = true)]
    Helper(two_processes::Helper),
}

impl Workload {
    async fn run(&self, scratch: &Scratch) -> Result<Outcome, String> {
        match self {
            Self::Hello(workload) => workload.run(scratch).await,
            Self::Latency(workload) => workload.run(scratch).await,
            Self::Sequence(workload) => workload.run(scratch).await,
            Self::Step(workload) => workload.run(scratch).await,
            Self::Steps(workload) => workload.run(scratch).await,
            Self::StepsAtOnce(workload) => workload.run(scratch).await,
            Self::FanOut(workload) => workload.run(scratch).await,
            Self::Children(workload) => workload.run(scratch).await,
            Self::Timers(workload) => workload.run(scratch).await,
            Self::Event(workload) => workload.run(scratch).await,
            Self::EventAcross(workload) => workload.run(scratch).await,
            Self::Long(workload) => workload.run(scratch).await,
            Self::ContinueAsNew(workload) => workload.run(scratch).await,
            Self::Idle(workload) => workload.run(scratch).await,
            Self::Restart(workload) => workload.run(scratch).await,
            Self::Takeover(workload) => workload.run(scratch).await,
            Self::Payload(workload) => workload.run(scratch).await,
            Self::Replay(workload) => workload.run(scratch).await,
            Self::TwoProcesses(workload) => workload.run(scratch).await,
            Self::Victim(workload) => workload.run().await,
            Self::Helper(workload) => workload.run().await,
        }
    }

    fn setting(&self) -> &Setting {
        match self {
            Self::Hello(workload) => &workload.setting,
            Self::Latency(workload) => &workload.setting,
            Self::Sequence(workload) => &workload.setting,
            Self::Step(workload) => &workload.setting,
            Self::Steps(workload) => &workload.setting,
            Self::StepsAtOnce(workload) => &workload.setting,
            Self::FanOut(workload) => &workload.setting,
            Self::Children(workload) => &workload.setting,
            Self::Timers(workload) => &workload.setting,
            Self::Event(workload) => &workload.setting,
            Self::EventAcross(workload) => &workload.setting,
            Self::Long(workload) => &workload.setting,
            Self::ContinueAsNew(workload) => &workload.setting,
            Self::Idle(workload) => &workload.setting,
            Self::Restart(workload) => &workload.setting,
            Self::Takeover(workload) => &workload.setting,
            Self::Payload(workload) => &workload.setting,
            Self::Replay(workload) => &workload.setting,
            Self::TwoProcesses(workload) => &workload.setting,
            Self::Victim(workload) => &workload.setting,
            Self::Helper(workload) => &workload.setting,
        }
    }
}

/// Runs the workload that the command line names. A failed one still prints its line, with the error.
pub fn main() -> ExitCode {
    let workload = Cli::parse().workload;
    let outcome = measure(&workload);
    let failed = outcome.is_err();
    println!("{}", Report::new(workload.setting(), outcome).to_json());
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn measure(workload: &Workload) -> Result<Outcome, String> {
    let folder = workload.setting().folder.as_deref();
    let scratch = Scratch::below(folder).map_err(|error| format!("no folder for the data: {error}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no tokio runtime: {error}"))?;
    let mut outcome = runtime.block_on(workload.run(&scratch))?;
    // Tasks that still run belong to a measurement that is over.
    runtime.shutdown_background();
    outcome.journal_mode = scratch.journal_mode();
    Ok(outcome)
}
