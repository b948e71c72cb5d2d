//! What memory held, as far as data trace reported loads and stores of it.
//!
//! A load shows what memory held, as a store does. What was traced last before a place holds there, unless something happened in
//! between that the trace does not give: trace was lost, a store came without its address or value, or another context used the
//! address, which may be another one's memory.

use tracewalk::directive::TransferValue;
use tracewalk::flow::{DataTransfer, Element, Event, EventKind};
use tracewalk::ids::Address;
use tracewalk::program::Scope;
use tracewalk_analysis::call_stack::Task;

/// Loads and stores, each by the words of memory that it touched.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    /// By word, then by step.
    touched: Vec<Touched>,
    /// The steps at which all that was known ceased to be; ascending.
    forgotten: Vec<u64>,
}

/// Collects [`Transfers`] while a source is followed.
#[derive(Debug, Default)]
pub(crate) struct Collecting {
    /// In the order of their steps.
    touched: Vec<Touched>,
    forgotten: Vec<u64>,
    /// The instruction that executed last; `None` after an exception, whose accesses are the processor's own.
    last: Option<Address>,
}

/// Some bytes of a word were loaded or stored.
#[derive(Clone, Copy, Debug)]
struct Touched {
    /// The word's address.
    word: u64,
    step: u64,
    /// Whose memory it is.
    space: Scope,
    /// The word's bytes that were touched: a bit for each.
    mask: u8,
    /// What they held from then on; `None` if that is unknown.
    bytes: Option<[u8; WORD_BYTES]>,
}

const WORD: u64 = 4;
const WORD_BYTES: usize = 4;

/// How many are kept: the newest ones, and at least half as many. Each takes about 40 bytes.
const MOST: usize = 1 << 21;

impl Transfers {
    /// What a byte held before a step, in a task.
    pub(crate) fn byte(&self, at: u64, step: u64, task: Task) -> Option<u8> {
        let (word, lane) = (at - at % WORD, at % WORD);
        let end = self.touched.partition_point(|touched| (touched.word, touched.step) < (word, step));
        let before = self.touched.get(..end)?.iter().rev().take_while(|touched| touched.word == word);
        let last = before.into_iter().find(|touched| touched.mask >> lane & 1 == 1)?;
        let forgotten = self.forgotten.partition_point(|forgotten| *forgotten < step);
        let is_forgotten = forgotten
            .checked_sub(1)
            .and_then(|newest| self.forgotten.get(newest))
            .is_some_and(|forgotten| *forgotten >= last.step);
        if is_forgotten || last.space != space(task) {
            return None;
        }
        last.bytes?.get(usize::try_from(lane).ok()?).copied()
    }
}

impl Collecting {
    /// Takes the element that begins with a step.
    pub(crate) fn element(&mut self, element: &Element, step: u64, task: Task) {
        match element {
            Element::Block(block) => self.last = Some(block.last),
            Element::Event(Event { kind: EventKind::Data(transfer), .. }) => {
                self.transfer(transfer, step, task);
            }
            Element::Event(Event { kind: EventKind::Exception { .. }, .. }) => self.last = None,
            Element::Event(Event { kind: EventKind::TraceOn(_), .. }) => self.forget(step),
            // What ran there may have stored anything.
            Element::Gap(_) => self.forget(step),
            Element::Event(_) | Element::Proof(_) => {}
        }
    }

    pub(crate) fn finish(mut self) -> Transfers {
        self.touched.sort_by_key(|touched| (touched.word, touched.step));
        self.touched.shrink_to_fit();
        Transfers { touched: self.touched, forgotten: self.forgotten }
    }

    fn transfer(&mut self, transfer: &DataTransfer, step: u64, task: Task) {
        let is_of_last = self.last.is_some() && transfer.instruction.map(|at| at.address) == self.last;
        let is_load = transfer.store == Some(false) && self.last.is_some();
        let value = match transfer.value {
            TransferValue::Value(value) => Some(value),
            // Memory stayed as it was.
            TransferValue::StoreFailed => return,
            // Accesses are missing; nobody knows how many.
            TransferValue::Suppressed => return self.forget(step),
            TransferValue::NotTraced | TransferValue::Pending(_) if is_load => return,
            TransferValue::NotTraced | TransferValue::Pending(_) => None,
        };
        // A load whose value came late showed what memory held when it began.
        if is_load && !is_of_last {
            return;
        }
        match (transfer.address, transfer.bytes, is_of_last) {
            (Some(address), Some(bytes), true) => {
                let bytes = usize::from(bytes).min(WORD_BYTES);
                let value = value.map(|value| match transfer.big_endian {
                    true => value.to_be_bytes(),
                    false => value.to_le_bytes(),
                });
                let skipped = if transfer.big_endian { WORD_BYTES - bytes } else { 0 };
                for lane in 0..bytes {
                    let byte = value.and_then(|value| value.get(skipped + lane).copied());
                    self.touch(address.get().wrapping_add(lane as u64), byte, step, task);
                }
            }
            _ if is_load => {}
            _ => self.forget(step),
        }
    }

    /// A byte was touched by the access of a step.
    fn touch(&mut self, at: u64, byte: Option<u8>, step: u64, task: Task) {
        let (word, lane, space) = (at - at % WORD, at % WORD, space(task));
        let bit = 1_u8 << lane;
        let same = self.touched.last_mut().filter(|last| {
            (last.word, last.step, last.space) == (word, step, space)
                && last.bytes.is_some() == byte.is_some()
        });
        let touched = match same {
            Some(touched) => touched,
            None => {
                if self.touched.len() >= MOST {
                    // The oldest ones.
                    self.touched.drain(..MOST / 2);
                }
                let bytes = byte.map(|_| [0; WORD_BYTES]);
                self.touched.push(Touched { word, step, space, mask: 0, bytes });
                let Some(touched) = self.touched.last_mut() else { return };
                touched
            }
        };
        touched.mask |= bit;
        if let (Some(bytes), Some(byte)) = (&mut touched.bytes, byte)
            && let Some(slot) = usize::try_from(lane).ok().and_then(|lane| bytes.get_mut(lane))
        {
            *slot = byte;
        }
    }

    /// Nothing is known any more.
    fn forget(&mut self, step: u64) {
        let known = self.touched.last().map(|touched| touched.step);
        if known.is_some_and(|known| self.forgotten.last().is_none_or(|last| *last < known)) {
            self.forgotten.push(step);
        }
    }
}

/// Whose memory a task uses: each context may have its own, and tasks that are told apart by their stacks share one.
const fn space(task: Task) -> Scope {
    match task {
        Task::Context(scope) => scope,
        Task::Number(_) | Task::Unresolved => Scope::EVERYWHERE,
    }
}

#[cfg(test)]
mod tests {
    use tracewalk::flow::{Block, Ending, Gap, GapReason};
    use tracewalk::ids::{ContextId, Isa, Location};
    use tracewalk::span::Span;

    use super::*;

    const TASK: Task = Task::Number(1);
    const AT: Address = Address::new(0x100);
    const RAM: u64 = 0x2000_0000;

    fn block(last: Address) -> Element {
        let (isa, ending) = (Isa::A32, Ending::Interrupted);
        Element::Block(Block {
            start: last,
            end: Address::new(last.get() + 4),
            isa,
            instructions: 1,
            last,
            ending,
            span: Span::default(),
        })
    }

    fn event(kind: EventKind) -> Element {
        Element::Event(Event { kind, span: Span::default() })
    }

    /// An access of four bytes.
    fn access(instruction: Address, address: Option<u64>, value: TransferValue, store: bool) -> Element {
        event(EventKind::Data(DataTransfer {
            instruction: Some(Location::new(instruction, Isa::A32)),
            address: address.map(Address::new),
            value,
            bytes: Some(4),
            store: Some(store),
            big_endian: false,
        }))
    }

    fn stored(value: u32) -> Element {
        access(AT, Some(RAM), TransferValue::Value(value), true)
    }

    /// What the first byte holds after each of these elements, of which each has one step.
    fn held(elements: &[Element]) -> Vec<Option<u8>> {
        let mut collecting = Collecting::default();
        for (step, element) in (0..).zip(elements) {
            collecting.element(element, step, TASK);
        }
        let transfers = collecting.finish();
        (1..=elements.len() as u64).map(|step| transfers.byte(RAM, step, TASK)).collect()
    }

    #[test]
    fn a_byte_holds_what_was_loaded_or_stored_last_before_the_place() {
        let loaded = access(AT, Some(RAM), TransferValue::Value(3), false);
        let elements = [block(AT), stored(1), block(AT), stored(2), block(AT), loaded];
        assert_eq!(held(&elements), [None, Some(1), Some(1), Some(2), Some(2), Some(3)]);
    }

    #[test]
    fn nothing_is_known_after_what_may_have_changed_memory_unseen() {
        let gap = Element::Gap(Gap { reason: GapReason::TraceLost, span: Span::default(), doubt: false });
        let suppressed = access(AT, None, TransferValue::Suppressed, true);
        let nowhere = access(AT, None, TransferValue::Value(5), true);
        for unseen in [gap, suppressed, nowhere] {
            let elements = [block(AT), stored(1), block(AT), unseen, block(AT), stored(2)];
            assert_eq!(held(&elements), [None, Some(1), Some(1), None, None, Some(2)], "{unseen:?}");
        }
        // Where a store's value was not traced, its bytes are unknown; where it did not store, they stay.
        for (value, after) in [(TransferValue::NotTraced, None), (TransferValue::StoreFailed, Some(1))] {
            let elements = [block(AT), stored(1), block(AT), access(AT, Some(RAM), value, true)];
            assert_eq!(held(&elements), [None, Some(1), Some(1), after]);
        }
    }

    #[test]
    fn a_load_whose_value_comes_late_says_nothing_of_memory_now() {
        let other = Address::new(0x104);
        let late = access(AT, Some(RAM), TransferValue::Value(1), false);
        let elements = [block(AT), stored(2), block(other), late];
        assert_eq!(held(&elements), [None, Some(2), Some(2), Some(2)]);
    }

    #[test]
    fn what_the_processor_pushes_for_an_exception_is_no_access_of_the_instruction_before() {
        let exception =
            event(EventKind::Exception { exception: None, preferred_return: None, handler: None });
        let elements = [block(AT), stored(1), exception, stored(2)];
        assert_eq!(held(&elements), [None, Some(1), Some(1), None]);
    }

    #[test]
    fn another_contexts_memory_is_unknown_and_its_access_makes_it_so() {
        let [one, two] = [1, 2].map(|id| Task::Context(Scope::context(ContextId(id))));
        let mut collecting = Collecting::default();
        for (step, (task, element)) in
            (0..).zip([(one, block(AT)), (one, stored(1)), (two, block(AT)), (two, stored(2))])
        {
            collecting.element(&element, step, task);
        }
        let transfers = collecting.finish();
        let seen = |step| [one, two].map(|task| transfers.byte(RAM, step, task));
        assert_eq!([seen(2), seen(3), seen(4)], [[Some(1), None], [Some(1), None], [None, Some(2)]]);
    }

    #[test]
    fn bytes_of_a_big_endian_store_stand_in_their_order() {
        let mut collecting = Collecting::default();
        collecting.element(&block(AT), 0, TASK);
        let Element::Event(Event { kind: EventKind::Data(transfer), span }) = stored(0x1234) else {
            unreachable!("it is one")
        };
        let transfer = DataTransfer { big_endian: true, bytes: Some(2), ..transfer };
        collecting.element(&Element::Event(Event { kind: EventKind::Data(transfer), span }), 1, TASK);
        let transfers = collecting.finish();
        let bytes = [0, 1, 2].map(|offset| transfers.byte(RAM + offset, 2, TASK));
        assert_eq!(bytes, [Some(0x12), Some(0x34), None]);
    }
}
