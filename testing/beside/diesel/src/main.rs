//! A program that keeps its own tables with diesel and runs duroxide in the same process.

#[path = "../../hello.rs"]
mod hello;

use std::error::Error;

use diesel::{Connection, RunQueryDsl, SqliteConnection, dsl::sql, select, sql_types::Text};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut own = SqliteConnection::establish(&folder.path().join("own.db").display().to_string())?;
    diesel::sql_query("CREATE TABLE orders (item TEXT)").execute(&mut own)?;
    diesel::sql_query("INSERT INTO orders VALUES ('teapot')").execute(&mut own)?;
    hello::run(folder.path()).await?;
    let item: String = select(sql::<Text>("(SELECT item FROM orders)")).get_result(&mut own)?;
    println!("diesel: {item}");
    Ok(())
}
