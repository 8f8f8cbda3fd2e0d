//! Files of earlier schemas.

use std::time::{Duration, SystemTime};

use duroxide_postgres::{PostgresOptions, SchemaName};
use postgres_server::Server;

use crate::{
    fixture::{fresh_options, sql::Admin},
    story::{DAY, HOUR},
};

/// The file of version n at n - 1.
pub(crate) const FILES: [&str; 4] = [
    include_str!("../schemas/v1.sql"),
    include_str!("../schemas/v2.sql"),
    include_str!("../schemas/v3.sql"),
    include_str!("../schemas/v4.sql"),
];

/// The schema in the files.
pub(crate) const SCHEMA: &str = "upgraded";
const DUMPED_AT: &str = "-- Dumped at ";

/// Loads a file into a schema of its own, as if it had been dumped two hours ago: its timers are due, and its leases last for most
/// of a day.
pub(crate) async fn load(server: &Server, version: usize) -> PostgresOptions {
    let text = FILES[version - 1];
    let dumped_at =
        text.lines().find_map(|line| line.strip_prefix(DUMPED_AT)).unwrap().parse::<i64>().unwrap();
    let mut options = fresh_options(server);
    options.rules.orphan_message_ttl = DAY;
    let shift = micros(now() - 2 * HOUR) - dumped_at;
    let sql = shifted(text, shift).replace(SCHEMA, options.schema.as_str());
    Admin::connect(server).await.run(&sql).await;
    options
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap()
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap()
}

/// The text with all its times later by so many microseconds. Numbers of 16 digits are microseconds, those of 13 are milliseconds.
fn shifted(text: &str, micros: i64) -> String {
    let mut shifted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(from) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let (before, word) = rest.split_at(from);
        let (word, after) =
            word.split_at(word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len()));
        shifted.push_str(before);
        match (word.len(), word.parse::<i64>()) {
            (16, Ok(time)) => shifted.push_str(&(time + micros).to_string()),
            (13, Ok(time)) => shifted.push_str(&(time + micros / 1_000).to_string()),
            _ => shifted.push_str(word),
        }
        rest = after;
    }
    shifted + rest
}

/// Dumps the schema of the files into a file of this version.
pub(crate) fn dump(server: &Server, version: usize, commit: &str) {
    let dumped_at = micros(now());
    let mut command = std::process::Command::new("pg_dump");
    command.args([&format!("--schema={SCHEMA}"), "--inserts", "--no-owner", "--no-privileges"]);
    let output = command.arg(format!("--dbname={}", server.socket_url())).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let is_kept = |line: &&str| {
        let is_setting = line.starts_with("SET ") || line.contains("set_config");
        !(line.is_empty() || line.starts_with("--") || line.starts_with('\\') || is_setting)
    };
    let lines: Vec<&str> = text.lines().filter(is_kept).collect();
    let header = format!(
        "-- A schema of version {version} with instances inside, as commit {commit} left it.\n\
        -- Made by `writes_the_file_of_this_schema` in upgrades/main.rs.\n{DUMPED_AT}{dumped_at}\n"
    );
    let path = format!("{}/tests/schemas/v{version}.sql", env!("CARGO_MANIFEST_DIR"));
    std::fs::write(path, header + &lines.join("\n") + "\n").unwrap();
}

/// Options for the schema of the files.
pub(crate) fn options_of_files(server: &Server) -> PostgresOptions {
    let mut options = fresh_options(server);
    options.schema = SchemaName::new(SCHEMA).unwrap();
    options.rules.orphan_message_ttl = DAY;
    options
}
