//! MTB packets through a small program: cases that the packets leave open and the program decides, and cases
//! in which the two disagree.

use proptest::prelude::*;
use tracewalk::directive::BeginReason;
use tracewalk::flow::{Contradiction, Element, Engine, EventKind, Flow, GapReason};
use tracewalk::ids::{Address, Isa, Location};
use tracewalk::program::Program;
use tracewalk::protocol::Lower;
use tracewalk::protocol::mtb::{Lowering, Packet, RULES};
use tracewalk::span::{Span, StreamOffset};

const MAIN: u32 = 0x100;
const SHARED: u32 = 0x140;
const PENDSV: u32 = 0x150;
const SYSTICK: u32 = 0x160;
const TO_THREAD: u32 = 0xffff_fff8;
const TO_HANDLER: u32 = 0xffff_fff0;

/// The code from `MAIN` on.
const CODE: [(u32, &[u16]); 4] = [
    (
        MAIN,
        &[
            0x2000, // 100 movs r0, #0
            0x2801, // 102 cmp r0, #1
            0xd102, // 104 bne 10c
            0xdf00, // 106 svc 0
            0xbf00, // 108 nop
            0xe7f9, // 10a b 100
            0xf000, 0xf804, // 10c bl 118
            0xbf00, // 110 nop
            0xbf00, // 112 nop
            0xe7fd, // 114 b 112
            0xbf00, // 116 nop
            0x4770, // 118 bx lr
        ],
    ),
    (SHARED, &[0xbf00, 0xe7fd]),  // nop; b 140
    (PENDSV, &[0xbf00, 0x4770]),  // nop; bx lr
    (SYSTICK, &[0xbf00, 0x4770]), // nop; bx lr
];

fn program(with_table: bool) -> Program {
    let mut program = Program::new();
    let mut vectors = [SHARED | 1; 16];
    vectors[0] = 0x2000_1000;
    (vectors[1], vectors[14], vectors[15]) = (MAIN | 1, PENDSV | 1, SYSTICK | 1);
    program.add(Address::new(0), &vectors.map(u32::to_le_bytes).concat()).expect("nothing else is there");
    for (address, code) in CODE {
        let code = code.iter().flat_map(|halfword| halfword.to_le_bytes()).collect::<Vec<_>>();
        program.add(Address::from(address), &code).expect("nothing else is there");
    }
    if with_table {
        program.set_vector_table(Address::new(0));
    }
    program
}

fn jump(source: u32, destination: u32) -> Packet {
    Packet::new(Address::from(source), Address::from(destination))
}

fn exception(source: u32, destination: u32) -> Packet {
    jump(source, destination).with_atomic(true)
}

fn follow(program: &Program, packets: &[Packet]) -> Vec<Element> {
    let (mut lowering, mut flow) = (Lowering::new(), Flow::with_engine(RULES, Engine::Walk));
    let mut elements = Vec::new();
    let mut note = |element| elements.push(element);
    for (index, packet) in packets.iter().enumerate() {
        let span = Span::new(StreamOffset(8 * index as u64), 8);
        lowering.lower(packet, span, &mut |directive, span| flow.follow(program, directive, span, &mut note));
    }
    lowering.finish(&mut |directive, span| flow.follow(program, directive, span, &mut note));
    flow.finish(program, &mut note);
    elements
}

/// Runs and events as in the runs format, and the reasons of gaps. Neighbouring runs are not joined.
fn lines(packets: &[Packet]) -> Vec<String> {
    lines_of(&follow(&program(true), packets))
}

fn lines_of(elements: &[Element]) -> Vec<String> {
    let line = |element: &Element| match element {
        Element::Block(block) => format!("R {:x} {:x}", block.start, block.end),
        Element::Gap(gap) => gap.reason.to_string(),
        Element::Event(event) => match event.kind {
            EventKind::TraceOn(reason) => format!("O {}", reason.name()),
            EventKind::ExceptionReturn => "T".into(),
            EventKind::Exception { exception, preferred_return, .. } => {
                let number = exception.map_or("-".into(), |exception| exception.number().to_string());
                let returns = preferred_return.map_or("-".into(), |at| format!("{at:x}"));
                format!("X {number} {returns}")
            }
            other => panic!("found {other:?}, which no MTB tells"),
        },
        Element::Proof(_) => unreachable!("left out"),
    };
    elements.iter().filter(|element| !matches!(element, Element::Proof(_))).map(line).collect()
}

/// The lines after the first packet, a branch to `MAIN`.
fn lines_from_main(packets: &[Packet]) -> Vec<String> {
    let packets = [&[jump(0x10a, MAIN)], packets].concat();
    let lines = lines(&packets);
    assert_eq!(lines[..2], ["O synchronised", "R 10a 10c"]);
    lines[2..].to_vec()
}

#[test]
fn a_conditional_branch_inside_a_run_was_not_taken() {
    let lines = lines_from_main(&[jump(0x10a, MAIN), jump(0x104, 0x10c)]);
    assert_eq!(lines, ["R 100 106", "R 106 10c", "R 100 106"]);
}

#[test]
fn a_call_starts_at_the_first_half_of_its_instruction() {
    let lines =
        lines_from_main(&[jump(0x104, 0x10c), jump(0x10c, 0x118), jump(0x118, 0x110), jump(0x114, 0x112)]);
    assert_eq!(lines, ["R 100 106", "R 10c 110", "R 118 11a", "R 110 116"]);
}

#[test]
fn a_supervisor_call_was_executed_and_a_faulting_instruction_was_not() {
    assert_eq!(lines_from_main(&[exception(0x108, SHARED)]), ["R 100 106", "R 106 108", "X - 108"]);
    assert_eq!(lines_from_main(&[exception(0x102, SHARED)]), ["R 100 102", "X - 102"]);
    assert_eq!(lines_from_main(&[exception(MAIN, SHARED)]), ["X - 100"]);
}

#[test]
fn the_table_of_vectors_names_exceptions_also_when_they_are_chained() {
    let lines = lines_from_main(&[
        exception(0x102, SYSTICK),
        jump(0x162, TO_THREAD),
        exception(TO_THREAD, PENDSV),
        jump(0x152, TO_THREAD),
        exception(TO_THREAD, SHARED),
        jump(0x142, TO_THREAD),
        exception(TO_THREAD, 0x102),
        jump(0x104, 0x10c),
    ]);
    let expected = [
        "R 100 102",
        "X 15 102",
        "R 160 164",
        "T",
        "X 14 -",
        "R 150 154",
        "T",
        "X - -",
        "R 140 144",
        // `b 140` cannot return from anything.
        "T",
        "trace and image disagree: found 0x00000102 (T32) as the target of the branch at 0x00000142 (T32), \
         expected 0x00000140 (T32)",
        "R 102 106",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_handler_that_a_more_urgent_one_kept_from_beginning_is_returned_to() {
    let lines = lines_from_main(&[
        exception(0x102, PENDSV),
        exception(PENDSV, SYSTICK),
        jump(0x162, TO_HANDLER),
        exception(TO_HANDLER, PENDSV),
        jump(0x152, TO_THREAD),
        exception(TO_THREAD, 0x102),
    ]);
    assert_eq!(lines, ["R 100 102", "X 14 102", "X 15 150", "R 160 164", "T", "R 150 154", "T"]);
}

#[test]
fn code_that_was_interrupted_at_the_reset_handlers_start_is_returned_to() {
    let lines = lines_from_main(&[
        exception(MAIN, SYSTICK),
        jump(0x162, TO_THREAD),
        exception(TO_THREAD, MAIN),
        jump(0x104, 0x10c),
    ]);
    assert_eq!(lines, ["X 15 100", "R 160 164", "T", "R 100 106"]);
}

#[test]
fn where_no_handler_starts_a_debugger_wrote_the_program_counter() {
    let lines = lines_from_main(&[exception(0x102, 0x112), jump(0x114, 0x112)]);
    assert_eq!(lines, ["R 100 102", "O debug_exit", "R 112 116"]);
    let elements = follow(&program(true), &[exception(0x102, 0x112)]);
    assert!(matches!(
        elements[1],
        Element::Event(event) if event.kind == EventKind::TraceOn(BeginReason::DebugExit)
    ));
}

#[test]
fn without_a_table_every_exception_is_one_and_none_is_chained() {
    let packets = [
        jump(0x10a, MAIN),
        exception(0x102, SYSTICK),
        jump(0x162, TO_THREAD),
        exception(TO_THREAD, PENDSV),
        jump(0x152, TO_THREAD),
    ];
    let lines = lines_of(&follow(&program(false), &packets));
    assert_eq!(lines[2..], ["R 100 102", "X - 102", "R 160 164", "T", "R 150 154", "T"]);
}

#[test]
fn a_run_that_meets_an_unconditional_branch_is_a_contradiction_and_goes_on_at_the_next_packet() {
    let lines = lines_from_main(&[jump(0x114, 0x112), jump(0x114, 0x112)]);
    let expected = [
        "R 100 106",
        "R 106 10a",
        "trace and image disagree: found sequential execution to 0x00000114, expected the branch at 0x0000010a (T32) \
         to be taken",
        "R 112 116",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_direct_branch_that_went_elsewhere_is_a_contradiction() {
    let lines = lines_from_main(&[jump(0x104, 0x112), jump(0x114, 0x112)]);
    let expected = [
        "R 100 106",
        "trace and image disagree: found 0x00000112 (T32) as the target of the branch at 0x00000104 (T32), expected \
         0x0000010c (T32)",
        "R 112 116",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_jump_by_an_instruction_that_cannot_is_a_contradiction() {
    let lines = lines_from_main(&[jump(0x102, 0x112), jump(0x114, 0x112)]);
    let expected = [
        "trace and image disagree: found a jump to 0x00000112 (T32) after 0x00000102 (T32), expected a branch there",
        "R 112 116",
    ];
    assert_eq!((&lines[0], &lines[1..]), (&"R 100 104".to_string(), &expected.map(String::from)[..]));
}

#[test]
fn a_packet_that_goes_on_after_its_source_is_no_break() {
    // Cortex-M33 records an ISB like this (as listings from a DA14695 show), whatever the instruction is here.
    assert_eq!(lines_from_main(&[jump(0x102, 0x104), jump(0x104, 0x10c)]), ["R 100 106"]);
}

#[test]
fn a_jump_to_nowhere_and_its_fault_leave_no_gap() {
    let lines = lines_from_main(&[
        jump(0x104, 0x10c),
        jump(0x10c, 0x118),
        jump(0x118, 0xbf00_de4c),
        exception(0xbf00_de4c, SHARED),
    ]);
    assert_eq!(lines, ["R 100 106", "R 10c 110", "R 118 11a", "X - bf00de4c"]);
}

#[test]
fn a_run_must_end_where_an_instruction_starts_and_not_before_it_started() {
    let found = |source| {
        let elements = follow(&program(true), &[jump(0x104, 0x10c), jump(source, 0x118), jump(0x118, 0x110)]);
        assert_eq!(lines_of(&elements).last().map(String::as_str), Some("R 118 11a"));
        elements.into_iter().find_map(|element| match element {
            Element::Gap(gap) => Some((gap.reason, gap.span.start.0)),
            _ => None,
        })
    };
    let from = Location::new(Address::new(0x10c), Isa::T32);
    // Before the start, and inside the four bytes of the call.
    let misses = Contradiction::RunMissesEnd { from, until: Address::new(0x104) };
    assert_eq!(found(0x104), Some((GapReason::Contradiction(misses), 8)));
    let passes = Contradiction::RunPassesBranch { at: from, until: Address::new(0x10e) };
    assert_eq!(found(0x10e), Some((GapReason::Contradiction(passes), 8)));
}

#[test]
fn code_that_no_image_holds_is_named_and_the_next_packet_goes_on() {
    let packets = [jump(0x118, 0x1fff_0100), jump(0x1fff_0104, 0x110), jump(0x114, 0x112)];
    assert_eq!(
        lines(&packets),
        ["O synchronised", "R 118 11a", "no image holds 0x1fff0100 (T32)", "R 110 116"]
    );
}

proptest! {
    #[test]
    fn any_packets_are_followed_to_their_end(
        words in proptest::collection::vec(
            (prop_oneof![any::<u32>(), 0xf0_u32..0x170], prop_oneof![any::<u32>(), 0xf0_u32..0x170]),
            0..60,
        ),
    ) {
        let packets = words.iter().map(|&(first, second)| Packet::from_words(first, second)).collect::<Vec<_>>();
        let elements = follow(&program(true), &packets);
        for element in &elements {
            if let Element::Block(block) = element {
                prop_assert!(block.start < block.end && block.instructions > 0);
            }
        }
        prop_assert!(elements.len() <= 200 * packets.len());
    }
}
