//! A figure measured several times.

/// The middle value and the extremes of repeated measurements.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(super) struct Sample {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Sample {
    /// Sums up the values; nothing if there are none.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        Some(Self { median: median(&values)?, min: *values.first()?, max: *values.last()? })
    }
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some((sorted.get(middle - 1)? + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_count_has_a_measured_median() {
        assert_eq!(Sample::of([9.0, 1.0, 4.0]), Some(Sample { median: 4.0, min: 1.0, max: 9.0 }));
    }

    #[test]
    fn an_even_count_takes_the_mean_of_the_middle() {
        assert_eq!(Sample::of([4.0, 1.0]).unwrap().median, 2.5);
    }

    #[test]
    fn nothing_measured_is_nothing() {
        assert_eq!(Sample::of([]), None);
        assert_eq!(Sample::of([f64::NAN]), None);
    }
}
