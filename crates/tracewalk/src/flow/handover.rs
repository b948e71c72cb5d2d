//! Handing the position from the graph to the walk, and back.

use crate::directive::Counts;
use crate::ids::Location;
use crate::isa::Class;
use crate::program::Program;
use crate::span::Span;

use super::engine::{At, Engine, Flow, From, Place};
use super::graph::Graph;
use super::walk::{OpenBlock, Passed, Position};

/// How many graphs are kept for contexts that may come back. Contexts change seldom where there are more of them; a graph
/// made anew costs time, not memory.
pub(super) const MOST_OTHER_GRAPHS: usize = 7;

impl Flow {
    /// Tells the walk where execution has come to.
    pub(super) fn give_to_walk(&mut self, program: &Program) {
        let Some(graph) = &self.graph else { return };
        let walk = &mut self.walk;
        match self.place {
            Place::Walk => return,
            Place::Behind(id) => {
                let node = graph.node(id);
                walk.position = node.target().map_or(Position::Elsewhere, Position::At);
                walk.set_passed(Passed {
                    at: Location::new(node.last, node.isa),
                    class: node.class(),
                    returns: node.returns,
                    taken: true,
                });
            }
            Place::At(at) => {
                let node = graph.node(at.node);
                let (last, next) = node.instruction(program.view(graph.view()), at.passed);
                walk.position = Position::At(Location::new(next, node.isa));
                match (last, at.from) {
                    (Some(last), _) => {
                        walk.open = Some(OpenBlock {
                            start: node.start,
                            end: next,
                            last,
                            isa: node.isa,
                            instructions: at.passed,
                            span: at.span,
                        });
                        walk.set_passed(Passed {
                            at: Location::new(last, node.isa),
                            class: Class::Other,
                            returns: None,
                            taken: true,
                        });
                    }
                    (None, From::Walk) => {}
                    (None, From::Node { node, taken, confirmed }) => {
                        let node = graph.node(node);
                        let at = Location::new(node.last, node.isa);
                        walk.set_passed(Passed { at, class: node.class(), returns: node.returns, taken });
                        if confirmed {
                            walk.unconfirmed = None;
                        }
                    }
                }
            }
        }
        self.place = Place::Walk;
    }

    /// Whether blocks are looked for at all.
    pub(super) fn has_graphs(&self) -> bool {
        self.engine == Engine::Graph && self.rules.counts != Counts::Runs && !self.rules.halfwords_count
    }

    /// Takes the position from the walk where the graph holds it and nothing is open.
    pub(super) fn take_from_walk(&mut self, program: &Program) {
        if !self.has_graphs() {
            return;
        }
        let Position::At(at) = self.walk.position else { return };
        if self.walk.open.is_some() {
            return;
        }
        let view = self.walk.view;
        if self.graph.as_ref().is_some_and(|graph| graph.view() != view) {
            self.change_graph();
        }
        let graph = self.graph.get_or_insert_with(|| Graph::new(self.rules, program, view));
        if graph.is_full() {
            graph.clear();
            self.forgotten += 1;
        }
        if let Some(node) = graph.node_at(program, at) {
            self.place = Place::At(At::start(node, Span::default()));
        }
    }

    /// The context has changed: takes the graph of what is visible now, if there is one.
    #[cold]
    fn change_graph(&mut self) {
        let known = self.other_graphs.iter().position(|graph| graph.view() == self.walk.view);
        let next = known.map(|index| self.other_graphs.remove(index));
        if let Some(last) = core::mem::replace(&mut self.graph, next) {
            if self.other_graphs.len() == MOST_OTHER_GRAPHS {
                self.other_graphs.remove(0);
                self.forgotten += 1;
            }
            self.other_graphs.push(last);
        }
    }
}
