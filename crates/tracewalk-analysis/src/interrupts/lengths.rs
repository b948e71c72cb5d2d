//! A set of lengths: the number, the least, the greatest, the mean, and percentiles.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Lengths, counted by value.
///
/// Up to 65536 different values everything is exact; with more, values are rounded down to ten significant bits for the
/// percentile, so that memory stays bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "Form", into = "Form")]
pub struct Lengths {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    counts: BTreeMap<u64, u64>,
    rounded: bool,
}

/// Lengths that are still being added: repeated ones are counted in a small table.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    lengths: Lengths,
    /// A direct-mapped table of lengths and their counts; empty before the first.
    slots: Box<[(u64, u64)]>,
}

/// The length of the table: a power of two.
const SLOTS: usize = 64;

impl Gathering {
    /// Adds a length.
    #[inline]
    pub(super) fn add(&mut self, length: u64) {
        let slot = (crate::quick::mix(length) >> 20) as usize & (SLOTS - 1);
        match self.slots.get_mut(slot) {
            Some((known, count)) if *known == length => *count += 1,
            _ => self.take_place(slot, length),
        }
    }

    #[inline(never)]
    fn take_place(&mut self, slot: usize, length: u64) {
        if self.slots.is_empty() {
            self.slots = vec![(0, 0); SLOTS].into();
        }
        if let Some(place) = self.slots.get_mut(slot) {
            let (known, count) = std::mem::replace(place, (length, 1));
            self.lengths.add_several(known, count);
        }
    }

    /// All lengths.
    pub(super) fn finish(self) -> Lengths {
        let Self { mut lengths, slots } = self;
        slots.iter().for_each(|(length, count)| lengths.add_several(*length, *count));
        lengths
    }
}

/// Lengths in a file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Form {
    /// Each length, the least first, and how often it occurs.
    counts: Vec<(u64, u64)>,
    /// The exact values, if lengths are rounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rounded: Option<Exact>,
}

/// Exact values of rounded lengths.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Exact {
    sum: u128,
    min: u64,
    max: u64,
}

impl From<Lengths> for Form {
    fn from(lengths: Lengths) -> Self {
        let Lengths { sum, min, max, counts, rounded, .. } = lengths;
        let rounded = rounded.then_some(Exact { sum, min, max });
        Self { counts: counts.into_iter().collect(), rounded }
    }
}

impl TryFrom<Form> for Lengths {
    type Error = &'static str;

    fn try_from(Form { counts, rounded }: Form) -> Result<Self, &'static str> {
        let mut lengths = Self::default();
        counts.into_iter().for_each(|(length, count)| lengths.add_several(length, count));
        if let Some(Exact { sum, min, max }) = rounded {
            if min > max {
                return Err("the least length is greater than the greatest");
            }
            lengths.set_rounded(sum, min, max);
        }
        Ok(lengths)
    }
}

/// The most different values that are distinguished.
const MOST_VALUES: usize = 1 << 16;
/// The number of bits that are kept of a rounded value.
const BITS: u32 = 10;

impl Lengths {
    /// Adds a length.
    pub fn add(&mut self, length: u64) {
        self.add_several(length, 1);
    }

    /// Adds a number of one length.
    pub(super) fn add_several(&mut self, length: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.min = if self.count == 0 { length } else { self.min.min(length) };
        self.max = self.max.max(length);
        self.count = self.count.saturating_add(count);
        self.sum = self.sum.saturating_add(u128::from(length) * u128::from(count));
        self.insert(length, count);
    }

    /// Marks the lengths as rounded, with these exact values.
    pub(super) fn set_rounded(&mut self, sum: u128, min: u64, max: u64) {
        if !self.rounded {
            self.round();
        }
        (self.sum, self.min, self.max) = (sum, min, max);
    }

    /// Adds another set.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        if other.rounded && !self.rounded {
            self.round();
        }
        for (length, count) in &other.counts {
            self.insert(*length, *count);
        }
    }

    fn insert(&mut self, length: u64, count: u64) {
        let key = if self.rounded { rounded(length) } else { length };
        let sum = self.counts.entry(key).or_default();
        *sum = sum.saturating_add(count);
        if self.counts.len() > MOST_VALUES && !self.rounded {
            self.round();
        }
    }

    fn round(&mut self) {
        self.rounded = true;
        for (length, count) in std::mem::take(&mut self.counts) {
            let sum = self.counts.entry(rounded(length)).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// The number of lengths.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The sum of the lengths.
    #[must_use]
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The least; `None` if there are none.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The greatest; `None` if there are none.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The mean; `None` if there are none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        // Sums above 2^53 lose only insignificant digits.
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The least length that at least `percent` of 100 do not exceed (the nearest rank); `None` if there are none.
    #[must_use]
    pub fn percentile(&self, percent: u8) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(percent.min(100))).div_ceil(100);
        let mut before = 0;
        let found = self.counts.iter().find(|(_, count)| {
            before += u128::from(**count);
            before >= rank.max(1)
        });
        found.map(|(length, _)| (*length).max(self.min))
    }

    /// Whether percentiles are rounded down, because there were too many different lengths.
    #[must_use]
    pub const fn is_rounded(&self) -> bool {
        self.rounded
    }
}

const fn rounded(length: u64) -> u64 {
    let bits = u64::BITS - length.leading_zeros();
    let low = bits.saturating_sub(BITS);
    length >> low << low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_is_the_nearest_rank() {
        let mut lengths = Lengths::default();
        assert_eq!((lengths.percentile(99), lengths.mean(), lengths.min()), (None, None, None));
        for length in (1..=200).rev() {
            lengths.add(length);
        }
        assert_eq!(lengths.percentile(99), Some(198));
        assert_eq!(lengths.percentile(100), Some(200));
        assert_eq!((lengths.min(), lengths.max(), lengths.mean()), (Some(1), Some(200), Some(100.5)));
    }

    #[test]
    fn what_is_gathered_is_what_is_added_one_by_one() {
        for different in [3, 1000, 1 << 17] {
            let (mut all, mut gathering) = (Lengths::default(), Gathering::default());
            for length in 0..200_000_u64 {
                let length = length * 7919 % different;
                all.add(length);
                gathering.add(length);
            }
            assert_eq!(gathering.finish(), all);
        }
        assert_eq!(Gathering::default().finish(), Lengths::default());
    }

    #[test]
    fn one_after_the_other_and_merged_is_the_same() {
        let (mut all, mut left, mut right) = (Lengths::default(), Lengths::default(), Lengths::default());
        for length in 0..1000_u64 {
            let length = length * length % 997;
            all.add(length);
            if length % 3 == 0 { left.add(length) } else { right.add(length) }
        }
        left.merge(&right);
        left.merge(&Lengths::default());
        assert_eq!(left, all);
    }

    #[test]
    fn very_many_different_lengths_take_bounded_memory_and_are_right_within_a_thousandth() {
        let mut lengths = Lengths::default();
        for length in 0..1_000_000 {
            lengths.add(length);
        }
        assert!(lengths.is_rounded() && lengths.counts.len() <= MOST_VALUES);
        let found = lengths.percentile(99).unwrap();
        assert!((988_000..=989_999).contains(&found), "{found}");
        assert_eq!(lengths.max(), Some(999_999));
    }
}
