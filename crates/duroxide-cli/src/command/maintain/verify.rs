//! `verify`: checks whether the code of this program can go on with the running instances.

use clap::Args;
use duroxide::testing::{VerifyError, VerifyReport, verify_open_instances};
use serde_json::json;

use crate::{
    command::Context,
    exit::{Exit, Failure, Outcome},
    output::{Answer, Line, Text, Tone, clean},
    progress::Progress,
};

/// `verify`
#[derive(Debug, Args)]
pub struct Verify {}

impl Verify {
    pub(crate) async fn run(&self, context: Context<'_>) -> Outcome {
        let store = context.reader().await?;
        let handlers = context.handlers.ok_or_else(|| {
            Failure::refused("this program has no handlers to replay instances with").advise(
                "make this command line a subcommand of the program that has them: see docs/command-line.md",
            )
        })?;
        let mut progress = Progress::new("verifying");
        let report = verify_open_instances(&store.provider(), handlers, |so_far| {
            progress.show(so_far.checked, so_far.total);
        })
        .await;
        drop(progress);
        let report = report.map_err(failure)?;
        context.out.print(&answer(&report))?;
        Ok(if report.failed() == 0 { Exit::Done } else { Exit::Failed })
    }
}

fn failure(error: VerifyError) -> Failure {
    let text = error.to_string();
    if let VerifyError::Store(error) = error { error.into() } else { Failure::failed(text) }
}

fn answer(report: &VerifyReport) -> Answer {
    let tone = if report.failed() == 0 { Tone::Good } else { Tone::Bad };
    let mut lines = report.to_string().lines().map(clean).collect::<Vec<_>>().into_iter();
    let first = lines.next().unwrap_or_default();
    let findings = report.findings().map(|finding| {
        json!({
            "name": finding.name,
            "version": finding.version,
            "instances": finding.instances,
            "example": finding.example,
            "error": finding.error.to_string(),
        })
    });
    Answer {
        text: Text::default().line(Line::toned(tone, first)).lines(lines.map(Line::new)),
        json: json!({
            "checked": report.checked(),
            "ended_meanwhile": report.ended_meanwhile(),
            "failed": report.failed(),
            "findings": findings.collect::<Vec<_>>(),
        }),
        ids: report.findings().map(|finding| finding.example.clone()).collect(),
    }
}
