//! A program that keeps its own tables with sqlx 0.9 and runs duroxide in the same process.

#[path = "../../hello.rs"]
mod hello;

use std::error::Error;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let own = SqliteConnectOptions::new().filename(folder.path().join("own.db")).create_if_missing(true);
    let pool = SqlitePool::connect_with(own).await?;
    sqlx::query("CREATE TABLE orders (item TEXT)").execute(&pool).await?;
    sqlx::query("INSERT INTO orders VALUES ('teapot')").execute(&pool).await?;
    hello::run(folder.path()).await?;
    let item: String = sqlx::query_scalar("SELECT item FROM orders").fetch_one(&pool).await?;
    println!("sqlx: {item}");
    pool.close().await;
    Ok(())
}
