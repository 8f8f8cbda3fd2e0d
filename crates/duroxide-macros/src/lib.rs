//! The attribute macros of duroxide. Use them through `duroxide`, which documents them: `#[duroxide::activity]`,
//! `#[duroxide::activities]` and `#[duroxide::orchestration]`.

mod activity;
mod args;
mod function;
mod guard;
mod orchestration;
mod service;
mod signature;

use proc_macro::TokenStream;

/// Makes an async function a typed activity: see `duroxide::activity`.
#[proc_macro_attribute]
pub fn activity(args: TokenStream, item: TokenStream) -> TokenStream {
    activity::expand(args.into(), item.into()).into()
}

/// Makes the methods of an `impl` block typed activities: see `duroxide::activities`.
#[proc_macro_attribute]
pub fn activities(args: TokenStream, item: TokenStream) -> TokenStream {
    service::expand(args.into(), item.into()).into()
}

/// Makes an async function a typed orchestration: see `duroxide::orchestration`.
#[proc_macro_attribute]
pub fn orchestration(args: TokenStream, item: TokenStream) -> TokenStream {
    orchestration::expand(args.into(), item.into()).into()
}
