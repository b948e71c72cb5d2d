//! Follows directives a block at a time.
//!
//! ```text
//! fast: the place is inside a block of the graph, or the trace gives a pending target
//! everything else: the state is spelled out, the walk follows the directive, and if the graph has a block
//!     the state names it again
//! ```
//!
//! The elements equal those of the walk, one for one.

use alloc::vec::Vec;

use crate::directive::{Directive, Granularity, Rules, RunEnd, Waypoints};
use crate::ids::{Address, Location};
use crate::program::Program;
use crate::span::Span;

use super::element::Element;
use super::execution::{Arrival, Execution, Inside, Last, Pending, Place, Report, TargetIs};
use super::graph::{Graph, NodeId};
use super::walk::event_kind;

/// The number of graphs that are kept for contexts that may return. Programs with more contexts change them
/// seldom; rebuilding a graph costs time, not memory.
pub(super) const MOST_OTHER_GRAPHS: usize = 7;

/// Program flow.
///
/// ```
/// use tracewalk::directive::{BeginReason, Directive, Rules};
/// use tracewalk::flow::{Element, Flow};
/// use tracewalk::ids::{Address, Isa, Location};
/// use tracewalk::program::Program;
/// use tracewalk::span::Span;
///
/// let mut program = Program::new();
/// program.add(Address::new(0x100), &[0x01, 0x20, 0x70, 0x47])?; // movs r0, #1; bx lr
/// let mut flow = Flow::new(Rules::default());
/// let mut blocks = Vec::new();
/// let mut note = |element| {
///     if let Element::Block(block) = element {
///         blocks.push((block.start, block.end));
///     }
/// };
/// let at = Some(Location::new(Address::new(0x100), Isa::T32));
/// flow.follow(&program, Directive::Begin { at, why: BeginReason::Enabled }, Span::default(), &mut note);
/// flow.follow(&program, Directive::Instructions { executed: 2, then_failed: false }, Span::default(), &mut note);
/// flow.finish(&program, &mut note);
/// assert_eq!(blocks, [(Address::new(0x100), Address::new(0x104))]);
/// # Ok::<(), tracewalk::program::AddRegionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Flow {
    pub(super) execution: Execution,
    engine: Engine,
    /// The graph of the view that was entered last, made when it is first needed.
    graph: Option<Graph>,
    /// The graphs of other views, the most recently used last.
    pub(super) other_graphs: Vec<Graph>,
    /// How often blocks were dropped, which invalidates every state that names one.
    forgotten: u64,
}

/// How directives are followed. The elements are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Engine {
    /// A block at a time if possible.
    #[default]
    Graph,
    /// Instruction by instruction: the reference in tests of the graph.
    Walk,
}

impl Flow {
    /// Flow that knows no position yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self::with_engine(rules, Engine::default())
    }

    /// Flow that knows no position yet, with this engine.
    #[must_use]
    pub fn with_engine(rules: Rules, engine: Engine) -> Self {
        let execution = Execution::new(rules);
        Self { execution, engine, graph: None, other_graphs: Vec::new(), forgotten: 0 }
    }

    /// Follows one directive and calls `sink` with the elements that it proves. `span` is the directive's
    /// place in the trace. The program has to be the same at every call.
    #[inline(always)]
    pub fn follow(
        &mut self,
        program: &Program,
        directive: Directive,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        let report = &mut Report { span, sink };
        let done = match (directive, &self.execution.place) {
            (Directive::Instructions { executed, then_failed }, &Place::Inside(inside)) => {
                self.instructions(program, inside, (executed, then_failed), report);
                true
            }
            (Directive::Continue(target), _) => self.go_on_at(program, target),
            (Directive::Waypoint { executed }, &Place::Inside(Inside { node, .. })) => {
                self.waypoint(program, node, (executed, TargetIs::Predicted), report)
            }
            (Directive::WaypointTo(target), &Place::Inside(Inside { node, .. })) => {
                self.waypoint_to(program, node, target, report)
            }
            (Directive::WaypointPending, &Place::Inside(Inside { node, .. })) => {
                self.waypoint(program, node, (true, TargetIs::SentOrPredicted), report)
            }
            (Directive::RunTo { address, end: RunEnd::Through }, &Place::Inside(inside)) => {
                self.run_through(program, inside, address, report.span)
            }
            _ => false,
        };
        if !done {
            self.by_walk(program, directive, report);
        }
    }

    /// Follows waypoints in a row: as [`Flow::follow`] for the directive of each.
    #[inline(always)]
    pub fn follow_waypoints(
        &mut self,
        program: &Program,
        waypoints: Waypoints,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        let mut left = self.follow_links(waypoints, &mut Report { span, sink });
        while let Some((executed, rest)) = left.split_first() {
            self.follow_waypoint(program, executed, span, sink);
            left = self.follow_links(rest, &mut Report { span, sink });
        }
    }

    /// Follows a waypoint whose block is not linked to the next one.
    #[inline(never)]
    fn follow_waypoint(
        &mut self,
        program: &Program,
        executed: bool,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        self.follow(program, Waypoints::directive(executed), span, sink);
    }

    /// Follows waypoints from block to block, as long as the blocks are linked; returns the other waypoints. Does what
    /// [`Flow::waypoint`] does, but changes the state once.
    #[inline(always)]
    fn follow_links(
        &mut self,
        waypoints: Waypoints,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> Waypoints {
        let (Some(graph), Place::Inside(inside)) = (&self.graph, &self.execution.place) else {
            return waypoints;
        };
        let (mut left, mut id) = (waypoints, inside.node);
        let mut passed = None;
        while let Some((executed, rest)) = left.split_first() {
            let Some((node, next)) = graph.linked(id, executed) else { break };
            if executed && node.link && self.execution.notes_calls {
                self.execution.returns.push(node.following());
            }
            report.element(Element::Block(node.block(executed, report.span)));
            passed = Some((id, executed));
            (left, id) = (rest, next);
        }
        if let Some((last, executed)) = passed {
            self.execution.last = Last::OfBlock(last);
            self.execution.arrival =
                if executed { Arrival::by(graph.node(last).kind) } else { Arrival::Straight };
            self.execution.place = Place::Inside(Inside::start(id));
        }
        left
    }

    /// Ends the trace.
    pub fn finish(&mut self, program: &Program, sink: &mut impl FnMut(Element)) {
        self.spell_out(program);
        self.execution.close(&mut Report { span: Span::default(), sink });
    }

    /// Follows a directive that is neither an atom nor a target, or whose block the graph lacks.
    #[inline(never)]
    fn by_walk(
        &mut self,
        program: &Program,
        directive: Directive,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) {
        let open = matches!(self.execution.place, Place::Open(_) | Place::Inside(Inside { passed: 1.., .. }));
        if let Some(kind) = event_kind(directive).filter(|_| !open) {
            self.execution.event(kind, report);
            return;
        }
        self.spell_out(program);
        if self.enter_predicted(program, directive) {
            self.follow(program, directive, report.span, report.sink);
            return;
        }
        self.execution.follow(program, directive, report);
        self.enter_any(program);
    }

    /// If a waypoint comes instead of a pending address, enters the block that the return stack predicted.
    fn enter_predicted(&mut self, program: &Program, directive: Directive) -> bool {
        let waypoint = matches!(directive, Directive::Waypoint { .. } | Directive::WaypointPending);
        let pending = matches!(self.execution.place, Place::Pending(Pending::TargetOrReturn { .. }));
        if waypoint && pending && self.execution.resolve_pending().is_ok() {
            self.enter(program);
        }
        waypoint && pending && matches!(self.execution.place, Place::Inside(_))
    }

    /// Spells out the state: see [`Execution::spell_out`].
    pub(super) fn spell_out(&mut self, program: &Program) {
        if let Some(graph) = &self.graph {
            self.execution.spell_out(graph, program.view(graph.view()));
        }
    }

    #[inline(always)]
    fn instructions(
        &mut self,
        program: &Program,
        mut inside: Inside,
        (executed, then_failed): (u8, bool),
        report: &mut Report<'_, impl FnMut(Element)>,
    ) {
        let Some(graph) = &mut self.graph else { return };
        let mut left = u32::from(executed);
        loop {
            let node = graph.node(inside.node);
            let rest = node.instructions - inside.passed;
            if left < rest {
                if left > 0 {
                    inside.passed += left;
                    inside.span = report.span;
                }
                break;
            }
            left -= rest;
            report.element(Element::Block(node.block(true, report.span)));
            self.execution.last = Last::OfBlock(inside.node);
            self.execution.arrival = Arrival::by(node.kind);
            let Some(next) = graph.successor(program, inside.node, true) else {
                // The target is sent, so there is no prediction that could fail.
                let _ = self.execution.leave(&graph.node(inside.node).exit(), true, TargetIs::Sent);
                if left > 0 || then_failed {
                    let executed = u8::try_from(left).unwrap_or(u8::MAX);
                    self.by_walk(program, Directive::Instructions { executed, then_failed }, report);
                }
                return;
            };
            inside = Inside::start(next);
        }
        self.execution.place = Place::Inside(inside);
        if then_failed {
            self.failed(program, inside, report);
        }
    }

    /// The next instruction failed its condition.
    #[inline]
    fn failed(
        &mut self,
        program: &Program,
        Inside { node: id, passed, .. }: Inside,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) {
        if let Some(graph) = &mut self.graph {
            let node = graph.node(id);
            if passed + 1 == node.instructions && node.may_fail {
                let block = node.block(false, report.span);
                if let Some(next) = graph.successor(program, id, false) {
                    report.element(Element::Block(block));
                    self.execution.last = Last::OfBlock(id);
                    self.execution.arrival = Arrival::Straight;
                    self.execution.place = Place::Inside(Inside::start(next));
                    return;
                }
            }
        }
        self.by_walk(program, Directive::Instructions { executed: 0, then_failed: true }, report);
    }

    /// Passes everything up to the next waypoint; `false` if the walk has to do it.
    #[inline(always)]
    fn waypoint(
        &mut self,
        program: &Program,
        id: NodeId,
        (executed, target_is): (bool, TargetIs),
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> bool {
        let Some(graph) = &mut self.graph else { return false };
        let node = graph.node(id);
        if !executed && !node.may_fail {
            return false;
        }
        let next = graph.successor(program, id, executed);
        let node = graph.node(id);
        report.element(Element::Block(node.block(executed, report.span)));
        self.execution.last = Last::OfBlock(id);
        let exit = node.exit();
        self.execution.report_return(&exit, executed, report);
        if let Err(contradiction) = self.execution.leave(&exit, executed, target_is) {
            self.execution.stop(Err(contradiction.into()), report);
            return true;
        }
        match next {
            Some(next) => self.execution.place = Place::Inside(Inside::start(next)),
            None => self.enter(program),
        }
        true
    }

    /// Passes everything up to the next waypoint, which went to `target`; `false` if the walk has to do it.
    #[inline(always)]
    fn waypoint_to(
        &mut self,
        program: &Program,
        id: NodeId,
        target: Location,
        report: &mut Report<'_, impl FnMut(Element)>,
    ) -> bool {
        let Some(graph) = &self.graph else { return false };
        let node = graph.node(id);
        if node.target().is_some_and(|expected| expected != target) {
            return false;
        }
        report.element(Element::Block(node.block(true, report.span)));
        self.execution.last = Last::OfBlock(id);
        // The target is sent, so there is no prediction that could fail.
        let _ = self.execution.leave(&node.exit(), true, TargetIs::Sent);
        self.execution.arrival = Arrival::Named;
        if let Place::Pending(pending) = self.execution.place {
            self.execution.arrive(pending, target);
        }
        self.enter(program);
        true
    }

    /// Passes everything through `until`, if that lies before the block's last instruction; `false` if the
    /// walk has to do it.
    fn run_through(&mut self, program: &Program, inside: Inside, until: Address, span: Span) -> bool {
        let Some(graph) = self.graph.as_ref().filter(|_| inside.passed == 0) else { return false };
        let node = graph.node(inside.node);
        if until < node.start || until >= node.last {
            return false;
        }
        let passed = node.instructions_through(program.view(graph.view()), until);
        self.execution.place = Place::Inside(Inside { passed, span, ..inside });
        true
    }

    /// Continues at the address that the trace states; `false` if the walk has to do it.
    #[inline(always)]
    fn go_on_at(&mut self, program: &Program, target: Location) -> bool {
        match (&self.execution.place, &self.graph) {
            (&Place::Pending(pending), _) => {
                self.execution.arrive(pending, target);
                self.enter(program);
                true
            }
            (&Place::Inside(Inside { node, passed: 0, .. }), Some(graph)) => {
                let is_here = graph.node(node).first_location() == target;
                if is_here {
                    self.execution.arrival = Arrival::Named;
                }
                is_here
            }
            _ => false,
        }
    }

    /// Enters the graph's block that starts at the position, if there is one.
    #[inline]
    fn enter(&mut self, program: &Program) {
        let Place::At(at) = self.execution.place else { return };
        match &mut self.graph {
            Some(graph) if graph.view() == self.execution.view => {
                if let Some(node) = graph.node_at(program, at) {
                    self.execution.place = Place::Inside(Inside::start(node));
                }
            }
            _ => self.enter_any(program),
        }
    }

    /// As `enter`, also if the graph has to be made, changed or emptied, and if a block is open.
    #[inline(never)]
    pub(super) fn enter_any(&mut self, program: &Program) {
        let Execution { place, arrival, view, rules, .. } = self.execution;
        let (start, open) = match place {
            Place::At(at) => (at, None),
            // Code after these instructions is reached only from the last of them.
            Place::Open(open) if arrival == Arrival::Straight => {
                (Location::new(open.start, open.isa), Some(open))
            }
            _ => return,
        };
        if !self.has_graphs() {
            return;
        }
        self.spell_out(program);
        if self.graph.as_ref().is_some_and(|graph| graph.view() != view) {
            self.change_graph();
        }
        let graph = self.graph.get_or_insert_with(|| Graph::new(rules, program, view));
        if graph.is_full() {
            graph.clear();
            self.forgotten += 1;
        }
        let Some(node) = graph.node_at(program, start) else { return };
        match open {
            None => self.execution.place = Place::Inside(Inside::start(node)),
            Some(open) if open.instructions < graph.node(node).instructions => {
                self.execution.place =
                    Place::Inside(Inside { node, passed: open.instructions, span: open.span });
            }
            Some(_) => {}
        }
    }

    /// Whether flow uses graphs at all.
    pub(super) fn has_graphs(&self) -> bool {
        let rules = self.execution.rules;
        self.engine == Engine::Graph && rules.granularity != Granularity::Runs && !rules.halfwords_count
    }

    /// The context has changed: takes the graph of the current view, if there is one.
    #[cold]
    fn change_graph(&mut self) {
        let known = self.other_graphs.iter().position(|graph| graph.view() == self.execution.view);
        let next = known.map(|index| self.other_graphs.remove(index));
        if let Some(last) = core::mem::replace(&mut self.graph, next) {
            if self.other_graphs.len() == MOST_OTHER_GRAPHS {
                self.other_graphs.remove(0);
                self.forgotten += 1;
            }
            self.other_graphs.push(last);
        }
    }

    /// How often blocks were dropped. A state from before then is no longer valid.
    #[inline]
    pub(crate) const fn forgotten(&self) -> u64 {
        self.forgotten
    }
}
