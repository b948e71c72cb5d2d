//! Packets → directives.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::any_packet;
use crate::directive::BeginReason::{Enabled, Synchronised};
use crate::directive::Directive::{self, Begin, Continue, Exception, ExceptionReturn, Lost, Resume, RunTo};
use crate::directive::{BeginReason, Handler, PreferredReturn, RunEnd};
use crate::ids::{Address, Isa, Location};
use crate::protocol::Lower;
use crate::protocol::mtb::{Lowering, Packet};
use crate::span::{Span, StreamOffset};

const TO_THREAD: u32 = 0xffff_fff8;
const TO_HANDLER: u32 = 0xffff_fff0;
const TO_SECURE: u32 = 0xfeff_fffe;

fn jump(source: u32, destination: u32) -> Packet {
    Packet::new(Address::from(source), Address::from(destination))
}

fn exception(source: u32, destination: u32) -> Packet {
    jump(source, destination).with_atomic(true)
}

fn span(index: usize) -> Span {
    Span::new(StreamOffset(8 * index as u64), 8)
}

/// The directives of a run of packets, with the numbers of the packets that they come from.
fn lowered_with(mut lowering: Lowering, packets: &[Packet]) -> Vec<(usize, Directive)> {
    let mut directives = Vec::new();
    let mut note = |directive, at: Span| directives.push(((at.start.0 / 8) as usize, directive));
    for (index, packet) in packets.iter().enumerate() {
        lowering.lower(packet, span(index), &mut note);
    }
    lowering.finish(&mut note);
    directives.retain(|(_, directive)| *directive != Directive::Synchronised);
    directives
}

fn lowered(packets: &[Packet]) -> Vec<Directive> {
    lowered_with(Lowering::new(), packets).into_iter().map(|(_, directive)| directive).collect()
}

fn at(address: u32) -> Location {
    Location::new(Address::from(address), Isa::T32)
}

fn begin(address: u32, why: BeginReason) -> Directive {
    Begin { at: Some(at(address)), why }
}

fn jumps(address: u32) -> Directive {
    RunTo { address: Address::from(address), end: RunEnd::Jumps }
}

fn before(address: u32) -> Directive {
    RunTo { address: Address::from(address), end: RunEnd::Before }
}

fn taken(source: u32, handler: u32) -> Directive {
    let preferred_return = PreferredReturn::At(Address::from(source));
    Exception { exception: None, handler: Handler::At(at(handler)), preferred_return }
}

#[test]
fn of_the_first_packet_only_the_branch_itself_is_known_to_have_run() {
    assert_eq!(
        lowered(&[jump(0x100, 0x200), jump(0x204, 0x300)]),
        [begin(0x100, Synchronised), jumps(0x100), Continue(at(0x200)), jumps(0x204), Continue(at(0x300))]
    );
}

#[test]
fn each_s_bit_starts_a_run_of_its_own() {
    let packets =
        [jump(0x100, 0x200).with_start(true), jump(0x500, 0x600).with_start(true), jump(0x600, 0x100)];
    assert_eq!(
        lowered(&packets),
        [
            begin(0x100, Enabled),
            jumps(0x100),
            Continue(at(0x200)),
            begin(0x500, Enabled),
            jumps(0x500),
            Continue(at(0x600)),
            jumps(0x600),
            Continue(at(0x100)),
        ]
    );
}

#[test]
fn a_first_packet_that_is_an_exception_says_nothing_of_what_ran_before() {
    assert_eq!(
        lowered(&[exception(0x102, 0x200).with_start(true), jump(0x204, 0x300)]),
        [begin(0x102, Enabled), taken(0x102, 0x200), jumps(0x204), Continue(at(0x300))]
    );
}

#[test]
fn an_exception_comes_before_its_source_and_a_branch_is_its_source() {
    assert_eq!(
        lowered(&[jump(0x100, 0x200), exception(0x208, 0x400), jump(0x406, 0x500)])[2..],
        [Continue(at(0x200)), before(0x208), taken(0x208, 0x400), jumps(0x406), Continue(at(0x500))]
    );
}

#[test]
fn a_return_from_an_exception_is_two_packets_without_code_between() {
    let packets =
        [jump(0x100, 0x200), jump(0x210, TO_THREAD), exception(TO_THREAD, 0x10c), jump(0x110, 0x300)];
    assert_eq!(
        lowered(&packets)[3..],
        [jumps(0x210), ExceptionReturn, Resume(at(0x10c)), jumps(0x110), Continue(at(0x300))][..]
    );
}

#[test]
fn every_architectures_exc_return_is_one() {
    for value in [0xffff_fff0, 0xffff_fff8, 0xffff_fffc, 0xffff_ffe0, 0xffff_ffe8, 0xffff_ffec, 0xffff_ffbc] {
        let directives = lowered(&[jump(0x210, value), exception(value, 0x10c)]);
        assert_eq!(
            directives,
            [begin(0x210, Synchronised), jumps(0x210), ExceptionReturn, Resume(at(0x10c))]
        );
    }
}

#[test]
fn a_return_to_secure_code_is_no_return_from_an_exception() {
    for second in [jump(TO_SECURE, 0x1000_0000), exception(TO_SECURE, 0x1000_0000)] {
        assert_eq!(
            lowered(&[jump(0x210, TO_SECURE), second, jump(0x1000_0004, 0x300)]),
            [
                begin(0x210, Synchronised),
                jumps(0x210),
                Continue(at(0x1000_0000)),
                jumps(0x1000_0004),
                Continue(at(0x300)),
            ]
        );
    }
}

#[test]
fn a_buffer_may_start_with_the_second_half_of_a_return() {
    assert_eq!(
        lowered(&[exception(TO_THREAD, 0x10c), jump(0x110, 0x300)]),
        [
            Begin { at: None, why: Synchronised },
            ExceptionReturn,
            Resume(at(0x10c)),
            jumps(0x110),
            Continue(at(0x300)),
        ]
    );
}

#[test]
fn an_exception_that_is_overtaken_before_its_handler_begins_was_not_taken() {
    let packets = [jump(0x100, 0x200), exception(0x208, 0x400), exception(0x208, 0x500), jump(0x504, 0x600)];
    assert_eq!(
        lowered_with(Lowering::new(), &packets)[3..],
        [(1, before(0x208)), (2, taken(0x208, 0x500)), (3, jumps(0x504)), (3, Continue(at(0x600)))]
    );
}

#[test]
fn a_tail_chained_exception_can_be_overtaken_too() {
    let packets = [
        jump(0x210, TO_THREAD),
        exception(TO_THREAD, 0x400),
        exception(TO_THREAD, 0x500),
        jump(0x504, 0x600),
    ];
    assert_eq!(
        lowered(&packets)[2..],
        [ExceptionReturn, Resume(at(0x500)), jumps(0x504), Continue(at(0x600))]
    );
}

#[test]
fn a_return_to_a_handler_that_was_interrupted_before_its_first_instruction_is_no_tail_chaining() {
    let packets = [
        jump(0x100, 0x200),
        exception(0x208, 0x400),
        exception(0x400, 0x500),
        jump(0x504, TO_HANDLER),
        exception(TO_HANDLER, 0x400),
        jump(0x404, TO_THREAD),
        exception(TO_THREAD, 0x400),
    ];
    assert_eq!(
        lowered(&packets)[3..],
        [
            before(0x208),
            taken(0x208, 0x400),
            before(0x400),
            taken(0x400, 0x500),
            jumps(0x504),
            ExceptionReturn,
            Continue(at(0x400)),
            jumps(0x404),
            ExceptionReturn,
            // This handler is not pending any more: it runs again.
            Resume(at(0x400)),
        ][..]
    );
}

/// A handler branches to another one, which several vectors name, and is interrupted just there; then
/// `returns` follow.
fn interrupted_at_a_shared_handler(returns: &[Packet]) -> Vec<Directive> {
    let packets = [
        jump(0xf0, TO_THREAD),
        exception(TO_THREAD, 0x200),
        exception(0x208, 0x300),
        jump(0x302, 0x400),
        exception(0x400, 0x500),
        jump(0x504, TO_HANDLER),
        exception(TO_HANDLER, 0x400),
    ];
    lowered(&[&packets, returns].concat()).split_off(11)
}

#[test]
fn a_handler_that_returns_to_the_thread_was_what_a_nested_exception_had_interrupted() {
    assert_eq!(
        interrupted_at_a_shared_handler(&[jump(0x404, TO_THREAD), exception(TO_THREAD, 0x208)]),
        [ExceptionReturn, Continue(at(0x400)), jumps(0x404), ExceptionReturn, Continue(at(0x208))]
    );
}

#[test]
fn a_handler_that_returns_to_a_handler_was_chained_on_top_of_it() {
    let returns = [
        jump(0x404, TO_HANDLER),
        exception(TO_HANDLER, 0x400),
        jump(0x404, TO_THREAD),
        exception(TO_THREAD, 0x208),
    ];
    assert_eq!(
        interrupted_at_a_shared_handler(&returns),
        [
            ExceptionReturn,
            Resume(at(0x400)),
            jumps(0x404),
            ExceptionReturn,
            Continue(at(0x400)),
            jumps(0x404),
            ExceptionReturn,
            Continue(at(0x208)),
        ]
    );
}

#[test]
fn a_handler_that_was_chained_before_its_first_instruction_is_not_the_one_that_waits() {
    // The handler at 0x400 was entered, preempted at once, and runs for another exception before it runs for its own.
    let packets = [
        jump(0xf0, TO_THREAD),
        exception(TO_THREAD, 0x200),
        exception(0x208, 0x400),
        exception(0x400, 0x500),
        jump(0x504, TO_HANDLER),
        exception(TO_HANDLER, 0x400),
        jump(0x404, TO_HANDLER),
        exception(TO_HANDLER, 0x400),
        jump(0x404, TO_THREAD),
        exception(TO_THREAD, 0x208),
    ];
    assert_eq!(
        lowered(&packets)[9..],
        [
            ExceptionReturn,
            Resume(at(0x400)),
            jumps(0x404),
            ExceptionReturn,
            Continue(at(0x400)),
            jumps(0x404),
            ExceptionReturn,
            Continue(at(0x208)),
        ]
    );
}

#[test]
fn of_a_thread_that_was_interrupted_at_a_handler_the_next_exception_says_which_went_on() {
    let packets = |returned: u32| {
        [
            jump(0x100, 0x400),
            exception(0x400, 0x500),
            jump(0x504, TO_THREAD),
            exception(TO_THREAD, 0x400),
            exception(0x404, 0x500),
            jump(0x504, returned),
            exception(returned, 0x404),
        ]
    };
    // The exception after the return interrupted the thread that had called the handler, or a handler.
    assert_eq!(lowered(&packets(TO_THREAD))[6..8], [ExceptionReturn, Continue(at(0x400))]);
    assert_eq!(lowered(&packets(TO_HANDLER))[6..8], [ExceptionReturn, Resume(at(0x400))]);
}

#[test]
fn where_a_buffer_begins_in_a_handler_its_own_return_says_what_a_return_led_to() {
    let packets = |from_there| {
        let second_half = exception(from_there, 0x208);
        [jump(0x504, TO_HANDLER), exception(TO_HANDLER, 0x400), jump(0x404, from_there), second_half]
    };
    assert_eq!(lowered(&packets(TO_THREAD))[3], Continue(at(0x400)));
    assert_eq!(lowered(&packets(TO_HANDLER))[3], Resume(at(0x400)));
}

#[test]
fn an_exception_may_take_the_place_of_a_returns_second_half() {
    let packets = [jump(0x210, TO_THREAD), exception(0x10c, 0x400)];
    assert_eq!(lowered(&packets)[2..], [ExceptionReturn, taken(0x10c, 0x400)]);
}

#[test]
fn halves_of_a_return_that_do_not_belong_together_are_lost_trace() {
    for orphan in [jump(0x300, 0x400), exception(TO_HANDLER, 0x400), jump(TO_SECURE, 0x400)] {
        let directives = lowered(&[jump(0x210, TO_THREAD), orphan]);
        assert_eq!(directives[3], Lost, "{orphan:?}");
        assert!(matches!(directives[4], Begin { why: Synchronised, .. }), "{orphan:?}");
    }
    assert_eq!(lowered(&[jump(0x100, 0x200), exception(TO_THREAD, 0x300)])[3], Lost);
    // After an exception, the second half of a return without the first.
    assert_eq!(lowered(&[exception(0x100, 0x200), exception(TO_THREAD, 0x300)])[2], Lost);
    assert_eq!(lowered(&[jump(0x210, TO_THREAD), exception(TO_THREAD, TO_THREAD)])[3], Lost);
    assert_eq!(lowered(&[jump(0x100, 0x200), exception(0x204, TO_THREAD)])[4], Lost);
}

#[test]
fn nothing_is_known_after_lost_trace() {
    let mut lowering = Lowering::new();
    let mut directives = Vec::new();
    let mut note = |directive, _: Span| directives.push(directive);
    lowering.lower(&exception(0x100, 0x200), span(0), &mut note);
    lowering.lost(span(1), crate::protocol::Loss::Lost, &mut note);
    lowering.lower(&jump(0x204, 0x300), span(2), &mut note);
    assert_eq!(
        directives[1..],
        [taken(0x100, 0x200), Lost, begin(0x204, Synchronised), jumps(0x204), Continue(at(0x300))]
    );
}

#[test]
fn a_known_halt_ends_the_run_after_the_last_packet() {
    let halted = || Lowering::new().halted_at(Some(Address::new(0x204)));
    assert_eq!(lowered_with(halted(), &[jump(0x100, 0x200)]).pop(), Some((0, before(0x204))));
    assert_eq!(lowered_with(halted(), &[exception(0x100, 0x200)]).pop(), Some((0, before(0x204))));
    assert_eq!(lowered_with(halted(), &[jump(0x100, TO_THREAD)]).pop(), Some((0, ExceptionReturn)));
    assert_eq!(lowered_with(halted(), &[]), []);
}

proptest! {
    #[test]
    fn any_packets_give_at_most_five_directives_each(
        packets in proptest::collection::vec(any_packet(), 0..40),
    ) {
        let mut counts = vec![0; packets.len()];
        for (index, _) in lowered_with(Lowering::new().halted_at(Some(Address::new(0))), &packets) {
            counts[index] += 1;
        }
        prop_assert!(counts.iter().all(|&count| count <= 5));
    }

    #[test]
    fn returns_among_few_addresses_never_lose_their_place(
        packets in proptest::collection::vec(
            (0_u32..6, 0_u32..6, any::<bool>()).prop_map(|(from, to, atomic)| {
                let place = |index| if index == 0 { TO_THREAD } else { index * 0x100 };
                jump(place(from), place(to)).with_atomic(atomic)
            }),
            0..60,
        ),
    ) {
        // A run always follows a position.
        let mut known = false;
        for directive in lowered(&packets) {
            match directive {
                RunTo { .. } => prop_assert!(known),
                Begin { at, .. } => known = at.is_some(),
                Continue(_) | Resume(_) | Exception { .. } => known = true,
                ExceptionReturn | Lost => known = false,
                other => prop_assert!(false, "unexpected {:?}", other),
            }
        }
    }
}
