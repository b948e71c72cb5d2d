//! Decodes an unknown window, and caches its meaning.

use alloc::vec::Vec;

use crate::flow::{Element, Event, EventKind, TakeElements};
use crate::program::Program;
use crate::protocol::memoised::{MemoDecode, MemoLower, WaitCycles};
use crate::protocol::{Item, Lower, TakeItem};
use crate::source::chain::{Chain, Interpreting};
use crate::span::{Span, StreamOffset};

use super::situation::{Memoised, Situation, SituationOf};
use super::table::{Meaning, Memo, SituationId, WindowKey};

/// The result of decoding a window.
pub(super) struct Learned {
    /// The number of bytes decoded.
    pub(super) bytes: usize,
    /// The state after these bytes, if it is known.
    pub(super) next: Option<SituationId>,
    /// Whether cycles of the window's W atoms are still to be reported.
    pub(super) waits: bool,
}

/// Decodes windows and caches their meanings.
#[derive(Clone, Debug, Default)]
pub(super) struct Learner {
    /// The elements of the window that is being decoded. Empty between windows.
    elements: Vec<Element>,
    /// [`Flow::forgotten`](crate::flow::Flow) when the memo was empty.
    pub(super) forgotten: u64,
}

impl Learner {
    /// Decodes the window of `key` at the start of `input`. The key's state is that of `skipped` bytes before it.
    pub(super) fn learn<P: Memoised>(
        &mut self,
        (chain, memo): (&mut Chain<P>, &mut Memo<SituationOf<P>>),
        (key, skipped): (WindowKey, u64),
        input: &[u8],
        program: &Program,
        sink: &mut impl TakeElements,
    ) -> Learned {
        let start = chain.packets.position();
        chain.interpreter.flow.watch_stacks();
        let waited = wait_cycles(chain);
        let elements = &mut self.elements;
        let mut note = |element| elements.push(element);
        let mut noting = Noting {
            interpreting: chain.interpreter.interpreting(program, &mut note),
            packets: 0,
            repeatable: true,
            is_repeatable: <P::Decoder as MemoDecode>::is_repeatable,
        };
        let bytes = chain.packets.decode_some(input, key.bytes(), &mut noting);
        let (packets, repeatable) = (noting.packets, noting.repeatable);
        self.elements.iter().for_each(|element| sink.element(*element));
        let after = wait_cycles(chain);
        // A branch packet alone reports no cycles: the earlier ones stay pending, unchanged. The state after
        // the branch names places before the cycles by offset, which is valid only with the same number of
        // bytes in between.
        let waits_on = after.is_some() && after == waited && skipped == 0;
        let waits = after.is_some() && !waits_on;
        let valid = repeatable
            && bytes == key.bytes()
            && self.forgotten == chain.interpreter.flow.forgotten()
            // The window must report its own cycles; otherwise their place would matter after it.
            && !waits;
        let effects = chain.interpreter.flow.stack_effects().filter(|_| valid);
        let next = Situation::of(chain).filter(|_| effects.is_some()).map(|state| memo.number(state));
        let next = next.map(|next| next.with_wait_cycles(waits_on));
        if let (Some(effects), Some(next)) = (effects, next) {
            relate(&mut self.elements, start, waited.map(|waited| (waited, skipped)));
            memo.insert(key, &Meaning { next, effects, elements: &self.elements, packets });
        }
        self.elements.clear();
        Learned { bytes, next, waits }
    }
}

/// The cycles of W atoms that the next instruction will report.
fn wait_cycles<P: Memoised>(chain: &mut Chain<P>) -> Option<WaitCycles> {
    let waited = chain.interpreter.lowering.take_wait_cycles();
    chain.interpreter.lowering.put_wait_cycles(waited);
    waited
}

/// Converts a window's elements to the form of a [`Passage`](crate::flow::Passage): spans relative to the
/// window's start, and without the cycles of W atoms in `skipped` bytes directly before the window.
fn relate(elements: &mut [Element], start: StreamOffset, waited: Option<(WaitCycles, u64)>) {
    let Some((waited, skipped)) = waited else {
        // Nearly always. In place: an element has 72 bytes.
        elements.iter_mut().map(Element::span_mut).for_each(|span| *span = span.relative_to(start));
        return;
    };
    let mut unreported = Some(waited);
    let before = StreamOffset(start.0 - skipped);
    for element in elements {
        let is_before = element.span().start < start;
        let mut related = element.relative_to(if is_before { before } else { start });
        if let (Element::Event(Event { kind: EventKind::Cycles(cycles), span }), Some(waited)) =
            (&mut related, unreported)
        {
            *cycles -= waited.cycles.min(*cycles);
            if element.span() == waited.span {
                *span = Span::default();
            }
            unreported = None;
        }
        *element = related;
    }
}

/// Interprets packets, counts them and notes whether all are repeatable.
struct Noting<'a, L: Lower, S> {
    interpreting: Interpreting<'a, L, S>,
    packets: u8,
    repeatable: bool,
    is_repeatable: fn(&L::Packet) -> bool,
}

impl<L: Lower, S: TakeElements> TakeItem<L::Packet> for Noting<'_, L, S> {
    #[inline(always)]
    fn take(&mut self, item: Item<L::Packet>, span: Span, bytes: &[u8]) {
        self.repeatable &= matches!(&item, Item::Packet(packet) if (self.is_repeatable)(packet));
        self.packets = self.packets.saturating_add(1);
        self.interpreting.take(item, span, bytes);
    }
}
