//! The plan of a run: rows of a table, each a workload with its sizes.

use serde::Serialize;

use super::verdict::Target;

mod rows;

/// The implementation whose figures a column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Side {
    /// The published crate as it comes.
    Published,
    /// The crate durare as it comes: SQLite, synced at checkpoints only. Its workflows run steps in place.
    Durare,
    /// The crate durare on SQLite, every commit synced.
    DurareFull,
    /// Ours on SQLite, every commit synced.
    Full,
    /// Ours on SQLite, synced at checkpoints only.
    Normal,
    /// Ours without a disk, for reference.
    Memory,
}

impl Side {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Durare => "durare",
            Self::DurareFull => "durare FULL",
            Self::Full => "ours FULL",
            Self::Normal => "ours NORMAL",
            Self::Memory => "ours memory",
        }
    }

    /// The name of the store in the workload's adapter.
    pub(super) fn store(self) -> &'static str {
        match self {
            Self::Published => "default",
            Self::Full | Self::DurareFull => "full",
            Self::Normal | Self::Durare => "normal",
            Self::Memory => "memory",
        }
    }

    /// Whether these are figures of another crate, with which ours are compared.
    pub(super) fn is_other_crate(self) -> bool {
        match self {
            Self::Published | Self::Durare | Self::DurareFull => true,
            Self::Full | Self::Normal | Self::Memory => false,
        }
    }
}

/// The figure of a workload's report that a row shows.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) better: Better,
}

/// Which way a figure gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Better {
    Higher,
    Lower,
}

impl Figure {
    pub(super) const fn higher(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, better: Better::Higher }
    }

    pub(super) const fn lower(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, better: Better::Lower }
    }

    /// How many times better the first value is.
    pub(super) fn ratio(&self, ours: f64, theirs: f64) -> Option<f64> {
        let ratio = match self.better {
            Better::Higher => ours / theirs,
            Better::Lower => theirs / ours,
        };
        ratio.is_finite().then_some(ratio)
    }
}

/// A workload at one size, run on several sides. It is one or more lines of the table.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    /// The name by which `--only` chooses it; several rows may share one.
    pub(super) name: &'static str,
    pub(super) title: String,
    /// The arguments for ours, and for the published crate where they differ.
    pub(super) sizes: &'static str,
    pub(super) lines: Vec<Line>,
    pub(super) repeat: usize,
    pub(super) runs: Vec<SideRun>,
}

/// A figure of a workload as the table shows it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Line {
    /// The suffix of this line to the row's title.
    pub(super) label: &'static str,
    pub(super) figure: Figure,
    pub(super) target: Option<Target>,
    /// The figure depends on the size, and the other crate ran a smaller one.
    pub(super) only_ours: bool,
}

impl Line {
    fn new(label: &'static str, figure: Figure) -> Self {
        Self { label, figure, target: None, only_ours: false }
    }

    fn at_least_times(mut self, times: f64) -> Self {
        self.target = Some(Target::Times(times));
        self
    }

    fn below(mut self, bound: f64) -> Self {
        self.target = Some(Target::Below(bound));
        self
    }

    fn only_ours(mut self) -> Self {
        self.only_ours = true;
        self
    }
}

/// The arguments for one column of a row.
#[derive(Debug, Clone, Serialize)]
pub(super) struct SideRun {
    pub(super) side: Side,
    pub(super) args: String,
}

impl Row {
    /// A row that is measured once, at FULL and by the published crate, with these arguments. Where the published crate
    /// is slow its sizes are smaller.
    fn new(name: &'static str, title: &str, sizes: &'static str, ours: &str, published: &str) -> Self {
        let (ours, published) = (format!("{name} {ours}"), format!("{name} {published}"));
        Self::beside(Side::Published, name, title, sizes, &ours, &published)
    }

    /// A row that is measured once, at FULL and by another crate, with these commands.
    fn beside(
        other: Side,
        name: &'static str,
        title: &str,
        sizes: &'static str,
        ours: &str,
        others: &str,
    ) -> Self {
        let run = |side, args: &str| SideRun { side, args: args.trim_end().to_owned() };
        let runs = vec![run(other, others), run(Side::Full, ours)];
        Self { name, title: title.to_owned(), sizes, lines: Vec::new(), repeat: 1, runs }
    }

    /// Both implementations with so many slots of each kind, instead of their default options.
    fn slots(mut self, count: u32) -> Self {
        for run in &mut self.runs {
            run.args += &format!(" --slots {count}");
        }
        self.title += &format!(", {count}+{count} slots");
        self
    }

    fn line(mut self, line: Line) -> Self {
        self.lines.push(line);
        self
    }

    /// Runs the same at NORMAL and in memory.
    fn on_all_stores(self) -> Self {
        self.also(Side::Normal).also(Side::Memory)
    }

    /// Runs the same on another of our stores.
    fn also(mut self, side: Side) -> Self {
        if let Some(full) = self.runs.iter().find(|run| run.side == Side::Full) {
            self.runs.push(SideRun { side, args: full.args.clone() });
        }
        self
    }

    fn repeat(mut self, count: usize) -> Self {
        self.repeat = count;
        self
    }
}

/// The rows of a run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) name: &'static str,
    pub(super) rows: Vec<Row>,
}

impl Plan {
    pub(super) fn quick() -> Self {
        Self { name: "quick", rows: rows::quick() }
    }

    pub(super) fn full() -> Self {
        Self { name: "full", rows: rows::full() }
    }

    /// Keeps the rows with these names; all if there are none.
    pub(super) fn keep_only(&mut self, names: &[String]) -> Result<(), String> {
        if let Some(unknown) = names.iter().find(|name| !self.names().contains(&name.as_str())) {
            return Err(format!("there is no workload {unknown}, but: {}", self.names().join(", ")));
        }
        self.rows.retain(|row| names.is_empty() || names.iter().any(|name| name == row.name));
        Ok(())
    }

    /// Leaves out the other crates.
    pub(super) fn skip_other_crates(&mut self) {
        for row in &mut self.rows {
            row.runs.retain(|run| !run.side.is_other_crate());
        }
    }

    /// Repeats every row so often.
    pub(super) fn repeat(&mut self, count: usize) {
        for row in &mut self.rows {
            row.repeat = count;
        }
    }

    fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.rows.iter().map(|row| row.name).collect();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_chooses_by_name() {
        let mut plan = Plan::quick();
        plan.keep_only(&["hello".to_owned()]).unwrap();
        assert!(!plan.rows.is_empty());
        assert!(plan.rows.iter().all(|row| row.name == "hello"));
    }

    #[test]
    fn an_unknown_name_is_refused_and_the_known_ones_are_listed() {
        let error = Plan::quick().keep_only(&["helo".to_owned()]).unwrap_err();
        assert!(error.starts_with("there is no workload helo, but: hello"), "{error}");
    }

    #[test]
    fn other_crates_can_be_left_out() {
        for mut plan in [Plan::quick(), Plan::full()] {
            plan.skip_other_crates();
            for row in plan.rows {
                assert!(row.runs.iter().all(|run| !run.side.is_other_crate()), "{}", row.title);
                assert!(!row.runs.is_empty(), "{}", row.title);
            }
        }
    }

    #[test]
    fn every_repetition_has_a_true_median() {
        for plan in [Plan::quick(), Plan::full()] {
            for row in plan.rows {
                assert_eq!(row.repeat % 2, 1, "{} is repeated {} times", row.title, row.repeat);
            }
        }
    }

    #[test]
    fn a_shorter_time_is_as_much_better_as_a_higher_rate() {
        assert_eq!(Figure::higher("instances_per_s", "/s").ratio(500.0, 100.0), Some(5.0));
        assert_eq!(Figure::lower("p50_ms", "ms").ratio(2.0, 10.0), Some(5.0));
        assert_eq!(Figure::lower("p50_ms", "ms").ratio(0.0, 10.0), None);
    }
}
