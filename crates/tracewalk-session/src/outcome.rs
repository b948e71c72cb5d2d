//! The outcome of any work on a source, and the places of lost trace for a complete account of it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tracewalk::flow::GapReason;
use tracewalk::protocol::Malformation;
use tracewalk::source::PacketItem;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::itm::ItmCounts;
use tracewalk_analysis::record::PacketRecord;
use tracewalk_analysis::{Code, Contexts, Doubtful, Doubts, Gaps, InDoubt, Statistics};

use crate::model::Itm;
use crate::notice::Notice;

/// How a source is followed.
#[derive(Clone, Debug)]
pub struct Follow {
    /// What tracewalk does if trace and image disagree, or execution is in doubt.
    pub trust: Trust,
    /// The most threads.
    pub threads: u16,
    /// If set, names and lines of the program are read, and source files are searched in these folders as well as
    /// beside the images. `None` is for work that needs neither. By default names and lines are read.
    pub names: Option<Vec<PathBuf>>,
    /// Whether to list the place of each loss. An analysis then runs in the order of the trace.
    pub places: bool,
}

/// What tracewalk does if trace and image disagree, or execution is in doubt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Whether to follow the image even if the trace contradicts it repeatedly.
    pub image: bool,
    /// Whether instructions in doubt are left out or counted.
    pub doubtful: Doubtful,
}

impl Default for Follow {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().ok();
        let threads = threads.and_then(|count| u16::try_from(count.get()).ok()).unwrap_or(1);
        Self { trust: Trust::default(), threads, names: Some(Vec::new()), places: false }
    }
}

/// The result of following a source.
#[derive(Debug)]
pub struct Outcome<T> {
    /// The answer.
    pub found: T,
    /// The amounts of trace and execution.
    pub statistics: Statistics,
    /// The parts that could not be decoded or followed.
    pub losses: Losses,
    /// The program that was followed: an empty one if the image is not the traced program.
    pub code: Arc<Code>,
    /// The counts of the ITMs in the same buffer, if they were decoded with the source.
    pub itms: Vec<(Itm, ItmCounts)>,
    /// The notices, unless an observer received them.
    pub notices: Vec<Notice>,
    /// The byte of the capture after which lack of memory or an observer ended the work; `None` if the work was
    /// finished.
    pub ended_at: Option<u64>,
    /// Whether decoding reached the end of the source: `false` if the work was ended, or the capture stopped arriving.
    /// Losses and a refused image do not change it: see `losses`, and notices of [`Severity::Incomplete`].
    ///
    /// [`Severity::Incomplete`]: crate::Severity::Incomplete
    pub complete: bool,
}

/// An outcome without its answer.
#[derive(Clone, Copy, Debug)]
pub struct Followed<'a> {
    /// The amounts of trace and execution.
    pub statistics: &'a Statistics,
    /// The parts that could not be decoded or followed.
    pub losses: &'a Losses,
    /// The counts of the ITMs that were decoded with the source.
    pub itms: &'a [(Itm, ItmCounts)],
    /// The byte of the capture after which the work ended early.
    pub ended_at: Option<u64>,
}

impl<T> Outcome<T> {
    /// The outcome without its answer.
    pub(crate) fn followed(&self) -> Followed<'_> {
        let Self { statistics, losses, itms, ended_at, .. } = self;
        Followed { statistics, losses, itms, ended_at: *ended_at }
    }

    /// The same outcome, with an answer made from this one's answer and program.
    pub(crate) fn map<U>(self, make: impl FnOnce(T, &Code) -> U) -> Outcome<U> {
        let Self { found, statistics, losses, code, itms, notices, ended_at, complete } = self;
        let found = make(found, &code);
        Outcome { found, statistics, losses, code, itms, notices, ended_at, complete }
    }
}

/// The parts of a source that could not be decoded or followed.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// The gaps in program flow, by reason.
    pub gaps: Gaps,
    /// The contexts in which code ran, or was missing.
    pub contexts: Contexts,
    /// The stretches of trace in doubt.
    pub doubts: Doubts,
    /// The instructions in these stretches, left out or counted; `None` if they were not counted.
    pub in_doubt: Option<InDoubt>,
    /// The place of each loss, if [`Follow::places`] was set.
    pub places: Option<LostPlaces>,
}

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
