//! [`TracedInput`]: an input with the trace context of its caller.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::TraceContext;

/// Marks the beginning and the end of the context in front of an input. No JSON and hardly any text begins with it.
const MARK: &str = "\u{1}trace:";
const END: char = '\u{1}';

/// The input of a start or of an activity, and the trace context that came with it.
///
/// The public types of work items and events have no field for a context. So in memory the field `input` begins with the
/// context, and every provider passes it on. In JSON the context is the field `trace_context` next to a plain `input`: an
/// older version of duroxide ignores the unknown field, and its handlers get the plain input.
///
/// Without a context text and JSON are the plain input, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedInput {
    /// The input that the code receives.
    pub input: String,
    /// The context of the caller.
    pub context: Option<TraceContext>,
}

impl TracedInput {
    /// The content of the field `input` in memory.
    pub fn into_text(self) -> String {
        let Self { input, context } = self;
        match context {
            Some(context) => format!("{MARK}{}{END}{input}", context.to_stored()),
            // A plain input that looks like a context must not be read as one, so it gets an empty one.
            None if input.starts_with(MARK) => format!("{MARK}{END}{input}"),
            None => input,
        }
    }

    /// Splits the content of a field `input`. A text that does not begin with a context is a plain input.
    pub fn from_text(text: String) -> Self {
        let (context, plain) = split(&text);
        if plain.len() == text.len() {
            return Self { input: text, context: None };
        }
        Self { input: plain.to_owned(), context }
    }

    /// The context in a text.
    pub fn context_of(text: &str) -> Option<TraceContext> {
        split(text).0
    }

    /// The input in a text.
    pub fn plain(text: &str) -> &str {
        split(text).1
    }
}

fn split(text: &str) -> (Option<TraceContext>, &str) {
    let Some((context, input)) = text.strip_prefix(MARK).and_then(|rest| rest.split_once(END)) else {
        return (None, text);
    };
    match TraceContext::from_stored(context) {
        None if !context.is_empty() => (None, text),
        context => (context, input),
    }
}

/// The two JSON fields of a text.
#[derive(Serialize, Deserialize)]
struct Fields<Input> {
    input: Input,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace_context: Option<String>,
}

/// For `#[serde(flatten, with = "…")]` on a field `input`.
pub(crate) fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let (context, input) = split(text);
    Fields { input, trace_context: context.map(|context| context.to_stored()) }.serialize(serializer)
}

/// A context of another form than ours is ignored.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let Fields { input, trace_context } = Fields::<String>::deserialize(deserializer)?;
    let context = trace_context.as_deref().and_then(TraceContext::from_stored);
    Ok(TracedInput { input, context }.into_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const INPUTS: [&str; 6] =
        ["", "{}", "plain", "\u{1}trace:", "\u{1}trace:\u{1}x", "\u{1}duroxide:retry_of=2\u{1}x"];

    fn context() -> TraceContext {
        HEADER.parse::<TraceContext>().unwrap().with_tracestate("rojo=1,congo=2")
    }

    fn text_of(input: &str, context: Option<TraceContext>) -> String {
        TracedInput { input: input.to_owned(), context }.into_text()
    }

    #[test]
    fn an_input_without_a_context_is_itself() {
        for input in ["", "{}", "plain", "\u{1}", "\u{1}trace"] {
            assert_eq!(text_of(input, None), input);
        }
    }

    #[test]
    fn input_and_context_come_back_whatever_the_input() {
        let looks_traced = text_of("x", Some(context()));
        for input in INPUTS.into_iter().chain([looks_traced.as_str()]) {
            for context in [None, Some(context())] {
                let given = TracedInput { input: input.to_owned(), context };
                let text = given.clone().into_text();
                assert_eq!(TracedInput::context_of(&text), given.context);
                assert_eq!(TracedInput::plain(&text), input);
                assert_eq!(TracedInput::from_text(text), given);
            }
        }
        assert_eq!(text_of("x", Some(context())), format!("\u{1}trace:{HEADER},rojo=1,congo=2\u{1}x"));
    }

    #[test]
    fn a_text_that_is_no_context_is_a_plain_input() {
        for text in ["\u{1}trace:no end", "\u{1}trace:unknown\u{1}x", "\u{1}trace:00-1-2-3\u{1}x"] {
            let read = TracedInput::from_text(text.to_owned());
            assert_eq!(read, TracedInput { input: text.to_owned(), context: None });
        }
    }
}
