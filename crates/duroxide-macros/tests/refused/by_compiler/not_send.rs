//! Activities move between threads.

use std::rc::Rc;

use duroxide::prelude::*;

#[duroxide::activity]
async fn charge(ctx: ActivityContext) -> Result<u32, String> {
    let shared = Rc::new(7);
    ctx.cancelled().await;
    Ok(*shared)
}

fn main() {}
