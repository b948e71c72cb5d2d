use std::vec::Vec;

use super::*;
use crate::directive::{
    BeginReason, Directive, Granularity, Handler, PreferredReturn, Rules, RunEnd, Transfer, TransferValue,
};
use crate::ids::{Address, Exception, Isa, Location};
use crate::program::Program;
use crate::span::Span;

fn t32(address: u32) -> Location {
    Location::new(Address::from(address), Isa::T32)
}

fn a32(address: u32) -> Location {
    Location::new(Address::from(address), Isa::A32)
}

/// Thumb code, halfword by halfword.
fn thumb(at: u32, halfwords: &[u16]) -> Program {
    let bytes: Vec<u8> = halfwords.iter().flat_map(|halfword| halfword.to_le_bytes()).collect();
    let mut program = Program::new();
    program.add(Address::from(at), &bytes).expect("one region");
    program
}

fn begin(at: Location) -> Directive {
    Directive::Begin { at: Some(at), why: BeginReason::Enabled }
}

fn executed(executed: u8) -> Directive {
    Directive::Instructions { executed, then_failed: false }
}

const FAILED: Directive = Directive::Instructions { executed: 0, then_failed: true };

/// The elements of the directives, by the walk.
fn follow(rules: Rules, program: &Program, directives: &[Directive]) -> Vec<Element> {
    follow_by(Engine::Walk, rules, program, directives)
}

/// The elements of the directives, by the graph.
fn follow_by_graph(rules: Rules, program: &Program, directives: &[Directive]) -> Vec<Element> {
    follow_by(Engine::Graph, rules, program, directives)
}

fn follow_by(engine: Engine, rules: Rules, program: &Program, directives: &[Directive]) -> Vec<Element> {
    let mut flow = Flow::with_engine(rules, engine);
    let mut elements = Vec::new();
    for (index, directive) in directives.iter().enumerate() {
        let span = Span::new(crate::span::StreamOffset(index as u64), 1);
        flow.follow(program, *directive, span, &mut |element| elements.push(element));
    }
    flow.finish(program, &mut |element| elements.push(element));
    elements
}

/// Start, end and instructions of each block, and the reasons of gaps.
fn outline(elements: &[Element]) -> (Vec<(u64, u64, u32)>, Vec<GapReason>) {
    let blocks = elements.iter().filter_map(|element| match element {
        Element::Block(block) => Some((block.start.get(), block.end.get(), block.instructions)),
        _ => None,
    });
    let gaps = elements.iter().filter_map(|element| match element {
        Element::Gap(gap) => Some(gap.reason),
        _ => None,
    });
    (blocks.collect(), gaps.collect())
}

fn contradictions(elements: &[Element]) -> Vec<Contradiction> {
    let reasons = outline(elements).1.into_iter();
    let contradiction = |reason| match reason {
        GapReason::Contradiction(contradiction) => Some(contradiction),
        _ => None,
    };
    reasons.filter_map(contradiction).collect()
}

const NOP: u16 = 0xbf00;
const BX_LR: u16 = 0x4770;
/// `b .+8`
const B_PLUS_8: u16 = 0xe002;
const ITT_NE: u16 = 0xbf1c;

#[test]
fn a_failed_condition_of_an_instruction_that_has_none_is_a_contradiction() {
    let program = thumb(0x100, &[0x2001, 0x2002, NOP]);
    let found = follow(Rules::default(), &program, &[begin(t32(0x100)), executed(1), FAILED, executed(1)]);
    assert_eq!(contradictions(&found), [Contradiction::UnconditionalFailed(t32(0x102))]);
    assert_eq!(outline(&found).0, [(0x100, 0x102, 1)], "what comes after it is not believed");
}

#[test]
fn an_it_block_makes_any_instruction_conditional_also_where_trace_begins_inside_it() {
    let program = thumb(0x100, &[ITT_NE, 0x2001, 0x2002, 0x2003]);
    let whole = [begin(t32(0x100)), executed(1), FAILED, FAILED, executed(1)];
    let found = follow(Rules::default(), &program, &whole);
    assert_eq!(contradictions(&found), []);
    assert_eq!(outline(&found).0, [(0x100, 0x104, 2), (0x104, 0x106, 1), (0x106, 0x108, 1)]);
    let found = follow(Rules::default(), &program, &[begin(t32(0x104)), FAILED]);
    assert_eq!(contradictions(&found), []);
}

#[test]
fn a_jump_after_an_instruction_that_is_no_branch_is_a_contradiction() {
    let program = thumb(0x100, &[NOP, NOP, NOP, NOP]);
    let found = follow(
        Rules::default(),
        &program,
        &[begin(t32(0x100)), executed(1), Directive::Continue(t32(0x106)), executed(1)],
    );
    assert_eq!(contradictions(&found), [Contradiction::NotABranch { at: t32(0x100), went_to: t32(0x106) }]);
    assert_eq!(outline(&found).0, [(0x100, 0x102, 1), (0x106, 0x108, 1)], "the trace's own address counts");
}

#[test]
fn a_broadcast_target_confirms_or_contradicts_the_one_in_the_image() {
    let program = thumb(0x100, &[B_PLUS_8, NOP, NOP, NOP, NOP, NOP]);
    let with_target = |target| {
        follow(Rules::default(), &program, &[begin(t32(0x100)), executed(1), Directive::Continue(target)])
    };
    assert_eq!(contradictions(&with_target(t32(0x108))), []);
    let wrong = Contradiction::WrongTarget { at: t32(0x100), expected: t32(0x108), found: t32(0x104) };
    assert_eq!(contradictions(&with_target(t32(0x104))), [wrong]);
}

#[test]
fn a_second_target_replaces_the_first_without_contradiction() {
    let program = thumb(0x100, &[BX_LR, NOP, NOP, NOP]);
    let found = follow(
        Rules::default(),
        &program,
        &[
            begin(t32(0x100)),
            executed(1),
            Directive::Continue(t32(0x102)),
            Directive::Continue(t32(0x104)),
            executed(1),
        ],
    );
    assert_eq!(outline(&found), (std::vec![(0x100, 0x102, 1), (0x104, 0x106, 1)], std::vec![]));
}

#[test]
fn periodic_synchronisation_checks_the_position_and_finds_a_lost_one() {
    let program = thumb(0x100, &[NOP, BX_LR, NOP, NOP]);
    let confirmed = [begin(t32(0x100)), executed(1), Directive::Confirm(t32(0x102)), executed(1)];
    let found = follow(Rules::default(), &program, &confirmed);
    assert_eq!(outline(&found), (std::vec![(0x100, 0x104, 2)], std::vec![]), "no discontinuity");

    let elsewhere = [begin(t32(0x100)), executed(1), Directive::Confirm(t32(0x106)), executed(1)];
    let found = follow(Rules::default(), &program, &elsewhere);
    let expected = Contradiction::WrongPosition { expected: t32(0x102), found: t32(0x106) };
    assert_eq!(contradictions(&found), [expected]);

    let lost = [begin(t32(0x100)), executed(3), Directive::Confirm(t32(0x106)), executed(1)];
    let found = follow(Rules::default(), &program, &lost);
    assert_eq!(outline(&found).1, [GapReason::AddressUnknown]);
    assert_eq!(outline(&found).0, [(0x100, 0x104, 2), (0x106, 0x108, 1)]);
}

#[test]
fn a_synchronisation_that_contradicts_sound_flow_proves_nothing() {
    let program = thumb(0x100, &[NOP; 8]);
    let proofs = |directives: &[Directive]| {
        let found = follow(Rules::default(), &program, directives);
        found.iter().filter(|element| matches!(element, Element::Proof(_))).count()
    };
    let confirmed = |at| [Directive::Confirm(t32(at)), Directive::Synchronised, executed(1)];
    let mut directives = std::vec![begin(t32(0x100)), Directive::Synchronised, executed(1)];
    directives.extend(confirmed(0x102));
    assert_eq!(proofs(&directives), 2, "both agree");
    directives.extend(confirmed(0x108));
    assert_eq!(proofs(&directives), 2, "either may be wrong");
    directives.extend(confirmed(0x10a));
    assert_eq!(proofs(&directives), 3, "the next one agrees");
    // If flow is already in doubt, a synchronisation ends the doubt.
    directives.extend([Directive::Lost, begin(t32(0x100)), executed(1)]);
    directives.extend(confirmed(0x106));
    assert_eq!(proofs(&directives), 4);
}

#[test]
fn code_that_no_image_holds_is_one_gap_until_the_trace_names_an_address() {
    let program = thumb(0x100, &[NOP, NOP]);
    let directives =
        [begin(t32(0x100)), executed(6), executed(5), Directive::Continue(t32(0x100)), executed(1)];
    let found = follow(Rules::default(), &program, &directives);
    assert_eq!(outline(&found).1, [GapReason::NoCode(t32(0x104))]);
    assert_eq!(outline(&found).0, [(0x100, 0x104, 2), (0x100, 0x102, 1)]);
}

#[test]
fn a_16_bit_instruction_that_ends_a_region_is_executed() {
    let program = thumb(0x100, &[NOP]);
    let found = follow(Rules::default(), &program, &[begin(t32(0x100)), executed(1)]);
    assert_eq!(outline(&found), (std::vec![(0x100, 0x102, 1)], std::vec![]));
    // The first halfword of a 32-bit instruction, and nothing after it.
    let program = thumb(0x100, &[0xf000]);
    let found = follow(Rules::default(), &program, &[begin(t32(0x100)), executed(1)]);
    let truncated = GapReason::Undecodable(t32(0x100), crate::isa::Unclassified::Truncated);
    assert_eq!(outline(&found), (std::vec![], std::vec![truncated]));
}

#[test]
fn a_direct_blx_changes_the_instruction_set_for_good() {
    // blx to 0x108 in ARM state; there: mov r0, r0 twice.
    let mut program = thumb(0x100, &[0xf000, 0xe802, NOP, NOP]);
    program.add(Address::new(0x108), &[0, 0, 0xa0, 0xe1, 0, 0, 0xa0, 0xe1]).expect("a region of its own");
    let found =
        follow(Rules::default(), &program, &[begin(t32(0x100)), executed(1), executed(1), executed(1)]);
    let isas: Vec<Isa> = found
        .iter()
        .filter_map(|element| match element {
            Element::Block(block) => Some(block.isa),
            _ => None,
        })
        .collect();
    assert_eq!(isas, [Isa::T32, Isa::A32]);
    assert_eq!(outline(&found), (std::vec![(0x100, 0x104, 1), (0x108, 0x110, 2)], std::vec![]));
}

#[test]
fn where_halfwords_count_a_bl_takes_two_atoms() {
    // bl .+8; the address after it: nop; target 0x108: nop.
    let program = thumb(0x100, &[0xf000, 0xf802, NOP, NOP, NOP]);
    let rules = Rules { halfwords_count: true, ..Rules::default() };
    let found = follow(rules, &program, &[begin(t32(0x100)), executed(3)]);
    assert_eq!(outline(&found).0, [(0x100, 0x104, 1), (0x108, 0x10a, 1)]);
    // Two calls, one after the other: bl .+4; bl .+4; nop.
    let twice = thumb(0x100, &[0xf000, 0xf800, 0xf000, 0xf800, NOP]);
    let found = follow(rules, &twice, &[begin(t32(0x100)), executed(3)]);
    assert_eq!(outline(&found).0, [(0x100, 0x104, 1)], "the third atom is half of the second");
    let interrupted = Directive::Exception {
        exception: Some(Exception::Ar(14)),
        handler: Handler::Unknown,
        preferred_return: PreferredReturn::Next,
    };
    let found = follow(rules, &program, &[begin(t32(0x100)), executed(1), interrupted]);
    assert_eq!(outline(&found).0, [], "half an instruction is none");
}

#[test]
fn exceptions_name_where_execution_resumes() {
    const UDF: u16 = 0xde01;
    let program = thumb(0x100, &[NOP, NOP, BX_LR, UDF, NOP]);
    let exception = |preferred_return| Directive::Exception {
        exception: Some(Exception::M(15)),
        handler: Handler::At(t32(0x104)),
        preferred_return,
    };
    let resumes_at = |before: &[Directive], preferred_return| {
        let directives: Vec<Directive> =
            before.iter().copied().chain([exception(preferred_return)]).collect();
        follow(Rules::default(), &program, &directives).into_iter().find_map(|element| match element {
            Element::Event(Event { kind: EventKind::Exception { preferred_return, .. }, .. }) => {
                Some(preferred_return)
            }
            _ => None,
        })
    };
    let two = [begin(t32(0x100)), executed(2)];
    assert_eq!(resumes_at(&two, PreferredReturn::Next), Some(Some(Address::new(0x104))));
    assert_eq!(resumes_at(&two, PreferredReturn::Last), Some(Some(Address::new(0x102))));
    assert_eq!(
        resumes_at(&two, PreferredReturn::AtFault),
        Some(Some(Address::new(0x104))),
        "a nop does not fault"
    );
    assert_eq!(resumes_at(&two, PreferredReturn::Unknown), Some(None));
    let undefined = [begin(t32(0x106)), executed(1)];
    assert_eq!(resumes_at(&undefined, PreferredReturn::AtFault), Some(Some(Address::new(0x106))));
    let after_indirect = [begin(t32(0x104)), executed(1)];
    assert_eq!(resumes_at(&after_indirect, PreferredReturn::Next), Some(None), "its target is unknown");
    assert_eq!(resumes_at(&after_indirect, PreferredReturn::Last), Some(None), "a branch is not undefined");
    let after_return = [begin(t32(0x104)), executed(1), Directive::Continue(t32(0x106))];
    let target = Some(Some(Address::new(0x106)));
    assert_eq!(
        resumes_at(&after_return, PreferredReturn::Last),
        target,
        "it cannot be what was executed last"
    );
}

#[test]
fn unseen_code_empties_the_return_stack() {
    // 0x100: bl 0x200, where no image holds code. The code there may return, and call a function that returns
    // to 0x104 again.
    let program = thumb(0x100, &[0xf000, 0xf87e, BX_LR]);
    let rules = Rules { return_stack: true, ..Rules::default() };
    let waypoint = Directive::Waypoint { executed: true };
    let found = follow(
        rules,
        &program,
        &[begin(t32(0x100)), waypoint, waypoint, Directive::WaypointTo(t32(0x104)), waypoint],
    );
    assert_eq!(outline(&found).1[0], GapReason::NoCode(t32(0x200)));
    assert_eq!(contradictions(&found), [Contradiction::ReturnStackEmpty(t32(0x104))]);
}

#[test]
fn either_atom_passes_a_barrier() {
    let program = thumb(0x100, &[0xf3bf, 0x8f6f, B_PLUS_8]); // isb
    let passed = |executed| {
        let waypoint = Directive::Waypoint { executed };
        outline(&follow(
            Rules::default(),
            &program,
            &[begin(t32(0x100)), waypoint, Directive::Confirm(t32(0x104))],
        ))
    };
    assert_eq!(passed(true), (std::vec![(0x100, 0x104, 1)], std::vec![]));
    assert_eq!(passed(false), passed(true));
}

#[test]
fn a_waypoint_that_is_no_branch_fails_by_its_condition_where_atoms_say_so() {
    const IT_EQ: u16 = 0xbf08;
    let rules = Rules {
        granularity: Granularity::Waypoints,
        waits_are_waypoints: true,
        waypoints_fail_by_condition: true,
        ..Rules::NONE
    };
    let waypoint = |executed| Directive::Waypoint { executed };
    // 0x100: it eq; isbeq; nop; wfi; b.
    let program = thumb(0x100, &[IT_EQ, 0xf3bf, 0x8f6f, NOP, 0xbf30, B_PLUS_8]);
    let directives = [begin(t32(0x100)), waypoint(false), waypoint(true), waypoint(true)];
    for found in [follow(rules, &program, &directives), follow_by_graph(rules, &program, &directives)] {
        let blocks = found.iter().filter_map(|element| match element {
            Element::Block(block) => Some((block.start.get(), block.end.get(), block.ending)),
            _ => None,
        });
        let [failed, waited, _] = blocks.collect::<Vec<_>>().try_into().expect("three blocks");
        assert_eq!(failed, (0x100, 0x106, Ending::ConditionFailed));
        assert!(matches!(
            waited,
            (0x106, 0x10a, Ending::Branch { kind: BranchKind::Barrier, taken: true, .. })
        ));
        assert_eq!(contradictions(&found), []);
    }
    // Without an IT instruction an ISB has no condition.
    let program = thumb(0x100, &[NOP, 0xf3bf, 0x8f6f, B_PLUS_8]);
    let directives = [begin(t32(0x100)), waypoint(false)];
    for found in [follow(rules, &program, &directives), follow_by_graph(rules, &program, &directives)] {
        assert_eq!(contradictions(&found), [Contradiction::UnconditionalFailed(t32(0x102))]);
        assert_eq!(outline(&found).0, [(0x100, 0x102, 1)]);
    }
}

#[test]
fn a_return_stack_predicts_returns_until_the_trace_synchronises() {
    // 0x100: bl 0x108; 0x104: nop; b .; 0x108: bx lr.
    let program = thumb(0x100, &[0xf000, 0xf802, NOP, 0xe7fe, BX_LR]);
    let rules = Rules { return_stack: true, ..Rules::default() };
    let waypoint = Directive::Waypoint { executed: true };
    let found = follow(rules, &program, &[begin(t32(0x100)), waypoint, waypoint, waypoint]);
    assert_eq!(
        outline(&found),
        (std::vec![(0x100, 0x104, 1), (0x108, 0x10a, 1), (0x104, 0x108, 2)], std::vec![])
    );

    let synchronised = [begin(t32(0x100)), waypoint, Directive::Confirm(t32(0x108)), waypoint];
    let found = follow(rules, &program, &synchronised);
    assert_eq!(contradictions(&found), [Contradiction::ReturnStackEmpty(t32(0x108))]);

    let packet_instead = [begin(t32(0x100)), waypoint, Directive::WaypointTo(t32(0x104)), waypoint];
    let found = follow(rules, &program, &packet_instead);
    assert_eq!(contradictions(&found), []);
}

#[test]
fn tracing_that_begins_anew_empties_the_return_stack() {
    let program = thumb(0x100, &[0xf000, 0xf802, NOP, 0xe7fe, BX_LR]);
    let rules = Rules { granularity: Granularity::Waypoints, return_stack: true, ..Rules::default() };
    let waypoint = Directive::Waypoint { executed: true };
    let anew = [begin(t32(0x100)), waypoint, begin(t32(0x108)), waypoint];
    for found in [follow(rules, &program, &anew), follow_by_graph(rules, &program, &anew)] {
        assert_eq!(contradictions(&found), [Contradiction::ReturnStackEmpty(t32(0x108))]);
    }
}

#[test]
fn a_call_that_failed_its_condition_is_not_on_the_return_stack() {
    // 0x200: bleq 0x210; bx lr.
    let mut program = Program::new();
    program.add(Address::new(0x200), &[0x02, 0, 0, 0x0b, 0x1e, 0xff, 0x2f, 0xe1]).expect("one region");
    let rules = Rules { granularity: Granularity::Waypoints, return_stack: true, ..Rules::default() };
    let directives =
        [begin(a32(0x200)), Directive::Waypoint { executed: false }, Directive::Waypoint { executed: true }];
    for found in [follow(rules, &program, &directives), follow_by_graph(rules, &program, &directives)] {
        assert_eq!(contradictions(&found), [Contradiction::ReturnStackEmpty(a32(0x204))]);
    }
}

#[test]
fn a_waypoint_update_that_passes_a_branch_proves_nothing() {
    let program = thumb(0x100, &[NOP, BX_LR, NOP, NOP]);
    let update = Directive::RunTo { address: Address::new(0x104), end: RunEnd::Through };
    for found in [
        follow(Rules::default(), &program, &[begin(t32(0x100)), update]),
        follow_by_graph(Rules::default(), &program, &[begin(t32(0x100)), update]),
    ] {
        let passed = Contradiction::RunPassesBranch { at: t32(0x102), until: Address::new(0x104) };
        assert_eq!(contradictions(&found), [passed]);
        assert_eq!(outline(&found).0, []);
    }
}

#[test]
fn code_without_any_branch_is_not_walked_for_ever() {
    let mut program = Program::new();
    program.add(Address::new(0), &std::vec![0; 1 << 20]).expect("one region");
    for isa in [Isa::A32, Isa::T32] {
        let at = Location::new(Address::new(0x40), isa);
        let found = follow(Rules::default(), &program, &[begin(at), Directive::Waypoint { executed: true }]);
        assert_eq!(contradictions(&found), [Contradiction::NoBranchInReach(at)]);
        assert_eq!(outline(&found).0, [], "what no branch follows was not executed");
        let run = Directive::RunTo { address: Address::new(0xff_0000), end: RunEnd::Before };
        let found = follow(Rules::default(), &program, &[begin(at), run]);
        assert_eq!(contradictions(&found).len(), 1);
    }
}

#[test]
fn a_run_that_passes_a_branch_or_misses_its_end_is_a_contradiction() {
    let program = thumb(0x100, &[NOP, B_PLUS_8, NOP, 0xf000, 0xf802, NOP]);
    let run = |from, address, end| {
        let directives = [begin(t32(from)), Directive::RunTo { address: Address::from(address), end }];
        contradictions(&follow(Rules::default(), &program, &directives))
    };
    let passes = Contradiction::RunPassesBranch { at: t32(0x102), until: Address::new(0x104) };
    assert_eq!(run(0x100, 0x104, RunEnd::Before), [passes]);
    let misses = |from| Contradiction::RunMissesEnd { from: t32(from), until: Address::new(0x102) };
    assert_eq!(run(0x104, 0x102, RunEnd::Before), [misses(0x104)]);
    assert_eq!(run(0x100, 0x102, RunEnd::Jumps), []);
    assert_eq!(run(0x104, 0x106, RunEnd::Before), []);
    let inside = Contradiction::RunPassesBranch { at: t32(0x106), until: Address::new(0x108) };
    assert_eq!(run(0x104, 0x108, RunEnd::Before), [inside], "0x108 is the second half of a BL");
}

#[test]
fn a_run_may_pass_a_branch_to_the_next_address() {
    // An MTB may write no packet for such a branch: the program counter changes as it would without the
    // branch.
    let branch_to_next = 0xe7ff;
    let program = thumb(0x100, &[NOP, branch_to_next, NOP, NOP]);
    let run = |end| {
        let directives = [begin(t32(0x100)), Directive::RunTo { address: Address::new(0x106), end }];
        outline(&follow(Rules::default(), &program, &directives))
    };
    let blocks = std::vec![(0x100, 0x104, 2), (0x104, 0x106, 1)];
    assert_eq!(run(RunEnd::Before), (blocks, std::vec![]));
    let passes = Contradiction::RunPassesBranch { at: t32(0x102), until: Address::new(0x106) };
    assert_eq!(run(RunEnd::Through).1, [GapReason::Contradiction(passes)], "PFT has an atom for it");
}

#[test]
fn only_m_profile_has_vectors_that_give_the_exception() {
    // A vector table at 0, whose word 2 is NMI's handler at 0x100; no handler starts at 0x102.
    let mut program = thumb(0x100, &[NOP, NOP, NOP, NOP]);
    let table = [0x2000_4000_u32, 0x107, 0x101].map(u32::to_le_bytes);
    program.add(Address::new(0), table.as_flattened()).expect("a region of its own");
    program.set_vector_table(Address::new(0));
    let kinds = |m_profile, handler| {
        let rules = Rules { m_profile, ..Rules::default() };
        let entry = Directive::Exception {
            exception: None,
            handler: Handler::At(t32(handler)),
            preferred_return: PreferredReturn::Next,
        };
        let found = follow(rules, &program, &[begin(t32(0x104)), entry]);
        let mut kinds = found.iter().filter_map(|element| match element {
            Element::Event(Event { kind, .. }) => Some(*kind),
            _ => None,
        });
        kinds.next_back().expect("an exception")
    };
    let entered = |exception, handler| EventKind::Exception {
        exception,
        handler: Some(t32(handler)),
        preferred_return: Some(Address::new(0x104)),
    };
    assert_eq!(kinds(true, 0x100), entered(Some(Exception::M(2)), 0x100));
    assert_eq!(kinds(true, 0x102), EventKind::TraceOn(BeginReason::DebugExit));
    assert_eq!(kinds(false, 0x100), entered(None, 0x100));
    assert_eq!(kinds(false, 0x102), entered(None, 0x102));
}

#[test]
fn a_return_into_the_interrupted_word_goes_where_the_exception_came_from() {
    // 0x100: nop; nop in Thumb. The handler at 0x200 in ARM state: subs pc, lr, #4.
    let mut program = thumb(0x100, &[NOP, NOP, NOP, NOP]);
    program.add(Address::new(0x200), &[0x04, 0xf0, 0x5e, 0xe2]).expect("a region of its own");
    let exception = Directive::Exception {
        exception: Some(Exception::Ar(14)),
        handler: Handler::At(a32(0x200)),
        preferred_return: PreferredReturn::Next,
    };
    let rounded = Directive::Continue(a32(0x100));
    let found = follow(
        Rules::default(),
        &program,
        &[begin(t32(0x100)), executed(1), exception, executed(1), rounded, exception],
    );
    let returns: Vec<_> = found
        .iter()
        .filter_map(|element| match element {
            Element::Event(Event { kind: EventKind::Exception { preferred_return, .. }, .. }) => {
                *preferred_return
            }
            _ => None,
        })
        .collect();
    assert_eq!(returns, [Address::new(0x102), Address::new(0x102)]);
}

#[test]
fn an_exception_that_was_returned_from_corrects_no_later_return() {
    // The handler at 0x200 in ARM state: subs pc, lr, #4. After it the graph follows only code that ends in a branch.
    let [no_blocks, blocks] = [NOP, BX_LR].map(|last| {
        let mut program = thumb(0x100, &[NOP, NOP, NOP, last]);
        program.add(Address::new(0x200), &[0x04, 0xf0, 0x5e, 0xe2]).expect("a region of its own");
        program
    });
    let exception = Directive::Exception {
        exception: Some(Exception::Ar(14)),
        handler: Handler::At(a32(0x200)),
        preferred_return: PreferredReturn::Next,
    };
    let by_instructions = [
        begin(t32(0x100)),
        executed(1),
        exception,
        executed(1),
        Directive::Continue(t32(0x102)),
        begin(a32(0x200)),
        executed(1),
        Directive::Continue(a32(0x100)),
        exception,
    ];
    let by_waypoints = [
        begin(t32(0x100)),
        Directive::RunTo { address: Address::new(0x100), end: RunEnd::Through },
        exception,
        Directive::WaypointTo(t32(0x102)),
        begin(a32(0x200)),
        Directive::WaypointTo(a32(0x100)),
        exception,
    ];
    let waypoints = Rules { granularity: Granularity::Waypoints, ..Rules::default() };
    for found in [
        follow(Rules::default(), &blocks, &by_instructions),
        follow_by_graph(Rules::default(), &blocks, &by_instructions),
        follow_by_graph(Rules::default(), &no_blocks, &by_instructions),
        follow(waypoints, &blocks, &by_waypoints),
        follow_by_graph(waypoints, &blocks, &by_waypoints),
        follow_by_graph(waypoints, &no_blocks, &by_waypoints),
    ] {
        let last = found.iter().rev().find_map(|element| match element {
            Element::Event(Event { kind: EventKind::Exception { preferred_return, .. }, .. }) => {
                *preferred_return
            }
            _ => None,
        });
        assert_eq!(last, Some(Address::new(0x100)));
    }
}

#[test]
fn a_return_to_an_undefined_instruction_goes_to_it_and_not_after_it() {
    // 0x100: nop; udf; udf in Thumb. The handler at 0x200 in ARM state: subs pc, lr, #4.
    const UDF: u16 = 0xde01;
    let mut program = thumb(0x100, &[NOP, UDF, UDF, NOP]);
    program.add(Address::new(0x200), &[0x04, 0xf0, 0x5e, 0xe2]).expect("a region of its own");
    let exception = |preferred_return| Directive::Exception {
        exception: Some(Exception::Ar(9)),
        handler: Handler::At(a32(0x200)),
        preferred_return,
    };
    for (undefined, rounded) in [(0x102, 0x100), (0x104, 0x104)] {
        let found = follow(
            Rules::default(),
            &program,
            &[
                begin(t32(undefined)),
                executed(1),
                exception(PreferredReturn::Last),
                executed(1),
                Directive::Continue(a32(rounded)),
                exception(PreferredReturn::Next),
            ],
        );
        let returns = found.iter().filter_map(|element| match element {
            Element::Event(Event { kind: EventKind::Exception { preferred_return, .. }, .. }) => {
                *preferred_return
            }
            _ => None,
        });
        assert_eq!(returns.collect::<Vec<_>>(), [Address::from(undefined); 2]);
    }
}

#[test]
fn a_return_from_an_exception_that_was_predicted_is_one() {
    // 0x100: bl 0x108. The handler at 0x200 in ARM state: subs pc, lr, #4, which returns to where the bl does.
    let mut program = thumb(0x100, &[0xf000, 0xf802, NOP, NOP, NOP, NOP, BX_LR]);
    program.add(Address::new(0x200), &[0x04, 0xf0, 0x5e, 0xe2]).expect("a region of its own");
    let exception = Directive::Exception {
        exception: Some(Exception::Ar(14)),
        handler: Handler::At(a32(0x200)),
        preferred_return: PreferredReturn::Next,
    };
    let waypoint = Directive::Waypoint { executed: true };
    let directives = [
        begin(t32(0x100)),
        waypoint,
        Directive::RunTo { address: Address::new(0x108), end: RunEnd::Through },
        exception,
        waypoint,
        begin(a32(0x200)),
        // No interrupted place is left, in this word or elsewhere.
        Directive::WaypointTo(a32(0x108)),
        exception,
    ];
    let rules = Rules { granularity: Granularity::Waypoints, return_stack: true, ..Rules::default() };
    for found in [follow(rules, &program, &directives), follow_by_graph(rules, &program, &directives)] {
        assert_eq!(contradictions(&found), []);
        let returns = found.iter().filter_map(|element| match element {
            Element::Event(Event { kind: EventKind::Exception { preferred_return, .. }, .. }) => {
                *preferred_return
            }
            _ => None,
        });
        assert_eq!(returns.collect::<Vec<_>>(), [Address::new(0x10a), Address::new(0x108)]);
    }
}

#[test]
fn a_return_to_elsewhere_goes_there() {
    // As when an operating system switches to another task. 0x100 in Thumb; the handler at 0x200: subs pc,
    // lr, #4.
    let mut program = thumb(0x100, &[NOP, NOP, NOP, BX_LR]);
    program.add(Address::new(0x200), &[0x04, 0xf0, 0x5e, 0xe2]).expect("a region of its own");
    let exception = Directive::Exception {
        exception: Some(Exception::Ar(14)),
        handler: Handler::At(a32(0x200)),
        preferred_return: PreferredReturn::Next,
    };
    for elsewhere in [t32(0x100), t32(0x104), a32(0x104)] {
        let resumed = Directive::Continue(elsewhere);
        let directives = [begin(t32(0x100)), executed(1), exception, executed(1), resumed, exception];
        for found in [
            follow(Rules::default(), &program, &directives),
            follow_by_graph(Rules::default(), &program, &directives),
        ] {
            let last = found.iter().rev().find_map(|element| match element {
                Element::Event(Event { kind: EventKind::Exception { preferred_return, .. }, .. }) => {
                    *preferred_return
                }
                _ => None,
            });
            assert_eq!(last, Some(elsewhere.address));
        }
    }
}

/// The elements of both engines, which have to be the same.
fn follow_both(rules: Rules, program: &Program, directives: &[Directive]) -> Vec<Element> {
    let found = follow(rules, program, directives);
    assert_eq!(follow_by_graph(rules, program, directives), found);
    found
}

const RETURN_STACK: Rules = Rules { granularity: Granularity::Waypoints, return_stack: true, ..Rules::NONE };

const EXECUTED: Directive = Directive::Waypoint { executed: true };

#[test]
fn loads_and_stores_of_a64_end_blocks_where_they_are_waypoints() {
    // ldp x29, x30, [sp], #16; str x0, [x1]; prfm pldl1keep, [x1]; swp x0, x1, [x2]; add x0, x1, x2; b .
    let words = [0xa8c1_7bfd_u32, 0xf900_0020, 0xf980_0020, 0xf820_8041, 0x8b02_0020, 0x1400_0000];
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut program = Program::new();
    program.add(Address::new(0x40_0000), &bytes).expect("one region");
    let ends = |loads_are_waypoints, stores_are_waypoints| {
        let rules = Rules {
            granularity: Granularity::Waypoints,
            loads_are_waypoints,
            stores_are_waypoints,
            ..Rules::NONE
        };
        let start = begin(Location::new(Address::new(0x40_0000), Isa::A64));
        let (blocks, gaps) = outline(&follow_both(rules, &program, &[start, EXECUTED, EXECUTED, EXECUTED]));
        assert_eq!(gaps, []);
        blocks.iter().map(|(_, end, _)| end - 0x40_0000).collect::<Vec<_>>()
    };
    assert_eq!(ends(false, false), [24, 24, 24]);
    assert_eq!(ends(true, false), [4, 16, 24]);
    assert_eq!(ends(false, true), [8, 16, 24]);
    assert_eq!(ends(true, true), [4, 8, 16]);
}

/// 0x100: bl 0x108; 0x104: nop; b .; 0x108: bx lr; 0x10a: b .
fn call_and_return() -> Program {
    thumb(0x100, &[0xf000, 0xf802, NOP, 0xe7fe, BX_LR, 0xe7fe])
}

#[test]
fn a_pending_target_is_popped_when_the_next_waypoint_comes_without_an_address() {
    let directives =
        [begin(t32(0x100)), EXECUTED, Directive::WaypointPending, Directive::Timestamp(7), EXECUTED];
    let found = follow_both(RETURN_STACK, &call_and_return(), &directives);
    let blocks = std::vec![(0x100, 0x104, 1), (0x108, 0x10a, 1), (0x104, 0x108, 2)];
    assert_eq!(outline(&found), (blocks, std::vec![]));
    // A not-executed atom pops the entry as well: the b at 0x106 has no condition.
    let failed =
        [begin(t32(0x100)), EXECUTED, Directive::WaypointPending, Directive::Waypoint { executed: false }];
    let found = follow_both(RETURN_STACK, &call_and_return(), &failed);
    assert_eq!(contradictions(&found), [Contradiction::UnconditionalFailed(t32(0x106))]);
}

#[test]
fn an_address_cancels_the_pop_of_a_pending_target_and_leaves_the_entry() {
    let directives = [
        begin(t32(0x100)),
        EXECUTED,
        Directive::WaypointPending,
        Directive::ContextId(crate::ids::ContextId(1)),
        Directive::Continue(t32(0x108)),
        Directive::WaypointPending,
        EXECUTED,
    ];
    let found = follow_both(RETURN_STACK, &call_and_return(), &directives);
    let blocks = std::vec![(0x100, 0x104, 1), (0x108, 0x10a, 1), (0x108, 0x10a, 1), (0x104, 0x108, 2)];
    assert_eq!(outline(&found), (blocks, std::vec![]));
}

/// A trace unit that predicts a return sends no address for it; the address of a synchronisation directly
/// after the return is the same.
#[test]
fn an_address_of_a_synchronisation_does_not_hide_that_a_return_was_predicted() {
    // 0x100: bl 0x108; 0x104: b .; 0x108: bl 0x110; 0x10c: bx lr; 0x110: bx lr
    let program = thumb(0x100, &[0xf000, 0xf802, 0xe7fe, NOP, 0xf000, 0xf802, BX_LR, NOP, BX_LR]);
    let returns = |to: u32| {
        let directives = [
            begin(t32(0x100)),
            EXECUTED,
            EXECUTED,
            Directive::WaypointPending,
            Directive::CallsUnnoted,
            Directive::Continue(t32(to)),
            Directive::Synchronised,
            Directive::WaypointPending,
            EXECUTED,
        ];
        outline(&follow_both(RETURN_STACK, &program, &directives))
    };
    let called = [(0x100, 0x104, 1), (0x108, 0x10c, 1), (0x110, 0x112, 1)];
    let blocks = [&called[..], &[(0x10c, 0x10e, 1), (0x104, 0x106, 1)]].concat();
    assert_eq!(returns(0x10c), (blocks, std::vec![]));
    // Any other address is the branch's own: both entries stay.
    let blocks = [&called[..], &[(0x110, 0x112, 1), (0x10c, 0x10e, 1)]].concat();
    assert_eq!(returns(0x110).0, blocks);
}

#[test]
fn a_pending_target_without_an_entry_is_a_contradiction_for_an_atom_and_unknown_for_an_exception() {
    let until =
        |address| Directive::RunTo { address: Address::new(address), end: RunEnd::BeforeWithoutWaypoints };
    let found = |next| {
        outline(&follow_both(
            RETURN_STACK,
            &call_and_return(),
            &[begin(t32(0x108)), Directive::WaypointPending, next],
        ))
        .1
    };
    let empty = GapReason::Contradiction(Contradiction::ReturnStackEmpty(t32(0x108)));
    assert_eq!(found(EXECUTED), [empty]);
    assert_eq!(found(until(0x10a)), [GapReason::AddressUnknown]);
    // No target is needed if tracing begins again or is lost.
    assert_eq!(found(begin(t32(0x104))), []);
    assert_eq!(found(Directive::Lost), [GapReason::TraceLost]);
}

#[test]
fn a_pending_target_without_a_return_stack_is_unknown() {
    let rules = Rules { return_stack: false, ..RETURN_STACK };
    let directives = [begin(t32(0x100)), EXECUTED, Directive::WaypointPending, EXECUTED];
    assert_eq!(outline(&follow_both(rules, &call_and_return(), &directives)).1, [GapReason::AddressUnknown]);
}

#[test]
fn a_call_with_a_pending_target_takes_its_entry_before_it_makes_one() {
    // 0x100: bl 0x108; 0x104: bx lr; 0x106: nop; 0x108: blx r3; 0x10a: b .
    let program = thumb(0x100, &[0xf000, 0xf802, BX_LR, NOP, 0x4798, 0xe7fe]);
    let calls = [begin(t32(0x100)), EXECUTED, Directive::WaypointPending];
    let outline = |rest: &[Directive]| {
        let directives: Vec<_> = calls.iter().chain(rest).copied().collect();
        outline(&follow_both(RETURN_STACK, &program, &directives))
    };
    let called = [(0x100, 0x104, 1), (0x108, 0x10a, 1)];
    // Predicted: to 0x104, which returns after the blx.
    let blocks = [&called[..], &[(0x104, 0x106, 1), (0x10a, 0x10c, 1)]].concat();
    assert_eq!(outline(&[Directive::WaypointPending, EXECUTED]), (blocks, std::vec![]));
    // With an address: the code at 0x104 also returns after the blx.
    let to = Directive::Continue(t32(0x104));
    let blocks = [&called[..], &[(0x104, 0x106, 1), (0x10a, 0x10c, 1)]].concat();
    assert_eq!(outline(&[to, Directive::WaypointPending, EXECUTED]), (blocks, std::vec![]));
}

#[test]
fn a_return_from_an_exception_never_asks_the_return_stack() {
    // 0x100: bl 0x108; 0x104: b .; 0x108 in T32: subs pc, lr, #4
    let program = thumb(0x100, &[0xf000, 0xf802, 0xe7fe, NOP, 0xf3de, 0x8f04]);
    let by_form = [begin(t32(0x100)), EXECUTED, Directive::WaypointPending, EXECUTED];
    assert_eq!(outline(&follow_both(RETURN_STACK, &program, &by_form)).1, [GapReason::AddressUnknown]);
    // M profile's bx lr is a return from an exception if the trace marks it.
    let by_packet =
        [begin(t32(0x100)), EXECUTED, Directive::WaypointPending, Directive::ExceptionReturn, EXECUTED];
    assert_eq!(
        outline(&follow_both(RETURN_STACK, &call_and_return(), &by_packet)).1,
        [GapReason::AddressUnknown]
    );
}

#[test]
fn an_exception_may_bring_its_handler_later_never_or_not_at_all() {
    let program = call_and_return();
    let kinds = |handler, rest: &[Directive]| {
        let exception = Directive::Exception {
            exception: None,
            handler,
            preferred_return: PreferredReturn::At(Address::new(0x104)),
        };
        let directives: Vec<_> =
            [begin(t32(0x104)), exception].into_iter().chain(rest.iter().copied()).collect();
        outline(&follow_both(RETURN_STACK, &program, &directives))
    };
    let continued = Directive::Continue(t32(0x108));
    let handler_ran = (std::vec![(0x108, 0x10a, 1)], std::vec![]);
    let unknown = (std::vec![], std::vec![GapReason::AddressUnknown]);
    assert_eq!(kinds(Handler::Pending, &[continued, Directive::WaypointTo(t32(0x104))]), handler_ran);
    assert_eq!(kinds(Handler::Pending, &[EXECUTED]), unknown, "the handler's address was left out");
    assert_eq!(kinds(Handler::DebugState, &[EXECUTED]), unknown, "nothing is traced in Debug state");
    assert_eq!(
        kinds(Handler::DebugState, &[begin(t32(0x108)), Directive::WaypointTo(t32(0x104))]),
        handler_ran
    );
    assert_eq!(
        kinds(Handler::Unknown, &[EXECUTED]),
        (std::vec![], std::vec![]),
        "it is lost, and that is all"
    );
}

#[test]
fn a_run_without_waypoints_passes_no_branch_and_may_end_inside_of_an_instruction() {
    // 0x100: nop; bne .+4; nop; movw r0, #0; nop
    let program = thumb(0x100, &[NOP, 0xd100, NOP, 0xf240, 0x0000, NOP]);
    let run = |from, address, end| {
        let directives =
            [begin(t32(from)), Directive::RunTo { address: Address::new(address), end }, Directive::Trigger];
        outline(&follow_both(RETURN_STACK, &program, &directives))
    };
    let strict = RunEnd::BeforeWithoutWaypoints;
    assert_eq!(run(0x100, 0x102, strict), (std::vec![(0x100, 0x102, 1)], std::vec![]));
    assert_eq!(run(0x104, 0x104, strict), (std::vec![], std::vec![]));
    assert_eq!(run(0x104, 0x108, strict), (std::vec![(0x104, 0x10a, 2)], std::vec![]), "inside of the movw");
    let passes = Contradiction::RunPassesBranch { at: t32(0x102), until: Address::new(0x104) };
    assert_eq!(run(0x100, 0x104, strict), (std::vec![], std::vec![GapReason::Contradiction(passes)]));
    assert_eq!(
        run(0x100, 0x104, RunEnd::Before).1,
        [],
        "an MTB writes nothing for a branch that was not taken"
    );
    let misses = Contradiction::RunMissesEnd { from: t32(0x104), until: Address::new(0x100) };
    assert_eq!(run(0x104, 0x100, strict), (std::vec![], std::vec![GapReason::Contradiction(misses)]));
}

/// `nop` in A32.
const A32_NOP: [u8; 4] = [0, 0, 0xa0, 0xe1];
/// `b .` in A32.
const A32_B: [u8; 4] = [0xfe, 0xff, 0xff, 0xea];

#[test]
fn a_run_through_the_last_instruction_of_memory_ends_there() {
    // An image at the other end of memory, whose third instruction branches.
    let mut program = Program::new();
    program.add(Address::new(0xffff_fff0), &A32_NOP.repeat(4)).expect("one region");
    program.add(Address::new(0), &[A32_NOP, A32_NOP, A32_B].concat()).expect("another region");
    let last = Address::new(0xffff_fffc);
    for end in [RunEnd::Through, RunEnd::Jumps, RunEnd::Before, RunEnd::BeforeWithoutWaypoints] {
        let directives =
            [begin(a32(0xffff_fff0)), Directive::RunTo { address: last, end }, Directive::Trigger];
        let (blocks, gaps) = outline(&follow_both(RETURN_STACK, &program, &directives));
        let passes_last = matches!(end, RunEnd::Through | RunEnd::Jumps);
        let expected = if passes_last { (0xffff_fff0, 0, 4) } else { (0xffff_fff0, 0xffff_fffc, 3) };
        assert_eq!((blocks, gaps), (std::vec![expected], std::vec![]), "{end:?}");
    }
}

#[test]
fn no_block_spans_the_end_of_memory() {
    // A region that goes on above 32 bits, where no A32 instruction can be.
    let mut program = Program::new();
    program.add(Address::new(0xffff_fff8), &[A32_NOP, A32_NOP, A32_B, A32_B].concat()).expect("one region");
    program.add(Address::new(0), &[A32_NOP, A32_B].concat()).expect("another region");
    let directives = [begin(a32(0xffff_fff8)), EXECUTED, EXECUTED];
    let blocks = outline(&follow_both(RETURN_STACK, &program, &directives)).0;
    assert_eq!(blocks, [(0xffff_fff8, 0, 2), (0, 8, 2), (4, 8, 1)]);
    let directives = [begin(a32(0xffff_fff8)), executed(4)];
    let rules = Rules { granularity: Granularity::Instructions, ..RETURN_STACK };
    let blocks = outline(&follow_both(rules, &program, &directives)).0;
    assert_eq!(blocks, [(0xffff_fff8, 0, 2), (0, 8, 2)]);
}

#[test]
fn an_instruction_across_the_end_of_memory_is_truncated() {
    // The first half of a bl, and its second half above 32 bits.
    let program = thumb(0xffff_fffe, &[0xf000]);
    let mut beyond = Program::new();
    beyond.add(Address::new(0xffff_fffe), &[0x00, 0xf0, 0x02, 0xf8]).expect("one region");
    let truncated = GapReason::Undecodable(t32(0xffff_fffe), crate::isa::Unclassified::Truncated);
    for program in [program, beyond] {
        let directives = [begin(t32(0xffff_fffe)), EXECUTED];
        assert_eq!(outline(&follow_both(RETURN_STACK, &program, &directives)).1, [truncated]);
    }
}

#[test]
fn a_branch_at_the_end_of_memory_is_followed() {
    // 0xfffffffc: nop; bx lr.
    let program = thumb(0xffff_fffc, &[NOP, BX_LR]);
    let directives = [begin(t32(0xffff_fffc)), Directive::WaypointTo(t32(0xffff_fffc)), EXECUTED];
    let (blocks, gaps) = outline(&follow_both(RETURN_STACK, &program, &directives));
    assert_eq!(blocks, [(0xffff_fffc, 0, 2), (0xffff_fffc, 0, 2)]);
    assert_eq!(gaps, [GapReason::Contradiction(Contradiction::ReturnStackEmpty(t32(0xffff_fffe)))]);
}

fn transfers(elements: &[Element]) -> Vec<DataTransfer> {
    let transfer = |element: &Element| match element {
        Element::Event(Event { kind: EventKind::Data(transfer), .. }) => Some(*transfer),
        _ => None,
    };
    elements.iter().filter_map(transfer).collect()
}

fn data(address: Option<u32>, value: TransferValue) -> Directive {
    Directive::Data(Transfer { address: address.map(Address::from), value, big_endian: false })
}

#[test]
fn transfers_belong_to_the_last_load_or_store_and_multiple_ones_go_upwards() {
    // ldmia r0!, {r1, r2}; nop; strb r1, [r0].
    let program = thumb(0x100, &[0xc806, NOP, 0x7001]);
    let directives = [
        begin(t32(0x100)),
        executed(1),
        data(Some(0x2000), TransferValue::Value(1)),
        data(None, TransferValue::Value(2)),
        executed(1),
        data(None, TransferValue::Value(3)),
        executed(1),
        data(Some(0x3000), TransferValue::Value(4)),
        data(None, TransferValue::Value(5)),
    ];
    let found = transfers(&follow(Rules::default(), &program, &directives));
    let outline: Vec<_> = found
        .iter()
        .map(|transfer| (transfer.instruction, transfer.address, transfer.bytes, transfer.store))
        .collect();
    let load = |address| (Some(t32(0x100)), Some(Address::from(address)), Some(4), Some(false));
    let store = |address| (Some(t32(0x104)), Some(Address::from(address)), Some(1), Some(true));
    assert_eq!(outline, [load(0x2000), load(0x2004), load(0x2008), store(0x3000), store(0x3001)]);
}

#[test]
fn a_late_value_belongs_to_the_access_that_waited_for_it() {
    let program = thumb(0x100, &[0x6801, NOP, NOP]); // ldr r1, [r0]
    let directives = [
        begin(t32(0x100)),
        executed(1),
        data(Some(0x2000), TransferValue::Pending(2)),
        executed(2),
        Directive::LateData { tag: 2, value: 7 },
        Directive::LateData { tag: 2, value: 8 },
    ];
    let found = transfers(&follow(Rules::default(), &program, &directives));
    let [transfer] = found[..] else { panic!("{found:?}") };
    assert_eq!(transfer.instruction, Some(t32(0x100)));
    assert_eq!(transfer.address, Some(Address::new(0x2000)));
    assert_eq!(transfer.value, TransferValue::Value(7));
}
