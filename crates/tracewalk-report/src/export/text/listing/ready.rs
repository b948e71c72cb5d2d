//! Cached lines of passages.
//!
//! The text of a passage depends on the passage, on the place of the last instruction, and on how execution came to each element
//! and at which depth of calls. It is built again if one of these differs.

use std::rc::Rc;

use tracewalk::ids::Address;
use tracewalk_analysis::analysis::Repeated;
use tracewalk_analysis::call_stack::Arrival;
use tracewalk_analysis::quick::QuickMap;

use super::super::code::Place;

/// The text of passages that were written.
#[derive(Debug, Default)]
pub(super) struct Ready {
    /// The set of the passages' numbers.
    set: u32,
    /// By the place of the last instruction, the address after it, and the passage's number.
    lines: QuickMap<(usize, u64, u32), Lines>,
    /// The total length of the text and of the ways, in bytes.
    bytes: usize,
}

/// How execution came to an element, if that is a block, and the depth of calls there.
pub(super) type Way = (Option<Arrival>, usize);

/// The text of a passage, and the last instruction after it.
#[derive(Debug)]
pub(super) struct Lines {
    ways: Box<[Way]>,
    pub(super) text: Box<[u8]>,
    pub(super) place: Option<Rc<Place>>,
    pub(super) next: Option<Address>,
}

/// The last instruction: its place in the source, and the address after it.
type Last<'a> = (&'a Option<Rc<Place>>, Option<Address>);

/// The most memory for text and ways, in bytes, and the most passages.
const MOST_BYTES: usize = 8 << 20;
const MOST_LINES: usize = 1 << 16;

impl Ready {
    /// The text of a passage after this instruction, if it was written before in the same way.
    #[inline]
    pub(super) fn find(&self, repeated: &Repeated<'_>, last: Last<'_>, ways: &[Way]) -> Option<&Lines> {
        let lines = self.lines.get(&key(repeated, last)).filter(|_| repeated.set() == self.set)?;
        (*lines.ways == *ways).then_some(lines)
    }

    /// Keeps the text of a passage, and the last instruction after it.
    pub(super) fn keep(
        &mut self,
        (repeated, last): (&Repeated<'_>, Last<'_>),
        ways: &[Way],
        text: Vec<u8>,
        (place, next): Last<'_>,
    ) {
        if self.set != repeated.set() || self.bytes >= MOST_BYTES || self.lines.len() >= MOST_LINES {
            *self = Self { set: repeated.set(), ..Self::default() };
        }
        self.bytes += text.len() + size_of_val(ways);
        let lines = Lines { ways: ways.into(), text: text.into(), place: place.clone(), next };
        self.lines.insert(key(repeated, last), lines);
    }
}

fn key(repeated: &Repeated<'_>, (place, next): Last<'_>) -> (usize, u64, u32) {
    // Each instruction has one place as long as rows are kept.
    let place = place.as_ref().map_or(0, |place| Rc::as_ptr(place) as usize);
    // No instruction ends at the last address.
    (place, next.map_or(u64::MAX, Address::get), repeated.number())
}
