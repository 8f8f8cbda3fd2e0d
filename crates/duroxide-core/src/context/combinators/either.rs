//! [`Either2`] and [`Either3`]: the winner of a select.

/// The winner of [`select2`](crate::OrchestrationContext::select2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Either2<A, B> {
    /// The first future won.
    First(A),
    /// The second future won.
    Second(B),
}

impl<A, B> Either2<A, B> {
    /// Whether the first future won.
    pub fn is_first(&self) -> bool {
        matches!(self, Self::First(_))
    }

    /// Whether the second future won.
    pub fn is_second(&self) -> bool {
        matches!(self, Self::Second(_))
    }

    /// The winner's position, from 0.
    pub fn index(&self) -> usize {
        match self {
            Self::First(_) => 0,
            Self::Second(_) => 1,
        }
    }
}

impl<T> Either2<T, T> {
    /// The winner's position and value.
    pub fn into_tuple(self) -> (usize, T) {
        match self {
            Self::First(value) => (0, value),
            Self::Second(value) => (1, value),
        }
    }
}

/// The winner of [`select3`](crate::OrchestrationContext::select3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Either3<A, B, C> {
    /// The first future won.
    First(A),
    /// The second future won.
    Second(B),
    /// The third future won.
    Third(C),
}

impl<A, B, C> Either3<A, B, C> {
    /// The winner's position, from 0.
    pub fn index(&self) -> usize {
        match self {
            Self::First(_) => 0,
            Self::Second(_) => 1,
            Self::Third(_) => 2,
        }
    }
}

impl<T> Either3<T, T, T> {
    /// The winner's position and value.
    pub fn into_tuple(self) -> (usize, T) {
        match self {
            Self::First(value) => (0, value),
            Self::Second(value) => (1, value),
            Self::Third(value) => (2, value),
        }
    }
}
