//! Trace contexts in the stored JSON: nothing without one, a field that older versions pass over with one.

use duroxide_core::{Event, EventKind, TraceContext, TracedInput, WorkItem, engine::Outcome};
use serde::Deserialize;

use crate::story::{Mode, Story, tell};

const STORED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01,rojo=1";

/// Work items and events as they were before trace contexts, and as an older node decodes them.
#[derive(Debug, PartialEq, Deserialize)]
enum OlderItem {
    StartOrchestration { instance: String, input: String, execution_id: u64 },
    ActivityExecute { instance: String, input: String, id: u64 },
    ContinueAsNew { instance: String, input: String, carry_forward_events: Vec<(String, String)> },
}

#[derive(Debug, PartialEq, Deserialize)]
struct OlderEvent {
    event_id: u64,
    #[serde(flatten)]
    kind: OlderKind,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "type")]
enum OlderKind {
    OrchestrationStarted { name: String, version: String, input: String, parent_instance: Option<String> },
}

fn s(text: &str) -> String {
    text.to_owned()
}

fn traced(input: &str) -> String {
    let context: TraceContext = STORED.split(',').next().unwrap().parse().unwrap();
    TracedInput { input: s(input), context: Some(context.with_tracestate("rojo=1")) }.into_text()
}

/// The three items that carry an input to code.
fn items(input: &str) -> [WorkItem; 3] {
    [
        WorkItem::StartOrchestration {
            instance: s("i"),
            orchestration: s("o"),
            input: s(input),
            version: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        },
        WorkItem::ActivityExecute {
            instance: s("i"),
            execution_id: 1,
            id: 2,
            name: s("a"),
            input: s(input),
            session_id: None,
            tag: None,
        },
        WorkItem::ContinueAsNew {
            instance: s("i"),
            orchestration: s("o"),
            input: s(input),
            version: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: Vec::new(),
            initial_custom_status: None,
        },
    ]
}

fn started(input: &str) -> Event {
    Event {
        event_id: 1,
        source_event_id: None,
        instance_id: s("i"),
        execution_id: 1,
        timestamp_ms: 5,
        duroxide_version: s("0.5.0"),
        kind: EventKind::OrchestrationStarted {
            name: s("o"),
            version: s("1.0.0"),
            input: s(input),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        },
    }
}

/// The JSON of all four, with `{context}` behind the input.
fn json(input: &str, context: &str) -> [String; 4] {
    let input = serde_json::to_string(input).unwrap();
    [
        format!(
            r#"{{"StartOrchestration":{{"instance":"i","orchestration":"o","input":{input}{context},"version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}}}"#
        ),
        format!(
            r#"{{"ActivityExecute":{{"instance":"i","execution_id":1,"id":2,"name":"a","input":{input}{context}}}}}"#
        ),
        format!(
            r#"{{"ContinueAsNew":{{"instance":"i","orchestration":"o","input":{input}{context},"version":null,"carry_forward_events":[]}}}}"#
        ),
        format!(
            r#"{{"event_id":1,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":5,"duroxide_version":"0.5.0","type":"OrchestrationStarted","name":"o","version":"1.0.0","input":{input}{context},"parent_instance":null,"parent_id":null}}"#
        ),
    ]
}

/// Writes items and event with this text as input, and reads them back.
#[track_caller]
fn check(text: &str, expected: &[String; 4]) {
    let [items @ .., event] = expected;
    for (item, expected) in self::items(text).iter().zip(items) {
        assert_eq!(&serde_json::to_string(item).unwrap(), expected);
        assert_eq!(&serde_json::from_str::<WorkItem>(expected).unwrap(), item);
    }
    assert_eq!(&serde_json::to_string(&started(text)).unwrap(), event);
    assert_eq!(serde_json::from_str::<Event>(event).unwrap(), started(text));
}

/// The bytes of older stores, and of work without a trace context.
#[test]
fn without_a_context_every_byte_is_as_before() {
    check("x", &json("x", ""));
    check("", &json("", ""));
}

#[test]
fn a_context_is_a_field_next_to_the_plain_input() {
    check(&traced("{\"n\":1}"), &json("{\"n\":1}", &format!(r#","trace_context":"{STORED}""#)));
}

/// The input of a caller is never read as a context, and is returned unchanged.
#[test]
fn an_input_that_looks_like_a_context_stays_an_input() {
    let hostile = traced("x");
    let text = TracedInput { input: hostile.clone(), context: None }.into_text();
    assert_ne!(text, hostile);
    check(&text, &json(&hostile, ""));
}

#[test]
fn a_context_of_another_form_is_ignored() {
    let [start, ..] = json("x", r#","trace_context":"of the future""#);
    let [plain, ..] = items("x");
    assert_eq!(serde_json::from_str::<WorkItem>(&start).unwrap(), plain);
}

/// A node of an older version runs the same handlers with the same input, without the context.
#[test]
fn an_older_version_reads_the_plain_input() {
    let [start, activity, next] = items(&traced("x"))
        .map(|item| serde_json::from_str::<OlderItem>(&serde_json::to_string(&item).unwrap()).unwrap());
    assert_eq!(start, OlderItem::StartOrchestration { instance: s("i"), input: s("x"), execution_id: 1 });
    assert_eq!(activity, OlderItem::ActivityExecute { instance: s("i"), input: s("x"), id: 2 });
    let expected =
        OlderItem::ContinueAsNew { instance: s("i"), input: s("x"), carry_forward_events: Vec::new() };
    assert_eq!(next, expected);
    let json = serde_json::to_string(&started(&traced("x"))).unwrap();
    let kind = OlderKind::OrchestrationStarted {
        name: s("o"),
        version: s("1.0.0"),
        input: s("x"),
        parent_instance: None,
    };
    assert_eq!(serde_json::from_str::<OlderEvent>(&json).unwrap(), OlderEvent { event_id: 1, kind });
}

/// Live and replayed: the calls of the code are the same with a context and without one.
#[test]
fn code_gets_the_plain_input() {
    for context in [None, Some(STORED)] {
        tell(
            |ctx, input| async move { ctx.schedule_activity("A", input).await },
            |story| {
                story.seed.input = context.map_or(s("in"), |_| traced("in"));
                let turn = story.start();
                let [WorkItem::ActivityExecute { input, .. }] = &turn.activities[..] else {
                    panic!("{turn:?}")
                };
                assert_eq!(input, "in");
                let stored = json_of(&story.history[0]);
                assert_eq!(stored.get("trace_context").and_then(|field| field.as_str()), context);
            },
        );
    }
}

fn json_of(event: &Event) -> serde_json::Value {
    serde_json::to_value(event).unwrap()
}

/// Events as an older version has stored them.
#[test]
fn a_history_from_before_replays() {
    let stored = |event_id: u64, source: Option<u64>, kind: &str| -> Event {
        let source = source.map_or(s("null"), |source| source.to_string());
        let text = format!(
            r#"{{"event_id":{event_id},"source_event_id":{source},"instance_id":"order","execution_id":1,"timestamp_ms":0,"duroxide_version":"0.5.0",{kind}}}"#
        );
        serde_json::from_str(&text).unwrap()
    };
    let started = r#""type":"OrchestrationStarted","name":"Order","version":"1.0.0","input":"in","parent_instance":null,"parent_id":null"#;
    let history = [
        stored(1, None, started),
        stored(2, None, r#""type":"ActivityScheduled","name":"A","input":"in""#),
        stored(3, Some(2), r#""type":"ActivityCompleted","result":"done""#),
    ];
    let mut story =
        Story::new(|ctx, input| async move { ctx.schedule_activity("A", input).await }, Mode::Replayed);
    story.history = history.to_vec();
    let turn = story.turn([]);
    assert_eq!(turn.outcome, Outcome::Completed { output: s("done") });
}
