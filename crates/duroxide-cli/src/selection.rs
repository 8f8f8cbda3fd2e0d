//! The instances that a command works on: ids on the command line, ids on stdin, or criteria.

use std::io;

use clap::{Args, ValueEnum};
use duroxide::{Client, InstanceInfo, InstanceQuery};

use crate::{
    exit::{Failure, Outcome},
    time::Moment,
};

/// The argument that means ids on stdin.
const STDIN: &str = "-";
/// Instances per page of a listing.
const PAGE: u32 = 500;

/// Instances by their ids.
#[derive(Debug, Clone, Args)]
pub(crate) struct Ids {
    /// Ids of instances; `-` reads them from stdin, one per line
    #[arg(value_name = "INSTANCE", required = true)]
    ids: Vec<String>,
}

impl Ids {
    pub(crate) fn read(&self) -> Outcome<Vec<String>> {
        read_ids(&self.ids)
    }
}

/// The given ids, with `-` replaced by the ids on stdin.
pub(crate) fn read_ids(given: &[String]) -> Outcome<Vec<String>> {
    let mut ids = Vec::new();
    for id in given {
        if id == STDIN {
            ids.extend(lines(io::stdin().lock())?);
        } else {
            ids.push(id.clone());
        }
    }
    Ok(ids)
}

/// The lines of the input, without empty ones.
fn lines(input: impl io::BufRead) -> io::Result<Vec<String>> {
    let lines = input.lines().filter(|line| line.as_ref().map_or(true, |line| !line.is_empty()));
    lines.collect()
}

/// The status of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Status {
    /// Its start was accepted, and no node has begun it.
    Pending,
    /// A node has begun it, and it has not ended.
    Running,
    /// Its code returned `Ok`.
    Completed,
    /// Its code returned `Err`, or it was cancelled or failed otherwise.
    Failed,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Pending => InstanceQuery::PENDING,
            Self::Running => "Running",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
        }
    }
}

/// Criteria of instances; all of them must hold.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Criteria")]
pub(crate) struct Filter {
    /// Only instances with this status
    #[arg(long, value_enum, ignore_case = true)]
    status: Option<Status>,
    /// Only instances of this orchestration
    #[arg(long)]
    name: Option<String>,
    /// Only instances whose current execution has this handler version
    #[arg(long, value_name = "VERSION")]
    handler_version: Option<String>,
    /// Only instances whose id begins with this text
    #[arg(long)]
    prefix: Option<String>,
    /// Only children of this instance
    #[arg(long, value_name = "INSTANCE")]
    parent: Option<String>,
    /// Only instances without a parent
    #[arg(long)]
    roots: bool,
    /// Created at this time or later: 2026-11-17T07:38:21Z, or an age such as 2h
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    created_after: Option<Moment>,
    /// Created before this time, or longer ago than this age
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    created_before: Option<Moment>,
    /// Last changed at this time or later
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    updated_after: Option<Moment>,
    /// Last changed before this time: of an ended instance, when it ended
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    updated_before: Option<Moment>,
}

impl Filter {
    pub(crate) fn query(&self) -> InstanceQuery {
        let mut query = InstanceQuery::default();
        query.status = self.status.map(|status| status.name().to_owned());
        query.orchestration_name = self.name.clone();
        query.orchestration_version = self.handler_version.clone();
        query.id_prefix = self.prefix.clone();
        query.parent = self.parent.clone();
        query.roots_only = self.roots;
        query.created_from = self.created_after.map(|at| at.0);
        query.created_before = self.created_before.map(|at| at.0);
        query.updated_from = self.updated_after.map(|at| at.0);
        query.updated_before = self.updated_before.map(|at| at.0);
        query
    }
}

/// Instances by their ids or by criteria, for commands that change many.
#[derive(Debug, Clone, Args)]
pub(crate) struct Selection {
    /// Ids of instances; `-` reads them from stdin, one per line
    #[arg(value_name = "INSTANCE")]
    ids: Vec<String>,
    #[command(flatten)]
    filter: Filter,
}

impl Selection {
    /// The ids of the selected instances. `narrow` restricts a selection by criteria, not ids that the user names.
    pub(crate) async fn ids(
        &self,
        client: &Client,
        narrow: impl FnOnce(InstanceQuery) -> InstanceQuery,
    ) -> Outcome<Vec<String>> {
        let query = self.filter.query();
        match (self.ids.is_empty(), query == InstanceQuery::default()) {
            (false, true) => read_ids(&self.ids),
            (true, false) => {
                let found = all(client, narrow(query)).await?;
                Ok(found.into_iter().map(|info| info.instance_id).collect())
            }
            (true, true) => Err(Failure::usage("no instances are named")
                .advise("give ids, `-` for ids on stdin, or criteria such as --status failed")),
            (false, false) => Err(Failure::usage("both ids and criteria are given")
                .advise("give one of them; `list` with the criteria and `-o ids` gives ids")),
        }
    }
}

/// All instances that a query selects.
async fn all(client: &Client, query: InstanceQuery) -> Outcome<Vec<InstanceInfo>> {
    let mut query = query.limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = client.query_instances(&query).await?;
        found.extend(page.instances);
        let Some(next) = page.next else { return Ok(found) };
        query = query.after(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_lines_of_stdin() {
        assert_eq!(lines(&b"a\n\nb c\n d"[..]).unwrap(), ["a", "b c", " d"]);
        assert!(lines(&b"\xff\n"[..]).is_err());
    }

    #[test]
    fn criteria_become_a_query() {
        let filter = Filter {
            status: Some(Status::Failed),
            prefix: Some("order-".to_owned()),
            created_before: Some(Moment(7)),
            ..Filter::default()
        };
        let expected = InstanceQuery::default().status("Failed").id_prefix("order-").created_before(7);
        assert_eq!(filter.query(), expected);
    }
}
