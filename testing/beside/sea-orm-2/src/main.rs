//! A program that links sea-orm 2 for PostgreSQL, which it does not reach here, and runs duroxide in the same process.

#[path = "../../hello.rs"]
mod hello;

use std::error::Error;

use sea_orm::{DbBackend, Statement};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let question = Statement::from_string(DbBackend::Postgres, "SELECT 1");
    hello::run(folder.path()).await?;
    println!("sea-orm: {question}");
    Ok(())
}
