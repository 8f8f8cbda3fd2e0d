//! Signatures that no handler can have.

use duroxide::prelude::*;

#[duroxide::activity]
fn not_async(_ctx: ActivityContext) -> Result<(), String> {
    Ok(())
}

#[duroxide::activity]
async fn no_context(_cents: u64) -> Result<(), String> {
    Ok(())
}

#[duroxide::orchestration]
async fn nothing() -> Result<(), String> {
    Ok(())
}

#[duroxide::activity]
async fn borrowed(_ctx: ActivityContext, _name: &str) -> Result<(), String> {
    Ok(())
}

#[duroxide::activity]
async fn generic<T>(_ctx: ActivityContext, _value: T) -> Result<(), String> {
    Ok(())
}

#[duroxide::orchestration]
async fn no_result(_ctx: OrchestrationContext) {}

#[duroxide::activity]
async fn method(self, _ctx: ActivityContext) -> Result<(), String>;

#[duroxide::activity]
struct NotAFunction;

fn main() {}
