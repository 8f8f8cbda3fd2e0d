//! [`TraceContext`]: the trace and the span that some work belongs to, as in W3C Trace Context.

use std::{error::Error, fmt, str::FromStr};

/// The version of `traceparent` that is written.
const VERSION: &str = "00";
/// No later version of `traceparent` may be called this.
const INVALID_VERSION: &str = "ff";
/// The bytes of `tracestate` that are carried. The standard asks for at least these.
const TRACESTATE_BYTES_MAX: usize = 512;
/// Separates `traceparent`, which has no comma, from `tracestate` in the stored text.
const SEPARATOR: char = ',';

/// The span and the trace that caused some work: the `traceparent` and `tracestate` of
/// [W3C Trace Context](https://www.w3.org/TR/trace-context/).
///
/// ```
/// # use duroxide_core::TraceContext;
/// let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let context: TraceContext = header.parse()?;
/// assert_eq!(context.trace_id(), 0x0af7651916cd43dd8448eb211c80319c);
/// assert_eq!(context.to_string(), header);
/// # Ok::<(), duroxide_core::InvalidTraceparent>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    flags: u8,
    tracestate: String,
}

/// A text that is no `traceparent`. Use a header as it came in, or start without a trace context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidTraceparent {
    text: String,
}

impl TraceContext {
    /// A context without `tracestate`. `None` if an id is 0, which the standard reserves for "none".
    pub fn new(trace_id: u128, span_id: u64, flags: u8) -> Option<Self> {
        (trace_id != 0 && span_id != 0).then_some(Self {
            trace_id,
            span_id,
            flags,
            tracestate: String::new(),
        })
    }

    /// Adds the `tracestate` header. One that is not printable ASCII, or longer than 512 bytes, is left out, as the standard
    /// allows: the trace goes on without it.
    #[must_use]
    pub fn with_tracestate(mut self, tracestate: &str) -> Self {
        let is_valid = tracestate.len() <= TRACESTATE_BYTES_MAX
            && tracestate.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        self.tracestate = if is_valid { tracestate.trim().to_owned() } else { String::new() };
        self
    }

    /// The trace.
    pub fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// The span.
    pub fn span_id(&self) -> u64 {
        self.span_id
    }

    /// The flags. The lowest bit says that the trace is sampled.
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// The `tracestate` header; empty if there is none.
    pub fn tracestate(&self) -> &str {
        &self.tracestate
    }

    /// The text that is stored.
    pub(crate) fn to_stored(&self) -> String {
        let separator = if self.tracestate.is_empty() { "" } else { "," };
        format!("{self}{separator}{}", self.tracestate)
    }

    pub(crate) fn from_stored(text: &str) -> Option<Self> {
        let (traceparent, tracestate) = text.split_once(SEPARATOR).unwrap_or((text, ""));
        Some(Self::parse(traceparent)?.with_tracestate(tracestate))
    }

    /// A later version may have more fields behind the four that are known.
    fn parse(traceparent: &str) -> Option<Self> {
        let mut fields = traceparent.splitn(5, '-');
        let (version, trace_id) = (fields.next()?, fields.next()?);
        let (span_id, flags) = (fields.next()?, fields.next()?);
        let is_version = is_hex(version, 2) && version != INVALID_VERSION;
        if !is_version || (version == VERSION && fields.next().is_some()) {
            return None;
        }
        if !(is_hex(trace_id, 32) && is_hex(span_id, 16) && is_hex(flags, 2)) {
            return None;
        }
        let trace_id = u128::from_str_radix(trace_id, 16).ok()?;
        let span_id = u64::from_str_radix(span_id, 16).ok()?;
        Self::new(trace_id, span_id, u8::from_str_radix(flags, 16).ok()?)
    }
}

/// The standard allows lower case only.
fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Reads the `traceparent` header.
impl FromStr for TraceContext {
    type Err = InvalidTraceparent;

    fn from_str(traceparent: &str) -> Result<Self, InvalidTraceparent> {
        Self::parse(traceparent).ok_or_else(|| InvalidTraceparent { text: traceparent.to_owned() })
    }
}

/// Writes the `traceparent` header.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }
}

impl fmt::Display for InvalidTraceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a traceparent: it has to be 00-<32 hex digits>-<16 hex digits>-<2 hex digits>, in lower case and \
             with ids that are not 0",
            self.text.escape_debug()
        )
    }
}

impl Error for InvalidTraceparent {}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn context() -> TraceContext {
        HEADER.parse().unwrap()
    }

    #[test]
    fn a_header_is_read_and_written() {
        let context = context();
        assert_eq!((context.span_id(), context.flags()), (0xb7ad_6b71_6920_3331, 1));
        assert_eq!(context.to_string(), HEADER);
        assert_eq!(TraceContext::new(context.trace_id(), context.span_id(), 1), Some(context));
    }

    #[test]
    fn a_later_version_is_read_by_its_known_fields() {
        let later: TraceContext = HEADER.replacen("00", "cc", 1).parse().unwrap();
        assert_eq!(later, context());
        assert_eq!(format!("cc{}-what", &HEADER[2..]).parse(), Ok(later));
    }

    #[test]
    fn an_invalid_header_is_refused_with_its_text() {
        let zero_trace = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        let zero_span = format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", "0".repeat(16));
        for text in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            &zero_trace,
            &zero_span,
        ] {
            let error = text.parse::<TraceContext>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("'{text}' is not a traceparent")), "{error}");
        }
        assert_eq!(TraceContext::new(0, 1, 0), None);
    }

    #[test]
    fn the_stored_text_holds_both_headers() {
        let plain = context();
        assert_eq!(plain.to_stored(), HEADER);
        let with_state = context().with_tracestate(" rojo=00f067aa0ba902b7,congo=t61 ");
        assert_eq!(with_state.to_stored(), format!("{HEADER},rojo=00f067aa0ba902b7,congo=t61"));
        for context in [plain, with_state] {
            assert_eq!(TraceContext::from_stored(&context.to_stored()), Some(context));
        }
    }

    #[test]
    fn a_tracestate_that_cannot_be_carried_is_left_out() {
        for state in ["a=\u{1}b", "a=ß", "a=\n", &"x".repeat(513)] {
            assert_eq!(context().with_tracestate(state), context());
        }
        assert_eq!(context().with_tracestate(&"x".repeat(512)).tracestate().len(), 512);
    }
}
