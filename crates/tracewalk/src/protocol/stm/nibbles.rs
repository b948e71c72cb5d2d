//! Half bytes of the input, the low half of each byte first.

use super::super::Malformation;

/// Why the start of the input is no packet.
pub(super) enum Stop {
    /// It cannot be one.
    Wrong(Malformation),
    /// The input ends inside a packet of this name.
    Unfinished(&'static str),
}

/// Reads half bytes from `at` on.
pub(super) struct Nibbles<'a> {
    bytes: &'a [u8],
    /// The next half byte.
    pub(super) at: usize,
    /// The packet that is being read.
    pub(super) packet: &'static str,
}

/// The ones of an ASYNC; a zero follows.
pub(super) const ASYNC_ONES: usize = 21;
/// A half byte of ones.
pub(super) const ONES: u8 = 0b1111;

impl<'a> Nibbles<'a> {
    pub(super) const fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, packet: "header" }
    }

    /// The half byte at `index`.
    pub(super) fn get(&self, index: usize) -> Option<u8> {
        self.bytes.get(index / 2).map(|byte| byte >> (4 * (index % 2)) & 0b1111)
    }

    /// The next half byte.
    pub(super) fn nibble(&mut self) -> Result<u8, Stop> {
        let nibble = self.get(self.at).ok_or(Stop::Unfinished(self.packet))?;
        self.at += 1;
        Ok(nibble)
    }

    /// The number in the next `count` half bytes, at most 16.
    pub(super) fn number(&mut self, count: usize) -> Result<u64, Stop> {
        const LOW_HALVES: u128 = u128::from_ne_bytes([0x0f; 16]);
        if count == 0 {
            return Ok(0);
        }
        if self.at + count > 2 * self.bytes.len() {
            return Err(Stop::Unfinished(self.packet));
        }
        let rest = self.bytes.get(self.at / 2..).unwrap_or_default();
        let word = rest.first_chunk().map_or_else(
            || {
                let mut padded = [0; 16];
                padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                u128::from_be_bytes(padded)
            },
            |bytes| u128::from_be_bytes(*bytes),
        );
        let in_order = (word & LOW_HALVES) << 4 | word >> 4 & LOW_HALVES;
        let value = in_order << (4 * (self.at % 2)) >> (u128::BITS as usize - 4 * count);
        self.at += count;
        Ok(u64::try_from(value).unwrap_or(u64::MAX))
    }

    /// The number of ones from `start` on, at most `most`, and the half byte after them unless there are more ones or
    /// the input ends.
    pub(super) fn ones(&self, start: usize, most: usize) -> (usize, Option<u8>) {
        let ones = (0..most).take_while(|index| self.get(start + index) == Some(ONES)).count();
        (ones, self.get(start + ones).filter(|next| *next != ONES))
    }

    /// Where an ASYNC begins that takes the last half bytes of the packet from `start` to the next half byte: `Err` if the
    /// input ends before this is certain.
    ///
    /// No packet has as many ones as an ASYNC, also together with the next header. Of more ones, the last are the ASYNC's.
    pub(super) fn overlap(&self, start: usize) -> Result<Option<usize>, ()> {
        let is_one = |index: &usize| self.get(*index) == Some(ONES);
        let own = (start..self.at).rev().take_while(is_one).count();
        if own == 0 {
            return Ok(None);
        }
        match self.ones(self.at, ASYNC_ONES) {
            (ASYNC_ONES, _) => Ok(None),
            (ones, Some(0)) if own + ones >= ASYNC_ONES => Ok(Some(self.at + ones - ASYNC_ONES)),
            (_, Some(_)) => Ok(None),
            (_, None) => Err(()),
        }
    }

    /// Searches for an ASYNC from the next half byte on, with `before` ones before it: where it begins, counted from these ones.
    /// `Err` is where one may begin if more input comes.
    pub(super) fn search(&self, before: usize) -> Result<usize, usize> {
        let mut ones = before;
        for index in self.at..2 * self.bytes.len() {
            match self.get(index) {
                Some(ONES) => ones += 1,
                Some(0) if ones >= ASYNC_ONES => return Ok(before + index - ASYNC_ONES),
                _ => ones = 0,
            }
        }
        Err(before + 2 * self.bytes.len() - ones.min(ASYNC_ONES))
    }
}
