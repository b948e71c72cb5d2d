//! Synchronisation with a stream that has A-syncs: the part that ETMv3, PFT and ETMv4 share.
//!
//! After a reserved header, the next byte may be a header: up to the next A-sync, packets are read on trial
//! and listed, but not interpreted. After any other malformed bytes, no packet boundary is known, and the
//! decoder skips to the next A-sync.

use crate::cursor::{Cursor, NeedInput};

use super::a_sync::{ASync, Overlap, ZeroRun};
use super::decode::Decode;
use super::malformation::Malformation;
use super::step::Step;

/// The A-sync of ETMv3 and PFT.
pub(super) const A_SYNC: ASync = ASync::FIVE_ZEROS;

/// Reads an A-sync at the start of `input`, whose first zero byte `cursor` has read.
pub(super) fn read_a_sync(a_sync: ASync, input: &[u8], cursor: &mut Cursor<'_>) -> Result<(), Unread> {
    match a_sync.zero_run(input) {
        ZeroRun::ASync { bytes } => {
            (1..bytes).try_for_each(|_| cursor.byte().map(|_| ()))?;
            Ok(())
        }
        ZeroRun::Other { zeros, found } => Err(a_sync.not_a_sync(zeros, found).into()),
        ZeroRun::Unfinished => Err(Unread::NeedInput),
    }
}

/// Whether a decoder is in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Synchronisation {
    /// The next byte may be anything: search for an A-sync.
    Searching,
    /// After a reserved header: the next byte may be a header.
    OnTrial,
    /// The next byte is a header.
    InStep,
}

/// Whether a lowering knows the position that packets refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Tracking {
    /// No: there was no A-sync yet.
    Unsynchronised,
    /// Not before the next A-sync and an I-sync after it: packets before the A-sync are read on trial.
    Lost,
    /// Not before the next I-sync.
    InStep,
    /// Yes.
    Known,
}

impl Tracking {
    /// Whether packets may have been read on trial, and mean nothing.
    #[inline]
    pub(super) const fn is_on_trial(self) -> bool {
        matches!(self, Self::Unsynchronised | Self::Lost)
    }

    /// Notes an A-sync.
    pub(super) const fn synchronise(&mut self) {
        if self.is_on_trial() {
            *self = Self::InStep;
        }
    }

    /// Notes a loss of trace. Returns whether the loss is new: a loss right after another one belongs to it.
    pub(super) const fn lose(&mut self) -> bool {
        let is_new = !matches!(self, Self::Lost);
        *self = Self::Lost;
        is_new
    }
}

/// Why a packet could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// The input ends inside the packet.
    NeedInput,
    /// The bytes are no packet.
    Malformed(Malformation),
    /// The configuration has no such packet; after this number of bytes there may be a header.
    Reserved(Malformation, usize),
}

impl From<NeedInput> for Unread {
    fn from(_: NeedInput) -> Self {
        Self::NeedInput
    }
}

impl From<Malformation> for Unread {
    fn from(malformation: Malformation) -> Self {
        Self::Malformed(malformation)
    }
}

impl Synchronisation {
    /// Searches for an A-sync.
    fn search<P>(&mut self, a_sync: ASync, input: &[u8], packet: P) -> Step<P> {
        match a_sync.search(input) {
            Step::Packet { bytes, .. } => {
                *self = Self::InStep;
                Step::Packet { packet, bytes }
            }
            Step::Searched { bytes } => Step::Searched { bytes },
            Step::Malformed { .. } | Step::NeedInput => Step::NeedInput,
        }
    }

    /// Decodes the start of `input`. `read` reads a packet and returns its length; `forget` is called when
    /// values that earlier packets sent become invalid.
    #[inline]
    pub(super) fn step<D: Decode<Packet: PartialEq>>(
        decoder: &mut D,
        state: impl Fn(&mut D) -> &mut Self,
        input: &[u8],
        a_sync: D::Packet,
        read: impl FnOnce(&mut D, &[u8]) -> Result<(D::Packet, usize), Unread>,
        forget: impl FnOnce(&mut D),
    ) -> Step<D::Packet> {
        let form = const {
            match D::A_SYNC {
                Some(form) => form,
                None => A_SYNC,
            }
        };
        let before = *state(decoder);
        if before == Self::Searching {
            return state(decoder).search(form, input, a_sync);
        }
        let read = read(decoder, input);
        let step = state(decoder).judge(input, read, form, &a_sync);
        if *state(decoder) != before {
            forget(decoder);
        }
        step
    }

    /// Judges the result of reading a packet at the start of `input`.
    #[inline]
    fn judge<P: PartialEq>(
        &mut self,
        input: &[u8],
        read: Result<(P, usize), Unread>,
        form: ASync,
        a_sync: &P,
    ) -> Step<P> {
        match read {
            Ok((packet, bytes)) if *self == Self::InStep => Step::Packet { packet, bytes },
            Ok((packet, bytes)) => match form.overlap(input, bytes) {
                Overlap::None => {
                    if packet == *a_sync {
                        *self = Self::InStep;
                    }
                    Step::Packet { packet, bytes }
                }
                Overlap::At(bytes) => Step::Searched { bytes },
                Overlap::Unfinished => Step::NeedInput,
            },
            Err(Unread::NeedInput) => Step::NeedInput,
            Err(Unread::Reserved(reason, bytes)) => {
                *self = Self::OnTrial;
                Step::Malformed { reason, bytes }
            }
            Err(Unread::Malformed(reason)) => {
                let reserved = matches!(reason, Malformation::ReservedHeader { .. });
                *self = if reserved { Self::OnTrial } else { Self::Searching };
                // Only the header is certain to be wrong: an A-sync may start anywhere after it.
                Step::Malformed { reason, bytes: 1 }
            }
        }
    }
}
