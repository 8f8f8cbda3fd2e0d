//! The checks at the end.

use std::{collections::BTreeMap, time::Duration};

use duroxide::prelude::*;

use crate::{timeline::Timeline, worker::LEASE};

/// How often each piece of work may have run: once, except for the activities that fail or are killed.
const EXPECTED_RUNS: &[(&str, &str, usize, &str)] = &[
    ("ReserveStock", "teapot", 1, "recorded before the crash, not run again"),
    ("ReserveStock", "kettle", 1, "recorded before the crash, not run again"),
    ("ReserveStock", "cups", 1, "recorded before the crash, not run again"),
    ("ChargeCard", "99", 2, "failed once, retried once; recorded before the crash, not run again"),
    ("FraudCheck", "99 euros charged", 2, "cut off by the crash, so the second worker ran it again"),
    ("AskManager", "99 euros charged", 1, "first reached after the crash"),
    ("PackParcel", "teapot, kettle, cups", 1, "first reached after the crash"),
    ("BookCourier", "parcel of teapot, kettle, cups", 1, "first reached after the crash"),
];

/// The summary, or the difference.
pub(crate) fn check(timeline: &Timeline, output: &str) -> Result<String, String> {
    expect(output == "99 euros charged, approved, tracking number 4711", "the result is wrong")?;
    check_records(timeline)?;
    let mut summary = String::from("What ran how often:\n");
    for (activity, input, expected, reason) in EXPECTED_RUNS {
        let runs =
            timeline.journal.iter().filter(|run| run.what == *activity && run.detail == *input).count();
        expect(runs == *expected, &format!("{activity}({input}) ran {runs} times instead of {expected}"))?;
        summary += &format!("  {runs}x  {:<45} {reason}\n", format!("{activity}({input})"));
    }
    summary += "Every result was recorded exactly once, and no timer fired early.\n";
    Ok(summary + &check_takeover(timeline)?)
}

/// The second worker did not wait for the leases of the first, because it saw that the first was dead.
fn check_takeover(timeline: &Timeline) -> Result<String, String> {
    let at = |who: &str, what: &str| {
        timeline.journal.iter().find(|entry| entry.is(who, what)).map(|entry| entry.at_ms)
    };
    let (Some(killed), Some(again)) = (at("outside", "killed"), at("worker 2", "FraudCheck")) else {
        return Err("the journal does not tell of the crash".to_owned());
    };
    let after = Duration::from_millis(again.saturating_sub(killed));
    expect(after < LEASE, "the second worker waited for the first one's lease")?;
    Ok(format!(
        "FraudCheck ran again {} ms after the kill; the dead worker's lease was {} s.",
        after.as_millis(),
        LEASE.as_secs()
    ))
}

/// Every scheduled step has exactly one outcome, and timers were not early.
fn check_records(timeline: &Timeline) -> Result<(), String> {
    let mut outcomes: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    for event in timeline.events() {
        if let Some(schedule) = event.source_event_id {
            *outcomes.entry((&event.instance_id, schedule)).or_default() += 1;
        }
        if let EventKind::TimerFired { fire_at_ms } = event.kind {
            expect(event.timestamp_ms >= fire_at_ms, "a timer fired early")?;
        }
    }
    for ((instance, schedule), count) in outcomes {
        expect(count == 1, &format!("step {schedule} of {instance} has {count} outcomes"))?;
    }
    Ok(())
}

fn expect(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}
