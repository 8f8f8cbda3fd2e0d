//! [`Mock`] and [`TextMock`]: mocks of activities.

use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use duroxide_core::typed::{Activity, decode, encode, encode_error};
use duroxide_runtime::registry::ActivityRegistryBuilder;

use crate::cluster::fail;

/// Replaces a typed activity in a test: returns the results that the test sets, takes as long as the test sets, in
/// virtual time, and records its calls. Clones share their state.
///
/// ```
/// # use std::time::Duration;
/// # use duroxide_core::typed::Activity;
/// # use duroxide_testing::Mock;
/// # enum charge {}
/// # impl Activity for charge {
/// #     const NAME: &'static str = "charge";
/// #     type Input = u64;
/// #     type Output = String;
/// #     type Error = String;
/// # }
/// let charge = Mock::<charge>::returning(&"receipt-1".to_owned())
///     .failing_first(2, &"card reader is busy".to_owned())
///     .taking(Duration::from_secs(3));
/// assert!(charge.calls().is_empty());
/// ```
pub struct Mock<A: Activity> {
    text: TextMock,
    activity: PhantomData<fn() -> A>,
}

impl<A: Activity> Mock<A> {
    /// A mock that returns `output` from every call.
    pub fn returning(output: &A::Output) -> Self {
        let output = encode(output).unwrap_or_else(|error| fail(&error));
        Self::of_text(move |_| Ok(output.clone()))
    }

    /// A mock that fails every call with `error`.
    pub fn failing(error: &A::Error) -> Self {
        let error = encode_error(error);
        Self::of_text(move |_| Err(error.clone()))
    }

    /// A mock that answers every call with the result of `answer`.
    pub fn answering(
        answer: impl Fn(A::Input) -> Result<A::Output, A::Error> + Send + Sync + 'static,
    ) -> Self {
        Self::of_text(move |input| match answer(Self::input_of(&input)) {
            Ok(output) => Ok(encode(&output).unwrap_or_else(|error| fail(&error))),
            Err(error) => Err(encode_error(&error)),
        })
    }

    fn of_text(answer: impl Fn(String) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self { text: TextMock::new(A::NAME, answer), activity: PhantomData }
    }

    /// Fails the first `calls` calls with `error`.
    #[must_use]
    pub fn failing_first(self, calls: u32, error: &A::Error) -> Self {
        Self { text: self.text.failing_first(calls, encode_error(error)), ..self }
    }

    /// Makes every call take `duration` of virtual time.
    #[must_use]
    pub fn taking(self, duration: Duration) -> Self {
        Self { text: self.text.taking(duration), ..self }
    }

    /// The inputs of the calls so far, including calls that a crash interrupted.
    pub fn calls(&self) -> Vec<A::Input> {
        self.text.calls().iter().map(|input| Self::input_of(input)).collect()
    }

    fn input_of(input: &str) -> A::Input {
        decode(input, || format!("input of activity '{}'", A::NAME))
            .unwrap_or_else(|error| fail(&error.to_string()))
    }

    pub(crate) fn register(&self, builder: ActivityRegistryBuilder) -> ActivityRegistryBuilder {
        self.text.register(builder)
    }
}

impl<A: Activity> Clone for Mock<A> {
    fn clone(&self) -> Self {
        Self { text: self.text.clone(), activity: PhantomData }
    }
}

impl<A: Activity> fmt::Debug for Mock<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

/// Replaces an activity that is called by name, with text as input and output. Clones share their state.
#[derive(Clone)]
pub struct TextMock {
    name: String,
    answer: Arc<Answer>,
    duration: Duration,
    state: Arc<Mutex<MockState>>,
}

type Answer = dyn Fn(String) -> Result<String, String> + Send + Sync;

#[derive(Debug, Default)]
struct MockState {
    calls: Vec<String>,
    /// The number of further calls that fail, and their error.
    failures: (u32, String),
}

impl TextMock {
    /// A mock of the activity `name` that answers every call with the result of `answer`.
    pub fn new(
        name: impl Into<String>,
        answer: impl Fn(String) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), answer: Arc::new(answer), duration: Duration::ZERO, state: Arc::default() }
    }

    /// Fails the first `calls` calls with `error`.
    #[must_use]
    pub fn failing_first(self, calls: u32, error: impl Into<String>) -> Self {
        self.lock().failures = (calls, error.into());
        self
    }

    /// Makes every call take `duration` of virtual time.
    #[must_use]
    pub fn taking(mut self, duration: Duration) -> Self {
        self.duration = duration;
        self
    }

    /// The inputs of the calls so far, including calls that a crash interrupted.
    pub fn calls(&self) -> Vec<String> {
        self.lock().calls.clone()
    }

    pub(crate) fn register(&self, builder: ActivityRegistryBuilder) -> ActivityRegistryBuilder {
        let mock = self.clone();
        builder.register(self.name.as_str(), move |_ctx, input| {
            let mock = mock.clone();
            async move { mock.call(input).await }
        })
    }

    async fn call(&self, input: String) -> Result<String, String> {
        let failure = self.note(&input);
        if !self.duration.is_zero() {
            tokio::time::sleep(self.duration).await;
        }
        failure.map_or_else(|| (self.answer)(input), Err)
    }

    /// Records a call. Returns its error if it is one of the first calls, which fail.
    fn note(&self, input: &str) -> Option<String> {
        let mut state = self.lock();
        state.calls.push(input.to_owned());
        let (left, error) = &mut state.failures;
        *left = left.checked_sub(1)?;
        Some(error.clone())
    }

    fn lock(&self) -> MutexGuard<'_, MockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TextMock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mock").field("name", &self.name).field("calls", &self.calls()).finish_non_exhaustive()
    }
}
