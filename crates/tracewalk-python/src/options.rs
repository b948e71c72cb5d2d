//! Python's arguments → a session's request.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tracewalk::ids::{Address, TraceId};
use tracewalk_analysis::Doubtful;
use tracewalk_analysis::clock::Unit;
use tracewalk_input::capture::perf::BinaryPlaces;
use tracewalk_session::{Follow, MtbStatements, Policy, Request, Shared, Statements, Trust, View};

use crate::answers::Checks;
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
    /// Parses each text as the command does.
    fn read<T: FromStr<Err: Display>>(self, name: &str) -> Result<Vec<T>, Problem> {
        self.0.iter().map(|text| read(name, text)).collect()
    }

    pub(crate) fn paths(self) -> Vec<PathBuf> {
        self.0.into_iter().map(PathBuf::from).collect()
    }
}

/// Statements about a capture that are numbers.
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

/// Statements about a capture that are names and files.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) image: Several,
    pub(crate) source: Several,
    pub(crate) root: Several,
    pub(crate) debug_dir: Several,
    pub(crate) container: Option<String>,
    pub(crate) symfs: Option<PathBuf>,
    pub(crate) kallsyms: Option<PathBuf>,
    pub(crate) svd: Option<PathBuf>,
    pub(crate) registers: Option<PathBuf>,
    pub(crate) memory: Option<String>,
    pub(crate) ids: Vec<u8>,
    pub(crate) swap_words: bool,
    pub(crate) strict: bool,
}

/// The trust in image and trace, and the settings of the work.
#[derive(Debug, Default)]
pub(crate) struct Belief {
    pub(crate) threads: Option<u16>,
    pub(crate) trust_image: bool,
    pub(crate) doubtful: Option<String>,
    pub(crate) source_dirs: Option<Vec<PathBuf>>,
}

/// All settings for captures.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The request, without the capture.
    pub(crate) request: Request,
    pub(crate) follow: Follow,
    /// The treatment of instructions in doubt, if it was stated.
    pub(crate) doubtful: Option<Doubtful>,
}

/// A cache of programs that several captures ran, with learned effects: pass it to each call that opens captures.
#[pyclass(module = "tracewalk", frozen)]
#[derive(Debug, Default)]
pub(crate) struct Programs(pub(crate) Shared);

#[pymethods]
impl Programs {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

impl Settings {
    pub(crate) fn new(names: Names, numbers: Numbers, belief: Belief) -> Result<Self, Problem> {
        let doubtful = match belief.doubtful.as_deref() {
            None => None,
            Some("keep") => Some(Doubtful::Keep),
            Some("drop") => Some(Doubtful::Drop),
            Some(other) => {
                return Err(Problem::argument(
                    "doubtful",
                    format!("expected `keep` or `drop`, found `{other}`"),
                ));
            }
        };
        let follow = Follow {
            // Sums leave out instructions in doubt; program flow shows them.
            trust: Trust { image: belief.trust_image, doubtful: doubtful.unwrap_or(Doubtful::Drop) },
            threads: belief.threads.unwrap_or(Follow::default().threads).max(1),
            names: Some(belief.source_dirs.unwrap_or_default()),
            ..Follow::default()
        };
        Ok(Self { request: request(names, numbers)?, follow, doubtful })
    }

    /// The settings in these keywords, named as in `open`.
    pub(crate) fn of_keywords(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut left = Keywords(keywords.map(PyDictMethods::copy).transpose()?);
        /// A structure whose fields are keywords.
        macro_rules! taken {
            ($of:ident: $($field:ident)*) => { $of { $($field: left.take(stringify!($field))?),* } };
        }
        let names = taken!(
            Names: image source root debug_dir container symfs kallsyms svd registers memory ids swap_words strict
        );
        let numbers = taken!(
            Numbers: frame_start read_pointer dump_address vector_table mtb_position mtb_master mtb_base mtb_pc
        );
        let belief = taken!(Belief: threads trust_image doubtful source_dirs);
        left.finish()?;
        Ok(Self::new(names, numbers, belief)?)
    }
}

/// The keywords of a call that are not taken yet.
struct Keywords<'py>(Option<Bound<'py, PyDict>>);

impl<'py> Keywords<'py> {
    /// The value of a keyword; the default if the keyword is missing or `None`.
    fn take<T>(&mut self, name: &str) -> PyResult<T>
    where
        T: Default + for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
    {
        let Some(keywords) = &self.0 else { return Ok(T::default()) };
        let Some(value) = keywords.get_item(name)? else { return Ok(T::default()) };
        keywords.del_item(name)?;
        if value.is_none() { Ok(T::default()) } else { value.extract::<T>().map_err(Into::into) }
    }

    /// Refuses unknown keywords.
    fn finish(self) -> PyResult<()> {
        let Some(unknown) = self.0.and_then(|keywords| keywords.keys().get_item(0).ok()) else {
            return Ok(());
        };
        Err(PyTypeError::new_err(format!(
            "{unknown}: no such option; the options are those of tracewalk.open"
        )))
    }
}

/// The request, without the capture.
fn request(names: Names, numbers: Numbers) -> Result<Request, Problem> {
    let container = names.container.filter(|container| container != "auto");
    // perf's own cache.
    let cache = std::env::var_os("HOME").map(|home| Path::new(&home).join(".debug"));
    let debug_dirs = names.debug_dir.paths().into_iter().chain(cache).collect();
    let id = |id: &u8| {
        TraceId::new(*id).ok_or_else(|| Problem::argument("ids", "expected a trace ID from 0x01 to 0x6f"))
    };
    Ok(Request {
        shared: None,
        may_lack_trace: false,
        capture: PathBuf::new(),
        roots: names.root.paths(),
        stated: Statements {
            container: container.map(|container| read("container", &container)).transpose()?,
            frame_start: numbers.frame_start,
            read_pointer: numbers.read_pointer,
            swap_words: names.swap_words,
            dump_address: numbers.dump_address.map(Address::from),
            binaries: BinaryPlaces { symfs: names.symfs, debug_dirs, kallsyms: names.kallsyms },
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

/// The unit of time or cost.
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

/// What coverage is compared with, and what makes it fail.
pub(crate) fn checks(
    base: Option<PathBuf>,
    fail_under: Option<BTreeMap<String, f64>>,
    fail_on: Option<Several>,
) -> Result<Checks, Problem> {
    let limit = |(metric, percent)| read("fail_under", &format!("{metric}={percent}"));
    let limits = fail_under.unwrap_or_default().into_iter().map(limit).collect::<Result<_, _>>()?;
    let mut checks = Checks { base, limits, ..Checks::default() };
    for what in fail_on.unwrap_or_default().0 {
        match &*what {
            "loss" => checks.on_loss = true,
            "regression" if checks.base.is_some() => checks.on_regression = true,
            "regression" => return Err(Problem::argument("fail_on", "`regression` needs a base")),
            other => {
                let problem = format!("expected `loss` or `regression`, found `{other}`");
                return Err(Problem::argument("fail_on", problem));
            }
        }
    }
    Ok(checks)
}

/// The part of the trace between two places.
pub(crate) fn view(
    (start, end): (Option<&str>, Option<&str>),
    measure: Option<&str>,
) -> Result<View, Problem> {
    let start = start.map(|place| read("start", place)).transpose()?;
    let end = end.map(|place| read("end", place)).transpose()?;
    Ok(View::between(start, end, unit(measure)?)?)
}

fn read<T: FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|problem| Problem::argument(name, problem))
}
