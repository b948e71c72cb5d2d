//! The places of lost trace, for a complete account of a result.

use std::collections::BTreeMap;
use std::fmt;

use tracewalk::flow::GapReason;
use tracewalk::protocol::Malformation;
use tracewalk::source::PacketItem;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::record::PacketRecord;

/// The losses of a source, by kind. The kinds' names are stable.
#[derive(Clone, Debug, Default)]
pub struct LostPlaces {
    /// Trace that could not be read.
    pub unread: BTreeMap<&'static str, Lost>,
    /// Execution that could not be followed or is in doubt; empty if nothing was followed.
    pub unobserved: BTreeMap<&'static str, Lost>,
}

/// Losses of one kind.
#[derive(Clone, Debug, Default)]
pub struct Lost {
    /// The number of losses.
    pub count: u64,
    /// The number of bytes of trace.
    pub bytes: u64,
    /// The places of the first losses.
    pub first: Vec<LostPlace>,
}

/// A loss.
#[derive(Clone, Copy, Debug)]
pub struct LostPlace {
    /// The offset in the file.
    pub at: CaptureOffset,
    /// The number of bytes of trace.
    pub bytes: u64,
    /// The problem, if known.
    pub why: Option<Why>,
}

/// The problem at a place.
#[derive(Clone, Copy, Debug)]
pub enum Why {
    /// The packet is malformed.
    Malformed(Malformation),
    /// Execution could not be followed.
    Gap(GapReason),
}

impl LostPlaces {
    /// The most places listed of each kind; the rest is counted.
    pub const MOST: usize = 1000;

    /// Takes the source's next packet, which begins at `at` in the file.
    pub fn packet(&mut self, record: &PacketRecord<'_>, at: CaptureOffset) {
        let (kind, why) = match record.content {
            PacketItem::Packet(_) => return,
            PacketItem::Malformed(reason) => ("malformed", Some(Why::Malformed(reason))),
            PacketItem::Unsynchronised => ("unsynchronised", None),
        };
        self.unread.entry(kind).or_default().add(LostPlace { at, bytes: record.bytes.len() as u64, why });
    }
}

impl Lost {
    pub(crate) fn add(&mut self, place: LostPlace) {
        self.count += 1;
        self.bytes += place.bytes;
        if self.first.len() < LostPlaces::MOST {
            self.first.push(place);
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(reason) => reason.fmt(f),
            Self::Gap(reason) => reason.fmt(f),
        }
    }
}
