//! Following directives a block at a time.
//!
//! ```text
//! fast: the position is an instruction of a block of the graph, or behind the indirect branch that ends one
//! slow: the plain walk has the position
//! instructions, waypoints, targets: fast where the graph can; everything else is handed to the walk, which gets the
//!     position and what is open, and gives the position back as soon as nothing is open
//! ```
//!
//! What comes out is what the plain walk alone would give, element for element.

use alloc::vec::Vec;

use crate::directive::{Directive, PreferredReturn, Rules, RunEnd};
use crate::ids::{Address, Exception, Location};
use crate::isa::{Class, Return};
use crate::program::Program;
use crate::span::Span;

use super::element::{BranchKind, Element, Event, EventKind};
use super::graph::{Graph, NodeId};
use super::walk::{Passed, Walk};

/// Program flow, fast where it can be.
#[derive(Clone, Debug)]
pub struct Flow {
    pub(super) rules: Rules,
    pub(super) engine: Engine,
    pub(super) walk: Walk,
    /// Made from what is visible in the walk's context of the first program that is followed.
    pub(super) graph: Option<Graph>,
    /// Those of other contexts, the one that was used last at the end.
    pub(super) other_graphs: Vec<Graph>,
    /// How often blocks were forgotten, and with them what names them.
    pub(super) forgotten: u64,
    pub(super) place: Place,
}

/// How directives are followed. What comes out is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Engine {
    /// A block at a time where that is possible.
    #[default]
    Graph,
    /// Instruction by instruction: what the other is tested against.
    Walk,
}

/// Who has the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// The walk.
    Walk,
    /// An instruction of a block.
    At(At),
    /// Behind the block, at a place that the graph does not hold or that the trace has still to say.
    Behind(NodeId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct At {
    pub(super) node: NodeId,
    /// How many of the block's instructions were passed; less than it has.
    pub(super) passed: u32,
    /// The trace that proves the last of them.
    pub(super) span: Span,
    /// How the position was come to, while nothing of the block was passed.
    pub(super) from: From,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum From {
    /// As the walk remembers.
    Walk,
    /// By the last instruction of a block.
    Node {
        node: NodeId,
        taken: bool,
        /// Whether the trace has named the position itself.
        confirmed: bool,
    },
}

impl Flow {
    /// Flow that knows no position yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self::with_engine(rules, Engine::default())
    }

    /// Flow that knows no position yet, followed in this way.
    #[must_use]
    pub fn with_engine(rules: Rules, engine: Engine) -> Self {
        Self {
            rules,
            engine,
            walk: Walk::new(rules),
            graph: None,
            other_graphs: Vec::new(),
            forgotten: 0,
            place: Place::Walk,
        }
    }

    /// Follows one directive and calls `sink` with what it proves. `span` is the trace that it came from. The program
    /// has to be the same at every call.
    #[inline(always)]
    pub fn follow(
        &mut self,
        program: &Program,
        directive: Directive,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        let done = match (directive, self.place) {
            (Directive::Instructions { executed, then_failed }, Place::At(at)) => {
                self.instructions(program, at, (executed, then_failed), span, sink);
                true
            }
            (Directive::Continue(target), place) => self.go_on_at(program, place, target),
            (Directive::Waypoint { executed }, Place::At(at)) => {
                self.waypoint(program, at, executed, span, sink)
            }
            (Directive::WaypointTo(target), Place::At(at)) => {
                self.waypoint_to(program, at, target, span, sink)
            }
            _ => false,
        };
        if !done {
            self.infrequent(program, directive, span, sink);
        }
    }

    /// What is not an atom nor a target, and what the graph does not hold.
    #[inline(never)]
    fn infrequent(
        &mut self,
        program: &Program,
        directive: Directive,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        let done = match (directive, self.place) {
            (
                Directive::Exception { exception: Some(exception), handler: Some(handler), preferred_return },
                place,
            ) => self.exception(program, place, (exception, handler, preferred_return), span, sink),
            (Directive::RunTo { address, end: RunEnd::Through }, Place::At(at)) => {
                self.run_through(program, at, address, span)
            }
            (Directive::Confirm(location), Place::At(at)) => self.confirm(program, at, location),
            (directive, place) => match event_kind(directive) {
                Some(kind) => self.event(program, place, Event { kind, span }, sink),
                None => false,
            },
        };
        if !done {
            self.by_walk(program, directive, span, sink);
        }
    }

    /// The trace ends here.
    pub fn finish(&mut self, program: &Program, sink: &mut impl FnMut(Element)) {
        self.give_to_walk(program);
        self.walk.finish(sink);
    }

    /// Hands a directive to the walk.
    #[inline(never)]
    fn by_walk(
        &mut self,
        program: &Program,
        directive: Directive,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        self.give_to_walk(program);
        self.walk.follow(program, directive, span, sink);
        self.take_from_walk(program);
    }

    #[inline(always)]
    fn instructions(
        &mut self,
        program: &Program,
        mut at: At,
        (executed, then_failed): (u8, bool),
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        let Some(graph) = &mut self.graph else { return };
        let mut left = u32::from(executed);
        loop {
            let node = graph.node(at.node);
            let rest = node.instructions - at.passed;
            if left < rest {
                if left > 0 {
                    at.passed += left;
                    at.span = span;
                }
                break;
            }
            left -= rest;
            sink(Element::Block(node.block(true, span)));
            let Some(next) = graph.successor(program, at.node, true) else {
                self.place = Place::Behind(at.node);
                if left > 0 || then_failed {
                    let executed = u8::try_from(left).unwrap_or(u8::MAX);
                    self.by_walk(program, Directive::Instructions { executed, then_failed }, span, sink);
                }
                return;
            };
            at = At::behind(at.node, next, true, span);
        }
        self.place = Place::At(at);
        if then_failed {
            self.failed(program, at, span, sink);
        }
    }

    /// The next instruction failed its condition.
    #[inline]
    fn failed(&mut self, program: &Program, at: At, span: Span, sink: &mut impl FnMut(Element)) {
        if let Some(graph) = &mut self.graph {
            let node = graph.node(at.node);
            if at.passed + 1 == node.instructions && node.may_fail {
                let block = node.block(false, span);
                if let Some(next) = graph.successor(program, at.node, false) {
                    sink(Element::Block(block));
                    self.place = Place::At(At::behind(at.node, next, false, span));
                    return;
                }
            }
        }
        self.by_walk(program, Directive::Instructions { executed: 0, then_failed: true }, span, sink);
    }

    /// Everything up to the next waypoint; `false` where the walk has to do it.
    #[inline]
    fn waypoint(
        &mut self,
        program: &Program,
        at: At,
        executed: bool,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> bool {
        let Some(graph) = self.graph.as_mut().filter(|_| at.passed == 0) else { return false };
        let node = *graph.node(at.node);
        if node.kind == BranchKind::Indirect && executed {
            return self.predicted(program, at, span, sink);
        }
        if !executed && !node.may_fail {
            return false;
        }
        let Some(next) = graph.successor(program, at.node, executed) else { return false };
        sink(Element::Block(node.block(executed, span)));
        if executed && node.link && self.rules.return_stack {
            self.walk.return_stack.push(node.behind());
        }
        self.place = Place::At(At::behind(at.node, next, executed, span));
        true
    }

    /// An indirect branch that the return stack predicted.
    fn predicted(&mut self, program: &Program, at: At, span: Span, sink: &mut impl FnMut(Element)) -> bool {
        let Some(graph) = self.graph.as_mut().filter(|_| self.rules.return_stack) else { return false };
        let node = *graph.node(at.node);
        let next = self.walk.return_stack.newest().and_then(|target| graph.node_at(program, target));
        let Some(next) = next else { return false };
        self.walk.return_stack.pop();
        if node.returns == Some(Return::Exception) {
            self.walk.interrupted.pop();
        }
        sink(Element::Block(node.block(true, span)));
        if node.link {
            self.walk.return_stack.push(node.behind());
        }
        self.place = Place::At(At {
            from: From::Node { node: at.node, taken: true, confirmed: true },
            ..At::start(next, span)
        });
        true
    }

    /// Everything up to the next waypoint, which went to `target`; `false` where the walk has to do it.
    #[inline]
    fn waypoint_to(
        &mut self,
        program: &Program,
        at: At,
        target: Location,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> bool {
        let Some(graph) = self.graph.as_mut().filter(|_| at.passed == 0) else { return false };
        let node = *graph.node(at.node);
        if node.target().is_some_and(|expected| expected != target) {
            return false;
        }
        let returns = node.returns == Some(Return::Exception);
        let target = if returns { self.walk.unrounded(target) } else { target };
        let Some(next) = graph.node_at(program, target) else { return false };
        if returns {
            self.walk.interrupted.pop();
        }
        sink(Element::Block(node.block(true, span)));
        if node.link && self.rules.return_stack {
            self.walk.return_stack.push(node.behind());
        }
        self.place = Place::At(At {
            from: From::Node { node: at.node, taken: true, confirmed: true },
            ..At::start(next, span)
        });
        true
    }

    /// Where the trace says that execution goes on; `false` where the walk has to do it.
    #[inline(always)]
    fn go_on_at(&mut self, program: &Program, place: Place, target: Location) -> bool {
        let Some(graph) = &mut self.graph else { return false };
        match place {
            Place::Walk => false,
            Place::Behind(node) => {
                if graph.node(node).target().is_some() {
                    return false;
                }
                let returns = graph.node(node).returns == Some(Return::Exception);
                let target = if returns { self.walk.unrounded(target) } else { target };
                let Some(next) = graph.node_at(program, target) else { return false };
                if returns {
                    self.walk.interrupted.pop();
                }
                let from = From::Node { node, taken: true, confirmed: true };
                self.place = Place::At(At { from, ..At::start(next, Span::default()) });
                true
            }
            Place::At(mut at) => {
                let node = graph.node(at.node);
                let From::Node { node: from, taken, .. } = at.from else { return false };
                if at.passed != 0
                    || Location::new(node.start, node.isa) != target
                    || graph.node(from).returns == Some(Return::Exception)
                {
                    return false;
                }
                at.from = From::Node { node: from, taken, confirmed: true };
                self.place = Place::At(at);
                true
            }
        }
    }

    /// Everything through `until`, where no waypoint is on the way; `false` where the walk has to do it.
    fn run_through(&mut self, program: &Program, mut at: At, until: Address, span: Span) -> bool {
        let Some(graph) = self.graph.as_ref().filter(|_| at.passed == 0) else { return false };
        let node = graph.node(at.node);
        if until < node.start || until >= node.last {
            return false;
        }
        at.passed = node.instructions_through(program.view(graph.view()), until);
        at.span = span;
        self.place = Place::At(at);
        true
    }

    /// An event that moves nothing, but cuts a block; `false` where the walk has to do it.
    #[inline]
    fn event(
        &mut self,
        program: &Program,
        place: Place,
        event: Event,
        sink: &mut impl FnMut(Element),
    ) -> bool {
        match (place, &mut self.graph) {
            (Place::Behind(_), _) | (Place::At(At { passed: 0, .. }), _) => {}
            (Place::At(at), Some(graph)) if !graph.is_full() => {
                let node = graph.node(at.node);
                let (isa, (last, next)) = (node.isa, node.instruction(program.view(graph.view()), at.passed));
                let Some(last) = last else { return false };
                let block = node.part(at.passed, (last, next), at.span);
                let Some(behind) = graph.node_at(program, Location::new(next, isa)) else { return false };
                sink(Element::Block(block));
                let at = Location::new(last, isa);
                self.walk.set_passed(Passed { at, class: Class::Other, returns: None, taken: true });
                self.place = Place::At(At::start(behind, Span::default()));
            }
            _ => return false,
        }
        sink(Element::Event(event));
        true
    }

    /// A periodic synchronisation where execution is; `false` where the walk has to do it.
    fn confirm(&mut self, program: &Program, at: At, location: Location) -> bool {
        let Some(graph) = &self.graph else { return false };
        let node = graph.node(at.node);
        let (_, next) = node.instruction(program.view(graph.view()), at.passed);
        let is_here = Location::new(next, node.isa) == location;
        if is_here {
            self.walk.forget_returns();
        }
        is_here
    }

    /// An exception that the trace names; `false` where the walk has to do it.
    fn exception(
        &mut self,
        program: &Program,
        place: Place,
        (exception, handler, preferred_return): (Exception, Location, PreferredReturn),
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> bool {
        let Some(graph) = self.graph.as_mut().filter(|_| preferred_return == PreferredReturn::Next) else {
            return false;
        };
        let (last, position) = match place {
            Place::Walk => return false,
            Place::Behind(id) => {
                let node = graph.node(id);
                (Some(node.last_location()), node.target())
            }
            Place::At(at) => {
                let node = *graph.node(at.node);
                let (last, next) = node.instruction(program.view(graph.view()), at.passed);
                if let Some(last) = last {
                    sink(Element::Block(node.part(at.passed, (last, next), at.span)));
                }
                let before = match at.from {
                    From::Walk => self.walk.last,
                    From::Node { node, .. } => Some(graph.node(node).last_location()),
                };
                let last = last.map_or(before, |last| Some(Location::new(last, node.isa)));
                (last, Some(Location::new(next, node.isa)))
            }
        };
        self.walk.taken_from(position, last);
        let (exception, handler, preferred_return) =
            (Some(exception), Some(handler), position.map(|position| position.address));
        let kind = EventKind::Exception { exception, preferred_return, handler };
        sink(Element::Event(Event { kind, span }));
        self.place = Place::Walk;
        self.walk.jump(handler);
        self.take_from_walk(program);
        true
    }
}

/// The event that a directive is, if it moves nothing.
#[inline]
const fn event_kind(directive: Directive) -> Option<EventKind> {
    match directive {
        Directive::ExceptionReturn => Some(EventKind::ExceptionReturn),
        Directive::Timestamp(time) => Some(EventKind::Timestamp(time)),
        Directive::Cycles(cycles) => Some(EventKind::Cycles(cycles)),
        Directive::Trigger => Some(EventKind::Trigger),
        _ => None,
    }
}

impl At {
    /// The start of a block, come to as the walk remembers.
    #[inline]
    pub(super) const fn start(node: NodeId, span: Span) -> Self {
        Self { node, passed: 0, span, from: From::Walk }
    }

    /// The start of `next`, come to by the last instruction of `from`.
    #[inline]
    const fn behind(from: NodeId, next: NodeId, taken: bool, span: Span) -> Self {
        Self { from: From::Node { node: from, taken, confirmed: false }, ..Self::start(next, span) }
    }
}
