//! Searches instructions by what they wrote.

use std::io;
use std::ops::Range;

use tracewalk::ids::Isa;
use tracewalk::span::CaptureOffset;
use tracewalk_values::Register;

use super::{Proven, Step, ValueSink, ValueSummary};
use crate::Section;
use crate::record::FlowRecord;

/// What is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search {
    /// A write of a register.
    Register {
        /// The register of A32 and T32 with the name.
        narrow: Option<Register>,
        /// The register of A64 with the name.
        wide: Option<Register>,
        /// The value; any if `None`.
        value: Option<u64>,
    },
    /// A store to any of these bytes, by an instruction or by an exception that stacks registers.
    Bytes(Range<u64>),
}

/// The number of steps that nothing proves to be what is searched, or not to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Possible {
    /// Those in all that was searched.
    pub all: u64,
    /// Those after the last step that was found.
    pub after_last: u64,
}

/// Hands on the steps that are searched.
pub struct Searching<'a> {
    inner: &'a mut dyn ValueSink,
    searches: Vec<Search>,
    element: Option<FlowRecord>,
    possible: Possible,
}

impl Search {
    /// Whether a step is what is searched; `None` if that is unknown.
    #[must_use]
    pub fn matches(&self, step: &Step, proven: &Proven) -> Option<bool> {
        let instruction = match step {
            Step::Instruction(instruction) => Some(instruction),
            _ => None,
        };
        let found = match self {
            Self::Register { narrow, wide, value } => {
                let is_wide = instruction.is_some_and(|instruction| instruction.at.isa == Isa::A64);
                let register = if is_wide { wide } else { narrow };
                let write = proven.writes.iter().find(|(written, _)| Some(*written) == *register);
                write.map_or(Some(false), |(_, written)| match value {
                    Some(value) => written.map(|written| written == *value),
                    None => Some(true),
                })
            }
            Self::Bytes(bytes) => stores_to(bytes, proven),
        };
        let is_certain = instruction.is_none() || proven.executed == Some(true);
        found.filter(|found| is_certain || !found)
    }
}

fn stores_to(bytes: &Range<u64>, proven: &Proven) -> Option<bool> {
    let mut found = if proven.may_store { None } else { Some(false) };
    for store in proven.accesses.iter().filter(|access| access.is_store) {
        match store.address {
            Some(address) => {
                if address < bytes.end && bytes.start < address.saturating_add(store.bytes.into()) {
                    return Some(true);
                }
            }
            None => found = None,
        }
    }
    found
}

impl<'a> Searching<'a> {
    /// Hands on to `inner` the steps that any of these searches finds, or everything if nothing is searched.
    pub fn new(inner: &'a mut dyn ValueSink, searches: Vec<Search>) -> Self {
        Self { inner, searches, element: None, possible: Possible::default() }
    }

    /// The steps that may be what is searched.
    pub const fn possible(&self) -> Possible {
        self.possible
    }
}

impl ValueSink for Searching<'_> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.inner.section(section)
    }

    fn element(&mut self, record: &FlowRecord) -> io::Result<()> {
        if self.searches.is_empty() {
            return self.inner.element(record);
        }
        self.element = Some(*record);
        self.pass(record);
        Ok(())
    }

    fn pass(&mut self, record: &FlowRecord) {
        self.inner.pass(record);
    }

    fn step(&mut self, at: CaptureOffset, step: &Step, proven: &Proven) -> io::Result<()> {
        if self.searches.is_empty() {
            return self.inner.step(at, step, proven);
        }
        let found = || self.searches.iter().map(|search| search.matches(step, proven));
        if found().any(|found| found == Some(true)) {
            self.possible.after_last = 0;
            if let (Step::Exception { .. }, Some(record)) = (step, &self.element) {
                self.inner.element(record)?;
            }
            return self.inner.step(at, step, proven);
        }
        let is_possible = u64::from(found().any(|found| found.is_none()));
        self.possible.all += is_possible;
        self.possible.after_last += is_possible;
        Ok(())
    }

    fn end_section(&mut self, summary: &ValueSummary) -> io::Result<()> {
        self.inner.end_section(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::ids::{Address, Location};
    use tracewalk_values::{Instruction, ProvenAccess};

    fn matches(search: &Search, executed: Option<bool>, proven: Proven) -> Option<bool> {
        let at = Location::new(Address::new(0x100), Isa::T32);
        let instruction = Instruction { at, code: 0, bytes: 2, executed, next: None };
        search.matches(&Step::Instruction(instruction), &Proven { executed, ..proven })
    }

    #[test]
    fn only_proven_writes_match_and_unknown_ones_may() {
        let search = |narrow, value| Search::Register { narrow, wide: None, value };
        let writes = |value| Proven { writes: vec![(Register(3), value)], ..Proven::default() };
        let zero = search(Some(Register(3)), Some(0));
        assert_eq!(matches(&zero, Some(true), writes(Some(0))), Some(true));
        assert_eq!(matches(&zero, Some(true), writes(Some(1))), Some(false));
        assert_eq!(matches(&zero, Some(true), writes(None)), None);
        assert_eq!(matches(&zero, None, writes(None)), None);
        assert_eq!(matches(&zero, Some(true), Proven::default()), Some(false));
        assert_eq!(matches(&search(None, Some(0)), Some(true), writes(Some(0))), Some(false));
        assert_eq!(matches(&search(Some(Register(3)), None), Some(true), writes(None)), Some(true));
    }

    #[test]
    fn a_store_matches_by_each_of_its_bytes() {
        let store = |address, is_store| {
            let access = ProvenAccess { is_store, address, bytes: 4, value: None };
            Proven { accesses: vec![access], ..Proven::default() }
        };
        let search = Search::Bytes(0x2000_0004..0x2000_0005);
        let found = |address, is_store| matches(&search, Some(true), store(address, is_store));
        assert_eq!(found(Some(0x2000_0001), true), Some(true));
        assert_eq!(found(Some(0x2000_0004), true), Some(true));
        assert_eq!(found(Some(0x2000_0000), true), Some(false));
        assert_eq!(found(Some(0x2000_0005), true), Some(false));
        assert_eq!(found(Some(0x2000_0004), false), Some(false));
        assert_eq!(found(None, true), None);
    }
}
