//! Applies an action to each of many ids: continues after a failure, and prints each result.

use serde_json::{Value, json};

use crate::{
    exit::{Exit, Failure, Outcome},
    output::{Answer, Line, Output, Table, Text, Tone, clean, note},
    progress::Progress,
};

/// The result of an action on one id.
#[derive(Debug)]
pub(super) struct Done {
    /// For people.
    pub(super) text: String,
    /// For programs.
    pub(super) json: Value,
}

impl Done {
    pub(super) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { json: json!({ "done": text }), text }
    }
}

/// Applies `action` to each id, in order, and prints the results. Returns the exit of the first failure, if any.
pub(super) async fn each(
    out: &Output,
    what: &'static str,
    ids: &[String],
    action: impl AsyncFn(&str) -> Outcome<Done>,
) -> Outcome {
    let mut results = Vec::new();
    let mut progress = Progress::new(what);
    for (number, id) in (0..).zip(ids) {
        progress.show(number, ids.len() as u64);
        results.push((id.as_str(), action(id).await));
    }
    drop(progress);
    out.print(&answer(&results))?;
    let mut exit = Exit::Done;
    for failure in results.iter().filter_map(|(_, result)| result.as_ref().err()) {
        note(&format!("error: {failure}"));
        exit = if exit == Exit::Done { failure.exit } else { exit };
    }
    Ok(exit)
}

fn answer(results: &[(&str, Outcome<Done>)]) -> Answer {
    let mut table = Table::new(["ID", "RESULT"]);
    for (id, result) in results {
        let result = match result {
            Ok(done) => Line::new(done.text.clone()),
            Err(failure) => Line::toned(Tone::Bad, label(failure)),
        };
        table.row([clean(id).into(), result]);
    }
    let done = results.iter().filter(|(_, result)| result.is_ok());
    Answer {
        text: Text::default().table(&table, "nothing to do"),
        json: results.iter().map(|(id, result)| to_json(id, result)).collect(),
        ids: done.map(|(id, _)| (*id).to_owned()).collect(),
    }
}

fn to_json(id: &str, result: &Outcome<Done>) -> Value {
    match result {
        Ok(done) => json!({ "id": id, "ok": true, "result": done.json }),
        Err(failure) => {
            json!({ "id": id, "ok": false, "error": failure.to_string(), "exit": failure.exit.code() })
        }
    }
}

fn label(failure: &Failure) -> &'static str {
    match failure.exit {
        Exit::NotFound => "not found",
        Exit::Refused => "refused",
        Exit::Done | Exit::Failed | Exit::Usage => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;

    fn ids() -> Vec<String> {
        ["a", "b", "c"].map(str::to_owned).to_vec()
    }

    #[tokio::test]
    async fn the_others_are_done_although_one_failed() {
        let out = Output::new(Format::Ids, false);
        let seen = std::cell::RefCell::new(Vec::new());
        let action = async |id: &str| {
            seen.borrow_mut().push(id.to_owned());
            match id {
                "a" => Ok(Done::new("done")),
                "b" => Err(Failure::no_instance(id)),
                _ => Err(Failure::refused("no")),
            }
        };
        assert_eq!(each(&out, "testing", &ids(), action).await, Ok(Exit::NotFound));
        assert_eq!(*seen.borrow(), ids());
    }

    #[test]
    fn each_result_is_printed() {
        let results = [("a", Ok(Done::new("deleted"))), ("b", Err(Failure::no_instance("b")))];
        let answer = answer(&results);
        assert_eq!(answer.text.render(false), "ID  RESULT\na   deleted\nb   not found\n");
        assert_eq!(answer.ids, ["a"]);
        assert_eq!(answer.json[1]["exit"], 3);
    }
}
