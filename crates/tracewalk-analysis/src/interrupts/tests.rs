use super::*;
use crate::Window;
use crate::samples::{
    block, call, event, gap, interrupted, irq, nested_interrupts, page, pages, returns,
    tail_chained_interrupts, taken, within as at,
};
use crate::timeline::{Scale, Timeline};
use tracewalk::directive::BeginReason;
use tracewalk::flow::{Element, EventKind};
use tracewalk::ids::{Address, Isa, Location};
use tracewalk::program::Scope;
use tracewalk::span::CaptureOffset;

fn found(elements: &[Element]) -> Activities {
    let scale = Scale { unit: Unit::Instructions, counts_cycles: false, frequency: None };
    let mut timeline = Timeline::new(pages(), &scale, &Window::default());
    let mut recorder = ActivityRecorder::new(scale.unit, true);
    for element in elements {
        timeline.element(element, CaptureOffset(0), &mut |item| recorder.take(&item));
    }
    timeline.finish(&mut |item| recorder.take(&item));
    recorder.finish()
}

/// With and without preemption, of an exception that was taken once.
fn lengths(activities: &Activities, number: u16) -> (u64, u64) {
    let activity = &activities.exceptions[&Some(Exception::M(number))];
    assert_eq!((activity.count, activity.with_preemption.count(), activity.cut), (1, 1, 0), "{number}");
    (activity.with_preemption.max().unwrap(), activity.without_preemption.max().unwrap())
}

#[test]
fn an_interrupt_does_not_take_the_time_of_one_that_preempts_it() {
    let activities = found(&nested_interrupts());
    assert_eq!(lengths(&activities, 15), (4, 2));
    assert_eq!(lengths(&activities, 16), (2, 2));
    assert_eq!(activities.exceptions[&Some(Exception::M(16))].preempting, 1);
}

#[test]
fn a_supervisor_call_is_its_callers_doing_and_an_interrupt_in_it_is_nobodys() {
    let activities = found(&[
        at("main", 0x10, 0x14, interrupted()),
        irq(15, Some(page("main") + 0x14), "handler"),
        at("handler", 0, 2, interrupted()),
        irq(11, Some(page("handler") + 2), "a"),
        at("a", 0, 2, interrupted()),
        irq(16, Some(page("a") + 2), "b"),
        at("b", 0, 16, returns()),
        event(EventKind::ExceptionReturn),
        at("a", 2, 4, returns()),
        event(EventKind::ExceptionReturn),
        at("handler", 2, 4, returns()),
        event(EventKind::ExceptionReturn),
        at("main", 0x14, 0x16, taken()),
    ]);
    assert_eq!(lengths(&activities, 15), (12, 4));
    assert_eq!(lengths(&activities, 11), (10, 2));
    assert_eq!(lengths(&activities, 16), (8, 8));
}

/// A more urgent exception that comes while another one is entered goes first (DDI 0403E, B1.5.12, late arrival).
#[test]
fn a_late_arrival_goes_first_and_the_other_one_is_counted_from_its_entry() {
    let activities = found(&[
        at("main", 0x10, 0x14, interrupted()),
        irq(15, Some(page("main") + 0x14), "handler"),
        irq(16, Some(page("handler")), "a"),
        at("a", 0, 4, returns()),
        event(EventKind::ExceptionReturn),
        at("handler", 0, 4, returns()),
        event(EventKind::ExceptionReturn),
        at("main", 0x14, 0x16, taken()),
    ]);
    assert_eq!(lengths(&activities, 15), (4, 2));
    assert_eq!(lengths(&activities, 16), (2, 2));
}

#[test]
fn tail_chained_interrupts_share_no_time() {
    let activities = found(&tail_chained_interrupts());
    assert_eq!((lengths(&activities, 15), lengths(&activities, 14)), ((2, 2), (1, 1)));
    assert_eq!(activities.exceptions[&Some(Exception::M(14))].tail_chained, 1);
}

#[test]
fn what_a_gap_cuts_is_counted_and_in_no_duration_and_no_interval_spans_it() {
    let once = |number, place: u32| {
        [
            irq(number, Some(place), "handler"),
            at("handler", 0, 4, returns()),
            event(EventKind::ExceptionReturn),
            block(place, place + 2, interrupted()),
        ]
    };
    let main = page("main");
    let mut elements = vec![at("main", 0x10, 0x14, interrupted())];
    elements.extend(once(15, main + 0x14));
    elements.extend(once(15, main + 0x16));
    // The interrupt's end is lost, and the next one comes an unknown time later.
    elements.extend([
        irq(15, Some(main + 0x18), "handler"),
        at("handler", 0, 2, taken()),
        gap(GapReason::TraceLost),
        event(EventKind::TraceOn(BeginReason::Overflow)),
        at("main", 0x20, 0x22, interrupted()),
    ]);
    elements.extend(once(15, main + 0x22));
    // Code that no image holds ran in the handler.
    elements.extend([
        irq(15, Some(main + 0x24), "handler"),
        at("handler", 0, 2, call()),
        gap(GapReason::NoCode(Location::new(Address::new(0x9000), Isa::T32))),
        at("handler", 2, 4, returns()),
        event(EventKind::ExceptionReturn),
        at("main", 0x24, 0x26, taken()),
    ]);
    let activity = &found(&elements).exceptions[&Some(Exception::M(15))];
    assert_eq!((activity.count, activity.cut, activity.with_preemption.count()), (5, 2, 3));
    assert_eq!(activity.with_preemption.max(), Some(2));
    assert_eq!((activity.inter_arrival.count(), activity.inter_arrival.sum()), (3, 3 + 3 + 3));
}

#[test]
fn a_function_does_not_take_the_time_of_an_interrupt() {
    let activities = found(&[
        at("main", 0x10, 0x14, call()),
        at("sort", 0, 2, interrupted()),
        irq(15, Some(page("sort") + 2), "handler"),
        at("handler", 0, 4, returns()),
        event(EventKind::ExceptionReturn),
        at("sort", 2, 4, returns()),
        at("main", 0x14, 0x16, taken()),
    ]);
    let sort = &activities.functions[&FunctionId::Named(Address::from(page("sort")), Scope::EVERYWHERE)];
    assert_eq!(
        (sort.count, sort.with_preemption.max(), sort.without_preemption.max()),
        (1, Some(4), Some(2))
    );
    let main = &activities.functions[&FunctionId::Named(Address::from(page("main")), Scope::EVERYWHERE)];
    assert_eq!((main.count, main.cut, main.with_preemption.max()), (0, 1, None));
}

#[test]
fn parts_are_merged() {
    let part = found(&[
        at("main", 0x10, 0x14, interrupted()),
        irq(15, Some(page("main") + 0x14), "handler"),
        at("handler", 0, 4, returns()),
        event(EventKind::ExceptionReturn),
        at("main", 0x14, 0x16, taken()),
    ]);
    let mut both = part.clone();
    both.merge(&part);
    let systick = &both.exceptions[&Some(Exception::M(15))];
    assert_eq!((systick.count, systick.with_preemption.sum(), systick.inter_arrival.count()), (2, 4, 0));
}
