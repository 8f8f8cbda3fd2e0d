//! The results as a picture: how many times better ours is, on a logarithmic scale.

use std::fmt::Write;

use super::{
    plan::{Line, Side},
    results::{Measured, Results},
    table::number,
    verdict::Target,
};

const WIDTH: f64 = 960.0;
const LABELS: f64 = 300.0;
const DETAILS: f64 = 250.0;
const TOP: f64 = 64.0;
const BAR: f64 = 16.0;
const PITCH: f64 = 26.0;
const STYLE: &str = "text{font:12px sans-serif;fill:#24292f}.title{font-size:16px;font-weight:bold}\
    .soft{fill:#57606a}.grid{stroke:#d0d7de}.one{stroke:#57606a}.better{fill:#2da44e}.worse{fill:#cf222e}\
    .target{stroke:#24292f;stroke-width:2}";

/// One bar: how many times better, and the two figures it comes from.
#[derive(Debug)]
struct Bar {
    label: String,
    ratio: f64,
    detail: String,
    target: Option<f64>,
}

/// Draws one bar per row that was measured on both sides.
pub(super) fn render(results: &Results) -> String {
    let bars: Vec<Bar> = results
        .rows
        .iter()
        .flat_map(|measured| measured.row.lines.iter().filter_map(|line| bar(measured, line)))
        .collect();
    let title = format!(
        "ours (SQLite, synchronous=FULL) beside the published crate, {} cores",
        results.machine.cores
    );
    draw(&title, &bars)
}

fn bar(measured: &Measured, line: &Line) -> Option<Bar> {
    let ours = measured.sample(line, Side::Full)?.median;
    let theirs = measured.sample(line, Side::Published)?.median;
    let target = match line.target {
        Some(Target::Times(times)) => Some(times),
        // The bound as a ratio: how many times better than the published crate it would be.
        Some(Target::Below(bound)) => line.figure.ratio(bound, theirs),
        None => None,
    };
    Some(Bar {
        label: measured.title(line),
        ratio: measured.ratio(line)?,
        detail: format!("{} → {} {}", number(theirs), number(ours), line.figure.unit),
        target,
    })
}

fn draw(title: &str, bars: &[Bar]) -> String {
    let scale = Scale::over(bars);
    let bottom = TOP + PITCH * bars.len() as f64;
    let height = bottom + 40.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\"><style>{STYLE}</style>\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let _ = writeln!(svg, "<text class=\"title\" x=\"16\" y=\"26\">{}</text>", escape(title));
    let _ = writeln!(
        svg,
        "<text class=\"soft\" x=\"16\" y=\"46\">times better (logarithmic); the upright mark is the target</text>"
    );
    for power in scale.powers() {
        svg += &grid_line(&scale, power, bottom);
    }
    for (index, bar) in bars.iter().enumerate() {
        svg += &bar_line(&scale, bar, TOP + PITCH * index as f64);
    }
    svg + "</svg>"
}

fn grid_line(scale: &Scale, power: i32, bottom: f64) -> String {
    let x = scale.x(10f64.powi(power));
    let class = if power == 0 { "one" } else { "grid" };
    format!(
        "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
         <text class=\"soft\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{} ×</text>\n",
        bottom + 18.0,
        number(10f64.powi(power)).trim_end_matches(".0").trim_end_matches(".00"),
    )
}

fn bar_line(scale: &Scale, bar: &Bar, y: f64) -> String {
    let (one, end) = (scale.x(1.0), scale.x(bar.ratio));
    let class = if bar.ratio >= 1.0 { "better" } else { "worse" };
    let text_y = y + PITCH / 2.0 + 4.0;
    let bar_y = y + (PITCH - BAR) / 2.0;
    let mut line = format!(
        "<text x=\"{:.1}\" y=\"{text_y:.1}\" text-anchor=\"end\">{}</text>\
         <rect class=\"{class}\" x=\"{:.1}\" y=\"{bar_y:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\"/>\
         <text x=\"{:.1}\" y=\"{text_y:.1}\">{} ×<tspan class=\"soft\" dx=\"8\">{}</tspan></text>",
        LABELS - 10.0,
        escape(&bar.label),
        one.min(end),
        (end - one).abs(),
        one.max(end) + 8.0,
        number(bar.ratio),
        escape(&bar.detail),
    );
    if let Some(target) = bar.target {
        let x = scale.x(target);
        let _ = write!(
            line,
            "<line class=\"target\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>",
            bar_y - 2.0,
            bar_y + BAR + 2.0,
        );
    }
    line + "\n"
}

/// From ratios to positions; whole powers of ten, one always among them.
struct Scale {
    low: i32,
    high: i32,
}

impl Scale {
    fn over(bars: &[Bar]) -> Self {
        let powers = bars.iter().flat_map(|bar| [Some(bar.ratio), bar.target]).flatten().map(f64::log10);
        let (low, high) =
            powers.fold((0.0f64, 1.0f64), |(low, high), power| (low.min(power), high.max(power)));
        Self { low: low.floor() as i32, high: high.ceil() as i32 }
    }

    fn powers(&self) -> std::ops::RangeInclusive<i32> {
        self.low..=self.high
    }

    fn x(&self, ratio: f64) -> f64 {
        let share = (ratio.log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        LABELS + share * (WIDTH - LABELS - DETAILS)
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::{super::results::fixture, *};

    fn bar(ratio: f64, target: Option<f64>) -> Bar {
        Bar { label: "a < b".to_owned(), ratio, detail: "1 → 2 ms".to_owned(), target }
    }

    #[test]
    fn ten_times_the_ratio_is_always_the_same_length() {
        let scale = Scale::over(&[bar(900.0, None)]);
        let step = scale.x(10.0) - scale.x(1.0);
        assert!((scale.x(1000.0) - scale.x(100.0) - step).abs() < 1e-9);
        assert_eq!(scale.x(1.0), LABELS);
    }

    #[test]
    fn a_worse_figure_points_to_the_other_side() {
        let svg = draw("t", &[bar(0.5, None)]);
        assert!(svg.contains("class=\"worse\""), "{svg}");
        assert_eq!(Scale::over(&[bar(0.5, None)]).powers(), -1..=1);
    }

    #[test]
    fn labels_are_escaped_and_ratios_written_out() {
        let svg = draw("t", &[bar(57.3, Some(50.0))]);
        assert!(svg.contains("a &lt; b"), "{svg}");
        assert!(svg.contains("57.3 ×"), "{svg}");
        assert!(svg.contains("class=\"target\""), "{svg}");
    }

    #[test]
    fn only_rows_measured_on_both_sides_get_a_bar() {
        let svg = render(&fixture::results());
        assert_eq!(svg.matches("class=\"better\"").count(), 1, "{svg}");
        assert!(svg.contains("110 → 5,500 instances/s"), "{svg}");
    }
}
