//! A tree added up: by function, by line, by caller and callee.

use std::collections::{BTreeMap, HashMap};

use super::tree::{LabelId, LabelKind, Place, Tree};
use crate::clock::Cost;

/// The cost of a function, in all chains of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionCost {
    /// The function; inlined copies are separate from the called function of the same name.
    pub function: LabelId,
    /// How often it was called; 0 for inlined functions, and for functions that were already running when they were first seen.
    pub calls: u64,
    /// The function's own cost.
    pub own: Cost,
    /// The cost including the functions that it called. The cost of recursive calls is included once.
    pub total: Cost,
}

/// The own cost of a source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineCost {
    /// The function that the line belongs to.
    pub function: LabelId,
    /// The line; `None` if the debug information does not have it.
    pub place: Option<Place>,
    /// The line's cost.
    pub own: Cost,
}

/// The cost of calls of one function by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The function that calls.
    pub caller: LabelId,
    /// The function that is called.
    pub callee: LabelId,
    /// The line of the call, in a tree that distinguishes lines.
    pub site: Option<Place>,
    /// The number of calls.
    pub calls: u64,
    /// The calls' cost, including the functions called in turn. The cost of a call during another one of the same kind is included
    /// once.
    pub total: Cost,
}

impl Tree {
    /// The functions, the most expensive first: by their own cost, measured by `by`.
    #[must_use]
    pub fn functions(&self, by: impl Fn(&Cost) -> u64) -> Vec<FunctionCost> {
        let new =
            |function| FunctionCost { function, calls: 0, own: Cost::default(), total: Cost::default() };
        let mut functions = (0..self.labels.len()).map(|index| new(LabelId::new(index))).collect::<Vec<_>>();
        self.walk(
            |node| Some(self.nodes[node].label),
            |index, outermost| {
                let node = &self.nodes[index];
                let function = &mut functions[node.label.index()];
                function.calls = function.calls.saturating_add(node.calls);
                function.own += node.own;
                if outermost {
                    function.total += node.total;
                }
            },
        );
        functions.retain(|function| {
            let kind = self.labels[function.function.index()].kind;
            let is_function = matches!(kind, LabelKind::Function | LabelKind::Inlined);
            // Functions that ran only outside the window have no cost.
            is_function && (function.calls > 0 || !function.total.is_zero())
        });
        functions.sort_by(|a, b| {
            let name = |function: &FunctionCost| &self.labels[function.function.index()].name;
            let order = by(&b.own).cmp(&by(&a.own)).then_with(|| by(&b.total).cmp(&by(&a.total)));
            order.then_with(|| name(a).cmp(name(b))).then_with(|| a.function.cmp(&b.function))
        });
        functions
    }

    /// The lines, the most expensive first.
    #[must_use]
    pub fn lines(&self, by: impl Fn(&Cost) -> u64) -> Vec<LineCost> {
        let mut lines = BTreeMap::<(LabelId, Option<Place>), Cost>::new();
        for node in &self.nodes {
            for (place, cost) in &node.lines {
                *lines.entry((node.label, place.clone())).or_default() += *cost;
            }
        }
        let mut lines = lines
            .into_iter()
            .map(|((function, place), own)| LineCost { function, place, own })
            .collect::<Vec<_>>();
        lines.sort_by(|a, b| {
            let order = by(&b.own).cmp(&by(&a.own)).then_with(|| a.place.cmp(&b.place));
            order.then_with(|| a.function.cmp(&b.function))
        });
        lines
    }

    /// The calls, the most expensive first. A handler counts as called by the function that was interrupted; functions without a
    /// known caller are left out.
    #[must_use]
    pub fn edges(&self, by: impl Fn(&Cost) -> u64) -> Vec<Edge> {
        let mut edges = BTreeMap::<(LabelId, LabelId, Option<Place>), (u64, Cost)>::new();
        let key = |index: usize| {
            let node = &self.nodes[index];
            let caller = self.caller(index)?;
            let is_function = matches!(self.label_of(node).kind, LabelKind::Function | LabelKind::Inlined);
            is_function.then(|| (caller, node.label, node.site.clone()))
        };
        self.walk(key, |index, outermost| {
            let Some(key) = key(index) else { return };
            let node = &self.nodes[index];
            let (calls, total) = edges.entry(key).or_default();
            *calls = calls.saturating_add(node.calls);
            if outermost {
                *total += node.total;
            }
        });
        let edge = |((caller, callee, site), (calls, total))| Edge { caller, callee, site, calls, total };
        let mut edges = edges.into_iter().map(edge).collect::<Vec<_>>();
        edges.retain(|edge| edge.calls > 0 || !edge.total.is_zero());
        edges.sort_by(|a, b| {
            let order = by(&b.total).cmp(&by(&a.total)).then_with(|| b.calls.cmp(&a.calls));
            order.then_with(|| (a.caller, a.callee, &a.site).cmp(&(b.caller, b.callee, &b.site)))
        });
        edges
    }

    /// The function that a node was called from, through an exception or not.
    fn caller(&self, index: usize) -> Option<LabelId> {
        let mut outside = self.nodes[index].parent;
        while let Some(index) = outside {
            let node = &self.nodes[index];
            match self.label_of(node).kind {
                LabelKind::Function | LabelKind::Inlined => return Some(node.label),
                LabelKind::Exception => outside = node.parent,
                LabelKind::Task => return None,
            }
        }
        None
    }

    /// Calls `visit` with every node, and whether no node further out has the same key.
    fn walk<K: Eq + std::hash::Hash>(
        &self,
        key: impl Fn(usize) -> Option<K>,
        mut visit: impl FnMut(usize, bool),
    ) {
        let (children, outermost) = self.children(|_| 0);
        let mut open = HashMap::<K, u64>::new();
        // Entering a node, or leaving it.
        let mut steps = outermost.into_iter().map(|index| (index, true)).collect::<Vec<_>>();
        while let Some((index, entering)) = steps.pop() {
            let key = key(index);
            if !entering {
                if let Some(times) = key.and_then(|key| open.get_mut(&key)) {
                    *times -= 1;
                }
                continue;
            }
            let times = key.map(|key| open.entry(key).or_default());
            visit(index, times.as_ref().is_none_or(|times| **times == 0));
            if let Some(times) = times {
                *times += 1;
            }
            steps.push((index, false));
            steps.extend(children[index].iter().map(|child| (*child, true)));
        }
    }
}
