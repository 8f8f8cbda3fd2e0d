//! The command that lets an instance continue, or shows more.

use duroxide::{ActivityState, Explanation, Finding};

/// The command for the first finding that has one.
pub(super) fn next_command(found: &Explanation) -> Option<String> {
    found.findings.iter().find_map(|finding| for_finding(finding, &found.instance))
}

fn for_finding(finding: &Finding, instance: &str) -> Option<String> {
    match finding {
        Finding::Event { name, .. } => command(&["raise", instance, name]),
        Finding::Queue { name, .. } => command(&["enqueue", instance, name]),
        Finding::DeadLetter { id, .. } => command(&["dead-letters", "retry", id]),
        Finding::Child { instance, .. } => command(&["explain", instance]),
        Finding::Failed { .. } | Finding::Poisoned { .. } => command(&["history", instance]),
        Finding::NoNode { .. }
        | Finding::Hidden { .. }
        | Finding::Activity { state: ActivityState::NoNode { .. } | ActivityState::Hidden { .. }, .. } => {
            command(&["nodes"])
        }
        // Only waiting helps, or the explanation says everything.
        Finding::Completed { .. }
        | Finding::Cancelled { .. }
        | Finding::StartQueued { .. }
        | Finding::CancelRequested { .. }
        | Finding::TurnRunning { .. }
        | Finding::Ready { .. }
        | Finding::Timer { .. }
        | Finding::FailedBefore { .. }
        | Finding::Activity { .. }
        | Finding::AwaitsCancellation { .. }
        | Finding::Unreadable { .. }
        | Finding::Nothing
        | _ => None,
    }
}

/// The words of a command, quoted for a shell. `None` if one of them cannot be typed, or would be read as an option.
fn command(words: &[&str]) -> Option<String> {
    let words: Option<Vec<String>> = words.iter().map(|word| quoted(word)).collect();
    Some(words?.join(" "))
}

fn quoted(word: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:/@+,=".contains(c);
    if word.starts_with('-') || word.chars().any(char::is_control) {
        return None;
    }
    if !word.is_empty() && word.chars().all(is_plain) {
        return Some(word.to_owned());
    }
    Some(format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_text_is_one_word_of_the_shell() {
        assert_eq!(command(&["raise", "order-1", "Approval"]).unwrap(), "raise order-1 Approval");
        assert_eq!(command(&["raise", "a; rm -rf /", "it's"]).unwrap(), r"raise 'a; rm -rf /' 'it'\''s'");
        assert_eq!(command(&["raise", "", "$(x)"]).unwrap(), "raise '' '$(x)'");
        assert_eq!(command(&["explain", "--all"]), None);
        assert_eq!(command(&["explain", "a\nb"]), None);
    }
}
