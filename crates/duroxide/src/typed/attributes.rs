//! The attribute macros, with their documentation.

/// Makes an `async fn` a typed activity.
///
/// The function stays as it is and can be called. A type of the same name implements
/// [`Activity`](crate::Activity): `ctx.activity::<charge>(order)` calls it, `Runtime::builder(store).activity::<charge>()`
/// registers it.
///
/// ```
/// use duroxide::prelude::*;
///
/// #[duroxide::activity]
/// async fn charge(ctx: ActivityContext, cents: u64) -> Result<String, String> {
///     Ok(format!("charged {cents} once, by key {}", ctx.idempotency_key()))
/// }
///
/// // Recorded under another name.
/// #[duroxide::activity(name = "Refund")]
/// async fn refund(_ctx: ActivityContext, receipt: String, cents: u64) -> Result<(), String> {
///     Ok(())
/// }
///
/// // Declared without a body: another program runs it.
/// #[duroxide::activity]
/// async fn print_label(ctx: ActivityContext, address: String) -> Result<(), String>;
///
/// async fn pay(ctx: OrchestrationContext) -> Result<(), String> {
///     let receipt = ctx.activity::<charge>(1_200).await?;
///     ctx.activity::<refund>((receipt, 200)).await?;
///     ctx.activity::<print_label>("12 Tea Street".to_owned()).await?;
///     Ok(())
/// }
/// ```
///
/// # Signature
///
/// The first argument is the context, the others are recorded: none as `null`, one as its JSON, several as an array. The
/// function returns a `Result`, whose error is any type that is serializable and has a text. Activities have no versions:
/// a changed activity gets another name.
pub use duroxide_macros::activity;

/// Makes the methods of an `impl` block typed activities that share the state of a service.
///
/// Every `async fn` with the receiver `self: Arc<Self>` is an activity; other methods are not changed. The types that
/// name the activities are declared next to the block, with the names of the methods.
/// `Runtime::builder(store).service(payments)` registers them all. A service has one such block.
///
/// ```
/// use std::sync::Arc;
/// use duroxide::prelude::*;
///
/// struct Payments {
///     account: String,
/// }
///
/// #[duroxide::activities]
/// impl Payments {
///     async fn charge(self: Arc<Self>, _ctx: ActivityContext, cents: u64) -> Result<String, String> {
///         Ok(format!("{cents} to {}", self.account))
///     }
///
///     #[activity(name = "Balance")]
///     async fn balance(self: Arc<Self>, _ctx: ActivityContext) -> Result<u64, String> {
///         Ok(0)
///     }
/// }
///
/// async fn pay(ctx: OrchestrationContext) -> Result<String, String> {
///     Ok(ctx.activity::<charge>(1_200).await?)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = Arc::new(SqliteProvider::new_in_memory().await?);
/// let payments = Arc::new(Payments { account: "tea shop".to_owned() });
/// let runtime = Runtime::builder(store).service(payments).build().await?;
/// # runtime.shutdown(None).await;
/// # Ok(())
/// # }
/// ```
pub use duroxide_macros::activities;

/// Makes an `async fn` a typed orchestration, and refuses known sources of nondeterminism in its body.
///
/// The function stays as it is. A type of the same name implements [`Orchestration`](crate::Orchestration):
/// `ctx.child::<order>(input)` calls it, `client.start::<order>("order-1", input)` starts it,
/// `Runtime::builder(store).orchestration::<order>()` registers it.
///
/// ```
/// use duroxide::prelude::*;
///
/// #[duroxide::orchestration]
/// async fn ship(_ctx: OrchestrationContext, parcel: String) -> Result<String, String> {
///     Ok(format!("shipped {parcel}"))
/// }
///
/// // Another version of the same orchestration, with another input.
/// #[duroxide::orchestration(name = "ship", version = "2.0.0")]
/// async fn ship_v2(_ctx: OrchestrationContext, parcel: String, express: bool) -> Result<String, String> {
///     Ok(format!("shipped {parcel}, express: {express}"))
/// }
///
/// #[duroxide::orchestration]
/// async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
///     Ok(ctx.child::<ship_v2>((item, true)).id("ship-7").await?)
/// }
/// ```
///
/// # Versions
///
/// With `version = "..."` exactly this version is registered, and calls and starts ask for exactly this version. Without
/// it the handler is registered as version 1.0.0, and calls and starts leave the choice to the version policy of the node.
/// An orchestration that has versions should give one to each of them.
///
/// # What is refused
///
/// An orchestration is replayed, so it must do the same whenever it sees the same record. The attribute refuses clocks,
/// random numbers, tasks, threads, files, sockets, a `select!` without an order and the order of hash maps, and says what to
/// use instead:
///
/// ```compile_fail
/// # use duroxide::prelude::*;
/// #[duroxide::orchestration]
/// async fn order(ctx: OrchestrationContext) -> Result<u64, String> {
///     let started = std::time::SystemTime::now(); // error: use `ctx.utc_now` instead
///     Ok(started.elapsed().unwrap().as_secs())
/// }
/// ```
///
/// It reads only this function, and only what is written there: not the functions it calls, and not types. One statement
/// is allowed with a reason:
///
/// ```
/// # use duroxide::prelude::*;
/// #[duroxide::orchestration]
/// async fn order(ctx: OrchestrationContext) -> Result<(), String> {
///     #[duroxide(allow_nondeterminism = "only printed while debugging")]
///     println!("polled at {:?}", std::time::SystemTime::now());
///     Ok(())
/// }
/// ```
pub use duroxide_macros::orchestration;
