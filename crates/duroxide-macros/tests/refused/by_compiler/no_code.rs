//! What has no code cannot be registered.

use duroxide::{prelude::*, runtime::registry::ActivityRegistry};

#[duroxide::activity]
async fn elsewhere(ctx: ActivityContext) -> Result<(), String>;

struct Payments;

fn main() {
    let _ = ActivityRegistry::builder().activity::<elsewhere>();
    let _ = ActivityRegistry::builder().service(std::sync::Arc::new(Payments));
}
