//! Execution by context in a part of a trace, which may begin in any context.

use tracewalk::flow::{Element, EventKind, GapReason};

use super::{Context, Contexts, InContext};

/// Counts the instructions of each context in a part.
#[derive(Clone, Debug)]
pub struct ContextsPart {
    /// In the order of the trace; never empty.
    stretches: Vec<Stretch>,
    /// The instructions of the last stretch, kept apart because they are counted often.
    instructions: u64,
}

/// The instructions that ran from one change of the context to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    /// The context that the trace reported; `None` if it continues from the previous part.
    context: Option<Context>,
    counts: InContext,
    /// Whether trace and image disagreed.
    contradicted: bool,
}

impl Default for ContextsPart {
    fn default() -> Self {
        Self { stretches: vec![Stretch::default()], instructions: 0 }
    }
}

impl ContextsPart {
    /// Looks at an element of program flow.
    #[inline]
    pub fn element(&mut self, element: &Element) {
        match element {
            Element::Block(block) => self.instructions(block.instructions.into()),
            Element::Event(event) => {
                if let EventKind::Context { context_id, vmid, .. } = event.kind {
                    self.change(Some((context_id, vmid)));
                }
            }
            Element::Proof(_) => {}
            Element::Gap(gap) => {
                let Some(last) = self.stretches.last_mut() else { return };
                match gap.reason {
                    GapReason::NoCode(at) => {
                        last.counts.no_code += 1;
                        last.counts.first_without_code.get_or_insert(at.address);
                    }
                    GapReason::Contradiction(_) => last.contradicted = true,
                    _ => {}
                }
            }
        }
    }

    /// Adds a number of instructions that ran in the last context.
    #[inline]
    pub const fn instructions(&mut self, count: u64) {
        self.instructions += count;
    }

    fn change(&mut self, context: Option<Context>) {
        if let Some(last) = self.stretches.last_mut().filter(|last| last.context != context) {
            last.counts.instructions = std::mem::take(&mut self.instructions);
            self.stretches.push(Stretch { context, ..Stretch::default() });
        }
    }

    fn stretches(&self) -> impl Iterator<Item = Stretch> {
        let mut stretches = self.stretches.iter().copied();
        let last = stretches.next_back();
        stretches.chain(last.map(|last| {
            let counts = InContext { instructions: self.instructions, ..last.counts };
            Stretch { counts, ..last }
        }))
    }
}

impl Contexts {
    /// Adds the counts of the next part of the trace.
    pub fn add_part(&mut self, part: &ContextsPart) {
        for Stretch { context, counts, contradicted } in part.stretches() {
            if let Some(context) = context.filter(|context| *context != self.now) {
                self.now = context;
                match self.here() {
                    Some(here) => here.times += 1,
                    None => self.left_out += 1,
                }
            }
            if counts.instructions + counts.no_code > 0
                && let Some(here) = self.here()
            {
                here.instructions += counts.instructions;
                here.no_code += counts.no_code;
                here.first_without_code = here.first_without_code.or(counts.first_without_code);
            }
            if contradicted {
                self.contradicted = self.contradicted.or(Some(self.now));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{block, event, gap, taken};
    use tracewalk::flow::Contradiction;
    use tracewalk::ids::{Address, ContextId, Isa, Location, Privilege};

    #[test]
    fn cuts_do_not_show() {
        let context = |number| {
            let context_id = Some(ContextId(number));
            event(EventKind::Context { context_id, vmid: None, privilege: Privilege::default() })
        };
        let at = |address| Location::new(Address::from(address), Isa::T32);
        let elements = [
            block(0x100, 0x104, taken()),
            context(1),
            block(0x100, 0x104, taken()),
            context(1),
            gap(GapReason::NoCode(at(0x10))),
            context(2),
            gap(GapReason::Contradiction(Contradiction::UnconditionalFailed(at(0x12)))),
            context(1),
            gap(GapReason::NoCode(at(0x14))),
            block(0x100, 0x108, taken()),
        ];
        let mut whole = Contexts::default();
        elements.iter().for_each(|element| whole.element(element));
        for cut in 0..=elements.len() {
            let mut joined = Contexts::default();
            for range in [0..cut, cut..elements.len()] {
                let mut part = ContextsPart::default();
                elements[range].iter().for_each(|element| part.element(element));
                joined.add_part(&part);
            }
            assert_eq!(format!("{joined:?}"), format!("{whole:?}"), "cut at {cut}");
        }
    }
}
