//! Recording hand-made and random elements.

use super::*;
use crate::coverage::Lost;
use crate::record::FlowRecord;
use crate::samples::{SPAN, block, event, gap, taken};
use crate::{DoubtChange, Trusted};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tracewalk::directive::Transaction;
use tracewalk::flow::{Contradiction, Event, Proof};
use tracewalk::ids::{Isa, Location};
use tracewalk::span::{CaptureOffset, Span};

fn elements() -> Vec<Element> {
    let at = |address| Location::new(Address::from(address), Isa::T32);
    let nowhere = |address| gap(GapReason::NoCode(at(address)));
    let later = |element, start| {
        let Element::Block(mut block) = element else { unreachable!("block() makes a block") };
        block.span.start = StreamOffset(start);
        Element::Block(block)
    };
    vec![
        event(EventKind::TraceOn(BeginReason::Enabled)),
        block(0x100, 0x104, taken()),
        gap(GapReason::TraceLost),
        gap(GapReason::AddressUnknown),
        event(EventKind::TraceOn(BeginReason::Overflow)),
        later(block(0x100, 0x104, taken()), 53),
        gap(GapReason::Contradiction(Contradiction::NoBranchInReach(at(0x100)))),
        block(0x100, 0x104, taken()),
        gap(GapReason::TraceLost),
        nowhere(0x2000_0004),
        nowhere(0x2000_1ffe),
        nowhere(0xffff_fffe),
    ]
}

#[test]
fn what_a_trace_cannot_record_is_counted_by_its_reason() {
    let elements = elements();
    let mut recorder = Recorder::new(Conditions::OfEvery, Doubtful::Drop);
    for element in &elements {
        recorder.element(element, false);
    }
    let part = recorder.finish("a capture", "0x10", "etmv3", 99);
    let losses = &part.source.losses;
    assert_eq!((losses.begins, losses.overflows), (2, 1));
    // From the loss of execution to its recovery, once at 53 and once at the end.
    assert_eq!(losses.trace_lost, Lost { stretches: 2, bytes: (53 - SPAN.start.0) + (99 - SPAN.start.0) });
    assert_eq!(losses.contradictions, Lost { stretches: 1, bytes: 0 });
    assert_eq!(losses.address_unknown, Lost::default());
    assert_eq!(
        losses.regions_without_image(),
        [(Address::new(0x2000_0000), 0x2000_2000, 2), (Address::new(0xffff_f000), 1 << 32, 1)]
    );
    assert_eq!((part.source.instructions, part.source.bytes), (6, 99));
}

fn doubtful_elements() -> Vec<Element> {
    let span = |at| Span::new(StreamOffset(at), 1);
    let run = |at, start| {
        let Element::Block(mut block) = block(start, start + 4, taken()) else {
            unreachable!("block() makes a block")
        };
        block.span = span(at);
        Element::Block(block)
    };
    let gap = |at, doubt| Element::Gap(Gap { reason: GapReason::TraceLost, span: span(at), doubt });
    let proof = |at| Element::Proof(Proof { at: None, span: span(at) });
    let far = 100 + Doubt::REACH;
    vec![
        run(1, 0x100),
        gap(2, false),
        run(3, 0x100),
        proof(10),
        run(11, 0x200),
        run(12, 0x200),
        gap(13, true),
        run(14, 0x200),
        gap(15, true),
        run(16, 0x200),
        proof(20),
        run(21, 0x100),
        proof(30),
        run(31, 0x300),
        run(far, 0x200),
        gap(far + 60, true),
        run(far + 70, 0x200),
        proof(far + 80),
        run(far + 81, 0x100),
    ]
}

#[test]
fn what_is_in_doubt_is_left_out_or_counted() {
    // Each block has two instructions; all blocks at 0x200 are in doubt.
    let cases = [
        (Doubtful::Drop, vec![(0x100, 4), (0x300, 1)], InDoubt { left_out: 12, counted: 0 }),
        (Doubtful::Keep, vec![(0x100, 4), (0x200, 6), (0x300, 1)], InDoubt { left_out: 0, counted: 12 }),
    ];
    for (doubtful, expected, in_doubt) in cases {
        let found = recorded(&doubtful_elements(), doubtful);
        let blocks = found.blocks.iter().map(|(key, count)| (key.start.get(), *count)).collect::<Vec<_>>();
        assert_eq!((blocks, found.source.losses.in_doubt), (expected, in_doubt));
    }
}

/// An element of a trace with transactions.
#[derive(Clone, Copy, Debug)]
enum Step {
    Block(u32),
    Transaction(Transaction),
    TraceOn(BeginReason),
    Gap(bool),
    NoCode,
    Proof,
}

fn step() -> impl Strategy<Value = Step> {
    let transaction = prop_oneof![
        4 => Just(Transaction::Started),
        1 => Just(Transaction::UnderWay),
        2 => Just(Transaction::Committed),
        2 => Just(Transaction::Failed),
    ];
    let reason = prop_oneof![Just(BeginReason::Enabled), Just(BeginReason::Overflow)];
    prop_oneof![
        10 => (0..6_u32).prop_map(Step::Block),
        6 => transaction.prop_map(Step::Transaction),
        1 => reason.prop_map(Step::TraceOn),
        1 => any::<bool>().prop_map(Step::Gap),
        1 => Just(Step::NoCode),
        2 => Just(Step::Proof),
    ]
}

/// The elements, each with a byte of trace.
fn in_trace(steps: &[Step]) -> Vec<Element> {
    let in_trace = |(at, step): (u64, &Step)| {
        let span = Span::new(StreamOffset(at), 1);
        let event = |kind| Element::Event(Event { kind, span });
        let gap = |reason, doubt| Element::Gap(Gap { reason, span, doubt });
        match *step {
            Step::Block(number) => {
                let start = 0x100 + number * 0x10;
                let Element::Block(block) = block(start, start + 4, taken()) else {
                    unreachable!("block() makes a block")
                };
                Element::Block(Block { span, ..block })
            }
            Step::Transaction(transaction) => event(EventKind::Transaction(transaction)),
            Step::TraceOn(reason) => event(EventKind::TraceOn(reason)),
            Step::Gap(doubt) => gap(GapReason::TraceLost, doubt),
            Step::NoCode => gap(GapReason::NoCode(Location::new(Address::new(0x2000_0000), Isa::A64)), false),
            Step::Proof => Element::Proof(Proof { at: None, span }),
        }
    };
    (0..).zip(steps).map(in_trace).collect()
}

/// What is expected: the counts of blocks by address, the instructions in doubt, and those without a commit.
type Expected = (BTreeMap<u64, u64>, u64, u64);

/// The expected answer, from a list of the blocks that ran.
fn expected(elements: &[Element], doubtful: Doubtful) -> Expected {
    let drops = doubtful == Doubtful::Drop;
    let (mut doubt, mut in_doubt, mut uncommitted) = (Doubt::new(), 0, 0);
    // Each block with its place, whether it is still without doubt, and whether it is in the open transaction.
    let mut blocks: Vec<(u64, Block, bool, bool)> = Vec::new();
    let mut is_open = false;
    for element in elements {
        if let Element::Block(block) = element {
            let is_certain = !doubt.is_open();
            in_doubt += u64::from(!is_certain) * u64::from(block.instructions);
            if is_certain || !drops {
                blocks.push((block.span.start.0, *block, is_certain, is_open));
            }
        }
        if let Some(DoubtChange::Begins { since, .. }) = doubt.element(element, CaptureOffset::default) {
            for (at, block, is_certain, _) in &mut blocks {
                if *is_certain && *at >= since.0 {
                    *is_certain = false;
                    in_doubt += u64::from(block.instructions);
                }
            }
            blocks.retain(|(.., is_certain, _)| *is_certain || !drops);
        }
        if let Some(turn) = Turn::of(element) {
            if !turn.commits() {
                let undone = blocks.iter().filter(|(.., is_open)| *is_open);
                uncommitted += undone.map(|(_, block, ..)| u64::from(block.instructions)).sum::<u64>();
                blocks.retain(|(.., is_open)| !is_open);
            }
            blocks.iter_mut().for_each(|(.., is_open)| *is_open = false);
            is_open = turn == Turn::Begins;
        }
    }
    let mut counts = BTreeMap::new();
    for (_, block, _, is_open) in blocks {
        if is_open {
            uncommitted += u64::from(block.instructions);
        } else {
            *counts.entry(block.start.get()).or_default() += 1;
        }
    }
    (counts, in_doubt, uncommitted)
}

fn found(part: &Part) -> Expected {
    let losses = &part.source.losses;
    let InDoubt { left_out, counted } = losses.in_doubt;
    let mut counts = BTreeMap::new();
    for (key, count) in &part.blocks {
        *counts.entry(key.start.get()).or_default() += count;
    }
    (counts, left_out + counted, losses.uncommitted)
}

/// Records elements in order, each with whether it is in doubt.
fn recorded(elements: &[Element], doubtful: Doubtful) -> Part {
    let mut recorder = Recorder::new(Conditions::OfEvery, doubtful);
    let mut trusted = Trusted::default();
    let mut take = |record: FlowRecord, is_doubtful| {
        recorder.element(&record.element, is_doubtful);
        Ok(())
    };
    for &element in elements {
        trusted.weigh(FlowRecord { element, at: CaptureOffset(0) }, &mut take).expect("nothing is written");
    }
    trusted.finish(&mut |record| take(record, false)).expect("nothing is written");
    recorder.finish("a capture", "-", "ete", elements.len() as u64)
}

#[test]
fn a_failed_transaction_is_taken_back_and_a_committed_one_counts() {
    use Step::{Block, Gap, TraceOn};
    use Transaction::{Committed, Failed, Started, UnderWay};
    let transaction = Step::Transaction;
    let cases: [(&[Step], &[u64], u64); 9] = [
        (
            &[Block(0), transaction(Started), Block(1), transaction(Committed), Block(2)],
            &[0x100, 0x110, 0x120],
            0,
        ),
        (&[Block(0), transaction(Started), Block(1), transaction(Failed), Block(2)], &[0x100, 0x120], 2),
        // The trace begins in the transaction.
        (&[transaction(UnderWay), Block(1), transaction(Failed), Block(2)], &[0x120], 2),
        // Without a start nothing is known of a transaction.
        (&[Block(0), transaction(Failed), Block(2)], &[0x100, 0x120], 0),
        // The transaction was not traced in the middle.
        (
            &[transaction(Started), Block(0), TraceOn(BeginReason::Enabled), Block(1), transaction(Failed)],
            &[],
            4,
        ),
        // Its end is lost, or after the end of the trace.
        (&[transaction(Started), Block(0), TraceOn(BeginReason::Overflow), Block(1)], &[0x110], 2),
        (&[transaction(Started), Block(0), Gap(false), Block(1), transaction(Committed)], &[0x110], 2),
        (&[transaction(Started), Block(0)], &[], 2),
        (
            &[transaction(Started), Block(0), transaction(Started), Block(1), transaction(Committed)],
            &[0x110],
            2,
        ),
    ];
    for (steps, blocks, uncommitted) in cases {
        let part = recorded(&in_trace(steps), Doubtful::Drop);
        let (counts, _, found) = found(&part);
        assert_eq!(counts.into_keys().collect::<Vec<_>>(), blocks, "{steps:?}");
        assert_eq!(found, uncommitted, "{steps:?}");
        assert_eq!(part.source.instructions, 2 * blocks.len() as u64, "{steps:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn transactions_are_decided_before_later_gaps_put_them_in_doubt(
        steps in prop::collection::vec(step(), 0..40),
        keeps in any::<bool>(),
    ) {
        let doubtful = if keeps { Doubtful::Keep } else { Doubtful::Drop };
        let elements = in_trace(&steps);
        prop_assert_eq!(found(&recorded(&elements, doubtful)), expected(&elements, doubtful));
    }
}
