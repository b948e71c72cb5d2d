//! The program's code: regions of bytes by address, and by context if the code at an address depends on it.
//!
//! Regions are added once, then only read, and shared by everything that follows execution. Touching regions become
//! one, so that an instruction may lie across the border of two memory dumps. ELF files and symbols are not here.
//!
//! ```
//! use tracewalk::ids::{Address, ContextId};
//! use tracewalk::program::{Program, Scope};
//!
//! let mut program = Program::new();
//! program.add(Address::new(0xc000_0000), &[1; 4])?; // the kernel
//! program.add_in(Scope::context(ContextId(0x42)), Address::new(0x8000), &[2; 4])?; // a process
//! program.add_in(Scope::context(ContextId(0x43)), Address::new(0x8000), &[3; 4])?; // another one
//!
//! let view = program.view(program.view_in(Some(ContextId(0x43)), None));
//! assert_eq!(view.code(Address::new(0x8000)), Some(&[3; 4][..]));
//! assert_eq!(view.code(Address::new(0xc000_0000)), Some(&[1; 4][..]));
//! assert_eq!(program.code(Address::new(0x8000)), None);
//! # Ok::<(), tracewalk::program::AddRegionError>(())
//! ```

mod error;
mod regions;
mod scope;
mod vectors;
mod views;

use alloc::vec::Vec;

use crate::ids::{Address, ContextId, Exception, Vmid};

pub use error::AddRegionError;
pub use regions::Region;
use regions::Regions;
use scope::MOST_VIEWS;
pub use scope::{Scope, ViewId};
use views::Part;

/// The known code of a program, by address.
///
/// Methods answer for the code that is visible while no context is known, unless they state otherwise.
/// [`Program::view`] gives the code that is visible in a context.
#[derive(Clone, Debug, Default)]
pub struct Program {
    regions: Regions,
    /// M profile's vector table, if it is known.
    vector_table: Option<Address>,
    /// Whether the low byte of a context ID is an address space's number, which scopes leave out.
    has_address_spaces: bool,
    /// Code that is visible in some contexts only, the least specific scopes first.
    parts: Vec<Part>,
    /// The views of the contexts that the parts name, rebuilt with every part.
    views: Vec<View>,
}

/// The code that is visible in `context`, and in contexts that add only IDs that no part names.
#[derive(Clone, Debug)]
struct View {
    context: Scope,
    program: Program,
}

/// Whether M profile's vector table has a handler at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// The table's address is unknown.
    Unknown,
    /// No handler starts there.
    None,
    /// The handler of one exception starts there.
    One(Exception),
    /// A handler starts there that several exceptions share.
    Several,
}

impl Program {
    /// A program without code.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            regions: Regions::new(),
            vector_table: None,
            has_address_spaces: false,
            parts: Vec::new(),
            views: Vec::new(),
        }
    }

    /// Adds the bytes at `start`, visible in all contexts. If memory is already known, its bytes have to be
    /// the same.
    ///
    /// To add many regions use a [`ProgramBuilder`]: every call of this method rebuilds the views of all contexts.
    ///
    /// # Errors
    ///
    /// If the bytes extend past the last 64-bit address, or memory is already known and has other bytes. The program is as before.
    pub fn add(&mut self, start: Address, bytes: &[u8]) -> Result<(), AddRegionError> {
        self.add_in(Scope::EVERYWHERE, start, bytes)
    }

    /// Adds the bytes at `start`, visible only in the contexts of `scope`. There they hide code that is
    /// visible in more contexts. If memory is already known for the same scope, its bytes have to be the
    /// same.
    ///
    /// # Errors
    ///
    /// As [`Program::add`], or if memory would differ in more contexts than a program distinguishes. The program is as before.
    pub fn add_in(&mut self, scope: Scope, start: Address, bytes: &[u8]) -> Result<(), AddRegionError> {
        self.put(scope, start, bytes)?;
        self.make_views();
        Ok(())
    }

    /// A builder that holds this program's code, to add more.
    #[must_use]
    pub fn into_builder(self) -> ProgramBuilder {
        ProgramBuilder { unfinished: Self { views: Vec::new(), ..self } }
    }

    /// The known bytes from `address` on, to the end of their region; `None` if nothing is known.
    #[must_use]
    #[inline]
    pub fn code(&self, address: Address) -> Option<&[u8]> {
        self.regions.code(address)
    }

    /// The word at `address`, in the byte order of code.
    #[must_use]
    pub fn word(&self, address: Address) -> Option<u32> {
        self.regions.word(address)
    }

    /// Sets the address of M profile's vector table (VTOR), before decoding.
    ///
    /// An MTB does not trace which exception is taken: flow looks for the handler's address in the table. Without the table, the
    /// exceptions of an MTB have no number. Trace units state the number themselves.
    pub fn set_vector_table(&mut self, at: Address) {
        self.vector_table = Some(at);
        for view in &mut self.views {
            view.program.vector_table = Some(at);
        }
    }

    /// The address of M profile's vector table, if it was set.
    #[must_use]
    pub const fn vector_table(&self) -> Option<Address> {
        self.vector_table
    }

    /// M profile: whether the vector table has a handler at `address`.
    #[must_use]
    pub fn vectors_to(&self, address: Address) -> Vectors {
        let Some(table) = self.vector_table else { return Vectors::Unknown };
        let mut found = vectors::handlers(&self.regions, table).filter(|&(_, handler)| handler == address);
        match (found.next(), found.next()) {
            (None, _) => Vectors::None,
            (Some((number, _)), None) => Vectors::One(Exception::M(number)),
            (Some(_), Some(_)) => Vectors::Several,
        }
    }

    /// The regions that are visible in all contexts, in the order of their addresses.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        self.regions.all()
    }

    /// The regions that are visible in some contexts only, by scope, then in the order of their addresses.
    pub fn regions_in_scopes(&self) -> impl Iterator<Item = (Scope, &Region)> {
        self.parts.iter().flat_map(|part| part.regions.all().iter().map(move |region| (part.scope, region)))
    }

    /// All regions: first those that are visible in all contexts.
    pub fn all_regions(&self) -> impl Iterator<Item = (Scope, &Region)> {
        let everywhere = self.regions().iter().map(|region| (Scope::EVERYWHERE, region));
        everywhere.chain(self.regions_in_scopes())
    }

    /// The scopes for which code was added. A scope comes after those that it covers.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> {
        self.parts.iter().map(|part| part.scope)
    }

    /// Whether the program has a byte at `address`, visible in at least one context.
    #[must_use]
    pub fn holds(&self, address: Address) -> bool {
        self.code(address).is_some() || self.parts.iter().any(|part| part.regions.code(address).is_some())
    }

    /// The scope of the byte that is visible at `address` in this context.
    #[must_use]
    pub fn scope_at(&self, context_id: Option<ContextId>, vmid: Option<Vmid>, address: Address) -> Scope {
        let context_id = self.named(context_id);
        let shows =
            |part: &&Part| part.scope.includes(context_id, vmid) && part.regions.code(address).is_some();
        self.parts.iter().rev().find(shows).map_or(Scope::EVERYWHERE, |part| part.scope)
    }

    /// Whether the program has no code.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.regions.all().is_empty() && self.parts.is_empty()
    }

    /// The view of a context; `None` means unknown.
    #[must_use]
    pub fn view_in(&self, context_id: Option<ContextId>, vmid: Option<Vmid>) -> ViewId {
        scope::nearest(&self.views.iter().map(|view| view.context), self.named(context_id), vmid)
    }

    /// Declares that the low byte of context IDs in the trace is an address space's number (ASID), which does
    /// not identify a process: the context IDs of scopes have 0 there. Linux on Armv7-A uses context IDs in
    /// this way (CONTEXTIDR, ARM DDI 0406C, B4.1.36).
    pub const fn leave_out_address_spaces(&mut self) {
        self.has_address_spaces = true;
    }

    /// Whether scopes leave out address spaces: see [`Program::leave_out_address_spaces`].
    #[must_use]
    pub const fn leaves_out_address_spaces(&self) -> bool {
        self.has_address_spaces
    }

    /// The part of a context ID that scopes name.
    #[must_use]
    pub fn named(&self, context_id: Option<ContextId>) -> Option<ContextId> {
        const ADDRESS_SPACE: u32 = 0xff;
        context_id.map(|id| if self.has_address_spaces { ContextId(id.0 & !ADDRESS_SPACE) } else { id })
    }

    /// The code of a view, as a program without views whose regions are visible everywhere. The default view
    /// is the program itself.
    #[must_use]
    #[inline]
    pub fn view(&self, id: ViewId) -> &Self {
        id.index().and_then(|index| self.views.get(index)).map_or(self, |view| &view.program)
    }

    /// All views: first the one for an unknown context, then those of contexts that see other code.
    pub fn views(&self) -> impl Iterator<Item = (ViewId, Scope)> {
        let others = self.views.iter().enumerate().map(|(index, view)| (ViewId::of(index), view.context));
        core::iter::once((ViewId::default(), Scope::EVERYWHERE)).chain(others)
    }

    /// Adds the bytes without rebuilding the views. An error leaves everything as it was.
    fn put(&mut self, scope: Scope, start: Address, bytes: &[u8]) -> Result<(), AddRegionError> {
        if scope == Scope::EVERYWHERE || bytes.is_empty() {
            return self.regions.add(start, bytes);
        }
        match self.parts.binary_search_by_key(&scope.rank(), |part| part.scope.rank()) {
            Ok(at) => self.parts[at].regions.add(start, bytes),
            Err(at) => {
                let mut regions = Regions::new();
                regions.add(start, bytes)?;
                let scopes = self.scopes().chain([scope]).collect::<Vec<_>>();
                if scope::contexts(&scopes).nth(MOST_VIEWS).is_some() {
                    return Err(AddRegionError::TooManyViews);
                }
                self.parts.insert(at, Part { scope, regions });
                Ok(())
            }
        }
    }

    fn make_views(&mut self) {
        let scopes = self.scopes().collect::<Vec<_>>();
        let view = |context| {
            let regions = views::visible(&self.regions, &self.parts, context);
            let program = Self { regions, vector_table: self.vector_table, ..Self::new() };
            View { context, program }
        };
        self.views = scope::contexts(&scopes).map(view).collect();
    }
}

/// Collects the code of a [`Program`]; the views are built once, with the program.
///
/// ```
/// use tracewalk::ids::{Address, ContextId};
/// use tracewalk::program::{ProgramBuilder, Scope};
///
/// let mut builder = ProgramBuilder::new();
/// builder.add(Address::new(0xc000_0000), &[1; 4])?;
/// builder.add_in(Scope::context(ContextId(0x42)), Address::new(0x8000), &[2; 4])?;
/// let program = builder.build();
/// assert_eq!(program.code(Address::new(0xc000_0000)), Some(&[1; 4][..]));
/// # Ok::<(), tracewalk::program::AddRegionError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ProgramBuilder {
    /// The program so far, without views.
    unfinished: Program,
}

impl ProgramBuilder {
    /// A builder that holds no code.
    #[must_use]
    pub const fn new() -> Self {
        Self { unfinished: Program::new() }
    }

    /// Adds bytes as [`Program::add`] does.
    ///
    /// # Errors
    ///
    /// As [`Program::add`].
    pub fn add(&mut self, start: Address, bytes: &[u8]) -> Result<(), AddRegionError> {
        self.add_in(Scope::EVERYWHERE, start, bytes)
    }

    /// Adds bytes as [`Program::add_in`] does.
    ///
    /// # Errors
    ///
    /// As [`Program::add_in`].
    pub fn add_in(&mut self, scope: Scope, start: Address, bytes: &[u8]) -> Result<(), AddRegionError> {
        self.unfinished.put(scope, start, bytes)
    }

    /// Sets the address of M profile's vector table (VTOR), as [`Program::set_vector_table`] does.
    pub fn set_vector_table(&mut self, at: Address) {
        self.unfinished.vector_table = Some(at);
    }

    /// The program.
    #[must_use]
    pub fn build(self) -> Program {
        let mut program = self.unfinished;
        program.make_views();
        program
    }
}

#[cfg(test)]
mod tests;
