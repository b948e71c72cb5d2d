//! Numbers for values: equal values have the same number.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// Values by number. The table grows with every new value until the caller [clears](Interned::clear) it.
#[derive(Clone, Debug)]
pub(super) struct Interned<T> {
    values: Vec<T>,
    /// Number plus one by hash, 0 if there is none. A power of two long, at most half full.
    table: Vec<u32>,
}

impl<T: Eq + Hash> Interned<T> {
    pub(super) const fn new() -> Self {
        Self { values: Vec::new(), table: Vec::new() }
    }

    /// The number of `value`.
    pub(super) fn number(&mut self, value: T) -> u32 {
        if self.values.len() * 2 >= self.table.len() {
            self.grow();
        }
        let mut slot = slot_of(&value, self.table.len());
        while let Some(number) = self.table.get(slot).copied().and_then(|entry| entry.checked_sub(1)) {
            if self.values.get(number as usize) == Some(&value) {
                return number;
            }
            slot = (slot + 1) & (self.table.len() - 1);
        }
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(value);
        if let Some(entry) = self.table.get_mut(slot) {
            *entry = number + 1;
        }
        number
    }

    /// The value with this number.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Forgets all values.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.table.fill(0);
    }

    fn grow(&mut self) {
        let length = (self.table.len() * 2).max(64);
        self.table = alloc::vec![0; length];
        for (number, value) in (1..).zip(&self.values) {
            let mut slot = slot_of(value, length);
            while let Some(entry) = self.table.get_mut(slot) {
                if *entry == 0 {
                    *entry = number;
                    break;
                }
                slot = (slot + 1) & (length - 1);
            }
        }
    }
}

fn slot_of(value: &impl Hash, length: usize) -> usize {
    let mut mixer = Mixer(0);
    value.hash(&mut mixer);
    usize::try_from(mixer.finish() >> 32).unwrap_or(0) & (length - 1)
}

/// A fast hash that does not resist chosen values: with those, a lookup may visit every value.
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0.rotate_left(5) ^ value);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Spreads differences over the upper half.
#[inline]
const fn mix(value: u64) -> u64 {
    let product = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_the_same_number_and_others_do_not() {
        let mut interned = Interned::new();
        let numbers = || (0..1000_u32).map(|value| value * value);
        assert!(numbers().map(|value| interned.number(value)).eq(0..1000));
        assert!(numbers().map(|value| interned.number(value)).eq(0..1000));
        assert_eq!(interned.get(30), Some(&900));
        assert_eq!(interned.len(), 1000);
        interned.clear();
        assert_eq!((interned.number(7), interned.number(8), interned.number(7)), (0, 1, 0));
    }
}
