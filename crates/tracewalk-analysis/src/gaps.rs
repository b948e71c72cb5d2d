//! The gaps of a trace: execution that could not be followed, and the reasons.

use tracewalk::flow::{Element, GapReason};
use tracewalk::ids::Address;
use tracewalk::span::CaptureOffset;

use crate::table::{Column, Kind, Table, Tabular};

/// Counts gaps by their reasons.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// Code that no image holds.
    pub no_code: GapCount<Address>,
    /// Code that cannot be decoded.
    pub undecodable: GapCount<GapReason>,
    /// The trace lacks the address that execution went to.
    pub address_unknown: GapCount<()>,
    /// Contradictions between trace and image.
    pub contradictions: GapCount<GapReason>,
    /// Trace was malformed or lost.
    pub trace_lost: GapCount<()>,
    /// The number of `trace_lost` gaps that are deliberate cuts without a loss.
    pub cuts: u64,
}

/// How many gaps with one reason, and the first one.
#[derive(Clone, Copy, Debug)]
pub struct GapCount<T> {
    /// The number of gaps.
    pub count: u64,
    /// The first gap: its place in the capture, and its subject.
    pub first: Option<(CaptureOffset, T)>,
}

impl<T> Default for GapCount<T> {
    fn default() -> Self {
        Self { count: 0, first: None }
    }
}

impl<T> GapCount<T> {
    fn offset(&self) -> Option<u64> {
        self.first.as_ref().map(|(at, _)| at.0)
    }

    fn add(&mut self, at: CaptureOffset, about: T) {
        self.count += 1;
        self.first.get_or_insert((at, about));
    }

    /// Adds the counts of a later part, whose places `place` converts.
    fn add_part(&mut self, part: Self, place: &impl Fn(CaptureOffset) -> CaptureOffset) {
        self.count += part.count;
        if let (None, Some((at, about))) = (&self.first, part.first) {
            self.first = Some((place(at), about));
        }
    }
}

impl Gaps {
    /// Adds the counts of the next part of the trace. `place` returns the file offset of a byte of the capture.
    pub fn add_part(&mut self, part: &Self, place: impl Fn(CaptureOffset) -> CaptureOffset) {
        let Self { no_code, undecodable, address_unknown, contradictions, trace_lost, cuts } = part;
        self.no_code.add_part(*no_code, &place);
        self.undecodable.add_part(*undecodable, &place);
        self.address_unknown.add_part(*address_unknown, &place);
        self.contradictions.add_part(*contradictions, &place);
        self.trace_lost.add_part(*trace_lost, &place);
        self.cuts += cuts;
    }

    /// Looks at an element of program flow.
    pub fn element(&mut self, element: &Element, at: CaptureOffset) {
        let Element::Gap(gap) = element else { return };
        match gap.reason {
            GapReason::NoCode(location) => self.no_code.add(at, location.address),
            reason @ GapReason::Undecodable(..) => self.undecodable.add(at, reason),
            GapReason::AddressUnknown => self.address_unknown.add(at, ()),
            reason @ GapReason::Contradiction(_) => self.contradictions.add(at, reason),
            // Any other reason is lost trace.
            reason => {
                self.trace_lost.add(at, ());
                self.cuts += u64::from(reason == GapReason::TraceLost && !gap.doubt);
            }
        }
    }
}

impl Tabular for Gaps {
    fn tables(&self) -> Vec<Table> {
        let columns = [
            Column::new("reason", Kind::Text),
            Column::new("count", Kind::Integer),
            Column::new("offset", Kind::Integer).of("bytes of the capture"),
        ];
        let mut table = Table::new("gaps", 1, columns);
        let Self { no_code, undecodable, address_unknown, contradictions, trace_lost, .. } = self;
        let reasons = [
            ("no_code", no_code.count, no_code.offset()),
            ("undecodable", undecodable.count, undecodable.offset()),
            ("address_unknown", address_unknown.count, address_unknown.offset()),
            ("contradiction", contradictions.count, contradictions.offset()),
            ("trace_lost", trace_lost.count, trace_lost.offset()),
        ];
        for (reason, count, first) in reasons {
            table.push([reason.into(), count.into(), first.into()]);
        }
        vec![table]
    }
}
