//! Power cuts at every single operation of a store's life.

use std::collections::BTreeSet;

use duroxide_provider::{invariant, store::StoreSnapshot};
use duroxide_sqlite::{SqliteEngine, SqliteOptions, SqliteSynchronous};
use fault_vfs::{Disk, Survival};
use rusqlite::{Connection, OpenFlags};

use crate::transcript::{FILE, Transcript, content, open};

const NORMAL: SqliteOptions = SqliteOptions {
    synchronous: SqliteSynchronous::Normal,
    orphan_message_ttl: std::time::Duration::from_secs(60),
};

/// After how many cuts one is followed by the rest of the story, which takes as long as everything else.
const CUTS_PER_SEQUEL: u64 = 16;

/// The content after one power cut.
struct Aftermath {
    /// How many steps had been answered.
    answered: usize,
    /// How many steps are in the store.
    kept: usize,
}

/// Plays the transcript again and again, cuts the power at every `stride`-th operation until there is none left (closing
/// the store included), opens the surviving file and, for some cuts, goes on with it to the end.
fn cut_everywhere(transcript: &Transcript, options: &SqliteOptions, stride: usize) -> Vec<Aftermath> {
    let template = Disk::new();
    drop(open(&template, options.clone()));
    let mut found = Vec::new();
    for nth in (1..).step_by(stride) {
        let disk = template.after_power_cut(Survival::Synced);
        let mut engine = open(&disk, options.clone());
        disk.cut_power_at(nth);
        let answered = transcript.play(&mut engine, 0);
        drop(engine);
        for survival in survivals(nth) {
            let disk = disk.after_power_cut(survival);
            let mut engine = open(&disk, options.clone());
            let kept = steps_kept(transcript, &mut engine, answered)
                .unwrap_or_else(|why| panic!("power cut at operation {nth}, {survival:?}: {why}"));
            found.push(Aftermath { answered, kept });
            if nth % CUTS_PER_SEQUEL == 0 {
                assert_eq!(transcript.play(&mut engine, kept), transcript.len(), "cut at operation {nth}");
                assert!(transcript.is_end(&content(&mut engine)), "cut at operation {nth}");
            }
        }
        if disk.has_power() {
            break;
        }
    }
    found
}

/// Nothing that was not synced, and an arbitrary part of it.
fn survivals(seed: u64) -> [Survival; 2] {
    [Survival::Synced, Survival::Torn { seed }]
}

/// Checks that the surviving content has only whole steps; returns their number.
fn steps_kept(transcript: &Transcript, engine: &mut SqliteEngine, answered: usize) -> Result<usize, String> {
    let state = sound_content(engine)?;
    // The power may have been cut after a commit and before its answer. Each part of a round is in the state after it
    // and not in the state before; a content that equals one of them is whole.
    transcript.steps_before(&state, answered + 1).ok_or_else(|| {
        format!("{answered} steps were answered, and what is there is the state after none: {state:#?}")
    })
}

fn sound_content(engine: &mut SqliteEngine) -> Result<StoreSnapshot, String> {
    let integrity = engine.pragma("integrity_check").map_err(|error| error.to_string())?;
    let state = content(engine);
    let violations = invariant::check(&state);
    if integrity == "ok" && violations.is_empty() {
        return Ok(state);
    }
    Err(format!("integrity: {integrity}, invariants: {violations:#?}"))
}

/// B19, 23.1, I10, I18: with the defaults, an answered step is stored after a power cut at any operation, and a step that
/// was not answered is stored whole or not at all.
#[test]
fn answered_steps_survive_a_power_cut_at_every_operation() {
    let transcript = Transcript::record();
    let found = cut_everywhere(&transcript, &SqliteOptions::default(), 1);
    for Aftermath { answered, kept } in &found {
        assert!(kept >= answered, "{answered} steps were answered, {kept} are there");
    }
    let seen: BTreeSet<_> = found.iter().map(|aftermath| aftermath.answered).collect();
    assert_eq!(seen.len(), transcript.len() + 1, "the power was cut in every step: {seen:?}");
}

/// I10, A17.6: with `SqliteSynchronous::Normal` the last steps may be missing after a power cut, but the content is
/// whole and in order. That some are missing also shows that these tests would find a store that does not sync.
#[test]
fn without_syncs_at_commit_a_power_cut_takes_only_the_last_steps_and_each_whole() {
    let transcript = Transcript::record();
    let found = cut_everywhere(&transcript, &NORMAL, 3);
    assert!(found.iter().any(|aftermath| aftermath.kept < aftermath.answered), "nothing was ever lost");
}

/// 23.1: a power cut while a store is made does not prevent making it afterwards.
#[test]
fn a_power_cut_while_a_store_is_made_leaves_a_file_that_can_be_opened() {
    for nth in 1.. {
        let disk = Disk::new();
        disk.cut_power_at(nth);
        drop(SqliteEngine::open(&disk.url(FILE), SqliteOptions::default()));
        for survival in survivals(nth) {
            let survivor = disk.after_power_cut(survival);
            let mut engine = SqliteEngine::open(&survivor.url(FILE), SqliteOptions::default())
                .unwrap_or_else(|error| panic!("power cut at operation {nth}, {survival:?}: {error}"));
            assert!(sound_content(&mut engine).unwrap().instances.is_empty());
        }
        if disk.has_power() {
            break;
        }
    }
}

/// A database of another program that lost power in the middle of a write is refused like any other, and still holds
/// the commits that the program had made durable.
#[test]
fn a_foreign_database_that_was_left_half_written_is_refused() {
    let connect = |disk: &Disk, flags| Connection::open_with_flags_and_vfs(FILE, flags, disk.vfs()).unwrap();
    let rows = |conn: Connection| -> rusqlite::Result<i64> {
        conn.query_row("SELECT count(*) FROM theirs", [], |row| row.get(0))
    };
    let disk = Disk::new();
    let theirs = connect(&disk, OpenFlags::default());
    // With a rollback journal a commit is durable when the journal's removal is, which is with the next commit.
    for sql in ["CREATE TABLE theirs (x)", "INSERT INTO theirs VALUES (1)", "INSERT INTO theirs VALUES (2)"] {
        theirs.execute_batch(sql).unwrap();
    }
    let disk = disk.after_power_cut(Survival::Synced);
    rows(connect(&disk, OpenFlags::SQLITE_OPEN_READ_ONLY)).expect_err("a journal waits to be rolled back");

    let refusal = SqliteEngine::open(&disk.url(FILE), SqliteOptions::default()).unwrap_err();
    assert!(!refusal.retryable && refusal.message.contains("another program"), "{refusal}");
    assert_eq!(rows(connect(&disk, OpenFlags::default())).unwrap(), 1);
}
