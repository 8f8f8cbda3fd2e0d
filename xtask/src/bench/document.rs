//! The place of a run's table in `PERFORMANCE.md`.

use std::fs;

use super::{RESULTS_FOLDER, results::Results, table};

const DOCUMENT: &str = "PERFORMANCE.md";

/// Puts the table and the chart into the document, in place of the last ones of this profile.
pub(super) fn update(results: &Results) -> Result<(), String> {
    let text = fs::read_to_string(DOCUMENT).map_err(|error| format!("cannot read {DOCUMENT}: {error}"))?;
    let profile = &results.profile;
    let content = format!("![ratios]({RESULTS_FOLDER}/{profile}.svg)\n\n{}", table::render(results));
    let text = fill(&text, profile, &content)?;
    fs::write(DOCUMENT, text).map_err(|error| format!("cannot write {DOCUMENT}: {error}"))
}

/// Replaces the text between a profile's two marks.
fn fill(text: &str, profile: &str, content: &str) -> Result<String, String> {
    let (begin, end) = (format!("<!-- {profile}: begin -->\n"), format!("<!-- {profile}: end -->"));
    let missing = || format!("{DOCUMENT} has no marks for {profile}");
    let (before, rest) = text.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    Ok(format!("{before}{begin}\n{}\n\n{end}{after}", content.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a\n<!-- quick: begin -->\nold\n<!-- quick: end -->\nb\n";

    #[test]
    fn a_new_table_replaces_the_old_one_and_nothing_else() {
        let text = fill(TEXT, "quick", "new\n").unwrap();
        assert_eq!(text, "a\n<!-- quick: begin -->\n\nnew\n\n<!-- quick: end -->\nb\n");
        assert_eq!(fill(&text, "quick", "new").unwrap(), text);
    }

    #[test]
    fn a_document_without_marks_stays_as_it_is() {
        assert_eq!(fill(TEXT, "full", "new").unwrap_err(), "PERFORMANCE.md has no marks for full");
    }

    #[test]
    fn the_document_has_a_place_for_every_profile() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../PERFORMANCE.md");
        let text = fs::read_to_string(path).unwrap();
        for profile in ["quick", "full"] {
            fill(&text, profile, "new").unwrap();
        }
    }
}
