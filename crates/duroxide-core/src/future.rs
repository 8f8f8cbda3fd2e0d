use std::marker::PhantomData;

/// A recorded step that has not resolved yet. Dropping it before it resolved cancels the work.
#[derive(Debug)]
pub struct DurableFuture<T>(PhantomData<T>);
