use std::sync::Arc;

use super::*;
use crate::CodePlace;
use crate::samples::{event, exception, gap, interrupted, page, pages, returns, taken, within as at};
use tracewalk::directive::BeginReason;
use tracewalk::flow::{Element, EventKind, GapReason};
use tracewalk::ids::{Exception, Isa, Location};
use tracewalk::program::Scope;

fn everywhere(address: u32) -> CodePlace {
    CodePlace { address: Address::from(address), scope: Scope::EVERYWHERE }
}

fn steps(ignore_interrupts: bool, elements: &[Element]) -> Vec<Step> {
    let mut walk = Walk::new(pages(), ignore_interrupts);
    let mut steps = Vec::new();
    for element in elements {
        walk.element(element, |step| steps.push(step));
    }
    walk.finish(|step| steps.push(step));
    assert_eq!(walk.steps(), steps.len() as u64);
    steps
}

fn parting(a: &[Element], b: &[Element]) -> Option<Parting> {
    let stretch = |elements| {
        let mut stretch = Stretch::new(0);
        steps(false, elements).into_iter().for_each(|step| stretch.add(step));
        stretch
    };
    stretch(a).parting(&stretch(b))
}

fn aftermath(elements: &[Element], parting: Parting) -> Aftermath {
    let mut aftermath = Aftermath::new(Arc::clone(&pages()), false, parting);
    for element in elements {
        if !aftermath.element(element) {
            break;
        }
    }
    aftermath.finish();
    aftermath
}

#[test]
fn blocks_that_touch_are_one_step_however_they_are_cut() {
    let whole = [at("main", 0x10, 0x18, taken()), at("sort", 0, 8, taken())];
    let cut = [
        event(EventKind::TraceOn(BeginReason::Synchronised)),
        at("main", 0x10, 0x14, interrupted()),
        event(EventKind::Timestamp(1)),
        at("main", 0x14, 0x18, taken()),
        at("sort", 0, 2, interrupted()),
        at("sort", 2, 8, taken()),
    ];
    assert_eq!(steps(false, &whole), steps(false, &cut));
    assert_eq!(parting(&whole, &cut), None);
}

#[test]
fn an_exception_is_the_same_in_a_trace_of_another_protocol() {
    let taken = |number| exception(number, Some(page("main") + 0x14), page("handler"));
    let story =
        |number| [at("main", 0x10, 0x14, interrupted()), taken(number), at("handler", 0, 2, returns())];
    for (code, number) in [(8, 0), (2, 2), (10, 2), (9, 3), (11, 11), (12, 12), (12, 10), (14, 14), (15, 15)]
    {
        let (etmv3, etmv4) = (Exception::Ar(code), Exception::ArType(number));
        assert_eq!(parting(&story(etmv3), &story(etmv4)), None, "{etmv3:?}, {etmv4:?}");
    }
    assert!(parting(&story(Exception::Ar(14)), &story(Exception::ArType(15))).is_some());
    assert!(parting(&story(Exception::M(14)), &story(Exception::ArType(14))).is_some());
}

#[test]
fn interrupts_are_left_out_where_they_are_to_be_ignored() {
    let plain = [at("main", 0x10, 0x18, taken())];
    let interrupted_once = |handler: Option<u32>| {
        let interrupt = EventKind::Exception {
            exception: Some(Exception::M(15)),
            preferred_return: Some(Address::from(page("main") + 0x14)),
            handler: handler.map(|handler| Location::new(Address::from(handler), Isa::T32)),
        };
        [
            at("main", 0x10, 0x14, interrupted()),
            event(interrupt),
            at("handler", 0, 4, returns()),
            event(EventKind::ExceptionReturn),
            at("main", 0x14, 0x18, taken()),
        ]
    };
    // ETMv4 states the handler's address only after the exception.
    for handler in [Some(page("handler")), None] {
        assert_eq!(steps(true, &interrupted_once(handler)), steps(true, &plain));
        assert_eq!(steps(false, &interrupted_once(handler)).len(), 4);
    }
}

#[test]
fn paths_part_in_the_middle_of_a_step() {
    let straight = [at("main", 0x10, 0x20, taken()), at("sort", 0, 4, taken())];
    let leaves = [at("main", 0x10, 0x14, taken()), at("swap", 0, 4, taken())];
    let found = parting(&straight, &leaves).unwrap();
    assert_eq!(found, Parting { step: 0, inside: Some(Address::from(page("main") + 0x14)) });
    let (a, b) = (aftermath(&straight, found), aftermath(&leaves, found));
    assert_eq!((a.common, b.common), (2, 2));
    assert_eq!((a.last, b.last.map(|last| last.address)), (b.last, Some(Address::from(page("main") + 0x12))));
    assert_eq!(a.next[0], Next::Ran { start: everywhere(page("main") + 0x14), instructions: 6 });
    assert_eq!(b.next, [Next::Ran { start: everywhere(page("swap")), instructions: 2 }, Next::End]);
    assert_eq!(a.stack, b.stack);
}

#[test]
fn a_trace_that_ends_parts_from_one_that_goes_on() {
    let long = [at("main", 0x10, 0x14, taken()), at("sort", 0, 4, taken())];
    let short = [at("main", 0x10, 0x14, taken())];
    let found = parting(&long, &short).unwrap();
    assert_eq!(found, Parting { step: 1, inside: None });
    assert_eq!(aftermath(&short, found).next, [Next::End]);
    let long = aftermath(&long, found);
    assert_eq!((long.common, long.next.len()), (2, 2));
}

#[test]
fn a_gap_is_a_step_of_its_own() {
    let known = [at("main", 0x10, 0x14, taken()), at("sort", 0, 4, taken())];
    let lost = [at("main", 0x10, 0x14, taken()), gap(GapReason::TraceLost), at("sort", 0, 4, taken())];
    let found = parting(&known, &lost).unwrap();
    assert_eq!(aftermath(&lost, found).next[0], Next::Lost);
    assert_eq!(
        aftermath(&known, found).next[0],
        Next::Ran { start: everywhere(page("sort")), instructions: 2 }
    );
}

#[test]
fn digests_name_the_stretch_in_which_paths_differ() {
    let digest = |differing: Option<u32>, length: u32| {
        let mut digest = Digest::default();
        for index in 0..length {
            let changed = u32::from(differing == Some(index));
            digest.add(Step::Missing(Address::from(index * 2 + changed)));
        }
        digest.finish();
        digest
    };
    let plain = digest(None, 10_000);
    assert_eq!(plain.differs_in(&digest(None, 10_000)), None);
    assert_eq!(plain.differs_in(&digest(Some(5000), 10_000)), Some(4096));
    assert_eq!(plain.differs_in(&digest(None, 9_999)), Some(8192));
    assert_eq!(plain.differs_in(&digest(None, 4096)), Some(4096));
}
