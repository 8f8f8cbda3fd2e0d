//! Services whose methods cannot be activities.

use std::sync::Arc;

use duroxide::prelude::*;

struct Borrowing;

#[duroxide::activities]
impl Borrowing {
    async fn charge(&self, _ctx: ActivityContext) -> Result<(), String> {
        Ok(())
    }
}

struct Empty;

#[duroxide::activities]
impl Empty {
    fn new() -> Self {
        Self
    }
}

struct Selfish;

#[duroxide::activities]
impl Selfish {
    async fn refund(self: Arc<Self>, _ctx: ActivityContext, _other: Vec<Self>) -> Result<(), String> {
        Ok(())
    }
}

#[duroxide::activities(name = "x")]
impl Selfish {}

#[duroxide::activities]
impl Clone for Selfish {
    fn clone(&self) -> Selfish {
        Selfish
    }
}

fn main() {}
