//! The executed code, for decoders of pushed bytes.

use std::ffi::c_char;
use std::sync::{Arc, Mutex};

use tracewalk::ids::{Address, ContextId, Vmid};
use tracewalk::program::{Program, ProgramBuilder, Scope};
use tracewalk_input::image::{ImageLoader, ImageRequest};

use crate::boundary::{fill, release, slice, text, wait};
use crate::call::guarded;
use crate::element::tracewalk_element;
use crate::error::tracewalk_error;
use crate::instruction::{named_isa, tracewalk_instruction};
use crate::status::{Problem, tracewalk_status};

/// The executed code, which decoders follow. A decoder keeps the code that was added before it was created.
#[derive(Debug, Default)]
pub struct tracewalk_program(Mutex<Kept>);

/// The code, in the form that was needed last.
#[derive(Debug)]
enum Kept {
    Building(ProgramBuilder),
    Built(Arc<Program>),
}

impl Default for Kept {
    fn default() -> Self {
        Self::Building(ProgramBuilder::default())
    }
}

impl Kept {
    /// The code, to be extended. Decoders keep their own version.
    fn builder(&mut self) -> &mut ProgramBuilder {
        if let Self::Built(program) = self {
            *self = Self::Building(Arc::unwrap_or_clone(std::mem::take(program)).into_builder());
        }
        match self {
            Self::Building(builder) => builder,
            Self::Built(_) => unreachable!("made a builder above"),
        }
    }

    /// The code, to be read.
    fn built(&mut self) -> &Arc<Program> {
        if let Self::Building(builder) = self {
            *self = Self::Built(Arc::new(std::mem::take(builder).build()));
        }
        match self {
            Self::Built(program) => program,
            Self::Building(_) => unreachable!("built above"),
        }
    }
}

impl tracewalk_program {
    /// A program of existing code.
    pub(crate) const fn of(program: Arc<Program>) -> Self {
        Self(Mutex::new(Kept::Built(program)))
    }

    /// The code that was added so far.
    pub(crate) fn built(&self) -> Result<Arc<Program>, Problem> {
        Ok(Arc::clone(wait(Some(&self.0))?.built()))
    }

    fn add(&self, scope: Scope, start: Address, bytes: &[u8]) -> Result<(), Problem> {
        let mut kept = wait(Some(&self.0))?;
        kept.builder().add_in(scope, start, bytes).map_err(|error| Problem::argument(error.to_string()))
    }
}

fn given(program: Option<&tracewalk_program>) -> Result<&tracewalk_program, Problem> {
    program.ok_or_else(|| Problem::argument("program: found a null pointer"))
}

/// Creates a program without code.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_program_new() -> Box<tracewalk_program> {
    Box::default()
}

/// Adds code from memory: `size` bytes at `address`, visible in all contexts. The bytes are copied. If memory is
/// already known, the bytes must be the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_program_add(
    program: Option<&tracewalk_program>,
    address: u64,
    bytes: *const u8,
    size: usize,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        // SAFETY: the program keeps to the preconditions in the header.
        let bytes = unsafe { slice("bytes", bytes, size) }?;
        given(program)?.add(Scope::EVERYWHERE, Address::new(address), bytes)?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Adds code that is visible only under one context ID, and replaces there the code that is visible everywhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_program_add_in_context(
    program: Option<&tracewalk_program>,
    context_id: u32,
    address: u64,
    bytes: *const u8,
    size: usize,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        // SAFETY: the program keeps to the preconditions in the header.
        let bytes = unsafe { slice("bytes", bytes, size) }?;
        given(program)?.add(Scope::context(ContextId(context_id)), Address::new(address), bytes)?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Adds code from a file, in the form of the command's `--image`: `FILE` for ELF, Intel HEX and Motorola S-records,
/// `ADDRESS:FILE` for bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_program_add_file(
    program: Option<&tracewalk_program>,
    image: *const c_char,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        // SAFETY: the program keeps to the preconditions in the header.
        let image = unsafe { text("image", image) }?;
        let request =
            image.parse::<ImageRequest>().map_err(|error| Problem::argument(format!("image: {error}")))?;
        let memory = ImageLoader::new().memory([&request])?;
        let program = given(program)?;
        for (scope, region) in memory.program.all_regions() {
            program.add(scope, region.start(), region.bytes())?;
        }
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Sets the address of M profile's vector table (VTOR), by which exceptions are matched with their handlers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_program_set_vector_table(
    program: Option<&tracewalk_program>,
    address: u64,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        wait(program.map(|program| &program.0))?.builder().set_vector_table(Address::new(address));
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: the program keeps to the preconditions in the header.
    unsafe { guarded(error, work) }
}

/// Reads the known code from `address` on, as much as fits into `size` bytes without a hole. `got` receives the number
/// of copied bytes, 0 if the program has no code there. `context` is null, or an element of `TRACEWALK_KIND_CONTEXT`,
/// whose context ID and VMID select the visible code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_program_read(
    program: Option<&tracewalk_program>,
    context: *const tracewalk_element,
    address: u64,
    bytes: *mut u8,
    size: usize,
    got: *mut usize,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        if got.is_null() || !got.is_aligned() || (bytes.is_null() && size > 0) {
            return Err(Problem::argument("bytes, got: found a null pointer, expected places to write to"));
        }
        let program = given(program)?.built()?;
        // SAFETY: the program keeps to the preconditions in the header.
        let code = code_at(&program, unsafe { tracewalk_element::context(context) }, address);
        let code = &code[..code.len().min(size)];
        // SAFETY: the program promises that `size` bytes and a number can be written there; neither is the library's
        // memory.
        unsafe {
            if !code.is_empty() {
                bytes.copy_from_nonoverlapping(code.as_ptr(), code.len());
            }
            got.write(code.len());
        }
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Describes the instruction at `address`; `isa` is a `tracewalk_isa`, and `size` is `sizeof(tracewalk_instruction)`.
/// `context` is as for `tracewalk_program_read`. `TRACEWALK_STATUS_END`: the program has no code there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_program_instruction(
    program: Option<&tracewalk_program>,
    context: *const tracewalk_element,
    address: u64,
    isa: u32,
    out: *mut tracewalk_instruction,
    size: usize,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let isa = named_isa(isa)?;
        let program = given(program)?.built()?;
        // SAFETY: the program keeps to the preconditions in the header.
        let code = code_at(&program, unsafe { tracewalk_element::context(context) }, address);
        if code.is_empty() {
            return Ok(tracewalk_status::End);
        }
        let found = tracewalk_instruction::of(code, Address::new(address), isa)?;
        // SAFETY: as above.
        unsafe { fill(out, size, size_of::<tracewalk_instruction>(), &found) }?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// The code from an address on, as a context sees it.
fn code_at(program: &Program, (context_id, vmid): (Option<ContextId>, Option<Vmid>), address: u64) -> &[u8] {
    let view = program.view(program.view_in(context_id, vmid));
    view.code(Address::new(address)).unwrap_or_default()
}

/// Frees a program; a null pointer is ignored. Decoders that were created with it stay valid.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_program_free(program: Option<Box<tracewalk_program>>) {
    release(program);
}
