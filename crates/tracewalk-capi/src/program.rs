//! The code that ran, for bytes that are pushed.

use std::ffi::c_char;
use std::sync::{Arc, Mutex};

use tracewalk::ids::{Address, ContextId};
use tracewalk::program::{Program, ProgramBuilder, Scope};
use tracewalk_input::image::{ImageLoader, ImageRequest};

use crate::boundary::{enter, guarded, release, slice, text};
use crate::error::{Problem, tracewalk_error, tracewalk_status};

/// The code that ran: what decoders follow. A decoder keeps what was added before it was made.
#[derive(Debug, Default)]
pub struct tracewalk_program(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    builder: ProgramBuilder,
    /// Made of the builder when a decoder wants it.
    built: Option<Arc<Program>>,
}

impl tracewalk_program {
    /// What was added so far.
    pub(crate) fn built(&self) -> Result<Arc<Program>, Problem> {
        let mut kept = enter(Some(&self.0))?;
        let Kept { builder, built } = &mut *kept;
        Ok(Arc::clone(built.get_or_insert_with(|| Arc::new(builder.clone().build()))))
    }

    fn add(&self, scope: Scope, start: Address, bytes: &[u8]) -> Result<(), Problem> {
        let mut kept = enter(Some(&self.0))?;
        kept.built = None;
        kept.builder.add_in(scope, start, bytes).map_err(|error| Problem::argument(error.to_string()))
    }
}

fn given(program: Option<&tracewalk_program>) -> Result<&tracewalk_program, Problem> {
    program.ok_or_else(|| Problem::argument("program: found a null pointer"))
}

/// A program without any code.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_program_new() -> Box<tracewalk_program> {
    Box::default()
}

/// Adds code from memory: `size` bytes that stand at `address`, visible in all contexts. They are copied. Where memory is
/// already known the bytes have to be the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_program_add(
    program: Option<&tracewalk_program>,
    address: u64,
    bytes: *const u8,
    size: usize,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        // SAFETY: the program promises it, as the header says.
        let bytes = unsafe { slice("bytes", bytes, size) }?;
        given(program)?.add(Scope::EVERYWHERE, Address::new(address), bytes)?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Adds code that is visible under one context ID alone, and there instead of what is visible everywhere.
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
        // SAFETY: the program promises it, as the header says.
        let bytes = unsafe { slice("bytes", bytes, size) }?;
        given(program)?.add(Scope::context(ContextId(context_id)), Address::new(address), bytes)?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Adds code from a file, in the words of the command's `--image`: `FILE` for ELF, Intel HEX and Motorola S-records,
/// `ADDRESS:FILE` for bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_program_add_file(
    program: Option<&tracewalk_program>,
    image: *const c_char,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        // SAFETY: the program promises it, as the header says.
        let image = unsafe { text("image", image) }?;
        let request =
            image.parse::<ImageRequest>().map_err(|error| Problem::argument(format!("image: {error}")))?;
        let memory = ImageLoader::new().memory([&request])?;
        let program = given(program)?;
        for region in memory.program.regions() {
            program.add(Scope::EVERYWHERE, region.start(), region.bytes())?;
        }
        for (scope, region) in memory.program.regions_in_scopes() {
            program.add(scope, region.start(), region.bytes())?;
        }
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// States where M profile's table of vectors is (VTOR), which tells exceptions' handlers apart.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_program_set_vector_table(
    program: Option<&tracewalk_program>,
    address: u64,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let mut kept = enter(program.map(|program| &program.0))?;
        kept.built = None;
        kept.builder.set_vector_table(Address::new(address));
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: the program promises it, as the header says.
    unsafe { guarded(error, work) }
}

/// Frees a program; a null pointer is none. Decoders that were made with it go on.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_program_free(program: Option<Box<tracewalk_program>>) {
    release(program);
}
