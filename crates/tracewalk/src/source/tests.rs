//! The memo gives the same results as the walk. In tests the memo is tiny, so that it often fills up and
//! forgets.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

mod etmv4_trace;

use super::*;
use crate::flow::{Element, Engine, Passage, PassageId, TakeElements};
use crate::ids::{Address, TraceId};
use crate::program::Program;
use crate::protocol::{Registers, etmv3, mtb, pft};
use crate::span::{Span, StreamOffset};

const BASE: u32 = 0x1000;

/// nop; bne .+4; b .-4; blx r3; bx lr; it eq; bxeq lr; cbz r0, .; bl .; pop {r4, pc}
const CODE: [u16; 12] =
    [0xbf00, 0xd100, 0xe7fc, 0x4798, 0x4770, 0xbf08, 0x4770, 0xb100, 0xf7ff, 0xfffe, 0xbd10, 0xbf00];

fn program(order: &[usize]) -> Program {
    let code = order.iter().flat_map(|&index| CODE[index % CODE.len()].to_le_bytes());
    let mut program = Program::new();
    program.add(Address::from(BASE), &code.collect::<Vec<_>>()).expect("nothing else is there");
    program
}

/// A few frequent packets, and fewer of the others.
fn any_packet() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        12 => prop_oneof![Just(0x84), Just(0x88), Just(0xbc), Just(0xc4), Just(0xc0), Just(0x90)].prop_map(|byte| vec![byte]),
        // Waits, with cycle accuracy.
        4 => prop_oneof![Just(0xa0), Just(0xe4), Just(0x82), Just(0x92), Just(0x96), Just(0x80)].prop_map(|byte| vec![byte]),
        2 => (0xa0..0xff_u8, 0_u8..0x80).prop_map(|(header, count)| vec![header & 0xfe | 0x40, count]),
        // Branches of one, two and five bytes, the second one perhaps with exception information.
        6 => (0_u8..12).prop_map(|to| vec![to << 1 | 1]),
        3 => (0_u8..12, prop_oneof![Just(0x20_u8), Just(0x21)]).prop_map(|(to, high)| vec![0x81 | to << 1, high]),
        3 => (0_u8..12, prop_oneof![Just(0x12_u8), Just(0x52), Just(0x1e), Just(0x32)])
            .prop_map(|(to, information)| vec![0x81 | to << 1, 0x60, information]),
        1 => (0_u8..12, prop_oneof![Just(0x10_u8), Just(0x08), Just(0x00), Just(0x50), Just(0x48)])
            .prop_map(|(to, last)| vec![0x81 | to << 1, 0xa0, 0x80, 0x80, last]),
        3 => Just(vec![0x76]),
        1 => Just(vec![0x72, 0x85, 0x20]),
        1 => Just(vec![0x0c]),
        1 => (0_u8..3).prop_map(|context_id| vec![0x6e, context_id]),
        1 => (0_u8..128).prop_map(|time| vec![0x42, time]),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
}

/// A-sync, and an I-sync at the code's start, with a context ID.
fn start(config: &SourceConfig, context_id: u8) -> Vec<u8> {
    let a_sync = [0, 0, 0, 0, 0, 0x80];
    let context_id = [context_id];
    if let SourceConfig::Etmv4(_) = config {
        return etmv4_trace::start();
    }
    let i_sync = match config {
        SourceConfig::Pft(_) => [&[0x08, 0x01, 0x10, 0, 0, 0x21], &context_id[..]],
        SourceConfig::Etmv3(config) if config.context_id_size().bytes() == 0 => {
            [&[0x08], &[0x21, 0x01, 0x10, 0, 0][..]]
        }
        _ => [&[0x08, context_id[0]], &[0x21, 0x01, 0x10, 0, 0][..]],
    };
    [&a_sync, i_sync[0], i_sync[1]].concat()
}

fn any_config() -> impl Strategy<Value = SourceConfig> {
    let registers = |etmcr, etmidr| Registers {
        etmcr: Some(etmcr),
        etmidr: Some(etmidr),
        etmccer: Some(0x34c0_1ac2),
        etmtraceidr: None,
    };
    let etmv3 = move |etmcr, etmidr| {
        SourceConfig::Etmv3(
            etmv3::Config::from_registers(registers(etmcr, etmidr), None).expect("sound registers"),
        )
    };
    let pft = move |etmcr| {
        SourceConfig::Pft(
            pft::Config::from_registers(registers(etmcr, 0x411c_f312), None).expect("sound registers"),
        )
    };
    prop_oneof![
        Just(etmv3(0x400, 0x4114_f250)),
        Just(etmv3(0x4400, 0x410c_f250)),
        Just(etmv3(0x4400, 0x411c_f250)),
        // Cycle-accurate.
        Just(etmv3(0x5400, 0x410c_f250)),
        Just(etmv3(0x5400, 0x411c_f250)),
        Just(pft(0x4400)),
        Just(pft(0x2000_4400)),
        Just(pft(0x5400)),
        Just(pft(0x2000_5400)),
    ]
}

/// A configuration, and a few strings of its packets.
fn any_trace() -> impl Strategy<Value = (SourceConfig, Vec<Vec<Vec<u8>>>)> {
    use proptest::collection::vec;
    prop_oneof![
        2 => (any_config(), vec(vec(any_packet(), 1..12), 1..4)),
        1 => (etmv4_trace::any_config(), vec(vec(etmv4_trace::any_packet(), 1..12), 1..4)),
    ]
}

fn elements(
    config: &SourceConfig,
    engine: Engine,
    bytes: &[u8],
    program: &Program,
    size: usize,
) -> (Vec<Element>, PacketCounts) {
    let mut elements = Vec::new();
    let mut stream = FlowStream::with_engine(config, engine);
    let mut note = |element: Element| elements.push(element);
    bytes.chunks(size).for_each(|piece| stream.push(piece, program, &mut note));
    stream.finish(program, &mut note);
    let counts = stream.counts();
    (elements, counts)
}

/// The elements of a stream in pieces of this size, and its state after each piece.
fn parts(
    stream: &mut FlowStream,
    bytes: &[u8],
    program: &Program,
    size: usize,
) -> Vec<(Vec<Element>, Checkpoint)> {
    let part = |piece: &[u8]| {
        let mut elements = Vec::new();
        stream.push(piece, program, &mut |element: Element| elements.push(element));
        (elements, stream.checkpoint(program))
    };
    bytes.chunks(size).map(part).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_came_before_means_the_same_again(
        (config, phrases) in any_trace(),
        order in proptest::collection::vec(0_usize..CODE.len(), 12..40),
        song in proptest::collection::vec((0_usize..4, 1_usize..12), 1..20),
        size in 1_usize..400,
    ) {
        let mut bytes = start(&config, 0);
        for (phrase, times) in song {
            let phrase = phrases[phrase % phrases.len()].concat();
            (0..times).for_each(|_| bytes.extend_from_slice(&phrase));
            if times == 11 {
                bytes.extend(start(&config, 1));
            }
        }
        let program = program(&order);
        let walk = elements(&config, Engine::Walk, &bytes, &program, bytes.len());
        prop_assert_eq!(&elements(&config, Engine::Graph, &bytes, &program, bytes.len()), &walk);
        prop_assert_eq!(&elements(&config, Engine::Graph, &bytes, &program, size), &walk);
    }

    /// The elements of a stream that began in the middle are used only if they must be right: see
    /// [`Checkpoint`].
    #[test]
    fn checkpoints_prove_only_what_the_source_says(
        (config, phrases) in any_trace(),
        order in proptest::collection::vec(0_usize..CODE.len(), 12..40),
        song in proptest::collection::vec((0_usize..4, 1_usize..12), 4..20),
        cut in 0_usize..200,
        size in 1_usize..40,
    ) {
        let mut bytes = start(&config, 0);
        for (phrase, times) in song {
            bytes.extend_from_slice(&phrases[phrase % phrases.len()].concat());
            if times > 8 {
                bytes.extend(start(&config, 1));
            }
        }
        let program = program(&order);
        let (before, after) = bytes.split_at(cut.min(bytes.len()));
        let mut stream = FlowStream::new(&config);
        stream.push(before, &program, &mut |_: Element| ());
        let real = parts(&mut stream, after, &program, size);
        let unknown = Checkpoint::in_the_middle(&config, StreamOffset(before.len() as u64));
        stream.go_on_from(&unknown.expect("it synchronises"), &program);
        let guessed = parts(&mut stream, after, &program, size);
        for (nth, ((_, real_here), (_, guess))) in real.iter().zip(&guessed).enumerate() {
            if !real_here.proves(guess) {
                continue;
            }
            let next = real.iter().zip(&guessed).skip(nth + 1);
            let certain = next.take_while(|(_, (_, next))| next.is_certain(real_here, guess));
            let mut proven = Vec::new();
            for ((real_elements, real_there), (elements, there)) in certain {
                prop_assert_eq!(elements, real_elements);
                proven.push(there.clone());
                let continued = real_here.continued(guess, &proven);
                prop_assert!(continued.proves(real_there) && real_there.proves(&continued));
            }
        }
    }
}

/// Notes the elements of every passage by its number.
#[derive(Default)]
struct ByNumber {
    known: std::collections::HashMap<PassageId, Vec<Element>>,
    repeated: usize,
}

impl TakeElements for ByNumber {
    fn element(&mut self, _: Element) {}

    fn passage(&mut self, passage: Passage<'_>) {
        if passage.is_empty() {
            return;
        }
        if let Some(known) = self.known.get(&passage.id()) {
            assert!(passage.relative().eq(known.iter().copied()));
            self.repeated += 1;
        } else {
            self.known.insert(passage.id(), passage.relative().collect());
        }
    }
}

#[test]
fn a_passages_number_names_its_elements_even_where_the_memo_forgets() {
    let program = program(&[0, 1, 0, 2, 0, 1, 0, 0, 3, 0, 4, 2]);
    let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
    let mut bytes = start(&config, 0);
    for (round, to) in (0_u8..240).zip((0_u8..12).cycle()) {
        for _ in 0..4 {
            bytes.extend([0x84, to << 1 | 1, 0x88, 0x84 + 8 * (round % 7), 0xc0, 0x01]);
        }
    }
    let mut stream = FlowStream::new(&config);
    let mut seen = ByNumber::default();
    stream.push(&bytes, &program, &mut seen);
    let generations = seen.known.keys().map(|id| id.number() >> 32).max();
    assert!(generations > Some(3) && seen.repeated > 100, "{generations:?} {}", seen.repeated);
}

#[test]
fn the_beginning_of_a_packet_can_be_forgotten() {
    let program = program(&[0; 12]);
    let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
    for (after, forgotten) in [(&[][..], 0), (&[0x81], 1), (&[0x81, 0x81], 2)] {
        let bytes = [&start(&config, 0), &[0x84; 3][..], after].concat();
        let mut flow = FlowStream::new(&config);
        let mut packets = PacketStream::new(&config);
        let mut malformed = Vec::new();
        flow.push(&bytes, &program, &mut |_: Element| {});
        packets.push(&bytes, &mut |_, _, _| {});
        assert_eq!((flow.forget_incomplete(), packets.forget_incomplete()), (forgotten, forgotten));
        flow.finish(&program, &mut |_: Element| {});
        packets.finish(&mut |item, _, _| {
            if let PacketItem::Malformed(reason) = item {
                malformed.push(reason);
            }
        });
        assert_eq!(malformed, []);
        assert_eq!(flow.counts(), PacketCounts { packets: 5, malformed: 0 });
    }
}

#[test]
fn a_passages_last_place_is_that_of_the_last_element_with_bytes() {
    use super::memo::table::{Meaning, Memo, WindowKey};
    use crate::flow::state::StackEffects;
    use crate::flow::{Event, EventKind};
    let event = |at, bytes| {
        let span = Span::new(StreamOffset(at), bytes);
        Element::Event(Event { kind: EventKind::Trigger, span })
    };
    let elements = [event(2, 3), event(5, 0)];
    let mut memo = Memo::new();
    let state = memo.number(1);
    let mut of = |word, elements| {
        let key = WindowKey::new(word, 0xff, state).unwrap();
        memo.insert(key, &Meaning { next: state, effects: StackEffects::default(), elements, packets: 1 });
        let entry = memo.find(key, |_| true).unwrap().entry;
        memo.passage(entry, StreamOffset(100), None).last_start()
    };
    assert_eq!(of(0x84, &elements[..]), Some(StreamOffset(102)));
    assert_eq!(of(0x88, &elements[1..]), None);
    // The element may have begun before the window.
    let earlier = event(97, 4).relative_to(StreamOffset(100));
    assert_eq!(of(0x8c, &[earlier]), Some(StreamOffset(97)));
}

#[test]
fn what_came_after_a_window_comes_again_only_with_the_same_bytes_and_state() {
    use super::memo::table::{Meaning, Memo, WindowKey};
    use crate::flow::state::StackEffects;
    let mut memo = Memo::new();
    let states = [memo.number(1), memo.number(2), memo.number(3)];
    let meaning = |next| Meaning { next, effects: StackEffects::default(), elements: &[], packets: 1 };
    let first = WindowKey::new(0x84, 0xff, states[0]).unwrap();
    let second = WindowKey::new(0x0284, 0xffff, states[1]).unwrap();
    memo.insert(first, &meaning(states[1]));
    memo.insert(second, &meaning(states[2]));
    let id = memo.find(first, |_| true).unwrap().id;
    memo.came(id);
    let next = |word, state| {
        memo.successor(word, state, |_| true).map(|found| (found.entry.next, found.entry.bytes()))
    };
    assert_eq!(next(0x8888_0284, states[1]), Some((states[2], 2)));
    assert_eq!(next(0x8888_0384, states[1]), None, "the last byte of the window is another");
    assert_eq!(next(0x8888_0284, states[0]), None, "the state is another");
    // A new successor replaces the old one.
    let other = WindowKey::new(0x0384, 0xffff, states[1]).unwrap();
    memo.insert(other, &meaning(states[0]));
    memo.came(id);
    let next = |word, state| {
        memo.successor(word, state, |_| true).map(|found| (found.entry.next, found.entry.bytes()))
    };
    assert_eq!(next(0x8888_0384, states[1]), Some((states[0], 2)));
    assert_eq!(next(0x8888_0284, states[1]), None);
}

#[test]
fn a_passage_includes_what_was_waited_for_before_it() {
    use crate::flow::compact::{Compact, Elements};
    use crate::flow::passage::Waited;
    use crate::flow::{Event, EventKind, Totals};
    let event = |kind, start: i64, bytes: u64| {
        let start = start.cast_unsigned();
        let span = Span { start: StreamOffset(start), end: StreamOffset(start.wrapping_add(bytes)) };
        Element::Event(Event { kind, span })
    };
    // An element that was held back, the pending cycles, and more cycles later.
    let elements = [
        event(EventKind::Trigger, -1, 1),
        event(EventKind::Cycles(0), 0, 0),
        event(EventKind::Cycles(3), 1, 1),
    ];
    let waited = Waited { cycles: 20, span: Span::new(StreamOffset(99), 1), bytes: 3 };
    let compact = [0, 1, 2].map(Compact::Other);
    let of = |elements| Passage {
        id: PassageId(0),
        elements: Elements {
            compact: &compact,
            others: elements,
            first: 0,
            count: u8::try_from(elements.len()).unwrap(),
        },
        origin: StreamOffset(100),
        totals: Totals::of(elements),
        last: None,
        waited: Some(waited),
    };
    let found = of(&elements).elements().collect::<Vec<_>>();
    let expected = [
        event(EventKind::Trigger, 96, 1),
        event(EventKind::Cycles(20), 99, 1),
        event(EventKind::Cycles(3), 101, 1),
    ];
    assert_eq!(found, expected);
    assert_eq!(of(&elements).last_start(), Some(StreamOffset(101)));
    assert_eq!(of(&elements[..2]).last_start(), Some(StreamOffset(99)));
    assert_eq!(of(&elements[..1]).last_start(), Some(StreamOffset(96)));
}

/// The converse of [`checkpoints_prove_only_what_the_source_says`]: after a synchronisation everything is
/// known.
#[test]
fn checkpoints_after_a_synchronisation_are_proven_and_certain() {
    // Calls and returns, so that the return stack matters: blx r3 at the start; pop {r4, pc}, which returns.
    let program = program(&[0, 10, 0, 10, 0, 10]);
    let registers = Registers { etmcr: Some(0x400), etmidr: Some(0x4114_f250), ..Registers::default() };
    let etmv3 = SourceConfig::Etmv3(etmv3::Config::from_registers(registers, None).expect("sound registers"));
    let registers = Registers { etmcr: Some(0x2000_4400), etmidr: Some(0x411c_f312), ..Registers::default() };
    let pft = SourceConfig::Pft(pft::Config::from_registers(registers, None).expect("sound registers"));
    for (config, instruction) in [(etmv3, 0x84), (pft, 0x86)] {
        let synchronised = [start(&config, 0), vec![instruction]].concat();
        let bytes = synchronised.repeat(4);
        let cut = synchronised.len() - 1;
        let mut stream = FlowStream::new(&config);
        stream.push(&bytes[..cut], &program, &mut |_: Element| ());
        let real = parts(&mut stream, &bytes[cut..], &program, synchronised.len());
        let unknown = Checkpoint::in_the_middle(&config, StreamOffset(cut as u64)).expect("it synchronises");
        stream.go_on_from(&unknown, &program);
        let guessed = parts(&mut stream, &bytes[cut..], &program, synchronised.len());
        assert!(guessed.iter().skip(1).any(|(elements, _)| !elements.is_empty()));
        let [(_, here), .., (_, end)] = &real[..] else { panic!("expected some parts") };
        let [(_, guess), rest @ ..] = &guessed[..] else { panic!("expected some parts") };
        assert!(here.proves(guess) && !end.proves(guess) && !here.proves(&rest[0].1));
        assert!(rest.iter().all(|(_, next)| next.is_certain(here, guess)));
        let proven = rest.iter().map(|(_, next)| next.clone()).collect::<Vec<_>>();
        let continued = here.continued(guess, &proven);
        assert!(continued.proves(end) && end.proves(&continued));
        // Without parts the state does not change.
        assert!(here.continued(guess, &[]).proves(here));
    }
}

#[test]
fn synchronisation_is_sought_after_bytes_that_were_lost_or_cut() {
    use crate::flow::{Gap, GapReason};
    let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
    let source = [start(&config, 0), vec![0x84]].concat();
    let program = program(&[0; 12]);
    for (is_cut, lost) in [(false, true), (true, false)] {
        let mut stream = FlowStream::new(&config);
        let mut elements = Vec::new();
        let mut note = |element: Element| elements.push(element);
        stream.push(&source, &program, &mut note);
        if is_cut {
            stream.cut(&program, &mut note);
        } else {
            stream.lose_sync(&program, &mut note);
        }
        stream.push(&[0x84, 0x84], &program, &mut note);
        stream.finish(&program, &mut note);
        let gaps = elements.iter().filter_map(|element| match element {
            Element::Gap(Gap { reason, doubt, .. }) => Some((*reason, *doubt)),
            _ => None,
        });
        assert_eq!(gaps.collect::<Vec<_>>(), [(GapReason::TraceLost, lost)]);
        let blocks = elements.iter().filter(|element| matches!(element, Element::Block(_)));
        assert_eq!(blocks.count(), 1, "nothing after it is followed");
    }
    let mut stream = PacketStream::new(&config);
    let mut unsynchronised = 0;
    let mut note = |item: PacketItem<'_>, span: Span, _: &[u8]| {
        if matches!(item, PacketItem::Unsynchronised) {
            unsynchronised += span.bytes();
        }
    };
    stream.push(&source, &mut note);
    stream.lose_sync(&mut note);
    stream.push(&[0x84, 0x84], &mut note);
    stream.finish(&mut note);
    assert_eq!(unsynchronised, 2);
}

/// One configuration of each protocol that [`start`] can synchronise.
fn synchronising() -> [SourceConfig; 2] {
    let registers = Registers {
        etmcr: Some(0x4400),
        etmidr: Some(0x411c_f312),
        etmccer: Some(0x34c0_1ac2),
        etmtraceidr: None,
    };
    let etmv3 = etmv3::Config::for_core("cortex-m3").expect("a known core");
    let pft = pft::Config::from_registers(registers, None).expect("sound registers");
    [SourceConfig::Etmv3(etmv3), SourceConfig::Pft(pft)]
}

/// The losses of trace: whether each casts doubt, its first byte and its number of bytes.
fn losses(elements: &[Element]) -> Vec<(bool, u64, u64)> {
    use crate::flow::{Gap, GapReason};
    let loss = |element: &Element| match element {
        Element::Gap(Gap { reason: GapReason::TraceLost, doubt, span, .. }) => {
            Some((*doubt, span.start.0, span.bytes()))
        }
        _ => None,
    };
    elements.iter().filter_map(loss).collect()
}

#[test]
fn a_loss_inside_a_packet_is_one_gap() {
    let program = program(&[0; 12]);
    let mtb = SourceConfig::Mtb(mtb::Source::default());
    let jump = [0x1000_u32, 0x1002].map(u32::to_le_bytes).concat();
    let parts = |config: &SourceConfig| match config {
        // The first byte of a branch packet.
        SourceConfig::Etmv3(_) | SourceConfig::Pft(_) => ([start(config, 0), vec![0x84]].concat(), 0x81),
        SourceConfig::Etmv4(_) | SourceConfig::Mtb(_) => (jump.clone(), 0),
    };
    for config in synchronising().into_iter().chain([mtb]) {
        let (whole, begun) = parts(&config);
        for is_cut in [false, true] {
            let mut stream = FlowStream::new(&config);
            let mut elements = Vec::new();
            let mut note = |element: Element| elements.push(element);
            stream.push(&whole, &program, &mut note);
            stream.push(&[begun], &program, &mut note);
            if is_cut {
                stream.cut(&program, &mut note);
            } else {
                stream.lose_sync(&program, &mut note);
            }
            stream.finish(&program, &mut note);
            let lost = [(!is_cut, whole.len() as u64, 1)];
            assert_eq!(losses(&elements), lost, "{}, cut: {is_cut}", config.protocol());
        }
    }
}

#[test]
fn malformed_bytes_on_trial_belong_to_the_loss_before_them() {
    let program = program(&[0; 12]);
    for config in synchronising() {
        // Reserved headers between atoms; then, after a synchronisation, one more loss and a packet that is
        // cut off.
        let damage = [0x10, 0x84, 0x10, 0x84, 0x10];
        let bytes =
            [&start(&config, 0)[..], &[0x84], &damage, &start(&config, 0), &[0x84, 0x10, 0x81]].concat();
        let (elements, counts) = elements(&config, Engine::Graph, &bytes, &program, bytes.len());
        assert_eq!(counts.malformed, 5, "the last one is truncated");
        let at = start(&config, 0).len() as u64 + 1;
        let again = at + at + damage.len() as u64;
        assert_eq!(losses(&elements), [(true, at, 1), (true, again, 1)]);
    }
}

#[test]
fn a_changed_clock_is_reported_before_its_timestamp() {
    use crate::flow::{Event, EventKind};
    use crate::protocol::Field;
    let program = program(&[0; 12]);
    let registers = Registers {
        etmcr: Some(0x4400),
        etmidr: Some(0x410c_f250),
        etmccer: Some(0x34c0_1ac2),
        etmtraceidr: None,
    };
    let etmv3 = SourceConfig::Etmv3(etmv3::Config::from_registers(registers, None).expect("sound registers"));
    let [_, pft] = synchronising();
    for config in [etmv3, pft] {
        // Bit 2 of the header is R.
        let bytes = [&start(&config, 0)[..], &[0x42, 5, 0x46, 7]].concat();
        let mut changed = Vec::new();
        let mut stream = PacketStream::new(&config);
        let mut note = |item: PacketItem<'_>, _, _: &[u8]| {
            if let PacketItem::Packet(packet) = item
                && packet.name() == "timestamp"
            {
                let mut flags = Vec::new();
                packet.fields(&mut |name, field| {
                    flags.extend((name == "clock_changed").then_some(field == Field::Number(1)));
                });
                changed.push(flags);
            }
        };
        stream.push(&bytes, &mut note);
        assert_eq!(changed, [vec![], vec![true]], "{}", config.protocol());
        for engine in [Engine::Walk, Engine::Graph] {
            let (elements, _) = elements(&config, engine, &bytes, &program, bytes.len());
            let times = elements.into_iter().filter_map(|element| match element {
                Element::Event(Event {
                    kind: kind @ (EventKind::Timestamp(_) | EventKind::ClockChanged),
                    ..
                }) => Some(kind),
                _ => None,
            });
            let expected = [5, 7].map(EventKind::Timestamp);
            assert_eq!(times.collect::<Vec<_>>(), [expected[0], EventKind::ClockChanged, expected[1]]);
        }
    }
}

#[test]
fn a_configuration_has_its_protocol_and_its_trace_id() {
    let id = TraceId::new(0x10);
    let etmv3 = etmv3::Config::for_core("cortex-m3").expect("a known core").with_trace_id(id);
    let pft = pft::Config::for_core("cortex-a9").expect("a known core").with_trace_id(id);
    let configs = [SourceConfig::Etmv3(etmv3), SourceConfig::Pft(pft)];
    assert_eq!(configs.map(|config| (config.protocol(), config.trace_id())), [("etmv3", id), ("pft", id)]);
}

/// The files under `folder` with Rust code, by their path from `root`.
fn sources(root: &std::path::Path, folder: &std::path::Path) -> Vec<std::string::String> {
    let entries = std::fs::read_dir(folder).expect("the crate's sources");
    let paths = entries.map(|entry| entry.expect("the crate's sources").path());
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(sources(root, &path));
        } else {
            let path = path.strip_prefix(root).expect("a file of the folder");
            found.push(path.to_str().expect("names are ASCII").replace('\\', "/"));
        }
    }
    found
}

/// `docs/dev/adding-a-protocol.md` promises that a protocol is its folder and two lines.
#[test]
fn outside_the_protocols_folders_two_files_name_a_protocol() {
    use std::path::Path;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders = std::fs::read_dir(root.join("protocol")).expect("the protocols");
    let folders = folders.map(|entry| entry.expect("the protocols").path()).filter(|path| path.is_dir());
    let protocols: Vec<_> =
        folders.filter_map(|path| Some(path.file_name()?.to_str()?.to_ascii_lowercase())).collect();
    assert!(["etmv3", "itm", "mtb", "pft"].iter().all(|name| protocols.iter().any(|found| found == name)));
    for protocol in &protocols {
        let mut naming = Vec::new();
        for file in sources(&root, &root) {
            let in_a_protocol = file.starts_with("protocol/") && file.matches('/').count() > 1;
            if in_a_protocol || file.ends_with("tests.rs") || file.contains("/tests/") {
                continue;
            }
            let text = std::fs::read_to_string(root.join(&file)).expect("a source");
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let code = code.lines().map(|line| line.split("//").next().unwrap_or_default());
            let mut words =
                code.flat_map(|line| line.split(|character: char| !character.is_ascii_alphanumeric()));
            if words.any(|word| word.to_ascii_lowercase().starts_with(protocol.as_str())) {
                naming.push(file);
            }
        }
        naming.sort();
        assert_eq!(naming, ["protocol/mod.rs", "source/dispatch.rs"], "files that name {protocol}");
    }
}
