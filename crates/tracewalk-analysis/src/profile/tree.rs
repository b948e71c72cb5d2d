//! A profile with names: chains of calls, inlined functions among them, and the source lines that cost was spent on.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use tracewalk::ids::{Address, Exception, Location};
use tracewalk::program::Scope;

use super::{Node, NodeKind, PieceCost, Profile};
use crate::call_stack::{FunctionId, Task};
use crate::clock::Cost;
use crate::{Code, CodePlace};

/// A profile as a tree: each node is a function and the chain of calls in which it ran.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The nodes; each comes after the one that it was called from.
    pub nodes: Vec<TreeNode>,
    /// The names of the nodes.
    pub labels: Vec<Label>,
    index: HashMap<(Option<usize>, LabelId, Option<Place>), usize>,
    label_index: HashMap<LabelKey, LabelId>,
}

/// A function in a chain of calls.
#[derive(Clone, Debug)]
pub struct TreeNode {
    /// The node that it was called from; the outermost ones have none.
    pub parent: Option<usize>,
    /// The function's label.
    pub label: LabelId,
    /// The source line of the call, in the node outside.
    pub site: Option<Place>,
    /// How often it was called.
    pub calls: u64,
    /// The node's own cost.
    pub own: Cost,
    /// The cost including the functions that it called.
    pub total: Cost,
    /// The lines that its own cost was spent on.
    pub lines: BTreeMap<Option<Place>, Cost>,
}

/// An index into [`Tree::labels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelId(u32);

/// The label of a node.
#[derive(Clone, Debug)]
pub struct Label {
    /// The kind.
    pub kind: LabelKind,
    /// The name.
    pub name: String,
    /// The address at which a function begins, or was entered.
    pub address: Option<Address>,
    /// The contexts in which its code is visible there.
    pub scope: Scope,
    /// The source line at which a function begins.
    pub place: Option<Place>,
}

/// The kinds of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabelKind {
    /// A task, around what it ran.
    Task,
    /// An exception, around its handler.
    Exception,
    /// A function of the program.
    Function,
    /// A function that was inlined into another one.
    Inlined,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file, as the debug information names it.
    pub file: Rc<str>,
    /// The line, from 1.
    pub line: u32,
}

/// The distinctions that a tree makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeOptions {
    /// Inlined functions are nodes of their own.
    pub inlined: bool,
    /// Calls of one function from different lines are nodes of their own.
    pub sites: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum LabelKey {
    Task(Task),
    Exception(Option<Exception>),
    Function(FunctionId),
    Inlined(Rc<str>),
}

/// The source of an instruction.
#[derive(Debug, Default)]
struct Source {
    /// The functions that are inlined there, outermost first, each with the line of its call.
    inlined: Vec<(Rc<str>, Option<Place>)>,
    /// The line in the innermost of them.
    place: Option<Place>,
}

/// Looks up sources of instructions.
struct Sources<'a> {
    code: &'a Code,
    options: TreeOptions,
    files: HashMap<String, Rc<str>>,
    known: HashMap<CodePlace, Rc<Source>>,
}

impl Tree {
    /// The tree of a profile. Tasks are nodes only if there are several.
    #[must_use]
    pub fn of(profile: &Profile, code: &Code, options: TreeOptions) -> Self {
        let mut tree = Self {
            nodes: Vec::new(),
            labels: Vec::new(),
            index: HashMap::new(),
            label_index: HashMap::new(),
        };
        let mut sources = Sources { code, options, files: HashMap::new(), known: HashMap::new() };
        let is_task = |node: &&Node| matches!(node.kind, NodeKind::Task(_));
        let tasks = profile.nodes.iter().filter(is_task).count() > 1;
        // The tree's node of each of the profile's; `None` for a task that is left out.
        let mut nodes: Vec<Option<usize>> = Vec::with_capacity(profile.nodes.len());
        for node in &profile.nodes {
            let mut parent = node.parent.and_then(|parent| nodes.get(parent.index()).copied().flatten());
            let mut place = None;
            if let (NodeKind::Function { site: Some(site), .. }, Some(outside)) = (node.kind, parent) {
                let scope = node.parent.and_then(|caller| profile.scope_of(caller));
                let source = sources.at(CodePlace { address: site, scope: scope.unwrap_or_default() });
                parent = Some(tree.inlined(outside, &source));
                place = source.place.clone().filter(|_| options.sites);
            }
            nodes.push(match node.kind {
                NodeKind::Task(_) if !tasks => None,
                kind => {
                    let label = tree.label(kind, &mut sources);
                    let own = tree.node(parent, label, place);
                    let calls = &mut tree.nodes[own].calls;
                    *calls = calls.saturating_add(node.calls);
                    Some(own)
                }
            });
        }
        for entry in &profile.entries {
            if let Some(Some(node)) = nodes.get(entry.node.index()) {
                let scope = profile.scope_of(entry.node).unwrap_or_default();
                tree.spend(*node, entry, scope, &mut sources);
            }
        }
        tree.add_up();
        tree
    }

    /// The label of a node.
    #[must_use]
    pub fn label_of(&self, node: &TreeNode) -> &Label {
        &self.labels[node.label.0 as usize]
    }

    /// The cost of the outermost nodes.
    #[must_use]
    pub fn total(&self) -> Cost {
        let mut total = Cost::default();
        for node in self.nodes.iter().filter(|node| node.parent.is_none()) {
            total += node.total;
        }
        total
    }

    /// How many tasks ran.
    #[must_use]
    pub fn tasks(&self) -> usize {
        let is_task = |node: &&TreeNode| self.label_of(node).kind == LabelKind::Task;
        self.nodes.iter().filter(is_task).filter(|node| !node.total.is_zero()).count()
    }

    /// The nodes that each node called, and, last, the outermost ones; the most expensive in `by` first.
    #[must_use]
    pub fn children(&self, by: impl Fn(&Cost) -> u64) -> (Vec<Vec<usize>>, Vec<usize>) {
        let mut children = vec![Vec::new(); self.nodes.len()];
        let mut outermost = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            match node.parent {
                Some(parent) => children[parent].push(index),
                None => outermost.push(index),
            }
        }
        for list in children.iter_mut().chain([&mut outermost]) {
            // The sort is stable: equal ones stay in the order in which they were first called.
            list.sort_by_key(|index| std::cmp::Reverse(by(&self.nodes[*index].total)));
        }
        (children, outermost)
    }

    /// Calls `visit` with every node, and with the way to it: the nodes' places in the list, outermost first. A node
    /// comes before those that it called, and those in the order in which they were first called.
    pub fn stacks(&self, mut visit: impl FnMut(&[usize], &TreeNode)) {
        let (children, mut open) = self.children(|_| 0);
        open.reverse();
        let mut path: Vec<usize> = Vec::new();
        while let Some(index) = open.pop() {
            let node = &self.nodes[index];
            while path.last().is_some_and(|last| Some(*last) != node.parent) {
                path.pop();
            }
            path.push(index);
            visit(&path, node);
            open.extend(children[index].iter().rev());
        }
    }

    fn label(&mut self, kind: NodeKind, sources: &mut Sources<'_>) -> LabelId {
        let (key, label) = match kind {
            NodeKind::Task(task) => {
                (LabelKey::Task(task), Label::plain(LabelKind::Task, task.name(sources.code)))
            }
            NodeKind::Exception(exception) => {
                let name = exception.map_or_else(
                    || "an exception".to_owned(),
                    |exception| sources.code.interrupts.name_or_number(exception).into_owned(),
                );
                (LabelKey::Exception(exception), Label::plain(LabelKind::Exception, name))
            }
            NodeKind::Function { function, .. } => {
                if let Some(known) = self.label_index.get(&LabelKey::Function(function)) {
                    return *known;
                }
                let (address, scope) = (function.address(), function.scope());
                let symbols = &sources.code.in_scope(scope).symbols;
                let frames = address.map(|at| symbols.frames(at)).unwrap_or_default();
                let place = frames.last().and_then(|frame| sources.place(frame));
                let name = function.name(sources.code);
                let label = Label { kind: LabelKind::Function, name, address, scope, place };
                (LabelKey::Function(function), label)
            }
        };
        self.labelled(key, label)
    }

    fn labelled(&mut self, key: LabelKey, label: Label) -> LabelId {
        let labels = &mut self.labels;
        *self.label_index.entry(key).or_insert_with(|| {
            labels.push(label);
            LabelId::new(labels.len() - 1)
        })
    }

    fn node(&mut self, parent: Option<usize>, label: LabelId, site: Option<Place>) -> usize {
        let nodes = &mut self.nodes;
        *self.index.entry((parent, label, site.clone())).or_insert_with(|| {
            nodes.push(TreeNode {
                parent,
                label,
                site,
                calls: 0,
                own: Cost::default(),
                total: Cost::default(),
                lines: BTreeMap::new(),
            });
            nodes.len() - 1
        })
    }

    /// The node of the innermost function that is inlined into `node`'s at `source`.
    fn inlined(&mut self, node: usize, source: &Source) -> usize {
        let mut innermost = node;
        for (name, site) in &source.inlined {
            let label = Label::plain(LabelKind::Inlined, name.to_string());
            let label = self.labelled(LabelKey::Inlined(Rc::clone(name)), label);
            innermost = self.node(Some(innermost), label, site.clone());
        }
        innermost
    }

    /// Spends the cost of a piece of code on its instructions, as evenly as whole numbers allow.
    fn spend(&mut self, node: usize, entry: &PieceCost, scope: Scope, sources: &mut Sources<'_>) {
        let piece = entry.piece;
        let instructions = u64::from(piece.instructions.max(1));
        let mut at = Location::new(piece.start, piece.isa);
        for index in 0..instructions {
            let source = sources.at(CodePlace { address: at.address, scope });
            let innermost = self.inlined(node, &source);
            let share = entry.cost.share(index, 1, instructions);
            let innermost = &mut self.nodes[innermost];
            innermost.own += share;
            *innermost.lines.entry(source.place.clone()).or_default() += share;
            at.address = sources.code.in_scope(scope).after(at);
        }
    }

    fn add_up(&mut self) {
        for index in (0..self.nodes.len()).rev() {
            let own = self.nodes[index].own;
            self.nodes[index].total += own;
            let total = self.nodes[index].total;
            if let Some(parent) = self.nodes[index].parent {
                self.nodes[parent].total += total;
            }
        }
    }
}

impl LabelKind {
    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Exception => "exception",
            Self::Function => "function",
            Self::Inlined => "inlined",
        }
    }
}

impl LabelId {
    pub(super) fn new(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// The index into [`Tree::labels`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Label {
    const fn plain(kind: LabelKind, name: String) -> Self {
        Self { kind, name, address: None, scope: Scope::EVERYWHERE, place: None }
    }

    /// The name, with a mark if it is not a function of the program: `[SysTick]`, `clamp (inlined)`.
    #[must_use]
    pub fn text(&self) -> String {
        match self.kind {
            LabelKind::Task | LabelKind::Exception => format!("[{}]", self.name),
            LabelKind::Function => self.name.clone(),
            LabelKind::Inlined => format!("{} (inlined)", self.name),
        }
    }
}

impl Place {
    /// `work.c:12`
    #[must_use]
    pub fn short(&self) -> String {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or(&self.file);
        format!("{name}:{}", self.line)
    }
}

impl<'a> Sources<'a> {
    fn at(&mut self, at: CodePlace) -> Rc<Source> {
        if let Some(known) = self.known.get(&at) {
            return Rc::clone(known);
        }
        let frames = self.code.in_scope(at.scope).symbols.frames(at.address);
        let mut source =
            Source { place: frames.first().and_then(|frame| self.place(frame)), inlined: Vec::new() };
        if self.options.inlined {
            // The last one is the function itself.
            for pair in frames.windows(2).rev() {
                let [inner, outer] = pair else { continue };
                let name = inner.function.as_deref().unwrap_or("a function without a name");
                let site = self.place(outer).filter(|_| self.options.sites);
                source.inlined.push((self.name(name), site));
            }
        }
        let source = Rc::new(source);
        self.known.insert(at, Rc::clone(&source));
        source
    }

    fn place(&mut self, frame: &crate::symbols::Frame) -> Option<Place> {
        let file = self.name(frame.file.as_deref()?);
        Some(Place { file, line: frame.line? })
    }

    fn name(&mut self, name: &str) -> Rc<str> {
        if let Some(known) = self.files.get(name) {
            return Rc::clone(known);
        }
        let shared: Rc<str> = Rc::from(name);
        self.files.insert(name.to_owned(), Rc::clone(&shared));
        shared
    }
}
