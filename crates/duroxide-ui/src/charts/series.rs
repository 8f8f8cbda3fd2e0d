//! [`Series`]: starts and ends of instances over time, as bars.

use crate::format;

/// The size of the drawing, in its own units.
pub(crate) const WIDTH: u64 = 1_000;
pub(crate) const HEIGHT: u64 = 160;

/// Starts and ends of instances over time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Series {
    pub(crate) bars: Vec<Bar>,
    /// The count that the full height shows.
    pub(crate) top: String,
    pub(crate) begin: String,
    pub(crate) end: String,
    pub(crate) started: String,
    pub(crate) completed: String,
    pub(crate) failed: String,
}

/// One bar: starts on the left, ends on the right, failures on top of completions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) title: String,
    pub(crate) x: u64,
    pub(crate) half: u64,
    pub(crate) started: Block,
    pub(crate) completed: Block,
    pub(crate) failed: Block,
}

impl Bar {
    pub(crate) fn middle(&self) -> u64 {
        self.x + self.half
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) y: u64,
    pub(crate) height: u64,
}

/// Counts per bucket, the oldest first. All slices have the same length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts<'a> {
    pub(crate) started: &'a [u64],
    pub(crate) completed: &'a [u64],
    pub(crate) failed: &'a [u64],
}

/// Draws at most `bars` bars, each the sum of several buckets. The last bucket ends at `from_ms + bucket_ms * buckets`.
pub(crate) fn series(counts: Counts<'_>, from_ms: u64, bucket_ms: u64, bars: usize) -> Series {
    let buckets = counts.started.len().max(1);
    let group = buckets.div_ceil(bars.max(1)).max(1);
    let sums =
        |values: &[u64]| -> Vec<u64> { values.chunks(group).map(|chunk| chunk.iter().sum()).collect() };
    let (started, completed, failed) = (sums(counts.started), sums(counts.completed), sums(counts.failed));
    let ended = completed.iter().zip(&failed).map(|(completed, failed)| completed + failed);
    let top = ended.chain(started.iter().copied()).max().unwrap_or(0).max(1);
    let number = started.len().max(1) as u64;
    let step = WIDTH / number;
    let at = |values: &[u64], n: usize| values.get(n).copied().unwrap_or(0);
    let bars = (0..started.len()).map(|n| {
        let counts = [at(&started, n), at(&completed, n), at(&failed, n)];
        let begin = from_ms + (n * group) as u64 * bucket_ms;
        bar(counts, begin, n as u64 * WIDTH / number, step, top)
    });
    let total = |values: &[u64]| format::number(values.iter().sum());
    Series {
        bars: bars.collect(),
        top: format::number(top),
        begin: format::time(from_ms),
        end: format::time(from_ms + buckets as u64 * bucket_ms),
        started: total(&started),
        completed: total(&completed),
        failed: total(&failed),
    }
}

fn bar([started, completed, failed]: [u64; 3], begin: u64, x: u64, step: u64, top: u64) -> Bar {
    // A count above zero is always visible.
    let height = |count: u64| if count == 0 { 0 } else { (count * HEIGHT / top).max(2) };
    let block = |count: u64, below: u64| {
        let height = height(count).min(HEIGHT - below.min(HEIGHT));
        Block { y: HEIGHT - below.min(HEIGHT) - height, height }
    };
    let completed_block = block(completed, 0);
    let title = format!("{}: {started} started, {completed} completed, {failed} failed", format::time(begin));
    Bar {
        title,
        x,
        half: (step * 2 / 5).max(1),
        started: block(started, 0),
        failed: block(failed, completed_block.height),
        completed: completed_block,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_summed_and_failures_stand_on_completions() {
        let counts = Counts { started: &[1, 3, 0, 0], completed: &[0, 4, 0, 2], failed: &[0, 4, 0, 0] };
        let drawn = series(counts, 0, 60_000, 2);
        assert_eq!(drawn.top, "8");
        assert_eq!(drawn.bars.len(), 2);
        assert_eq!(drawn.bars[0].started, Block { y: 80, height: 80 });
        assert_eq!(drawn.bars[0].completed, Block { y: 80, height: 80 });
        assert_eq!(drawn.bars[0].failed, Block { y: 0, height: 80 });
        assert_eq!(drawn.bars[1].completed, Block { y: 120, height: 40 });
        assert_eq!(drawn.bars[1].title, "1970-01-01 00:02:00: 0 started, 2 completed, 0 failed");
        assert_eq!([drawn.started, drawn.completed, drawn.failed], ["4", "6", "4"]);
    }

    #[test]
    fn one_among_many_can_be_seen_and_nothing_leaves_the_drawing() {
        let counts = Counts { started: &[1_000_000], completed: &[1_000_000], failed: &[1] };
        let drawn = series(counts, 0, 1, 1);
        let Bar { completed, failed, .. } = &drawn.bars[0];
        assert!(completed.height + failed.height <= HEIGHT && completed.height > 0, "{drawn:?}");
        let counts = Counts { started: &[1, 1_000], completed: &[0, 0], failed: &[0, 0] };
        assert_eq!(series(counts, 0, 1, 2).bars[0].started.height, 2);
    }

    #[test]
    fn no_buckets_are_an_empty_drawing() {
        let drawn = series(Counts { started: &[], completed: &[], failed: &[] }, 0, 1, 60);
        assert_eq!(drawn.bars, []);
    }
}
