//! Contexts in which code is visible.

use alloc::vec::Vec;
use core::fmt;

use crate::ids::{ContextId, Vmid};

/// The contexts in which code is visible: those in which the trace states every ID that the scope names. An
/// unknown ID matches no named one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Scope {
    /// The context ID as [`Program::named`](super::Program::named) gives it; `None` for any.
    pub context_id: Option<ContextId>,
    /// The virtual machine; `None` for any.
    pub vmid: Option<Vmid>,
}

/// Identifies a view: the code that is visible in a context. The default is the view for an unknown context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ViewId(u16);

/// The maximum number of views. Each may have its own copy of regions that touch or cover others.
pub(super) const MOST_VIEWS: usize = 256;

impl Scope {
    /// All contexts, and an unknown context.
    pub const EVERYWHERE: Self = Self { context_id: None, vmid: None };

    /// The contexts with this context ID.
    #[must_use]
    pub const fn context(context_id: ContextId) -> Self {
        Self { context_id: Some(context_id), vmid: None }
    }

    /// The contexts of this virtual machine.
    #[must_use]
    pub const fn vmid(vmid: Vmid) -> Self {
        Self { context_id: None, vmid: Some(vmid) }
    }

    /// Whether the scope includes a context with these IDs; `None` means unknown.
    #[must_use]
    pub fn includes(self, context_id: Option<ContextId>, vmid: Option<Vmid>) -> bool {
        (self.context_id.is_none() || self.context_id == context_id)
            && (self.vmid.is_none() || self.vmid == vmid)
    }

    /// Whether this scope's code hides the other's in the contexts of both.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self.rank() > other.rank()
    }

    /// The rank of a scope, higher for a more specific one: a process within a virtual machine ranks above
    /// the process.
    pub(super) const fn rank(self) -> (bool, Option<ContextId>, Option<Vmid>) {
        (self.context_id.is_some(), self.context_id, self.vmid)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.context_id, self.vmid) {
            (None, None) => f.write_str("all contexts"),
            (Some(context_id), None) => write!(f, "context ID {context_id}"),
            (None, Some(vmid)) => write!(f, "VMID {vmid}"),
            (Some(context_id), Some(vmid)) => write!(f, "context ID {context_id} of VMID {vmid}"),
        }
    }
}

impl ViewId {
    /// The view's place in the list; `None` for the program itself.
    #[inline]
    pub(super) fn index(self) -> Option<usize> {
        usize::from(self.0).checked_sub(1)
    }

    pub(super) fn of(index: usize) -> Self {
        // There are at most `MOST_VIEWS`.
        Self(u16::try_from(index + 1).unwrap_or_default())
    }
}

/// The contexts that see more than the code that is visible everywhere, if code was added for these scopes.
pub(super) fn contexts(scopes: &[Scope]) -> impl Iterator<Item = Scope> {
    fn named<T: Ord>(names: impl Iterator<Item = Option<T>>) -> Vec<Option<T>> {
        let mut named = names.chain([None]).collect::<Vec<_>>();
        named.sort_unstable();
        named.dedup();
        named
    }
    let context_ids = named(scopes.iter().map(|scope| scope.context_id));
    let vmids = named(scopes.iter().map(|scope| scope.vmid));
    let all = context_ids.into_iter().flat_map(move |context_id| {
        let vmids = vmids.clone();
        vmids.into_iter().map(move |vmid| Scope { context_id, vmid })
    });
    all.filter(|context| scopes.iter().any(|scope| scope.includes(context.context_id, context.vmid)))
}

/// The view of a context, if `views` are the contexts of all views. If none has both IDs, the view with one
/// of them shows the same code.
pub(super) fn nearest(
    views: &(impl Iterator<Item = Scope> + Clone),
    context_id: Option<ContextId>,
    vmid: Option<Vmid>,
) -> ViewId {
    let candidates = [(context_id, vmid), (context_id, None), (None, vmid)];
    let position = candidates.into_iter().find_map(|(context_id, vmid)| {
        let scope = Scope { context_id, vmid };
        views.clone().position(|context| context == scope)
    });
    position.map_or_else(ViewId::default, ViewId::of)
}
