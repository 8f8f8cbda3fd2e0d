//! Options of one run of an activity, encoded in front of its input in the work item.

use std::time::Duration;

/// Marks the beginning and the end of the options in front of an input. No JSON and hardly any text begins with it.
const MARK: &str = "\u{1}duroxide:";
const END: char = '\u{1}';
const ATTEMPT_TIMEOUT_MS: &str = "attempt_timeout_ms=";

/// The input of an activity with the options of its run, as an `ActivityExecute` item carries them.
///
/// Options travel in front of the input, because neither the item nor the history have a field for them and every
/// provider stores the input as it is. Without options the item's input is the plain input, byte for byte. The history
/// does not record the options: only the worker needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityInput {
    /// The input that the activity receives.
    pub input: String,
    /// How long one attempt may run.
    pub attempt_timeout: Option<Duration>,
}

impl ActivityInput {
    /// The input of the work item.
    pub fn into_item_input(self) -> String {
        let Self { input, attempt_timeout } = self;
        match attempt_timeout {
            Some(timeout) => format!("{MARK}{ATTEMPT_TIMEOUT_MS}{}{END}{input}", millis_ceil(timeout)),
            // An input that looks like options must not be parsed as options.
            None if input.starts_with(MARK) => format!("{MARK}{END}{input}"),
            None => input,
        }
    }

    /// Parses the input of a work item. A text that does not have the form of options is a plain input.
    pub fn from_item_input(text: String) -> Self {
        let parsed = text
            .strip_prefix(MARK)
            .and_then(|rest| rest.split_once(END))
            .and_then(|(options, input)| Some((parse(options)?, input.to_owned())));
        match parsed {
            Some((attempt_timeout, input)) => Self { input, attempt_timeout },
            None => Self { input: text, attempt_timeout: None },
        }
    }
}

/// The options between the marks. `None` if the text has another form.
fn parse(options: &str) -> Option<Option<Duration>> {
    if options.is_empty() {
        return Some(None);
    }
    let millis = options.strip_prefix(ATTEMPT_TIMEOUT_MS)?.parse().ok()?;
    Some(Some(Duration::from_millis(millis)))
}

/// Rounded up, so that an activity never has less time than it was given.
fn millis_ceil(timeout: Duration) -> u64 {
    u64::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn round_trip(input: &str, attempt_timeout: Option<Duration>) -> String {
        let given = ActivityInput { input: input.to_owned(), attempt_timeout };
        let text = given.clone().into_item_input();
        assert_eq!(ActivityInput::from_item_input(text.clone()), given);
        text
    }

    #[test]
    fn an_input_without_options_is_itself() {
        for input in ["", "{}", "plain", "\u{1}", "\u{1}duroxide"] {
            assert_eq!(round_trip(input, None), input);
        }
    }

    #[test]
    fn options_and_input_come_back_whatever_the_input() {
        for input in ["", "{}", "\u{1}x", "\u{1}duroxide:\u{1}", "\u{1}duroxide:attempt_timeout_ms=7\u{1}x"] {
            round_trip(input, None);
            round_trip(input, Some(Duration::from_secs(3)));
            round_trip(input, Some(Duration::ZERO));
        }
        assert_eq!(
            round_trip("x", Some(Duration::from_millis(1_500))),
            "\u{1}duroxide:attempt_timeout_ms=1500\u{1}x"
        );
    }

    #[test]
    fn a_timeout_is_rounded_up_and_bounded() {
        let millis = |timeout| {
            let text =
                ActivityInput { input: String::new(), attempt_timeout: Some(timeout) }.into_item_input();
            ActivityInput::from_item_input(text).attempt_timeout.unwrap()
        };
        assert_eq!(millis(Duration::from_micros(1)), Duration::from_millis(1));
        assert_eq!(millis(Duration::MAX), Duration::from_millis(u64::MAX));
    }

    #[test]
    fn a_text_that_is_no_option_is_a_plain_input() {
        for text in [
            "\u{1}duroxide:unknown=1\u{1}x",
            "\u{1}duroxide:attempt_timeout_ms=x\u{1}x",
            "\u{1}duroxide:no end",
        ] {
            let read = ActivityInput::from_item_input(text.to_owned());
            assert_eq!(read, ActivityInput { input: text.to_owned(), attempt_timeout: None });
        }
    }
}
