//! Files, functions and folders stay short enough to read.
//!
//! Functions are found by their indentation, which `cargo fmt` guarantees: a body ends at the first line that is a closing
//! brace below its `fn`.

use std::collections::BTreeMap;

use super::{
    finding::{Finding, Rule},
    source::SourceFile,
};

pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = files.iter().filter_map(file_length).collect();
    findings.extend(files.iter().flat_map(function_lengths));
    findings.extend(folder_sizes(files));
    findings
}

fn file_length(file: &SourceFile) -> Option<Finding> {
    let is_product = file.product_place().is_some();
    let rule = if is_product { Rule::ProductFileLength } else { Rule::OtherFileLength };
    Finding::above_limit(rule, &file.path, file.text.lines().count(), "lines")
}

fn folder_sizes(files: &[SourceFile]) -> Vec<Finding> {
    let mut sizes = BTreeMap::new();
    for file in files {
        *sizes.entry(file.folder()).or_default() += 1;
    }
    let finding = |(folder, size)| Finding::above_limit(Rule::FolderSize, folder, size, "source files");
    sizes.into_iter().filter_map(finding).collect()
}

fn function_lengths(file: &SourceFile) -> Vec<Finding> {
    functions(&file.text)
        .into_iter()
        .filter_map(|(name, lines)| {
            let place = format!("{}::{name}", file.path);
            Finding::above_limit(Rule::FunctionLength, place, lines, "lines")
        })
        .collect()
}

/// The functions of a formatted file that have a body, each with its number of lines.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = lines.iter().enumerate().filter_map(|(at, line)| Some((at, function_name(line)?)));
    starts.filter_map(|(at, name)| Some((name, body_length(lines.get(at..)?)?))).collect()
}

/// The name of the function that begins in this line.
fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_qualifier = |word: &str| {
        matches!(word, "pub" | "async" | "const" | "unsafe" | "extern") || word.starts_with("pub(")
    };
    let name = after.split(['(', '<']).next()?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (before.split_whitespace().all(is_qualifier) && is_name).then_some(name)
}

/// The lines of the function that begins in the first one; `None` if it has no body.
fn body_length(lines: &[&str]) -> Option<usize> {
    let first = lines.first()?;
    let indent = first.get(..first.len() - first.trim_start().len())?;
    for (at, line) in lines.iter().enumerate() {
        if line.ends_with(';') {
            return None;
        }
        if line.ends_with('}') {
            return Some(at + 1);
        }
        if line.ends_with('{') {
            let is_end = |line: &&str| line.strip_prefix(indent) == Some("}");
            return lines.iter().position(is_end).map(|end| end + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: String) -> SourceFile {
        SourceFile { path: path.to_owned(), text }
    }

    #[test]
    fn functions_are_measured_with_their_signatures() {
        let text = "\
impl A {
    pub(crate) async fn long(
        &self,
    ) -> bool {
        if self.b {
            return true;
        }
        false
    }

    fn one_line(&self) -> [u8; 2] { [1, 2] }
}

trait B {
    fn declared(&self);

    fn bounded<T>(
        &self,
        t: T,
    ) -> T
    where
        T: Copy,
    {
        t
    }
}

// A comment about fn nothing() {
const fn last() {
}
";
        let expected = [("long", 8), ("one_line", 1), ("bounded", 9), ("last", 2)];
        assert_eq!(functions(text), expected);
    }

    #[test]
    fn a_long_function_is_found_by_its_name() {
        let text = |lines: usize| format!("fn a() {{\n{}}}\n", "    b();\n".repeat(lines - 2));
        assert_eq!(check(&[file("crates/a/src/b.rs", text(70))]), []);
        let found = check(&[file("crates/a/src/b.rs", text(71))]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), "crates/a/src/b.rs::a has 71 lines, more than 70");
    }

    #[test]
    fn tests_may_be_longer_than_product_files() {
        let findings = |path, lines| check(&[file(path, "\n".repeat(lines))]).len();
        assert_eq!(findings("crates/a/src/b.rs", 400), 0);
        assert_eq!(findings("crates/a/src/b.rs", 401), 1);
        assert_eq!(findings("crates/a/tests/b.rs", 500), 0);
        assert_eq!(findings("crates/a/tests/b.rs", 501), 1);
    }

    #[test]
    fn a_folder_with_many_files_is_found() {
        let files = |number| -> Vec<SourceFile> {
            (0..number).map(|n| file(&format!("crates/a/src/b/c{n}.rs"), String::new())).collect()
        };
        assert_eq!(check(&files(15)), []);
        let found = check(&files(16));
        assert_eq!(found[0].to_string(), "crates/a/src/b has 16 source files, more than 15");
    }
}
