//! Python's arguments → what a session is asked for.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pyo3::prelude::*;
use pyo3::types::PyString;
use tracewalk::ids::{Address, TraceId};
use tracewalk_analysis::clock::Unit;
use tracewalk_input::capture::perf::BinaryPlaces;
use tracewalk_session::{MtbStatements, Policy, Request, Statements};

use crate::problem::Problem;

/// A text or a path, or several of them.
#[derive(Debug, Default)]
pub(crate) struct Several(Vec<String>);

impl<'a, 'py> FromPyObject<'a, 'py> for Several {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let text = |value: &Bound<'py, PyAny>| match value.cast::<PyString>() {
            Ok(text) => Ok(text.to_string()),
            Err(_) => value.extract::<PathBuf>().map(|path| path.display().to_string()),
        };
        let value = value.to_owned();
        match text(&value) {
            Ok(one) => Ok(Self(vec![one])),
            Err(error) => match value.try_iter() {
                Ok(several) => Ok(Self(several.map(|one| text(&one?)).collect::<PyResult<_>>()?)),
                Err(_) => Err(error),
            },
        }
    }
}

impl Several {
    /// Each of them, read as the command reads it.
    fn read<T: FromStr<Err: Display>>(self, name: &str) -> Result<Vec<T>, Problem> {
        self.0.iter().map(|text| read(name, text)).collect()
    }

    fn paths(self) -> Vec<PathBuf> {
        self.0.into_iter().map(PathBuf::from).collect()
    }
}

/// What of a capture is stated by number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) frame_start: Option<u8>,
    pub(crate) read_pointer: Option<u32>,
    pub(crate) dump_address: Option<u32>,
    pub(crate) vector_table: Option<u32>,
    pub(crate) mtb_position: Option<u32>,
    pub(crate) mtb_master: Option<u32>,
    pub(crate) mtb_base: Option<u32>,
    pub(crate) mtb_pc: Option<u32>,
}

/// What of a capture is stated by names and files.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) image: Several,
    pub(crate) source: Several,
    pub(crate) root: Several,
    pub(crate) debug_dir: Several,
    pub(crate) container: Option<String>,
    pub(crate) symfs: Option<PathBuf>,
    pub(crate) svd: Option<PathBuf>,
    pub(crate) registers: Option<PathBuf>,
    pub(crate) memory: Option<String>,
    pub(crate) ids: Vec<u8>,
    pub(crate) swap_words: bool,
    pub(crate) strict: bool,
}

/// What is to be opened.
pub(crate) fn request(capture: PathBuf, names: Names, numbers: Numbers) -> Result<Request, Problem> {
    let container = names.container.filter(|container| container != "auto");
    // perf's own cache.
    let cache = std::env::var_os("HOME").map(|home| Path::new(&home).join(".debug"));
    let debug_dirs = names.debug_dir.paths().into_iter().chain(cache).collect();
    let id = |id: &u8| {
        TraceId::new(*id).ok_or_else(|| Problem::argument("ids", "expected a trace ID from 0x01 to 0x6f"))
    };
    Ok(Request {
        capture,
        roots: names.root.paths(),
        stated: Statements {
            container: container.map(|container| read("container", &container)).transpose()?,
            frame_start: numbers.frame_start,
            read_pointer: numbers.read_pointer,
            swap_words: names.swap_words,
            dump_address: numbers.dump_address.map(Address::from),
            binaries: BinaryPlaces { symfs: names.symfs, debug_dirs },
            sources: names.source.read("source")?,
            mtb: MtbStatements {
                position: numbers.mtb_position,
                master: numbers.mtb_master,
                base: numbers.mtb_base,
                halted_at: numbers.mtb_pc.map(Address::from),
                registers: names.registers,
            },
            svd: names.svd,
            vector_table: numbers.vector_table.map(Address::from),
            ..Statements::default()
        },
        images: names.image.read("image")?,
        ids: names.ids.iter().map(id).collect::<Result<_, _>>()?,
        policy: if names.strict { Policy::Strict } else { Policy::Infer },
        limit: names.memory.map(|memory| read("memory", &memory)).transpose()?.unwrap_or_default(),
        segment: None,
    })
}

/// What time or cost is counted in.
pub(crate) fn unit(name: Option<&str>) -> Result<Option<Unit>, Problem> {
    Ok(match name {
        None | Some("best") => None,
        Some("instructions") => Some(Unit::Instructions),
        Some("cycles") => Some(Unit::Cycles),
        Some("time") => Some(Unit::Time),
        Some(other) => {
            let problem = format!("expected `best`, `instructions`, `cycles` or `time`, found `{other}`");
            return Err(Problem::argument("measure", problem));
        }
    })
}

fn read<T: FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|problem| Problem::argument(name, problem))
}
