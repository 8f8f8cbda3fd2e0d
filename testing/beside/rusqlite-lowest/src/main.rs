//! A program that keeps its own tables with the oldest rusqlite that duroxide takes, and runs duroxide in the same process.

#[path = "../../hello.rs"]
mod hello;

use std::error::Error;

use rusqlite::Connection;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let own = Connection::open(folder.path().join("own.db"))?;
    own.execute_batch("CREATE TABLE orders (item TEXT); INSERT INTO orders VALUES ('teapot')")?;
    hello::run(folder.path()).await?;
    let item: String = own.query_row("SELECT item FROM orders", [], |row| row.get(0))?;
    println!("rusqlite with SQLite {}: {item}", rusqlite::version());
    Ok(())
}
