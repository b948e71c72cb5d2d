//! Losses of a trace: code that may have run there without being reported.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracewalk::flow::GapReason;
use tracewalk::ids::Address;
use tracewalk::span::StreamOffset;

use crate::InDoubt;

/// The losses of a trace: code that is not covered may have run there.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Losses {
    /// How often tracing began; everything before and between was not traced.
    pub begins: u64,
    /// How often tracing began again because the trace unit could not send fast enough; part of `begins`.
    pub overflows: u64,
    /// Malformed or lost trace.
    pub trace_lost: Lost,
    /// The trace lacks the address that execution went to.
    pub address_unknown: Lost,
    /// Contradictions between trace and image.
    pub contradictions: Lost,
    /// Code that cannot be decoded.
    pub undecodable: Lost,
    /// How often execution reached code that no image holds, by pages of [`Losses::PAGE`] bytes, each named by its first
    /// address. Pages, because a damaged trace may name any number of addresses.
    #[serde(with = "crate::saved::words::counts")]
    pub no_image: BTreeMap<Address, u64>,
    /// Reported execution that is in doubt.
    pub in_doubt: InDoubt,
    /// The bytes of the frame that the end of a trace buffer's file cuts off: such a buffer holds whole frames, so that trace is
    /// missing after them. Saved only if there are any.
    #[serde(default, skip_serializing_if = "crate::saved::words::is_zero")]
    pub cut_frame_bytes: u64,
    /// The instructions of transactions that failed, or whose commit is not in the trace; they are not counted. Saved only if there
    /// are any.
    #[serde(default, skip_serializing_if = "crate::saved::words::is_zero")]
    pub uncommitted: u64,
}

/// Stretches of a trace: each from the loss of execution to the point at which it was found again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    /// The number of stretches.
    pub stretches: u64,
    /// How many bytes of trace they have together.
    pub bytes: u64,
}

/// The place at which execution was lost, and the reason.
pub(super) type Loss = (StreamOffset, GapReason);

impl Losses {
    /// The size of the pages by which [`Losses::no_image`] counts.
    pub const PAGE: u64 = 1 << 12;

    /// Counts a stretch of trace, from the loss of execution to the point at which it was found again.
    pub(super) fn count(&mut self, (since, reason): Loss, found: StreamOffset) {
        let lost = match reason {
            GapReason::AddressUnknown => &mut self.address_unknown,
            GapReason::Contradiction(_) => &mut self.contradictions,
            GapReason::Undecodable(..) => &mut self.undecodable,
            // Without an image, a stretch is lost like any other.
            _ => &mut self.trace_lost,
        };
        lost.stretches += 1;
        lost.bytes += found.0.saturating_sub(since.0);
    }

    /// Adds the losses of another trace.
    pub fn add(&mut self, other: &Self) {
        self.begins = self.begins.saturating_add(other.begins);
        self.overflows = self.overflows.saturating_add(other.overflows);
        self.trace_lost.add(other.trace_lost);
        self.address_unknown.add(other.address_unknown);
        self.contradictions.add(other.contradictions);
        self.undecodable.add(other.undecodable);
        self.in_doubt.add(other.in_doubt);
        self.cut_frame_bytes = self.cut_frame_bytes.saturating_add(other.cut_frame_bytes);
        self.uncommitted = self.uncommitted.saturating_add(other.uncommitted);
        for (&page, &count) in &other.no_image {
            let sum = self.no_image.entry(page).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// The pages that no image holds, adjacent pages joined: the first address, the address after the last byte (a number,
    /// because it may be 2^32), and how often execution went there.
    #[must_use]
    pub fn regions_without_image(&self) -> Vec<(Address, u64, u64)> {
        let mut regions: Vec<(Address, u64, u64)> = Vec::new();
        for (&page, &count) in &self.no_image {
            let end = page.get() + Self::PAGE;
            match regions.last_mut() {
                Some(last) if last.1 == page.get() => {
                    last.1 = end;
                    last.2 = last.2.saturating_add(count);
                }
                _ => regions.push((page, end, count)),
            }
        }
        regions
    }
}

impl Lost {
    const fn add(&mut self, other: Self) {
        self.stretches = self.stretches.saturating_add(other.stretches);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}
