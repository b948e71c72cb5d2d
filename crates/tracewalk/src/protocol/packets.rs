//! Feeds a decoder piece by piece and accounts for every byte.

use alloc::vec::Vec;

use super::decode::Decode;
use super::item::{Item, TakeItem};
use super::malformation::Malformation;
use super::step::Step;
use crate::span::{Span, StreamOffset};

/// The longest malformed or unsynchronised stretch in one item. Longer stretches become several items, so
/// that memory stays bounded whatever the input holds.
const LONGEST_GAP: usize = 4096;

/// Decodes a source's bytes, in pieces of any size, to packets.
///
/// ```
/// use tracewalk::protocol::{Item, Packets, etmv3};
///
/// let config = etmv3::Config::for_core("cortex-m3").expect("a known core");
/// let mut packets = Packets::new(etmv3::Decoder::new(&config));
/// let mut names = Vec::new();
/// let mut note = |item: Item<etmv3::Packet>, _span, _bytes: &[u8]| {
///     if let Item::Packet(packet) = item {
///         names.push(tracewalk::protocol::Describe::name(&packet));
///     }
/// };
/// packets.push(&[0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01], &mut note);
/// packets.push(&[0x00, 0x00, 0x08, 0x84], &mut note);
/// packets.finish(&mut note);
/// assert_eq!(names, ["a_sync", "i_sync", "p_header"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Packets<D> {
    decoder: D,
    /// Bytes that the decoder wants to see again with more after them. Bounded by the longest packet.
    carried: Vec<u8>,
    /// Bytes of the gap that is still open. Bounded by `LONGEST_GAP`.
    gap: Vec<u8>,
    /// The open gap's malformation; `None` for unsynchronised bytes. Meaningless while `gap` is empty.
    #[cfg_attr(feature = "serde", serde(skip))]
    gap_reason: Option<Malformation>,
    /// The number of zero bytes of the open gap before those in `gap`. Until another byte follows, they may be the rest
    /// of a buffer that was not filled.
    padding: u64,
    /// The position of the decoder's next byte.
    position: StreamOffset,
    /// The number of zero bytes directly before `position`, counted up to the fewest of an A-sync.
    zeros: usize,
}

impl<D: Decode> Packets<D> {
    /// Decodes a source from its first byte.
    #[must_use]
    pub fn new(decoder: D) -> Self {
        Self {
            decoder,
            carried: Vec::new(),
            gap: Vec::new(),
            gap_reason: None,
            padding: 0,
            position: StreamOffset(0),
            zeros: 0,
        }
    }

    /// Decodes a source from this byte on, ignoring everything before.
    pub(crate) fn starting_at(decoder: D, position: StreamOffset) -> Self {
        Self { position, ..Self::new(decoder) }
    }

    /// Takes the next bytes of the source and gives `taker` each item, its place and its bytes.
    pub fn push(&mut self, input: &[u8], taker: &mut impl TakeItem<D::Packet>) {
        let input = self.push_carried(input, taker);
        let consumed = self.decode_some(input, usize::MAX, taker);
        self.carried.extend_from_slice(input.get(consumed..).unwrap_or_default());
    }

    /// The source ends here: gives the last items. Zeros up to the end that are more than a trace unit sends in an A-sync are
    /// the rest of a buffer that was not filled: unsynchronised bytes.
    pub fn finish(&mut self, taker: &mut impl TakeItem<D::Packet>) {
        let are_many = D::A_SYNC.is_some_and(|a_sync| self.carried.len() >= a_sync.shortest().len());
        if (self.is_padding() || are_many) && self.carried.iter().all(|byte| *byte == 0) {
            if !self.is_padding() {
                self.close_gap(taker);
            }
            let rest = core::mem::take(&mut self.carried);
            self.take_into_gap(&rest, taker);
            self.gap_reason = None;
        }
        self.end(taker);
    }

    fn end(&mut self, taker: &mut impl TakeItem<D::Packet>) {
        let carried = core::mem::take(&mut self.carried);
        let mut rest = &carried[..];
        while !rest.is_empty() {
            let bytes = match self.decoder.decode_last(rest) {
                Step::Packet { packet, bytes } => self.give_packet(packet, rest, bytes, taker),
                Step::Malformed { reason, bytes } => {
                    self.close_gap(taker);
                    self.gap_reason = Some(reason);
                    self.take_into_gap(rest.get(..bytes).unwrap_or(rest), taker);
                    bytes
                }
                Step::Searched { bytes } => {
                    self.take_into_gap(rest.get(..bytes).unwrap_or(rest), taker);
                    bytes
                }
                Step::NeedInput => break,
            };
            rest = rest.get(bytes..).unwrap_or_default();
        }
        self.close_gap(taker);
    }

    /// Bytes of the source were lost before the next ones: gives the complete items and searches for synchronisation.
    pub fn lose_sync(&mut self, taker: &mut impl TakeItem<D::Packet>) {
        self.end(taker);
        self.decoder.desynchronise();
        self.zeros = 0;
    }

    /// Discards an incomplete packet at the end of the input, which [`Packets::finish`] would report as malformed; returns
    /// the number of bytes discarded. Only [`Packets::finish`] may follow.
    pub fn forget_incomplete(&mut self) -> usize {
        core::mem::take(&mut self.carried).len()
    }

    /// The position of the next byte to be pushed.
    #[must_use]
    pub fn position(&self) -> StreamOffset {
        StreamOffset(self.position.0 + self.carried.len() as u64)
    }

    /// Completes the packet that the previous input ended in; returns the rest of `input`. Afterwards either
    /// nothing is carried or `input` is used up.
    pub(crate) fn push_carried<'a>(
        &mut self,
        input: &'a [u8],
        taker: &mut impl TakeItem<D::Packet>,
    ) -> &'a [u8] {
        let mut input = input;
        while !self.carried.is_empty() && !input.is_empty() {
            input = self.push_after_carried(input, taker);
        }
        input
    }

    /// Whether a gap is pending: begun, but not given yet.
    pub(crate) const fn is_in_gap(&self) -> bool {
        !self.gap.is_empty() || self.padding > 0
    }

    /// Whether no packet and no gap is pending.
    pub(crate) fn is_between_packets(&self) -> bool {
        self.carried.is_empty() && !self.is_in_gap()
    }

    /// The decoder.
    #[inline]
    pub(crate) const fn decoder(&self) -> &D {
        &self.decoder
    }

    /// The decoder, to change its state.
    pub(crate) const fn decoder_mut(&mut self) -> &mut D {
        &mut self.decoder
    }

    /// Advances over bytes that need no decoding. None of them begins or continues a gap.
    #[inline]
    pub(crate) fn step_over(&mut self, bytes: &[u8]) {
        self.position.0 += bytes.len() as u64;
        self.zeros = self.zeros_after(bytes);
    }

    /// The number of zero bytes directly before the end of `passed`, the bytes at [`Self::position`].
    #[inline]
    fn zeros_after(&self, passed: &[u8]) -> usize {
        match passed {
            [.., last] if *last != 0 => 0,
            passed => D::A_SYNC.map_or(0, |a_sync| a_sync.zeros_after(self.zeros, passed)),
        }
    }

    /// Decodes the carried bytes followed by some of `input`; returns the rest of `input`.
    fn push_after_carried<'a>(&mut self, input: &'a [u8], taker: &mut impl TakeItem<D::Packet>) -> &'a [u8] {
        // A few bytes complete nearly every packet; taking all of the input here would copy it.
        const HELPING: usize = 32;
        let mut joined = core::mem::take(&mut self.carried);
        let old = joined.len();
        let (helping, rest) = input.split_at(input.len().min(HELPING));
        joined.extend_from_slice(helping);
        let consumed = self.decode_some(&joined, usize::MAX, taker);
        match consumed.checked_sub(old) {
            // Decoding has reached `input`: go on there, without copies.
            Some(of_input) => input.get(of_input..).unwrap_or_default(),
            None => {
                joined.drain(..consumed);
                self.carried = joined;
                rest
            }
        }
    }

    /// Decodes at least `at_least` bytes of `input`, or until it ends or is incomplete; returns how many were consumed.
    pub(crate) fn decode_some(
        &mut self,
        input: &[u8],
        at_least: usize,
        taker: &mut impl TakeItem<D::Packet>,
    ) -> usize {
        // The number of bytes offered to the decoder after the last byte at which a frequent packet may begin.
        let beyond = D::LONGEST_FREQUENT - 1;
        let mut consumed = 0;
        while let Some(rest) = input.get(consumed..).filter(|rest| !rest.is_empty() && consumed < at_least) {
            if !self.is_in_gap() {
                let most = (at_least - consumed).saturating_add(beyond);
                let most = rest.get(..most).unwrap_or(rest);
                let frequent = self.decoder.decode_frequent(most, self.position, taker);
                if frequent > 0 {
                    self.position.0 += frequent as u64;
                    consumed += frequent;
                    continue;
                }
            }
            match self.decoder.decode(rest) {
                Step::Packet { packet, bytes } => {
                    consumed += self.give_packet(packet, rest, bytes, taker);
                }
                Step::Malformed { reason, bytes } => {
                    let continues = matches!(reason, Malformation::NotASync { found: 0, .. });
                    if !(continues && self.is_padding()) {
                        self.close_gap(taker);
                        self.gap_reason = Some(reason);
                    }
                    self.take_into_gap(rest.get(..bytes).unwrap_or(rest), taker);
                    let in_front = self.zeros_after(input.get(..consumed).unwrap_or_default());
                    let end = D::A_SYNC.and_then(|a_sync| a_sync.completed(reason, in_front));
                    let a_sync = end.and_then(|end| rest.get(bytes..end));
                    consumed += bytes + a_sync.map_or(0, |a_sync| self.complete_a_sync(a_sync, taker));
                }
                Step::Searched { bytes } => {
                    self.take_into_gap(rest.get(..bytes).unwrap_or(rest), taker);
                    consumed += bytes;
                }
                Step::NeedInput => break,
            }
        }
        self.zeros = self.zeros_after(input.get(..consumed).unwrap_or_default());
        consumed
    }

    /// Gives the packet in the first `bytes` bytes of `rest`; returns their number.
    #[inline]
    fn give_packet(
        &mut self,
        packet: D::Packet,
        rest: &[u8],
        bytes: usize,
        taker: &mut impl TakeItem<D::Packet>,
    ) -> usize {
        self.close_gap(taker);
        let span = Span::new(self.position, bytes as u64);
        taker.take(Item::Packet(packet), span, rest.get(..bytes).unwrap_or(rest));
        self.position = span.end;
        bytes
    }

    /// Gives an A-sync whose first zero bytes were taken for something else; returns the length of its rest.
    fn complete_a_sync(&mut self, rest: &[u8], taker: &mut impl TakeItem<D::Packet>) -> usize {
        let Some(a_sync) = D::A_SYNC else { return 0 };
        let Step::Packet { packet, .. } = self.decoder.decode(a_sync.shortest()) else { return 0 };
        self.close_gap(taker);
        let span = Span::new(self.position, rest.len() as u64);
        taker.take(Item::Packet(packet), span, rest);
        self.position = span.end;
        rest.len()
    }

    fn take_into_gap(&mut self, bytes: &[u8], taker: &mut impl TakeItem<D::Packet>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(LONGEST_GAP - self.gap.len()));
            self.gap.extend_from_slice(now);
            self.position.0 += now.len() as u64;
            if self.gap.len() == LONGEST_GAP {
                if self.is_padding() {
                    self.padding += self.gap.len() as u64;
                    self.gap.clear();
                } else {
                    self.close_gap(taker);
                }
            }
            rest = later;
        }
    }

    /// Whether the open gap consists of zeros, more than an A-sync has.
    fn is_padding(&self) -> bool {
        self.is_in_gap()
            && matches!(self.gap_reason, Some(Malformation::NotASync { found: 0, .. }))
            && self.gap.iter().all(|byte| *byte == 0)
    }

    fn close_gap(&mut self, taker: &mut impl TakeItem<D::Packet>) {
        while self.padding > 0 {
            self.padding -= LONGEST_GAP as u64;
            let after = self.padding + self.gap.len() as u64;
            self.give_gap(&[0; LONGEST_GAP], after, taker);
        }
        if !self.gap.is_empty() {
            let gap = core::mem::take(&mut self.gap);
            self.give_gap(&gap, 0, taker);
            self.gap = gap;
            self.gap.clear();
        }
        self.gap_reason = None;
    }

    /// Gives some bytes of the gap, with `after` bytes of it after them.
    fn give_gap(&mut self, bytes: &[u8], after: u64, taker: &mut impl TakeItem<D::Packet>) {
        let item = self.gap_reason.take().map_or(Item::Unsynchronised, Item::Malformed);
        let length = bytes.len() as u64;
        taker.take(item, Span::new(StreamOffset(self.position.0 - after - length), length), bytes);
    }
}
