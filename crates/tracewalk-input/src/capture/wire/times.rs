//! The moment of each byte on the wire, in little memory.

use super::changes::Tick;

/// The exact moment of each byte, in one to two bytes of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteTimes {
    /// The moment of every [`BLOCK`]th byte, and the index of the first step after it.
    blocks: Vec<(Tick, usize)>,
    /// The steps to the other bytes, as LEB128: seven bits in a byte, the lowest first; the last byte of a
    /// step has bit 7 clear.
    steps: Vec<u8>,
    last: Tick,
    bytes: usize,
}

/// The number of bytes that share an entry.
const BLOCK: usize = 256;

/// The bits of a step in one byte, and the flag that more bytes follow.
const PAYLOAD: u8 = 0b0111_1111;
const MORE: u8 = 0b1000_0000;

impl ByteTimes {
    /// Adds the moment of the next byte; `at` is not before the last one.
    pub(super) fn push(&mut self, at: Tick) {
        if self.bytes.is_multiple_of(BLOCK) {
            self.blocks.push((at, self.steps.len()));
        } else {
            let mut step = at.0.saturating_sub(self.last.0);
            while step > u64::from(PAYLOAD) {
                self.steps.push(step.to_le_bytes()[0] | MORE);
                step >>= 7;
            }
            self.steps.push(step.to_le_bytes()[0]);
        }
        self.last = at;
        self.bytes += 1;
    }

    /// The moment at which the byte at `index` began.
    #[must_use]
    pub fn at(&self, index: usize) -> Option<Tick> {
        if index >= self.bytes {
            return None;
        }
        let (mut at, start) = *self.blocks.get(index / BLOCK)?;
        let mut steps = self.steps.get(start..)?.iter();
        for _ in 0..index % BLOCK {
            let (mut step, mut shift) = (0_u64, 0);
            loop {
                let byte = steps.next()?;
                step |= u64::from(byte & PAYLOAD) << shift;
                shift += 7;
                if byte & MORE == 0 {
                    break;
                }
            }
            at.0 += step;
        }
        Some(at)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_byte_keeps_its_moment(steps in prop::collection::vec(
            prop_oneof![0_u64..300, 0_u64..1 << 20, Just(1 << 50)], 0..2000
        )) {
            let mut times = ByteTimes::default();
            let moments = steps.iter().scan(0, |at, step| { *at += step; Some(Tick(*at)) }).collect::<Vec<_>>();
            for &at in &moments {
                times.push(at);
            }
            prop_assert_eq!(times.len(), moments.len());
            for (index, &at) in moments.iter().enumerate() {
                prop_assert_eq!(times.at(index), Some(at));
            }
            prop_assert_eq!(times.at(moments.len()), None);
        }
    }

    #[test]
    fn bytes_that_follow_one_another_closely_take_one_byte_each() {
        let mut times = ByteTimes::default();
        for byte in 0..10_000 {
            times.push(Tick(byte * 30));
        }
        assert!(times.steps.len() + times.blocks.len() * 16 < 11_000);
    }
}
