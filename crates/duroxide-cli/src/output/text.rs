//! Text for people: lines and tables with tones, and payloads that cannot disturb a terminal.

use std::fmt::Write as _;

/// How many characters of a payload are shown.
const FOLD_CHARS: usize = 80;

/// The meaning of a piece of text; a terminal shows it as a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Strong,
    Dim,
    Good,
    Bad,
    Warn,
}

impl Tone {
    /// The tone of an instance's status.
    pub(crate) fn of_status(status: &str) -> Self {
        match status {
            "Completed" => Self::Good,
            "Failed" => Self::Bad,
            "Pending" => Self::Warn,
            _ => Self::Plain,
        }
    }

    fn paint(self, text: &str) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Strong => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Bad => "31",
            Self::Warn => "33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Pieces of text in a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line(Vec<(Tone, String)>);

impl Line {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::default().and(Tone::Plain, text)
    }

    pub(crate) fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Self::default().and(tone, text)
    }

    pub(crate) fn and(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.0.push((tone, text.into()));
        self
    }

    /// Appends another line to this one.
    pub(crate) fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// The first `width` characters of the line.
    fn cut(&self, width: usize) -> Self {
        let mut left = width;
        let mut kept = Self::default();
        for (tone, text) in &self.0 {
            let text: String = text.chars().take(left).collect();
            left -= text.chars().count();
            kept.0.push((*tone, text));
        }
        kept
    }

    pub(crate) fn render(&self, colour: bool) -> String {
        let paint = |(tone, text): &(Tone, String)| if colour { tone.paint(text) } else { text.clone() };
        self.0.iter().map(paint).collect()
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// Rows below a header, each column as wide as its widest cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Line>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(header: [&'static str; N]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [Line; N]) {
        self.rows.push(cells.to_vec());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn lines(&self) -> Vec<Line> {
        let header = self.header.iter().map(|name| Line::toned(Tone::Dim, *name)).collect::<Vec<_>>();
        let rows = || std::iter::once(&header).chain(&self.rows);
        let width = |column| rows().filter_map(|row| row.get(column)).map(Line::width).max();
        let widths: Vec<usize> = (0..header.len()).map(|column| width(column).unwrap_or_default()).collect();
        rows().map(|row| in_columns(row, &widths)).collect()
    }
}

/// Pads all cells of a row except the last.
fn in_columns(row: &[Line], widths: &[usize]) -> Line {
    let mut line = Line::default();
    for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
        line.0.extend(cell.0.iter().cloned());
        if column + 1 < row.len() {
            line = line.and(Tone::Plain, " ".repeat(width.saturating_sub(cell.width()) + 2));
        }
    }
    line
}

/// Lines and tables below each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Text(Vec<Line>);

impl Text {
    pub(crate) fn line(mut self, line: impl Into<Line>) -> Self {
        self.0.push(line.into());
        self
    }

    pub(crate) fn lines(mut self, lines: impl IntoIterator<Item = Line>) -> Self {
        self.0.extend(lines);
        self
    }

    /// Appends a table, or the text `empty` if the table has no rows.
    pub(crate) fn table(self, table: &Table, empty: &str) -> Self {
        if table.is_empty() { self.line(Line::toned(Tone::Dim, empty)) } else { self.lines(table.lines()) }
    }

    /// The part that fits on a screen.
    pub(crate) fn cut(&self, width: usize, height: usize) -> Self {
        Self(self.0.iter().take(height).map(|line| line.cut(width)).collect())
    }

    pub(crate) fn render(&self, colour: bool) -> String {
        self.0.iter().fold(String::new(), |mut text, line| {
            // Writing to a String cannot fail. Trailing spaces are the padding of empty last cells.
            let _ = writeln!(text, "{}", line.render(colour).trim_end());
            text
        })
    }
}

impl From<Table> for Text {
    fn from(table: Table) -> Self {
        Self::default().table(&table, "nothing")
    }
}

/// Escapes all characters that would move the cursor of a terminal or change its state.
pub(crate) fn clean(text: &str) -> String {
    let is_harmless = |c: char| !c.is_control() && !is_direction_mark(c);
    text.chars().flat_map(|c| if is_harmless(c) { vec![c] } else { c.escape_default().collect() }).collect()
}

/// Marks that make a terminal show text in another order than it is stored.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The beginning of a payload, and its whole length.
pub(crate) fn fold(payload: &str) -> String {
    if payload.chars().nth(FOLD_CHARS).is_none() {
        return clean(payload);
    }
    let beginning: String = payload.chars().take(FOLD_CHARS).collect();
    format!("{}… ({} bytes)", clean(&beginning), payload.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["INSTANCE", "STATUS", ""]);
        table.row(["order-1".into(), Line::toned(Tone::Bad, "Failed"), "".into()]);
        table.row(["größer-als-1".into(), "Running".into(), "x".into()]);
        table
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let expected = "\
INSTANCE      STATUS
order-1       Failed
größer-als-1  Running  x
";
        assert_eq!(Text::from(table()).render(false), expected);
    }

    #[test]
    fn colours_do_not_count_as_width() {
        let coloured = Text::from(table()).render(true);
        assert!(coloured.contains("order-1       \x1b[31mFailed\x1b[0m"), "{coloured:?}");
    }

    #[test]
    fn an_empty_table_says_so() {
        assert_eq!(Text::default().table(&Table::new(["A"]), "no rows").render(false), "no rows\n");
    }

    #[test]
    fn a_screen_is_not_left() {
        let text = Text::default().line(Line::new("ab").and(Tone::Good, "cdef")).line("second").line("third");
        assert_eq!(text.cut(3, 2).render(false), "abc\nsec\n");
    }

    #[test]
    fn a_payload_cannot_move_the_cursor() {
        assert_eq!(clean("a\x1b[2J\nb\u{202e}c\t"), "a\\u{1b}[2J\\nb\\u{202e}c\\t");
        assert_eq!(clean("größer ✓"), "größer ✓");
    }

    #[test]
    fn a_long_payload_is_folded() {
        assert_eq!(fold(&"ä".repeat(80)), "ä".repeat(80));
        assert_eq!(fold(&"ä".repeat(81)), format!("{}… (162 bytes)", "ä".repeat(80)));
    }
}
