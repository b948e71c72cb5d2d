//! One protocol's decoder and lowering, and the flow behind them.

use alloc::vec::Vec;

use crate::directive::Directive;
use crate::flow::passage::Waited;
use crate::flow::state::{Exchanges, State as FlowState};
use crate::flow::{Element, Event, EventKind, Flow, TakeElements};
use crate::program::Program;
use crate::protocol::resume::{Resume, Waits, Windows};
use crate::protocol::{Emit, Item, Lower, Malformation, Packets, TakeItem};
use crate::span::{Span, StreamOffset};

use super::PacketCounts;
use super::memo::{Entry, Key, Meaning, Memo, StateId};
use super::segment::ChainState;

/// A decoder, a lowering, the flow, and what they said before.
#[derive(Clone, Debug)]
pub(super) struct Chain<D: Resume, L: Resume> {
    packets: Packets<D>,
    follower: Follower<L>,
    memo: Memo<State<D::State, L::State>>,
    /// What [`Flow::forgotten`] was when the memo was empty.
    forgotten: u64,
    patience: Patience,
    /// The elements of a window that is decoded to be remembered. Empty in between.
    elements: Vec<Element>,
}

/// What the meaning of the next plain packets depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State<D, L> {
    decoder: D,
    lowering: L,
    flow: FlowState,
}

/// What was repeated.
struct Replayed {
    bytes: usize,
    /// The state behind that, but for so many bytes of nothing but cycles at the end.
    last: StateId,
    skipped: u64,
}

/// What was repeated so far.
struct Done {
    /// The state behind it.
    state: StateId,
    bytes: usize,
    windows: i32,
    packets: u64,
}

/// Why repeating ended.
#[derive(PartialEq, Eq)]
enum Stop {
    /// What comes next is not plain.
    NoWindow,
    /// A window is not known.
    Unknown,
}

impl Done {
    /// A window more.
    #[inline(always)]
    fn window(&mut self, entry: &Entry) {
        self.state = entry.next;
        self.bytes += entry.bytes();
        self.windows += 1;
        self.packets += u64::from(entry.packets);
    }
}

/// What stands behind the packets.
#[derive(Clone, Debug)]
struct Follower<L> {
    lowering: L,
    flow: Flow,
    counts: PacketCounts,
}

impl<D, L> Chain<D, L>
where
    D: Windows,
    L: Lower<Packet = D::Packet> + Resume,
{
    pub(super) fn new(decoder: D, lowering: L, flow: Flow) -> Self {
        Self {
            packets: Packets::new(decoder),
            follower: Follower { lowering, flow, counts: PacketCounts::default() },
            memo: Memo::new(),
            forgotten: 0,
            patience: Patience::NEW,
            elements: Vec::new(),
        }
    }

    pub(super) const fn counts(&self) -> PacketCounts {
        self.follower.counts
    }

    /// The whole state.
    pub(super) fn checkpoint(&mut self, program: &Program) -> ChainState<D, L>
    where
        D: Clone,
        L: Clone,
    {
        ChainState {
            packets: self.packets.clone(),
            lowering: self.follower.lowering.clone(),
            walk: self.follower.flow.checkpoint(program),
        }
    }

    /// Goes on in this state.
    pub(super) fn go_on_from(&mut self, state: &ChainState<D, L>, program: &Program)
    where
        D: Clone,
        L: Clone,
    {
        self.packets.clone_from(&state.packets);
        self.follower.lowering.clone_from(&state.lowering);
        self.follower.flow.go_on_from(&state.walk, program);
    }

    /// Goes on as a new chain would, with what is known of the program.
    pub(super) fn begin_again(&mut self, new: Self) {
        self.packets = new.packets;
        self.follower.lowering = new.follower.lowering;
        self.follower.counts = new.follower.counts;
        self.follower.flow.begin_again();
        self.patience = new.patience;
    }

    pub(super) fn push(&mut self, bytes: &[u8], program: &Program, sink: &mut impl TakeElements) {
        let mut input = self.packets.push_carried(bytes, &mut self.follower.following(program, sink));
        while let Some(next) = input.first_chunk() {
            let asleep = self.patience.asleep(self.packets.position());
            let is_plain =
                |decoder: &D| decoder.window(u64::from_le_bytes(*next)) > 0 || decoder.waits(next).0 > 0;
            if asleep == 0 && is_plain(self.packets.decoder()) {
                let known = self.by_memo(input, program, sink);
                input = input.get(known..).unwrap_or_default();
            }
            // What comes next is not plain, or not in a state that repeats.
            let taker = &mut self.follower.following(program, sink);
            let decoded = self.packets.decode_some(input, asleep.max(1), taker);
            if decoded == 0 {
                break;
            }
            input = input.get(decoded..).unwrap_or_default();
        }
        self.packets.push_to(input, &mut self.follower.following(program, sink));
    }

    pub(super) fn lose_sync(&mut self, program: &Program, sink: &mut impl TakeElements) {
        let span = Span::new(self.packets.position(), 0);
        self.packets.lose_sync_to(&mut self.follower.following(program, sink));
        self.follower.lowering.lost(span, &mut Flowing { flow: &mut self.follower.flow, program, sink });
    }

    /// As [`Chain::lose_sync`], where nothing is wrong with what came before.
    pub(super) fn cut(&mut self, program: &Program, sink: &mut impl TakeElements) {
        let span = Span::new(self.packets.position(), 0);
        self.packets.lose_sync_to(&mut self.follower.following(program, sink));
        let flowing = Flowing { flow: &mut self.follower.flow, program, sink };
        self.follower.lowering.lost(span, &mut Cutting(flowing));
    }

    /// Nobody waits for the rest of a packet that has begun.
    pub(super) fn forget_incomplete(&mut self) -> usize {
        self.packets.forget_incomplete()
    }

    pub(super) fn finish(&mut self, program: &Program, sink: &mut impl TakeElements) {
        self.packets.finish_to(&mut self.follower.following(program, sink));
        self.follower.lowering.finish(&mut Flowing { flow: &mut self.follower.flow, program, sink });
        self.follower.flow.finish(program, &mut |element| sink.element(element));
    }

    /// Follows windows of plain packets as long as states repeat; returns how many bytes that were.
    fn by_memo(&mut self, input: &[u8], program: &Program, sink: &mut impl TakeElements) -> usize {
        let mut done = 0;
        let mut state = None;
        loop {
            if self.memo.is_full() || self.forgotten != self.follower.flow.forgotten() {
                self.memo.forget();
                self.forgotten = self.follower.flow.forgotten();
                state = None;
            }
            let Some(first) = state.or_else(|| self.state().map(|state| self.memo.number(state))) else {
                return done;
            };
            let Replayed { bytes, last, skipped } =
                self.replay(input.get(done..).unwrap_or_default(), first, sink);
            if bytes > 0 {
                self.resume(last, skipped);
            }
            done += bytes;
            let rest = input.get(done..).unwrap_or_default();
            let Some(window) = self.key(rest, last) else { return done };
            let (learned, next) = self.learn(rest, window, skipped, program, sink);
            done += learned;
            state = next;
            if learned == 0 || self.patience.asleep(self.packets.position()) > 0 {
                return done;
            }
        }
    }

    /// Repeats what is known.
    fn replay(&mut self, input: &[u8], first: StateId, sink: &mut impl TakeElements) -> Replayed {
        let mut done = Done { state: first.with_waits(false), bytes: 0, windows: 0, packets: 0 };
        let mut waits = self.follower.lowering.take_waits();
        let mut skipped = 0;
        loop {
            if waits.is_none() && self.repeat(input, &mut done, sink) == Stop::Unknown {
                break;
            }
            let rest = input.get(done.bytes..).unwrap_or_default();
            let position = StreamOffset(self.packets.position().0 + done.bytes as u64);
            let waiting = waits.and_then(|waits| Some((waits, self.key(rest, done.state.with_waits(true))?)));
            if let Some((Waits { cycles, span }, key)) = waiting {
                let flow = &mut self.follower.flow;
                let found = self.memo.find(key, |exchanges| flow.allows(exchanges));
                let Some((id, entry)) = found else { break };
                if let Some(exchanges) = self.memo.exchanges_of(entry) {
                    flow.apply(exchanges);
                }
                let waited = Waited { cycles, span, bytes: skipped };
                sink.passage(self.memo.passage(entry, position, Some(waited)));
                done.window(entry);
                self.memo.came(id);
                (waits, skipped) = (None, 0);
                continue;
            }
            let (bytes, cycles) = self.packets.decoder().waits(rest);
            if bytes == 0 {
                break;
            }
            let cycles = cycles + waits.map_or(0, |waits| waits.cycles);
            let span = Span::new(StreamOffset(position.0 + bytes as u64 - 1), 1);
            waits = Some(Waits { cycles, span });
            done.packets += bytes as u64;
            skipped += bytes as u64;
            done.bytes += bytes;
        }
        self.packets.step_over(input.get(..done.bytes).unwrap_or(input));
        self.follower.counts.packets += done.packets;
        self.patience.found(done.windows);
        let last = done.state.with_waits(waits.is_some());
        self.follower.lowering.put_waits(waits);
        Replayed { bytes: done.bytes, last, skipped }
    }

    /// Repeats windows that are known, while nothing is waited for in front of them.
    ///
    /// Mostly one comes behind another that came behind it the last time. Then nothing here waits for anything but for the
    /// number of the next entry: neither for where the next window begins nor for which bytes belong to it.
    #[inline(always)]
    fn repeat(&mut self, input: &[u8], done: &mut Done, sink: &mut impl TakeElements) -> Stop {
        let start = self.packets.position();
        loop {
            let Some(&next) = input.get(done.bytes..).and_then(<[u8]>::first_chunk) else {
                return Stop::NoWindow;
            };
            let word = u64::from_le_bytes(next);
            let flow = &mut self.follower.flow;
            let allows = |exchanges: &Exchanges| flow.allows(exchanges);
            let (id, entry) = if let Some(follower) = self.memo.follower(word, done.state, allows) {
                follower
            } else {
                let mask = self.packets.decoder().window(word);
                let Some(key) = Key::new(word, mask, done.state) else { return Stop::NoWindow };
                let Some(found) = self.memo.find(key, allows) else { return Stop::Unknown };
                found
            };
            if let Some(exchanges) = self.memo.exchanges_of(entry) {
                flow.apply(exchanges);
            }
            sink.passage(self.memo.passage(entry, StreamOffset(start.0 + done.bytes as u64), None));
            done.window(entry);
            self.memo.came(id);
        }
    }

    /// Decodes a window that is not known, and remembers what it means; returns how many bytes were decoded, and the state
    /// behind them, if it is known. The state in front of the window is that of `skipped` bytes before it.
    fn learn(
        &mut self,
        input: &[u8],
        key: Key,
        skipped: u64,
        program: &Program,
        sink: &mut impl TakeElements,
    ) -> (usize, Option<StateId>) {
        let start = self.packets.position();
        let stacks = self.follower.flow.watch_stacks();
        let waits = self.waits();
        let mut elements = core::mem::take(&mut self.elements);
        let mut note = |element| elements.push(element);
        let mut noting = Noting {
            following: self.follower.following(program, &mut note),
            packets: 0,
            plain: true,
            is_plain: D::is_plain,
        };
        let decoded = self.packets.decode_some(input, key.bytes(), &mut noting);
        let (packets, plain) = (noting.packets, noting.plain);
        elements.iter().for_each(|element| sink.element(*element));
        let waits_on = self.waits().is_some();
        if !waits_on {
            self.patience.missed(start);
        }
        let valid = plain
            && decoded == key.bytes()
            && self.forgotten == self.follower.flow.forgotten()
            // Cycles that were waited for have to be told, or where they stood would still count behind the window.
            && !waits_on;
        let exchanges = self.follower.flow.exchanges_since(&stacks).filter(|_| valid);
        let next = self.state().filter(|_| exchanges.is_some()).map(|state| self.memo.number(state));
        if let (Some(exchanges), Some(next)) = (exchanges, next) {
            relate(&mut elements, start, waits.map(|waits| (waits, skipped)));
            self.memo.insert(key, &Meaning { next, exchanges, elements: &elements, packets });
        }
        elements.clear();
        self.elements = elements;
        (decoded, next)
    }

    /// The cycles that the next instruction waits for.
    fn waits(&mut self) -> Option<Waits> {
        let waits = self.follower.lowering.take_waits();
        self.follower.lowering.put_waits(waits);
        waits
    }

    /// The window at the start of `input`, in this state; `None` where there is none of plain packets.
    #[inline(always)]
    fn key(&self, input: &[u8], state: StateId) -> Option<Key> {
        let word = u64::from_le_bytes(*input.first_chunk()?);
        Key::new(word, self.packets.decoder().window(word), state)
    }

    fn state(&self) -> Option<State<D::State, L::State>> {
        let at = self.packets.position();
        Some(State {
            decoder: self.packets.decoder().state(at).filter(|_| self.packets.is_between_packets())?,
            lowering: self.follower.lowering.state(at)?,
            flow: self.follower.flow.state(at)?,
        })
    }

    /// Goes on in this state, which was that of `skipped` bytes before.
    fn resume(&mut self, state: StateId, skipped: u64) {
        let at = StreamOffset(self.packets.position().0 - skipped);
        if let Some(state) = self.memo.state(state) {
            self.packets.decoder_mut().resume(&state.decoder, at);
            self.follower.lowering.resume(&state.lowering, at);
            self.follower.flow.resume(&state.flow, at);
        }
    }
}

/// Tells the elements of a window as a [`Passage`] has them: from its start on, and without the cycles that were waited for
/// in `skipped` bytes directly in front of it.
fn relate(elements: &mut [Element], start: StreamOffset, waited: Option<(Waits, u64)>) {
    let mut untold = waited.map(|(waits, _)| waits);
    let before = StreamOffset(start.0 - waited.map_or(0, |(_, skipped)| skipped));
    for element in elements {
        let is_in_front = element.span().start < start;
        let mut related = element.relative_to(if is_in_front { before } else { start });
        if let (Element::Event(Event { kind: EventKind::Cycles(cycles), span }), Some(waits)) =
            (&mut related, untold)
        {
            *cycles -= waits.cycles.min(*cycles);
            if element.span() == waits.span {
                *span = Span::default();
            }
            untold = None;
        }
        *element = related;
    }
}

/// Whether looking up is worth its time.
#[derive(Clone, Copy, Debug)]
struct Patience {
    credit: i32,
    /// Nothing is looked up in front of this byte.
    asleep_until: StreamOffset,
}

impl Patience {
    /// What a new memo may cost before it has to pay: some thousand windows that are not known.
    const NEW: Self = Self { credit: 1 << 16, asleep_until: StreamOffset(0) };

    /// What entering costs, and a window that is not known, in windows that are.
    const ENTER: i32 = 2;
    const MISS: i32 = 8;

    /// How long not to try again, and what to spend then.
    const SLEEP: u64 = 1 << 19;
    const AWAKE: i32 = 1 << 12;

    /// How many bytes to decode without looking up.
    #[inline]
    fn asleep(&self, position: StreamOffset) -> usize {
        usize::try_from(self.asleep_until.0.saturating_sub(position.0)).unwrap_or(usize::MAX)
    }

    fn found(&mut self, windows: i32) {
        self.credit = (self.credit - Self::ENTER).saturating_add(windows).min(Self::NEW.credit);
    }

    fn missed(&mut self, position: StreamOffset) {
        self.credit -= Self::MISS;
        if self.credit <= 0 {
            *self = Self { credit: Self::AWAKE, asleep_until: StreamOffset(position.0 + Self::SLEEP) };
        }
    }
}

// The methods from here to the graph are always inlined, so that the frequent packets become one loop.

impl<L> Follower<L> {
    #[inline(always)]
    fn following<'a, S>(&'a mut self, program: &'a Program, sink: &'a mut S) -> Following<'a, L, S> {
        Following { follower: self, program, sink }
    }
}

/// Takes items, and tells what they prove.
struct Following<'a, L, S> {
    follower: &'a mut Follower<L>,
    program: &'a Program,
    sink: &'a mut S,
}

impl<L: Lower, S: TakeElements> TakeItem<L::Packet> for Following<'_, L, S> {
    #[inline(always)]
    fn take(&mut self, item: Item<L::Packet>, span: Span, _bytes: &[u8]) {
        let Follower { lowering, flow, counts } = self.follower;
        counts.count(&item);
        let mut flowing = Flowing { flow, program: self.program, sink: self.sink };
        match item {
            Item::Packet(packet) => lowering.lower(&packet, span, &mut flowing),
            Item::Malformed(Malformation::Truncated { .. }) => lowering.lost(span, &mut Cutting(flowing)),
            Item::Malformed(_) => lowering.lost(span, &mut flowing),
            // Before the first synchronisation nothing was known yet, and behind a malformed stretch nothing is.
            Item::Unsynchronised => {}
        }
    }
}

/// As [`Following`], and notes which packets it were.
struct Noting<'a, L: Lower, S> {
    following: Following<'a, L, S>,
    packets: u8,
    plain: bool,
    is_plain: fn(&L::Packet) -> bool,
}

impl<L: Lower, S: TakeElements> TakeItem<L::Packet> for Noting<'_, L, S> {
    #[inline(always)]
    fn take(&mut self, item: Item<L::Packet>, span: Span, bytes: &[u8]) {
        self.plain &= matches!(&item, Item::Packet(packet) if (self.is_plain)(packet));
        self.packets = self.packets.saturating_add(1);
        self.following.take(item, span, bytes);
    }
}

/// Takes directives, and tells what they prove.
struct Flowing<'a, S> {
    flow: &'a mut Flow,
    program: &'a Program,
    sink: &'a mut S,
}

impl<S: TakeElements> Emit for Flowing<'_, S> {
    #[inline(always)]
    fn emit(&mut self, directive: Directive, span: Span) {
        self.flow.follow(self.program, directive, span, &mut |element| self.sink.element(element));
    }
}

/// The same where trace ends, and nothing is wrong with what came before.
struct Cutting<'a, S>(Flowing<'a, S>);

impl<S: TakeElements> Emit for Cutting<'_, S> {
    fn emit(&mut self, directive: Directive, span: Span) {
        let cut = directive == Directive::Lost;
        self.0.emit(if cut { Directive::Cut } else { directive }, span);
    }
}
