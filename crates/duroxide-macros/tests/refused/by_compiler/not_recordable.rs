//! Inputs and outputs must be serializable, and the result a `Result`.

use duroxide::prelude::*;

struct Order;

#[duroxide::activity]
async fn charge(_ctx: ActivityContext, _order: Order) -> Result<(), String> {
    Ok(())
}

#[duroxide::activity]
async fn count(_ctx: ActivityContext) -> u32 {
    7
}

fn main() {}
