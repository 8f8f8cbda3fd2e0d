//! Trait bounds as calls: `debug::<T>()` compiles if `T` has it.

use std::{error::Error, fmt::Debug, hash::Hash};

use serde::{Serialize, de::DeserializeOwned};

pub fn debug<T: Debug + ?Sized>() {}
pub fn clone<T: Clone>() {}
pub fn partial_eq<T: PartialEq>() {}
pub fn eq<T: Eq>() {}
pub fn default<T: Default>() {}
pub fn hash<T: Hash>() {}
pub fn serde<T: Serialize + DeserializeOwned>() {}
pub fn error<T: Error + Send + Sync + 'static>() {}
pub fn send<T: Send + ?Sized>() {}
pub fn sync<T: Sync + ?Sized>() {}
pub fn unpin<T: Unpin>() {}
pub fn future_of<T, F: Future<Output = T>>() {}
pub fn value_is_send<T: Send>(_: &T) {}

/// The most frequent group: a plain value.
pub fn value<T: Debug + Clone>() {}
