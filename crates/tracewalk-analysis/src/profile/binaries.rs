//! A profile added up by the files of the code, and by the tasks that ran it.

use std::collections::{BTreeMap, BTreeSet};

use super::{NodeKind, Profile};
use crate::Code;
use crate::call_stack::Task;
use crate::clock::Cost;

/// The cost of a task in the code of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryCost {
    /// The task's name; `None` if there is only one, and for exceptions outside of all tasks.
    pub task: Option<String>,
    /// The file, without its folders; `None` if none is known.
    pub binary: Option<String>,
    /// The cost.
    pub own: Cost,
}

impl Profile {
    /// The cost of each task in the code of each file, the most expensive first, in `by`.
    #[must_use]
    pub fn binaries(&self, code: &Code, by: impl Fn(&Cost) -> u64) -> Vec<BinaryCost> {
        // Parents come first.
        let mut tasks = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            tasks.push(match node.kind {
                NodeKind::Task(task) => Some(task),
                NodeKind::Exception(_) | NodeKind::Function { .. } => {
                    node.parent.and_then(|parent| tasks.get(parent.index()).copied().flatten())
                }
            });
        }
        let is_one = tasks.iter().flatten().collect::<BTreeSet<_>>().len() < 2;
        let mut sums = BTreeMap::<_, Cost>::new();
        for entry in &self.entries {
            let task = tasks.get(entry.node.index()).copied().flatten();
            // Code without a name has no scope of its own, but belongs to the scope of its task.
            let of_task = match task {
                Some(Task::Context(scope)) => Some(scope),
                _ => None,
            };
            let mut scopes = self.scope_of(entry.node).into_iter().chain(of_task);
            let binary = scopes.find_map(|scope| code.in_scope(scope).symbols.binary(entry.piece.start));
            *sums.entry((task.filter(|_| !is_one), binary)).or_default() += entry.cost;
        }
        let cost = |((task, binary), own): ((Option<Task>, Option<&str>), Cost)| BinaryCost {
            task: task.map(|task| task.name(code)),
            binary: binary.map(str::to_owned),
            own,
        };
        let mut costs = sums.into_iter().map(cost).collect::<Vec<_>>();
        costs.retain(|cost| !cost.own.is_zero());
        costs.sort_by(|a, b| {
            let order = by(&b.own).cmp(&by(&a.own));
            order.then_with(|| (&a.binary, &a.task).cmp(&(&b.binary, &b.task)))
        });
        costs
    }
}
