//! Options of one run of an activity, encoded in front of its input in the work item.

use std::time::Duration;

/// Marks the beginning and the end of the options in front of an input. No JSON and hardly any text begins with it.
const MARK: &str = "\u{1}duroxide:";
const END: char = '\u{1}';
const SEPARATOR: char = ',';
const ATTEMPT_TIMEOUT_MS: &str = "attempt_timeout_ms=";
const RETRY_OF: &str = "retry_of=";

/// The input of an activity with the options of its run, as an `ActivityExecute` item carries them.
///
/// Options travel in front of the input, because neither the item nor the history have a field for them and every
/// provider stores the input as it is. Without options the item's input is the plain input, byte for byte. The history
/// does not record the options: only the worker needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityInput {
    /// The input that the activity receives.
    pub input: String,
    /// The options of this run.
    pub options: RunOptions,
}

/// The options of one run of an activity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// How long the activity may run.
    pub attempt_timeout: Option<Duration>,
    /// The event that scheduled the first attempt of the call, if this is a later one.
    pub retry_of: Option<u64>,
}

impl ActivityInput {
    /// The input of the work item.
    pub fn into_item_input(self) -> String {
        let Self { input, options } = self;
        if options == RunOptions::default() && !input.starts_with(MARK) {
            return input;
        }
        // A plain input that looks like options must not be read as such, so it gets an empty list of them.
        format!("{MARK}{}{END}{input}", options.into_text())
    }

    /// Parses the input of a work item. A text that does not have the form of options is a plain input.
    pub fn from_item_input(text: String) -> Self {
        let parsed = text
            .strip_prefix(MARK)
            .and_then(|rest| rest.split_once(END))
            .and_then(|(options, input)| Some((RunOptions::parse(options)?, input.to_owned())));
        match parsed {
            Some((options, input)) => Self { input, options },
            None => Self { input: text, options: RunOptions::default() },
        }
    }
}

impl RunOptions {
    fn into_text(self) -> String {
        let timeout =
            self.attempt_timeout.map(|timeout| format!("{ATTEMPT_TIMEOUT_MS}{}", millis_ceil(timeout)));
        let retry_of = self.retry_of.map(|event_id| format!("{RETRY_OF}{event_id}"));
        let options: Vec<String> = [timeout, retry_of].into_iter().flatten().collect();
        options.join(&SEPARATOR.to_string())
    }

    /// The options between the marks; `None` if they are not ours.
    fn parse(text: &str) -> Option<Self> {
        let mut options = Self::default();
        if text.is_empty() {
            return Some(options);
        }
        for option in text.split(SEPARATOR) {
            if let Some(millis) = option.strip_prefix(ATTEMPT_TIMEOUT_MS) {
                options.attempt_timeout = Some(Duration::from_millis(millis.parse().ok()?));
            } else {
                options.retry_of = Some(option.strip_prefix(RETRY_OF)?.parse().ok()?);
            }
        }
        Some(options)
    }
}

/// Rounded up, so that an activity never has less time than it was given.
fn millis_ceil(timeout: Duration) -> u64 {
    u64::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn round_trip(input: &str, options: RunOptions) -> String {
        let given = ActivityInput { input: input.to_owned(), options };
        let text = given.clone().into_item_input();
        assert_eq!(ActivityInput::from_item_input(text.clone()), given);
        text
    }

    fn bounded(attempt_timeout: Duration) -> RunOptions {
        RunOptions { attempt_timeout: Some(attempt_timeout), retry_of: None }
    }

    #[test]
    fn an_input_without_options_is_itself() {
        for input in ["", "{}", "plain", "\u{1}", "\u{1}duroxide"] {
            assert_eq!(round_trip(input, RunOptions::default()), input);
        }
    }

    #[test]
    fn options_and_input_come_back_whatever_the_input() {
        for input in ["", "{}", "\u{1}x", "\u{1}duroxide:\u{1}", "\u{1}duroxide:attempt_timeout_ms=7\u{1}x"] {
            round_trip(input, RunOptions::default());
            round_trip(input, bounded(Duration::from_secs(3)));
            round_trip(input, bounded(Duration::ZERO));
            round_trip(input, RunOptions { retry_of: Some(7), ..RunOptions::default() });
            round_trip(input, RunOptions { retry_of: Some(7), ..bounded(Duration::ZERO) });
        }
        let limited = bounded(Duration::from_millis(1_500));
        assert_eq!(round_trip("x", limited), "\u{1}duroxide:attempt_timeout_ms=1500\u{1}x");
        assert_eq!(
            round_trip("x", RunOptions { retry_of: Some(2), ..limited }),
            "\u{1}duroxide:attempt_timeout_ms=1500,retry_of=2\u{1}x"
        );
    }

    #[test]
    fn a_timeout_is_rounded_up_and_bounded() {
        let millis = |timeout| {
            let text = ActivityInput { input: String::new(), options: bounded(timeout) }.into_item_input();
            ActivityInput::from_item_input(text).options.attempt_timeout.unwrap()
        };
        assert_eq!(millis(Duration::from_micros(1)), Duration::from_millis(1));
        assert_eq!(millis(Duration::MAX), Duration::from_millis(u64::MAX));
    }

    #[test]
    fn a_text_that_is_no_option_is_a_plain_input() {
        for text in [
            "\u{1}duroxide:unknown=1\u{1}x",
            "\u{1}duroxide:attempt_timeout_ms=x\u{1}x",
            "\u{1}duroxide:attempt_timeout_ms=1,\u{1}x",
            "\u{1}duroxide:no end",
        ] {
            let read = ActivityInput::from_item_input(text.to_owned());
            assert_eq!(read, ActivityInput { input: text.to_owned(), options: RunOptions::default() });
        }
    }
}
