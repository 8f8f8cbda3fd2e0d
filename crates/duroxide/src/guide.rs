//! The snippets of the guide in `docs/` compile and run: one item per page.

#[doc = include_str!("../../../docs/concepts.md")]
struct Concepts;

#[cfg(feature = "macros")]
#[doc = include_str!("../../../docs/typed.md")]
struct Typed;

#[doc = include_str!("../../../docs/writing-orchestrations.md")]
struct WritingOrchestrations;

/// Its snippets use the test kit.
#[cfg(all(feature = "macros", feature = "testing"))]
#[doc = include_str!("../../../docs/testing.md")]
struct Testing;

#[cfg(all(feature = "macros", feature = "testing"))]
#[doc = include_str!("../../../docs/versioning.md")]
struct Versioning;

#[doc = include_str!("../../../docs/operating.md")]
struct Operating;

#[cfg(feature = "postgres")]
#[doc = include_str!("../../../docs/postgres.md")]
struct Postgres;

#[cfg(all(feature = "postgres", feature = "sqlite"))]
#[doc = include_str!("../../../docs/in-your-transaction.md")]
struct InYourTransaction;

/// Its snippets use the test kits.
#[cfg(feature = "provider-test")]
#[doc = include_str!("../../../docs/writing-a-provider.md")]
struct WritingAProvider;

#[doc = include_str!("../../../docs/calls.md")]
struct Calls;

#[doc = include_str!("../../../docs/semantics.md")]
struct Semantics;

#[doc = include_str!("../../../docs/requirements.md")]
struct Requirements;
