//! Options for opening a capture, named as the command's.

use std::ffi::c_char;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Mutex;

use tracewalk::ids::{Address, TraceId};
use tracewalk_analysis::Doubtful;
use tracewalk_session::{Follow, Policy, Request, Trust};

use crate::boundary::{release, text, wait};
use crate::call::guarded;
use crate::error::tracewalk_error;
use crate::status::{Problem, tracewalk_status};

/// Options for opening a capture.
#[derive(Debug)]
pub struct tracewalk_options(Mutex<Asked>);

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) request: Request,
    pub(crate) follow: Follow,
}

impl Default for Asked {
    /// Nothing is stated. Elements in doubt are kept, as in a decoder: gaps mark them.
    fn default() -> Self {
        let trust = Trust { image: false, doubtful: Doubtful::Keep };
        Self { request: Request::default(), follow: Follow { names: None, trust, ..Follow::default() } }
    }
}

impl tracewalk_options {
    pub(crate) fn asked(&self) -> Result<Asked, Problem> {
        Ok(wait(Some(&self.0))?.clone())
    }
}

impl Asked {
    fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        let Self { request, follow } = self;
        let stated = &mut request.stated;
        match name {
            "image" => request.images.push(read(name, value)?),
            "source" => stated.sources.push(read(name, value)?),
            "root" => request.roots.push(PathBuf::from(value)),
            "container" => stated.container = Some(read(name, value)?),
            "id" => {
                let id = u8::try_from(number(name, value)?).ok().and_then(TraceId::new);
                request.ids.push(id.ok_or_else(|| unfit(name, value, "a trace ID from 0x01 to 0x6f"))?);
            }
            "frame-start" => stated.frame_start = Some(small(name, value)?),
            "read-pointer" => stated.read_pointer = Some(small(name, value)?),
            "swap-words" => stated.swap_words = yes(name, value)?,
            "dump-address" => stated.dump_address = Some(Address::new(number(name, value)?)),
            "vector-table" => stated.vector_table = Some(Address::new(number(name, value)?)),
            "svd" => stated.svd = Some(PathBuf::from(value)),
            "symfs" => stated.binaries.symfs = Some(PathBuf::from(value)),
            "kallsyms" => stated.binaries.kallsyms = Some(PathBuf::from(value)),
            "debug-dir" => stated.binaries.debug_dirs.push(PathBuf::from(value)),
            "registers" => stated.mtb.registers = Some(PathBuf::from(value)),
            "mtb-position" => stated.mtb.position = Some(small(name, value)?),
            "mtb-master" => stated.mtb.master = Some(small(name, value)?),
            "mtb-base" => stated.mtb.base = Some(small(name, value)?),
            "mtb-pc" => stated.mtb.halted_at = Some(Address::new(number(name, value)?)),
            "memory" => request.limit = read(name, value)?,
            "strict" => request.policy = if yes(name, value)? { Policy::Strict } else { Policy::Infer },
            "doubtful" => {
                follow.trust.doubtful = match value {
                    "keep" => Doubtful::Keep,
                    "drop" => Doubtful::Drop,
                    _ => return Err(unfit(name, value, "`keep` or `drop`")),
                }
            }
            "trust-image" => follow.trust.image = yes(name, value)?,
            "threads" => follow.threads = small::<u16>(name, value)?.max(1),
            _ => return Err(Problem::argument(format!("name: found `{name}`, expected an option's name"))),
        }
        Ok(())
    }
}

fn read<T: FromStr<Err: Display>>(name: &str, value: &str) -> Result<T, Problem> {
    value.parse().map_err(|problem| Problem::argument(format!("{name}: {problem}")))
}

fn number(name: &str, value: &str) -> Result<u64, Problem> {
    let found = match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => value.parse(),
    };
    found.map_err(|_| unfit(name, value, "a number"))
}

fn small<T: TryFrom<u64>>(name: &str, value: &str) -> Result<T, Problem> {
    number(name, value)?.try_into().map_err(|_| unfit(name, value, "a smaller number"))
}

fn yes(name: &str, value: &str) -> Result<bool, Problem> {
    match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(unfit(name, value, "`true` or `false`")),
    }
}

fn unfit(name: &str, value: &str, expected: &str) -> Problem {
    Problem::argument(format!("{name}: found `{value}`, expected {expected}"))
}

/// Creates options with nothing stated: tracewalk works out everything.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_options_new() -> Box<tracewalk_options> {
    Box::new(tracewalk_options(Mutex::default()))
}

/// Sets an option by the command's name without its dashes: `image`, `source`, `root`, `id`, `debug-dir` (each may be
/// set several times), `container`, `frame-start`, `read-pointer`, `swap-words`, `dump-address`, `vector-table`, `svd`,
/// `symfs`, `kallsyms`, `registers`, `mtb-position`, `mtb-master`, `mtb-base`, `mtb-pc`, `memory`, `strict`,
/// `trust-image`, `doubtful`, `threads`. Switches take `true` or `false`. The default of `doubtful` is `keep`: gaps
/// state which elements may be wrong.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_options_set(
    options: Option<&tracewalk_options>,
    name: *const c_char,
    value: *const c_char,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        // SAFETY: the program keeps to the preconditions in the header.
        let (name, value) = unsafe { (text("name", name)?, text("value", value)?) };
        wait(options.map(|options| &options.0))?.set(name, value)?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Frees options; a null pointer is ignored. Sessions that were opened with them stay valid.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_options_free(options: Option<Box<tracewalk_options>>) {
    release(options);
}
