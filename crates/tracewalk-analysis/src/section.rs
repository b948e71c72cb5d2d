//! One source's part of an output.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tracewalk::flow::{Element, Event, EventKind};
use tracewalk::ids::{Address, ContextId, Location, Profile, TraceId, Vmid};
use tracewalk::isa;
use tracewalk::program::{Program, Scope, ViewId};

use crate::call_stack::Task;
use crate::crash::NO_TRACE;
use crate::interrupt_names::Interrupts;
use crate::symbols::{NoSymbols, Symbols};
use crate::table::Cell;

/// The heading of a source in an output.
#[derive(Clone, Debug)]
pub struct Section {
    /// The trace ID; `None` for a capture without IDs (one source's bytes, or an MTB's RAM).
    pub id: Option<TraceId>,
    /// The protocol's name, like `etmv3`.
    pub protocol: &'static str,
    /// The number among equal sources, from 1: each buffer of a capture may have one.
    pub number: u16,
    /// The program that the source traced.
    pub code: Arc<Code>,
}

/// A program, its symbols and its names.
pub struct Code {
    /// The program's bytes.
    pub program: Arc<Program>,
    /// The program's names and source lines.
    pub symbols: Box<dyn Symbols>,
    /// The names of the chip's interrupts.
    pub interrupts: Interrupts,
    /// The variant of the architecture that its instructions belong to.
    pub profile: Profile,
    /// The names of tasks, if known.
    pub threads: BTreeMap<Task, String>,
    /// Whether the context ID changes with each task, and only then. Call stacks are no evidence of tasks then.
    pub states_tasks: bool,
    /// The views of contexts that see different code, each as a program of its own.
    pub views: BTreeMap<ViewId, Arc<Code>>,
}

/// A program in the current context of a trace.
#[derive(Clone, Debug)]
pub struct CodeInContext {
    all: Arc<Code>,
    view: ViewId,
    context: Scope,
}

/// An address, and the contexts in which its code is visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodePlace {
    /// The address.
    pub address: Address,
    /// The contexts in which its code is visible.
    pub scope: Scope,
}

impl Code {
    /// No code, no symbols.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            program: Arc::new(Program::new()),
            symbols: Box::new(NoSymbols),
            interrupts: Interrupts::default(),
            profile: Profile::Ar,
            threads: BTreeMap::new(),
            states_tasks: false,
            views: BTreeMap::new(),
        }
    }

    /// The program in a context; `None` means unknown.
    #[must_use]
    pub fn in_context(&self, context_id: Option<ContextId>, vmid: Option<Vmid>) -> &Self {
        self.in_view(self.program.view_in(context_id, vmid))
    }

    /// The program in the contexts of `scope`.
    #[must_use]
    pub fn in_scope(&self, scope: Scope) -> &Self {
        self.in_context(scope.context_id, scope.vmid)
    }

    /// The program in one of its views.
    #[must_use]
    pub fn in_view(&self, view: ViewId) -> &Self {
        self.views.get(&view).map_or(self, |code| code)
    }
}

impl CodeInContext {
    /// The program before any context is known.
    #[must_use]
    pub fn new(all: Arc<Code>) -> Self {
        Self { all, view: ViewId::default(), context: Scope::EVERYWHERE }
    }

    /// Takes the next element; returns whether the view changes.
    #[inline]
    pub fn element(&mut self, element: &Element) -> bool {
        let Element::Event(Event { kind: EventKind::Context { context_id, vmid, .. }, .. }) = element else {
            return false;
        };
        self.context = Scope { context_id: *context_id, vmid: *vmid };
        let view = self.all.program.view_in(*context_id, *vmid);
        std::mem::replace(&mut self.view, view) != view
    }

    /// The current view.
    #[must_use]
    pub const fn view(&self) -> ViewId {
        self.view
    }

    /// The current view and context, which determine the visible code.
    pub(crate) const fn seen(&self) -> (ViewId, Scope) {
        (self.view, self.context)
    }

    /// The same program in the view and context that [`CodeInContext::seen`] returned.
    pub(crate) fn seen_as(&self, (view, context): (ViewId, Scope)) -> Self {
        Self { all: Arc::clone(&self.all), view, context }
    }

    /// The contexts in which the code at `address` is visible.
    #[must_use]
    pub fn scope_at(&self, address: Address) -> Scope {
        self.all.program.scope_at(self.context.context_id, self.context.vmid, address)
    }

    /// `address`, with the contexts in which its code is visible.
    #[must_use]
    pub fn place(&self, address: Address) -> CodePlace {
        CodePlace { address, scope: self.scope_at(address) }
    }

    /// The program with the code of all contexts.
    #[must_use]
    pub fn whole(&self) -> &Code {
        &self.all
    }
}

impl Deref for CodeInContext {
    type Target = Code;

    fn deref(&self) -> &Code {
        self.all.in_view(self.view)
    }
}

impl Code {
    /// The address after the instruction at `at`.
    pub fn after(&self, at: Location) -> Address {
        let code = self.program.code(at.address).unwrap_or_default();
        let bytes = match isa::classify(code, at.address, at.isa) {
            Ok(instruction) => instruction.bytes.into(),
            Err(_) => at.isa.alignment().into(),
        };
        at.after(bytes).address
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("regions", &self.program.regions().len()).finish_non_exhaustive()
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            None if self.protocol == NO_TRACE => f.write_str("without trace"),
            Some(id) => write!(f, "trace ID {id}{}, {}", self.suffix(), self.protocol),
            None => write!(f, "one source without trace ID{}, {}", self.suffix(), self.protocol),
        }
    }
}

impl Section {
    /// The first cells of each row of a source's tables: its trace ID, its protocol and its number.
    #[must_use]
    pub fn cells(&self) -> [Cell; 3] {
        [self.id.into(), self.protocol.into(), self.number.into()]
    }

    /// ` #2` for the second source with the same trace ID and protocol; empty for the first.
    pub fn suffix(&self) -> String {
        if self.number > 1 { format!(" #{}", self.number) } else { String::new() }
    }
}
