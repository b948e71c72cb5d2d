//! The context IDs and VMIDs under which code ran.

mod part;

use std::collections::BTreeMap;

use tracewalk::flow::{Element, EventKind, GapReason};
use tracewalk::ids::{Address, ContextId, Vmid};

use crate::table::{Column, Kind, Table, Tabular};

pub use part::ContextsPart;

/// A context: the context ID and the VMID; `None` for one that the trace does not state.
pub type Context = (Option<ContextId>, Option<Vmid>);

/// Counts the instructions of each context.
#[derive(Clone, Debug, Default)]
pub struct Contexts {
    now: Context,
    all: BTreeMap<Context, InContext>,
    /// Contexts that are not counted, because there were too many others before.
    pub left_out: u64,
    /// The context of the first contradiction between trace and image.
    pub contradicted: Option<Context>,
}

/// The execution in one context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InContext {
    /// How many instructions were followed.
    pub instructions: u64,
    /// How often execution reached code that no image holds.
    pub no_code: u64,
    /// The first such address.
    pub first_without_code: Option<Address>,
    /// The number of times that the trace reported this context.
    pub times: u64,
}

/// A damaged trace may name any number of contexts.
const MOST_CONTEXTS: usize = 1 << 12;

impl Contexts {
    /// Looks at an element of program flow.
    #[inline]
    pub fn element(&mut self, element: &Element) {
        match element {
            Element::Block(block) => {
                if let Some(here) = self.here() {
                    here.instructions += u64::from(block.instructions);
                }
            }
            Element::Event(event) => {
                if let EventKind::Context { context_id, vmid, .. } = event.kind
                    && self.now != (context_id, vmid)
                {
                    self.now = (context_id, vmid);
                    match self.here() {
                        Some(here) => here.times += 1,
                        None => self.left_out += 1,
                    }
                }
            }
            Element::Proof(_) => {}
            Element::Gap(gap) => match gap.reason {
                GapReason::NoCode(at) => {
                    if let Some(here) = self.here() {
                        here.no_code += 1;
                        here.first_without_code.get_or_insert(at.address);
                    }
                }
                GapReason::Contradiction(_) => {
                    let now = self.now;
                    self.contradicted.get_or_insert(now);
                }
                _ => {}
            },
        }
    }

    /// The contexts in which code ran or that the trace named, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Context, &InContext)> {
        self.all.iter().map(|(context, counts)| (*context, counts))
    }

    /// Whether the trace named any context ID.
    #[must_use]
    pub fn has_context_ids(&self) -> bool {
        self.all.keys().any(|(context_id, _)| context_id.is_some())
    }

    /// Whether the trace named any VMID.
    #[must_use]
    pub fn has_vmids(&self) -> bool {
        self.all.keys().any(|(_, vmid)| vmid.is_some())
    }

    fn here(&mut self) -> Option<&mut InContext> {
        if self.all.len() >= MOST_CONTEXTS && !self.all.contains_key(&self.now) {
            return None;
        }
        Some(self.all.entry(self.now).or_default())
    }
}

impl Tabular for Contexts {
    fn tables(&self) -> Vec<Table> {
        let columns = [
            Column::new("context_id", Kind::Integer),
            Column::new("vmid", Kind::Integer),
            Column::new("times", Kind::Integer),
            Column::new("instructions", Kind::Integer),
            Column::new("no_code", Kind::Integer),
            Column::new("first_without_code", Kind::Address),
        ];
        let mut table = Table::new("contexts", 1, columns);
        for ((context_id, vmid), counts) in self.iter() {
            table.push([
                context_id.map(|ContextId(id)| id).into(),
                vmid.map(|Vmid(vmid)| u64::from(vmid)).into(),
                counts.times.into(),
                counts.instructions.into(),
                counts.no_code.into(),
                counts.first_without_code.into(),
            ]);
        }
        vec![table]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{block, event, gap, taken};
    use tracewalk::ids::{Isa, Location, Privilege};

    #[test]
    fn what_ran_is_counted_by_its_context() {
        let context = |number: u32| {
            let context_id = Some(ContextId(number));
            event(EventKind::Context { context_id, vmid: None, privilege: Privilege::default() })
        };
        let nowhere = gap(GapReason::NoCode(Location::new(Address::new(0x8000), Isa::A32)));
        let elements = [
            block(0x100, 0x104, taken()),
            context(7),
            block(0x100, 0x104, taken()),
            context(7),
            nowhere,
            context(8),
            nowhere,
            context(7),
            block(0x100, 0x104, taken()),
        ];
        let mut contexts = Contexts::default();
        assert!(!contexts.has_context_ids());
        for element in &elements {
            contexts.element(element);
        }
        assert!(contexts.has_context_ids() && !contexts.has_vmids());
        let found = contexts.iter().map(|((context_id, _), counts)| {
            (context_id.map(|id| id.0), counts.instructions, counts.no_code, counts.times)
        });
        let each = contexts.iter().next().map(|(_, counts)| counts.instructions).unwrap_or_default();
        let expected = [(None, each, 0, 0), (Some(7), 2 * each, 1, 2), (Some(8), 0, 1, 1)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
