//! Being in step with a stream that has A-syncs: what ETMv3 and PFT share.
//!
//! Behind a reserved header the next byte may be a header: packets are read on trial up to the next A-sync, and listed,
//! but nothing is made of them. Behind anything else that is malformed no packet boundary is known, and bytes are passed
//! over up to the next A-sync.

use crate::cursor::NeedInput;

use super::a_sync::{self, Overlap};
use super::{Malformation, Step};

/// Whether a decoder is in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Synchronisation {
    /// The next byte may be anything: search for an A-sync.
    Searching,
    /// A reserved header came, and the next byte may be a header.
    OnTrial,
    /// The next byte is a header.
    InStep,
}

/// Whether a lowering can place what packets say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// Not before the next A-sync, and then an I-sync: packets in between were read on trial.
    Lost,
    /// Not before the next I-sync.
    InStep,
    /// Yes.
    Known,
}

/// Why a packet could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// The input ends inside it.
    NeedInput,
    /// It is none.
    Malformed(Malformation),
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
    pub(super) fn search<P>(&mut self, input: &[u8], a_sync: P) -> Step<P> {
        match a_sync::search(input) {
            Step::Packet { bytes, .. } => {
                *self = Self::InStep;
                Step::Packet { packet: a_sync, bytes }
            }
            Step::Searched { bytes } => Step::Searched { bytes },
            Step::Malformed { .. } | Step::NeedInput => Step::NeedInput,
        }
    }

    /// What to make of the packet that was read at the start of `input`, or could not be.
    #[inline]
    pub(super) fn step<P>(
        &mut self,
        input: &[u8],
        read: Result<(P, usize), Unread>,
        is_a_sync: impl FnOnce(&P) -> bool,
    ) -> Step<P> {
        match read {
            Ok((packet, bytes)) if *self == Self::InStep => Step::Packet { packet, bytes },
            Ok((packet, bytes)) => match a_sync::overlap(input, bytes) {
                Overlap::None => {
                    if is_a_sync(&packet) {
                        *self = Self::InStep;
                    }
                    Step::Packet { packet, bytes }
                }
                Overlap::At(bytes) => Step::Searched { bytes },
                Overlap::Unfinished => Step::NeedInput,
            },
            Err(Unread::NeedInput) => Step::NeedInput,
            Err(Unread::Malformed(reason)) => {
                let reserved = matches!(reason, Malformation::ReservedHeader { .. });
                *self = if reserved { Self::OnTrial } else { Self::Searching };
                // Only the header is certain to be wrong: an A-sync may start anywhere behind it.
                Step::Malformed { reason, bytes: 1 }
            }
        }
    }
}
