//! Many durations, summed up.

use std::time::Duration;

/// Durations in ascending order, in milliseconds.
#[derive(Debug)]
pub struct Spread(Vec<f64>);

impl Spread {
    pub fn of(durations: impl IntoIterator<Item = Duration>) -> Self {
        Self::of_ms(durations.into_iter().map(|duration| duration.as_secs_f64() * 1e3))
    }

    pub fn of_ms(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// The value that `share` of all values do not exceed (nearest rank).
    pub fn percentile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    pub fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_measured_value() {
        let spread = Spread::of_ms((1..=200).rev().map(f64::from));
        assert_eq!(spread.percentile(0.5), 100.0);
        assert_eq!(spread.percentile(0.99), 198.0);
        assert_eq!(spread.max(), 200.0);
    }

    #[test]
    fn nothing_measured_is_no_number() {
        assert!(Spread::of_ms([]).percentile(0.5).is_nan());
        assert!(Spread::of_ms([]).mean().is_nan());
    }
}
