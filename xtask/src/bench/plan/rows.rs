//! The sizes and targets of every row.

use super::{Figure, Line, Row, Side};

const RATE: Figure = Figure::higher("instances_per_s", "instances/s");
const TOTAL: Figure = Figure::lower("total_s", "s");

/// How many slots of each kind there are where it is not the default.
const SLOTS: u32 = 64;

/// Small sizes, the stores that matter most.
pub(super) fn quick() -> Vec<Row> {
    vec![
        hello("2,000 / 200", "--instances 2000", "--instances 200").slots(SLOTS).on_all_stores().repeat(3),
        hello("2,000 / 500", "--instances 2000", "--instances 500").repeat(3),
        latency("200 / 20", "--instances 200", "--instances 20").repeat(3),
        sequence("500 / 40", "--instances 500", "--instances 40").slots(SLOTS),
        sequence("500 / 40", "--instances 500", "--instances 40").repeat(3),
        fan_out("50 / 10", "--instances 50", "--instances 10").slots(SLOTS),
        fan_out("50 / 5", "--instances 50", "--instances 5").repeat(3),
        children("50 / 20", "--instances 50", "--instances 20 --limit-s 10").slots(SLOTS),
        children("50 / 20", "--instances 50", "--instances 20 --limit-s 20").repeat(3),
        timers("1,000 / 300", "--lead-s 4", "--instances 300 --lead-s 5").repeat(3),
        event("50 / 20", "--instances 50", "--instances 20").repeat(3),
        long("2,000 / 200 at 1 ms poll", "--activities 2000", "--activities 200"),
        continue_as_new("10 × 100 / 5 × 20", "", "--instances 5 --executions 20"),
        waiting("10,000 / 300", "--instances 10000", "--instances 300")
            .line(Line::new("wake all", TOTAL).below(3.0).only_ours()),
        nothing("4 s", "--seconds 4").repeat(3),
        restart("2,000 / 200", "--instances 2000", "--instances 200"),
        payload_10_kib("500 / 100", "--instances 500", "--instances 100").repeat(3),
        payload_100_kib("200 / 50", "--instances 200", "--instances 50").repeat(3),
        replay("3 × 5,000 / 3 × 300", "--instances 3", "--instances 3 --activities 300"),
        two_processes("2,000 / 200", "--instances 2000", "--instances 200").slots(SLOTS),
    ]
    .into_iter()
    .chain(beside_durare())
    .collect()
}

/// Steps in place compared with durare, which runs its steps this way. It is measured with the same durability as ours, and
/// with its defaults, with which it syncs only at checkpoints.
fn beside_durare() -> impl Iterator<Item = Row> {
    const SIDES: [(Side, &str); 2] =
        [(Side::DurareFull, "durare at FULL"), (Side::Durare, "durare as it comes")];
    SIDES.into_iter().flat_map(|(durare, title)| {
        let beside = |name, row: &str, sizes, args| {
            Row::beside(durare, name, &format!("{row}, beside {title}"), sizes, args, args).repeat(3)
        };
        let p50 = Figure::lower("p50_ms", "ms");
        let each = Figure::lower("p50_ms", "ms each");
        [
            beside("step", "one step, alone", "200", "step --instances 200")
                .line(Line::new("p50", p50).below(1.5))
                .line(Line::new("p99", Figure::lower("p99_ms", "ms"))),
            beside("steps", "100 steps in a row", "20", "steps --instances 20")
                .line(Line::new("", each).below(0.5)),
            beside(
                "steps-at-once",
                "one step, 64 at once",
                "2,000",
                "steps-at-once --instances 2000 --slots 64",
            )
            .line(Line::new("", RATE).at_least_times(1.0)),
        ]
    })
}

/// All sizes on all stores.
pub(super) fn full() -> Vec<Row> {
    let rows = vec![
        hello("2,000", "--instances 2000", "--instances 2000").slots(SLOTS),
        hello("2,000", "--instances 2000", "--instances 2000"),
        hello("20,000 / 2,000", "--instances 20000", "--instances 2000").slots(SLOTS),
        latency("500 / 50", "--instances 500", "--instances 50"),
        sequence("1,000 / 100", "--instances 1000", "--instances 100").slots(SLOTS),
        sequence("1,000 / 100", "--instances 1000", "--instances 100"),
        fan_out("50 / 20", "--instances 50", "--instances 20").slots(SLOTS),
        fan_out("50 / 20", "--instances 50", "--instances 20"),
        children("50", "--instances 50", "--instances 50 --limit-s 30").slots(SLOTS),
        children("50", "--instances 50", "--instances 50"),
        timers("1,000", "--lead-s 4", "--lead-s 15").slots(SLOTS),
        timers("1,000", "--lead-s 4", "--lead-s 15"),
        event("100 / 50", "--instances 100", "--instances 50"),
        continue_as_new("10 × 100 / 10 × 20", "", "--executions 20"),
        nothing("10 s", "--seconds 10"),
        payload_10_kib("1,000 / 200", "--instances 1000", "--instances 200").slots(SLOTS),
        payload_100_kib("200 / 100", "--instances 200", "--instances 100").slots(SLOTS),
    ];
    let mut rows: Vec<Row> = rows.into_iter().map(|row| row.on_all_stores().repeat(3)).collect();
    // A store in memory is lost with its process and not seen by another one.
    rows.extend([
        two_processes("2,000 / 500", "--instances 2000", "--instances 500")
            .slots(SLOTS)
            .also(Side::Normal)
            .repeat(3),
        restart("2,000 / 200", "--instances 2000", "--instances 200").slots(SLOTS).also(Side::Normal),
        restart("2,000 / 200", "--instances 2000", "--instances 200").also(Side::Normal),
        replay("3 × 5,000 / 3 × 1,000", "--instances 3", "--instances 3 --activities 1000")
            .also(Side::Normal),
    ]);
    rows.extend(beside_durare());
    // These take minutes with the published crate.
    rows.extend([
        long("100 / 100 at 1 ms poll", "--activities 100", "--activities 100").on_all_stores(),
        long("10,000 / 2,000 at 1 ms poll", "--activities 10000", "--activities 2000").on_all_stores(),
        waiting("10,000", "--instances 10000", "--instances 10000 --limit-s 400")
            .line(Line::new("wake all", TOTAL).below(3.0)),
    ]);
    rows
}

fn hello(sizes: &'static str, ours: &str, published: &str) -> Row {
    Row::new("hello", "hello", sizes, ours, published).line(Line::new("", RATE).at_least_times(50.0))
}

fn latency(sizes: &'static str, ours: &str, published: &str) -> Row {
    Row::new("latency", "hello, alone", sizes, ours, published)
        .line(Line::new("p50", Figure::lower("p50_ms", "ms")).below(3.0))
        .line(Line::new("p99", Figure::lower("p99_ms", "ms")).below(10.0))
}

fn sequence(sizes: &'static str, ours: &str, published: &str) -> Row {
    Row::new("sequence", "sequence of 10", sizes, ours, published)
        .line(Line::new("", RATE).at_least_times(50.0))
}

fn fan_out(sizes: &'static str, ours: &str, published: &str) -> Row {
    Row::new("fan-out", "fan-out of 100", sizes, ours, published)
        .line(Line::new("", RATE).at_least_times(40.0))
}

fn children(sizes: &'static str, ours: &str, published: &str) -> Row {
    Row::new("children", "10 children", sizes, ours, published).line(Line::new("", RATE).at_least_times(40.0))
}

fn timers(sizes: &'static str, ours: &str, published: &str) -> Row {
    Row::new("timers", "timers due together", sizes, ours, published)
        .line(Line::new("last", Figure::lower("late_last_ms", "ms late")).below(100.0))
        .line(Line::new("p50", Figure::lower("late_p50_ms", "ms late")))
}

fn event(sizes: &'static str, ours: &str, published: &str) -> Row {
    Row::new("event", "event to resume", sizes, ours, published)
        .line(Line::new("p50", Figure::lower("resume_p50_ms", "ms")).below(2.0))
        .line(Line::new("p99", Figure::lower("resume_p99_ms", "ms")))
}

/// At its default options the published crate only waits for its next poll; polling every millisecond shows its work.
fn long(sizes: &'static str, ours: &str, published: &str) -> Row {
    let published = format!("{published} --poll-ms 1");
    Row::new("long", "sequential activities", sizes, ours, &published)
        .line(Line::new("first tenth", Figure::lower("first_tenth_ms", "ms each")))
        .line(Line::new("last tenth", Figure::lower("last_tenth_ms", "ms each")).below(2.0))
        .line(Line::new("last beside 100th", Figure::lower("growth", "×")).below(1.2).only_ours())
}

fn continue_as_new(sizes: &'static str, ours: &str, published: &str) -> Row {
    let rate = Figure::higher("executions_per_s", "executions/s");
    Row::new("continue-as-new", "continue-as-new", sizes, ours, published).line(Line::new("", rate))
}

fn waiting(sizes: &'static str, ours: &str, published: &str) -> Row {
    Row::new("idle", "waiting instances", sizes, ours, published)
        .line(Line::new("while they wait", Figure::lower("cpu_percent", "% of a core")))
        .line(Line::new("memory", Figure::lower("resident_mib", "MiB")).only_ours())
        .line(Line::new("woken", RATE))
}

fn nothing(sizes: &'static str, seconds: &str) -> Row {
    let args = format!("--instances 0 {seconds}");
    Row::new("idle", "nothing to do", sizes, &args, &args)
        .line(Line::new("", Figure::lower("cpu_percent", "% of a core")).below(0.1))
        .line(Line::new("calls of the store", Figure::lower("store_calls_per_s", "/s")))
        .line(Line::new("thread wake-ups", Figure::lower("wake_ups_per_s", "/s")))
}

fn restart(sizes: &'static str, ours: &str, published: &str) -> Row {
    Row::new("restart", "kill -9, then until all done", sizes, ours, published)
        .line(Line::new("", TOTAL).below(2.0))
}

fn payload_10_kib(sizes: &'static str, ours: &str, published: &str) -> Row {
    let bytes = |args| format!("{args} --bytes 10240");
    Row::new("payload", "hello with 10 KiB", sizes, &bytes(ours), &bytes(published))
        .line(Line::new("", RATE).at_least_times(25.0))
}

fn payload_100_kib(sizes: &'static str, ours: &str, published: &str) -> Row {
    let bytes = |args| format!("{args} --bytes 102400");
    Row::new("payload", "hello with 100 KiB", sizes, &bytes(ours), &bytes(published))
        .line(Line::new("", RATE).at_least_times(10.0))
}

fn replay(sizes: &'static str, ours: &str, published: &str) -> Row {
    Row::new("replay", "cold replay", sizes, ours, published)
        .line(Line::new("", Figure::higher("events_per_s", "events/s")))
}

fn two_processes(sizes: &'static str, ours: &str, published: &str) -> Row {
    Row::new("two-processes", "hello, two processes on one file", sizes, ours, published)
        .line(Line::new("", RATE))
}
