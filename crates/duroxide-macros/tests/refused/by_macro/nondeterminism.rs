//! What a replay would not do again.

use std::{collections::HashMap, time::SystemTime};

use duroxide::prelude::*;

#[duroxide::orchestration]
async fn order(_ctx: OrchestrationContext, stock: HashMap<String, u32>) -> Result<u64, String> {
    let began = SystemTime::now();
    for (_item, _count) in &stock {}
    #[duroxide(allow_nondeterminism = "")]
    std::thread::sleep(std::time::Duration::from_secs(1));
    #[duroxide(allow_nondeterminism = "only printed")]
    println!("{:?}", SystemTime::now());
    println!("{}", std::process::id());
    Ok(began.elapsed().map_or(0, |time| time.as_secs()))
}

fn main() {}
