//! The fast path gives the same elements as the walk.

use std::vec::Vec;

use proptest::prelude::*;

use super::follow::MOST_OTHER_GRAPHS;
use super::*;
use crate::directive::{
    BeginReason, Directive, Granularity, Handler, PreferredReturn, Rules, RunEnd, Transfer, TransferValue,
};
use crate::ids::{Address, ContextId, Exception, Isa, Location, Privilege, SecurityState, Vmid};
use crate::program::{Program, Scope};
use crate::span::{Span, StreamOffset};

/// The address of the random code.
const BASE: u32 = 0x1000;

/// Random code in which branches, returns, barriers and IT are more frequent than by chance.
fn any_code() -> impl Strategy<Value = Vec<u8>> {
    let branchy = prop_oneof![
        0xd000_u16..0xd010, // b<c>
        0xe000_u16..0xe008, // b
        0xe7f0_u16..0xe800, // b backwards
        Just(0x4770),       // bx lr
        Just(0xbd10),       // pop {r4, pc}
        Just(0xbf08),       // it eq
        Just(0xbf00),       // nop
        0xb100_u16..0xb140, // cbz
        Just(0x4798),       // blx r3
        Just(0x6800),       // ldr
    ];
    let wide = prop_oneof![
        (0xf000_u16..0xf002, 0xf800_u16..0xf810), // bl
        (0xf000_u16..0xf002, prop_oneof![Just(0xe802_u16), Just(0xe806)]), // blx
        Just((0xf3bf_u16, 0x8f6f_u16)),           // isb
        Just((0xf3de_u16, 0x8f04_u16)),           // subs pc, lr, #4
        Just((0xf1a0_u16, 0x0001_u16)),
    ];
    let word = prop_oneof![
        0xea00_0000_u32..0xea00_0008, // b
        0x0a00_0000_u32..0x0a00_0008, // beq
        Just(0xe12f_ff1e),            // bx lr
        Just(0xe25e_f004),            // subs pc, lr, #4
        Just(0xe1a0_0000),            // nop
        Just(0xeb00_0002),            // bl
        Just(0xfa00_0003),            // blx
    ];
    let piece = prop_oneof![
        4 => branchy.prop_map(|halfword| halfword.to_le_bytes().to_vec()),
        3 => wide.prop_map(|(first, second)| [first.to_le_bytes(), second.to_le_bytes()].concat()),
        3 => word.prop_map(|word| word.to_le_bytes().to_vec()),
        1 => any::<[u8; 2]>().prop_map(|bytes| bytes.to_vec()),
    ];
    proptest::collection::vec(piece, 1..80).prop_map(|pieces| pieces.concat())
}

fn any_location() -> impl Strategy<Value = Location> {
    let isa = prop_oneof![4 => Just(Isa::T32), 3 => Just(Isa::A32), 1 => Just(Isa::T32EE)];
    (0_u32..200, isa)
        .prop_map(|(offset, isa)| Location::new(Address::from(BASE + offset).aligned_for(isa), isa))
}

fn any_handler() -> impl Strategy<Value = Handler> {
    prop_oneof![
        4 => any_location().prop_map(Handler::At),
        1 => Just(Handler::Pending),
        1 => Just(Handler::DebugState),
        1 => Just(Handler::Unknown),
    ]
}

fn any_run_end() -> impl Strategy<Value = RunEnd> {
    prop_oneof![3 => Just(RunEnd::Through), 1 => Just(RunEnd::BeforeWithoutWaypoints), 1 => Just(RunEnd::Jumps)]
}

fn any_directive(granularity: Granularity) -> BoxedStrategy<Directive> {
    let passing = match granularity {
        Granularity::Instructions => (0_u8..16, any::<bool>())
            .prop_map(|(executed, then_failed)| Directive::Instructions { executed, then_failed })
            .boxed(),
        _ => prop_oneof![
            3 => any::<bool>().prop_map(|executed| Directive::Waypoint { executed }),
            2 => any_location().prop_map(Directive::WaypointTo),
            2 => Just(Directive::WaypointPending),
            2 => (any_location(), any_run_end()).prop_map(|(at, end)| Directive::RunTo { address: at.address, end }),
        ]
        .boxed(),
    };
    let transfer =
        Transfer { address: Some(Address::new(4)), value: TransferValue::Value(1), big_endian: false };
    prop_oneof![
        12 => passing,
        5 => any_location().prop_map(Directive::Continue),
        2 => any_location().prop_map(|at| Directive::Begin { at: Some(at), why: BeginReason::Enabled }),
        2 => any_location().prop_map(Directive::Confirm),
        2 => (any_handler(), 0_u8..16).prop_map(|(handler, code)| Directive::Exception {
            exception: Some(Exception::Ar(code)),
            handler,
            preferred_return: if code == 9 { PreferredReturn::Last } else { PreferredReturn::Next },
        }),
        1 => Just(Directive::Timestamp(5)),
        1 => Just(Directive::ExceptionReturn),
        3 => prop_oneof![
            2 => (0_u32..4).prop_map(|number| Directive::ContextId(ContextId(number))),
            1 => (0_u32..3).prop_map(|number| Directive::Vmid(Vmid(number))),
        ],
        1 => Just(Directive::Data(transfer)),
        3 => prop_oneof![
            Just(Directive::Lost),
            Just(Directive::Synchronised),
            Just(Directive::CallsUnnoted),
        ],
    ]
    .boxed()
}

/// Code everywhere, and other code over it and after it in some contexts.
fn any_program() -> impl Strategy<Value = Program> {
    let scope = (proptest::option::of(0_u32..3), proptest::option::of(0_u32..2))
        .prop_map(|(context_id, vmid)| Scope { context_id: context_id.map(ContextId), vmid: vmid.map(Vmid) });
    let part = (scope, 1_u32..100, any_code());
    (any_code(), proptest::collection::vec(part, 0..5)).prop_map(|(code, parts)| {
        let mut program = Program::new();
        program.add(Address::from(BASE), &code).expect("one region");
        for (scope, halfwords, code) in parts {
            // Two parts of one scope may disagree: the first one stays.
            let _ = program.add_in(scope, Address::from(BASE + 2 * halfwords), &code);
        }
        program
    })
}

/// Random directives, of a kind that the rules' granularity allows.
fn any_case() -> impl Strategy<Value = (Rules, Program, Vec<Directive>)> {
    let granularity = prop_oneof![Just(Granularity::Instructions), Just(Granularity::Waypoints)];
    (granularity, any::<(bool, bool, bool)>(), proptest::bool::weighted(0.125), any_program()).prop_flat_map(
        |(
            granularity,
            (return_stack, barriers_are_waypoints, waypoints_fail_by_condition),
            halfwords_count,
            program,
        )| {
            let rules = Rules {
                granularity,
                return_stack,
                barriers_are_waypoints,
                waypoints_fail_by_condition,
                halfwords_count,
                ..Rules::default()
            };
            (Just(rules), Just(program), proptest::collection::vec(any_directive(granularity), 1..60))
        },
    )
}

fn elements(
    directives: &[Directive],
    mut follow: impl FnMut(Directive, Span, &mut Vec<Element>),
) -> Vec<Element> {
    let mut elements = Vec::new();
    for (index, directive) in directives.iter().enumerate() {
        follow(*directive, Span::new(StreamOffset(index as u64), 1), &mut elements);
    }
    elements
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_graph_gives_what_the_walk_gives((rules, program, directives) in any_case()) {
        let begin = Directive::Begin {
            at: Some(Location::new(Address::from(BASE), Isa::T32)),
            why: BeginReason::Enabled,
        };
        let directives: Vec<Directive> = std::iter::once(begin).chain(directives).collect();
        let [by_graph, by_walk] = [Engine::Graph, Engine::Walk].map(|engine| {
            let mut flow = Flow::with_engine(rules, engine);
            let mut elements = elements(&directives, |directive, span, into| {
                flow.follow(&program, directive, span, &mut |element| into.push(element));
            });
            flow.finish(&program, &mut |element| elements.push(element));
            elements
        });
        prop_assert_eq!(by_graph, by_walk);
    }
}

#[test]
fn code_is_looked_up_in_the_context_that_the_trace_names() {
    let mut program = Program::new();
    // All code of one process: b 0x1000. Of the other: nop; b 0x1000.
    program.add_in(Scope::context(ContextId(1)), Address::from(BASE), &[0xfe, 0xe7]).expect("one region");
    program
        .add_in(Scope::context(ContextId(2)), Address::from(BASE), &[0x00, 0xbf, 0xfd, 0xe7])
        .expect("one region");
    let begin = Directive::Begin {
        at: Some(Location::new(Address::from(BASE), Isa::T32)),
        why: BeginReason::Enabled,
    };
    let two = Directive::Instructions { executed: 2, then_failed: false };
    let context = |number| Directive::ContextId(ContextId(number));
    let directives = [context(1), begin, two, context(2), two, two, context(1), two, context(3), two];
    let mut flow = Flow::new(Rules::default());
    let mut ends = Vec::new();
    for directive in directives {
        flow.follow(&program, directive, Span::default(), &mut |element| match element {
            Element::Block(block) => ends.push(block.end.get() - u64::from(BASE)),
            Element::Gap(gap) => ends.push(if gap.reason.name() == "no_code" { 99 } else { 100 }),
            Element::Event(_) | Element::Proof(_) => {}
        });
    }
    assert_eq!(ends, [2, 2, 4, 4, 2, 2, 99]);
    assert!(!flow.other_graphs.is_empty());
}

#[test]
fn what_changes_of_a_context_leaves_the_rest_of_it() {
    let (hypervisor, non_secure) = (Privilege::HYPERVISOR, Privilege::of(SecurityState::NonSecure));
    let directives = [
        Directive::ContextId(ContextId(7)),
        Directive::Vmid(Vmid(3)),
        Directive::Privilege(hypervisor),
        Directive::ContextId(ContextId(8)),
        Directive::Privilege(non_secure),
        Directive::Vmid(Vmid(4)),
    ];
    let mut flow = Flow::new(Rules::default());
    let mut reported = Vec::new();
    for directive in directives {
        flow.follow(&Program::new(), directive, Span::default(), &mut |element| {
            if let Element::Event(Event {
                kind: EventKind::Context { context_id, vmid, privilege }, ..
            }) = element
            {
                reported.push((context_id.map(|id| id.0), vmid.map(|id| id.0), privilege));
            }
        });
    }
    let expected = [
        (Some(7), None, Privilege::default()),
        (Some(7), Some(3), Privilege::default()),
        (Some(7), Some(3), hypervisor),
        (Some(8), Some(3), hypervisor),
        (Some(8), Some(3), non_secure),
        (Some(8), Some(4), non_secure),
    ];
    assert_eq!(reported, expected);
}

#[test]
fn more_contexts_than_graphs_are_kept_are_followed_all_the_same() {
    let mut program = Program::new();
    for number in 0..20 {
        let code = [0x00, 0xbf].repeat(number as usize).into_iter().chain([0xfe, 0xe7]).collect::<Vec<_>>();
        program.add_in(Scope::context(ContextId(number)), Address::from(BASE), &code).expect("one region");
    }
    let mut flow = Flow::new(Rules { granularity: Granularity::Waypoints, ..Rules::default() });
    for number in (0..20).chain(0..20) {
        let mut instructions = 0;
        let begin = Directive::Begin {
            at: Some(Location::new(Address::from(BASE), Isa::T32)),
            why: BeginReason::Enabled,
        };
        let directives =
            [Directive::ContextId(ContextId(number)), begin, Directive::Waypoint { executed: true }];
        for directive in directives {
            flow.follow(&program, directive, Span::default(), &mut |element| {
                if let Element::Block(block) = element {
                    instructions += block.instructions;
                }
            });
        }
        assert_eq!(instructions, number + 1);
    }
    assert_eq!(flow.other_graphs.len(), MOST_OTHER_GRAPHS);
}
