//! The graph of a decision, and one run through it.

use std::fmt;

use super::vectors::Vector;

/// A condition as the mapping states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The id; evaluation begins at id 1.
    pub id: u64,
    /// The id of the condition that follows if this one is true; 0 if the decision is over.
    pub if_true: u64,
    /// The same, if it is false.
    pub if_false: u64,
}

/// The conditions of a decision, by their indexes, and which follows which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// For each condition, the next one if it is false, and if it is true.
    next: Vec<[Option<u8>; 2]>,
    /// Each condition comes after all that lead to it.
    order: Vec<u8>,
}

/// Why conditions form no graph that evaluations can be followed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoGraph {
    /// There are no conditions, or more than [`Graph::MOST`].
    Count(usize),
    /// The condition with index 0 does not have id 1, or ids are missing or repeated.
    Ids,
    /// A condition leads back to one before it.
    Circle,
    /// No way leads to a condition.
    Unreached,
}

impl fmt::Display for NoGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => {
                write!(f, "the decision has {count} conditions, expected 1 to {}", Graph::MOST)
            }
            Self::Ids => f.write_str("the mapping lists other conditions than it states"),
            Self::Circle => f.write_str("conditions follow each other in a circle"),
            Self::Unreached => f.write_str("no way leads to a condition"),
        }
    }
}

impl std::error::Error for NoGraph {}

impl Graph {
    /// The most conditions.
    pub const MOST: usize = 64;

    /// The graph of these conditions; the first has id 1.
    ///
    /// # Errors
    ///
    /// If the ids are not 1 to the number of conditions, or if a condition is in a circle or cannot be reached.
    pub fn new(nodes: &[Node]) -> Result<Self, NoGraph> {
        if nodes.is_empty() || nodes.len() > Self::MOST {
            return Err(NoGraph::Count(nodes.len()));
        }
        let mut ids = nodes.iter().map(|node| node.id).collect::<Vec<_>>();
        ids.sort_unstable();
        let starts_at_one = nodes.first().is_some_and(|node| node.id == 1);
        if !starts_at_one || !ids.into_iter().eq(1..=nodes.len() as u64) {
            return Err(NoGraph::Ids);
        }
        let index = |id: u64| match id {
            0 => Ok(None),
            id => {
                let index = nodes.iter().position(|node| node.id == id).ok_or(NoGraph::Ids)?;
                u8::try_from(index).map(Some).map_err(|_| NoGraph::Count(nodes.len()))
            }
        };
        let next = nodes.iter().map(|node| Ok([index(node.if_false)?, index(node.if_true)?]));
        let next = next.collect::<Result<Vec<_>, _>>()?;
        let order = order(&next)?;
        Ok(Self { next, order })
    }

    /// The number of conditions.
    #[must_use]
    pub fn conditions(&self) -> usize {
        self.next.len()
    }

    /// The conditions by their indexes, each after all that lead to it.
    pub fn order(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.order.iter().map(|condition| usize::from(*condition))
    }

    /// The condition that follows if `condition` has this value; `None` if the decision is over, or if there is no such condition.
    #[must_use]
    pub fn next(&self, condition: usize, value: bool) -> Option<usize> {
        let [if_false, if_true] = *self.next.get(condition)?;
        if value { if_true } else { if_false }.map(usize::from)
    }
}

/// Takes conditions one after the other whose predecessors are all taken.
fn order(next: &[[Option<u8>; 2]]) -> Result<Vec<u8>, NoGraph> {
    let mut waits_for = vec![0_u32; next.len()];
    let targets = next.iter().flatten().flatten();
    for target in targets {
        if let Some(waits) = waits_for.get_mut(usize::from(*target)) {
            *waits += 1;
        }
    }
    match waits_for.iter().filter(|waits| **waits == 0).count() {
        1 if waits_for.first() == Some(&0) => {}
        0 => return Err(NoGraph::Circle),
        // A condition that nothing leads to, or a circle through the first one.
        _ => return Err(NoGraph::Unreached),
    }
    let mut order = vec![0_u8];
    let mut taken = 0;
    while let Some(condition) = order.get(taken).copied() {
        let targets = next.get(usize::from(condition)).into_iter().flatten().flatten();
        for target in targets {
            let Some(waits) = waits_for.get_mut(usize::from(*target)) else { continue };
            *waits -= 1;
            if *waits == 0 {
                order.push(*target);
            }
        }
        taken += 1;
    }
    if order.len() == next.len() { Ok(order) } else { Err(NoGraph::Circle) }
}

/// One run through a graph that is not over. It begins at the condition with index 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    expected: usize,
    evaluated: u64,
    values: u64,
}

/// What a condition does to an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Another condition follows.
    Open,
    /// The evaluation is over.
    Over(Vector),
    /// Another condition should have come: code and graph do not fit.
    Contradiction,
}

impl Evaluation {
    /// Takes the next condition and its value.
    pub fn take(&mut self, graph: &Graph, condition: usize, value: bool) -> Step {
        if condition != self.expected || condition >= graph.conditions() {
            return Step::Contradiction;
        }
        self.evaluated |= 1 << condition;
        self.values |= u64::from(value) << condition;
        match graph.next(condition, value) {
            Some(next) => {
                self.expected = next;
                Step::Open
            }
            // In a decision without a negated group, the last condition's value is the result.
            None => Step::Over(Vector { evaluated: self.evaluated, values: self.values, result: value }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: &[(u64, u64, u64)]) -> Result<Graph, NoGraph> {
        let nodes = nodes.iter().map(|(id, if_true, if_false)| Node {
            id: *id,
            if_true: *if_true,
            if_false: *if_false,
        });
        Graph::new(&nodes.collect::<Vec<_>>())
    }

    /// `(a || b) && c`, whose order of conditions is a, c, b.
    const JOINED: [(u64, u64, u64); 3] = [(1, 2, 3), (2, 0, 0), (3, 2, 0)];

    #[test]
    fn an_evaluation_follows_the_graph_and_its_last_value_is_the_result() {
        let graph = graph(&JOINED).unwrap();
        assert_eq!(graph.order().collect::<Vec<_>>(), [0, 2, 1]);
        let mut evaluation = Evaluation::default();
        assert_eq!(evaluation.take(&graph, 0, false), Step::Open);
        assert_eq!(evaluation.take(&graph, 2, true), Step::Open);
        let over = evaluation.take(&graph, 1, false);
        assert_eq!(over, Step::Over(Vector { evaluated: 0b111, values: 0b100, result: false }));
    }

    #[test]
    fn a_condition_out_of_turn_is_a_contradiction() {
        let graph = graph(&JOINED).unwrap();
        assert_eq!(Evaluation::default().take(&graph, 1, true), Step::Contradiction);
        let mut evaluation = Evaluation::default();
        evaluation.take(&graph, 0, true);
        assert_eq!(evaluation.take(&graph, 2, true), Step::Contradiction);
        assert_eq!(evaluation.take(&graph, 7, true), Step::Contradiction);
    }

    #[test]
    fn conditions_that_form_no_graph_are_refused() {
        assert_eq!(graph(&[]), Err(NoGraph::Count(0)));
        assert_eq!(graph(&[(2, 0, 0), (1, 2, 0)]), Err(NoGraph::Ids));
        assert_eq!(graph(&[(1, 3, 0), (2, 0, 0)]), Err(NoGraph::Ids));
        assert_eq!(graph(&[(1, 0, 0), (2, 0, 0)]), Err(NoGraph::Unreached));
        assert_eq!(graph(&[(1, 2, 0), (2, 1, 0)]), Err(NoGraph::Circle));
        assert_eq!(graph(&[(1, 2, 0), (2, 3, 0), (3, 2, 0)]), Err(NoGraph::Circle));
        let many = (1..=65).map(|id| (id, if id == 65 { 0 } else { id + 1 }, 0)).collect::<Vec<_>>();
        assert_eq!(graph(&many), Err(NoGraph::Count(65)));
        assert!(graph(&many[..63]).is_err() && graph(&many[1..]).is_err());
    }
}
