//! The workloads on PostgreSQL, with their targets.

use std::fmt;

use crate::bench::{plan::Figure, table::number, verdict::Verdict};

/// A measured implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// The registry crate `duroxide-pg`.
    DuroxidePg,
    /// The registry crate `durare`, whose workflows have steps in place of activities, without a queue between them.
    Durare,
    Ours,
}

impl Side {
    pub(super) const ALL: [Self; 3] = [Self::DuroxidePg, Self::Durare, Self::Ours];

    /// The package below `bench/`.
    pub(super) fn package(self) -> &'static str {
        match self {
            Self::DuroxidePg => "duroxide-pg",
            Self::Durare => "durare",
            Self::Ours => "ours",
        }
    }
}

/// How a workload reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Direct,
    /// With a millisecond more for each round trip.
    Delayed,
}

/// The target of ours.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    AtLeast(f64),
    Below(f64),
    /// So many times better than another crate.
    Times(f64, Side),
    /// So many times the rate of the workload before, unless all cores are busy; then at least its rate.
    Scales(f64),
}

/// From how many percent on the cores count as busy.
const BUSY_PERCENT: f64 = 90.0;

/// The figure that a target compares ours with.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Beside {
    /// Our figure of the workload before.
    pub(super) before: Option<f64>,
    /// The share of all cores that was used meanwhile, in percent.
    pub(super) cores_busy: Option<f64>,
}

impl Target {
    /// Compares a figure of ours with that of the named crate and that of the workload before.
    pub(super) fn judge(
        self,
        figure: Figure,
        ours: f64,
        theirs: impl Fn(Side) -> Option<f64>,
        beside: Beside,
    ) -> Option<Verdict> {
        let met = match self {
            Self::AtLeast(bound) => ours >= bound,
            Self::Below(bound) => ours < bound,
            Self::Times(times, side) => figure.ratio(ours, theirs(side)?)? >= times,
            Self::Scales(times) => {
                let are_busy = beside.cores_busy.is_some_and(|percent| percent >= BUSY_PERCENT);
                figure.ratio(ours, beside.before?)? >= if are_busy { 1.0 } else { times }
            }
        };
        Some(if met { Verdict::Met } else { Verdict::Missed })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, "≥ {}", number(*bound)),
            Self::Below(bound) => write!(f, "< {}", number(*bound)),
            Self::Times(times, side) => write!(f, "≥ {} × {}", number(*times), side.package()),
            Self::Scales(times) => {
                let times = number(*times);
                write!(f, "≥ {times} × one process less, with {BUSY_PERCENT} % of the cores busy ≥ 1 ×")
            }
        }
    }
}

/// A figure of a case.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) label: &'static str,
    pub(super) figure: Figure,
    pub(super) targets: Vec<Target>,
}

/// A workload with its sizes.
#[derive(Debug)]
pub(super) struct Case {
    /// By which `--only` chooses it.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) route: Route,
    pub(super) lines: Vec<Line>,
    args: Vec<(Side, &'static str)>,
}

impl Case {
    fn new(name: &'static str, title: &'static str, ours: &'static str) -> Self {
        let args = vec![(Side::Ours, ours)];
        Self { name, title, route: Route::Direct, lines: Vec::new(), args }
    }

    fn beside(mut self, side: Side, args: &'static str) -> Self {
        self.args.push((side, args));
        self
    }

    fn delayed(mut self) -> Self {
        self.route = Route::Delayed;
        self
    }

    fn line(mut self, label: &'static str, figure: Figure, targets: impl Into<Vec<Target>>) -> Self {
        self.lines.push(Line { label, figure, targets: targets.into() });
        self
    }

    /// The arguments for a side, if it has the workload.
    pub(super) fn args(&self, side: Side) -> Option<&'static str> {
        self.args.iter().find(|(of, _)| *of == side).map(|(_, args)| *args)
    }
}

const RATE: Figure = Figure::higher("instances_per_s", "instances/s");
/// Client, nodes and server share the cores.
pub(super) const CORES_BUSY: Figure = Figure::higher("cores_busy_percent", "%");
const P50: Figure = Figure::lower("p50_ms", "ms");
const P99: Figure = Figure::lower("p99_ms", "ms");

/// The cases with these names; all if there are none.
pub(super) fn chosen(names: &[String]) -> Result<Vec<Case>, String> {
    let all = all();
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|case| case.name == **name)) {
        let known: Vec<&str> = all.iter().map(|case| case.name).collect();
        return Err(format!("there is no workload {unknown}, but: {}", known.join(", ")));
    }
    Ok(all
        .into_iter()
        .filter(|case| names.is_empty() || names.iter().any(|name| name == case.name))
        .collect())
}

/// Rates compare per instance: where another crate is slow its sizes are smaller.
fn all() -> Vec<Case> {
    use Target::{AtLeast, Below, Scales, Times};
    vec![
        Case::new("hello", "hello, one process", "hello --instances 10000 --slots 64")
            .beside(Side::DuroxidePg, "hello --instances 300 --slots 64")
            .beside(Side::Durare, "hello --instances 2000 --slots 64")
            .line("", RATE, [AtLeast(5_000.0), Times(20.0, Side::DuroxidePg), Times(3.5, Side::Durare)])
            .line("cores busy", CORES_BUSY, []),
        Case::new("two", "hello, two processes", "two-processes --instances 10000 --slots 64")
            .beside(Side::DuroxidePg, "two-processes --instances 300 --slots 64")
            .line("", RATE, [Scales(1.2)])
            .line("cores busy", CORES_BUSY, []),
        Case::new(
            "three",
            "hello, three processes",
            "two-processes --processes 3 --instances 10000 --slots 64",
        )
        .line("", RATE, [Scales(1.2)])
        .line("cores busy", CORES_BUSY, []),
        Case::new("alone", "hello, alone", "latency --instances 300")
            .beside(Side::DuroxidePg, "latency --instances 30")
            .beside(Side::Durare, "latency --instances 300")
            .line("p50", P50, [Below(3.5)])
            .line("p99", P99, [Below(12.0)]),
        Case::new("delayed", "hello with 1 ms more for each round trip", "hello --instances 3000 --slots 64")
            .beside(Side::DuroxidePg, "hello --instances 100 --slots 64")
            .beside(Side::Durare, "hello --instances 1000 --slots 64")
            .delayed()
            .line("", RATE, [AtLeast(1_500.0)]),
        Case::new(
            "delayed-alone",
            "hello, alone, with 1 ms more for each round trip",
            "latency --instances 100",
        )
        .beside(Side::DuroxidePg, "latency --instances 20")
        .beside(Side::Durare, "latency --instances 100")
        .delayed()
        .line("p50", P50, [Below(15.0)]),
        Case::new("event", "event to resume, across two processes", "event-across --instances 100")
            .beside(Side::DuroxidePg, "event-across --instances 20")
            .line("p50", Figure::lower("resume_p50_ms", "ms"), [Below(5.0)]),
        Case::new("long", "sequential activities", "long --activities 10000").line(
            "10,000th beside the 100th",
            Figure::lower("growth", "×"),
            [Below(1.2)],
        ),
        Case::new("waiting", "10,000 waiting instances", "idle --instances 10000 --seconds 10")
            .line("wake all", Figure::lower("total_s", "s"), [Below(5.0)])
            .line("while they wait", Figure::lower("cpu_percent", "% of a core"), []),
        Case::new("takeover", "kill -9 of one of three nodes, 1,000 activities in flight", "takeover").line(
            "all run elsewhere",
            Figure::lower("total_s", "s"),
            [Below(2.0)],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_compare_with_the_figure_they_name() {
        let judge = |target: Target, ours, theirs, before| {
            target.judge(RATE, ours, |_| theirs, Beside { before, cores_busy: None })
        };
        assert_eq!(judge(Target::AtLeast(5.0), 5.0, None, None), Some(Verdict::Met));
        assert_eq!(judge(Target::Below(5.0), 5.0, None, None), Some(Verdict::Missed));
        assert_eq!(judge(Target::Times(2.0, Side::Durare), 10.0, Some(5.0), None), Some(Verdict::Met));
        assert_eq!(judge(Target::Times(2.0, Side::Durare), 10.0, None, None), None);
        assert_eq!(judge(Target::Scales(1.2), 11.0, None, Some(10.0)), Some(Verdict::Missed));
    }

    #[test]
    fn one_more_process_need_not_be_faster_where_all_cores_are_busy() {
        let judge = |ours, cores_busy| {
            let beside = Beside { before: Some(10.0), cores_busy: Some(cores_busy) };
            Target::Scales(1.2).judge(RATE, ours, |_| None, beside)
        };
        assert_eq!(judge(12.0, 50.0), Some(Verdict::Met));
        assert_eq!(judge(11.0, 89.0), Some(Verdict::Missed));
        assert_eq!(judge(10.0, 90.0), Some(Verdict::Met));
        assert_eq!(judge(9.9, 100.0), Some(Verdict::Missed), "never less than with one process less");
    }

    #[test]
    fn an_unknown_name_is_refused_and_the_known_ones_are_listed() {
        let error = chosen(&["helo".to_owned()]).unwrap_err();
        assert!(error.starts_with("there is no workload helo, but: hello, two"), "{error}");
        assert_eq!(chosen(&["alone".to_owned()]).unwrap().len(), 1);
    }
}
