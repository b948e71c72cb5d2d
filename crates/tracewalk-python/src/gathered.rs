//! Many captures as one: the sum of their answers, which can be reported, saved, and merged with others.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tracewalk_analysis::captures::{Captures, OneOfMany};
use tracewalk_analysis::counts::CountedBinary;
use tracewalk_analysis::coverage::ProgramCoverage;
use tracewalk_analysis::profile::ProgramProfiles;
use tracewalk_analysis::programs::{MergeError, OfProgram, Programs};
use tracewalk_analysis::saved::{Save, SavedError, saved_kind};
use tracewalk_analysis::table::Tabular as _;
use tracewalk_sentences::{NO_PROGRAM, row};
use tracewalk_session::{
    Additive, Answered, FollowedProgram, Gathering, Notices, OfCounts, OfCoverage, OfProfile,
};

use crate::answer;
use crate::answers::{self, Measure};
use crate::options::{self, Settings, Several};
use crate::problem::Problem;
use crate::table::Table;
use crate::worker::{Watch, guarded, wait};

/// The sum of one additive answer over captures.
#[derive(Clone, Debug)]
enum Sum {
    Counts(Programs<CountedBinary>),
    Coverage(Programs<ProgramCoverage>),
    Profile(Programs<ProgramProfiles>),
}

/// Does the same for every kind of answer.
macro_rules! each {
    ($sum:expr, $found:ident => $do:expr) => {
        match $sum {
            Sum::Counts($found) => $do,
            Sum::Coverage($found) => $do,
            Sum::Profile($found) => $do,
        }
    };
}

/// The sum of many captures: execution counts, coverage, or the costs of functions.
#[pyclass(module = "tracewalk", frozen)]
#[derive(Debug)]
pub(crate) struct Gathered {
    sum: Sum,
    captures: Captures,
}

/// Gathers an answer of many captures, several at a time. A capture that cannot be read is only a row of `captures`.
///
/// `answer` is `counts`, `coverage` or `profile`. The options are those of `open`. `programs` is the cache that this
/// call shares with others; `progress` receives the number of captures that are done, and of all.
#[pyfunction]
#[pyo3(signature = (captures, *, answer = "counts", programs = None, progress = None, **options))]
pub(crate) fn gather(
    py: Python<'_>,
    captures: Several,
    answer: &str,
    programs: Option<Bound<'_, options::Programs>>,
    progress: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Gathered> {
    let Settings { request, follow, .. } = Settings::of_keywords(options)?;
    let shared = programs.map(|programs| programs.get().0.clone()).unwrap_or_default();
    let watch = Arc::<Watch>::default();
    let gathering = Gathering { request, how: follow, shared, stop: Arc::clone(&watch.stop) };
    let work = Work { gathering, captures: captures.paths(), watch };
    let progress = progress.cloned().map(Bound::unbind);
    let progress = progress.as_ref();
    match answer {
        "counts" => work.run(py, progress, OfCounts, Sum::Counts),
        "coverage" => work.run(py, progress, OfCoverage::default(), Sum::Coverage),
        "profile" => work.run(py, progress, OfProfile::default(), Sum::Profile),
        other => {
            let problem = format!("expected `counts`, `coverage` or `profile`, found `{other}`");
            Err(Problem::argument("answer", problem).into())
        }
    }
}

struct Work {
    gathering: Gathering,
    captures: Vec<PathBuf>,
    watch: Arc<Watch>,
}

impl Work {
    /// Gathers on a thread, and waits for it.
    fn run<Q: Additive + Send + 'static>(
        self,
        py: Python<'_>,
        progress: Option<&Py<PyAny>>,
        question: Q,
        make: fn(Programs<Q::Answer>) -> Sum,
    ) -> PyResult<Gathered> {
        let watch = Arc::clone(&self.watch);
        let (sender, answer) = channel();
        thread::Builder::new().name("tracewalk".to_owned()).spawn(move || {
            // The caller may have gone.
            let _ = sender.send(guarded(|| self.gather(&question, make)));
        })?;
        Ok(wait(py, answer, &watch, progress)??)
    }

    fn gather<Q: Additive>(
        &self,
        question: &Q,
        make: fn(Programs<Q::Answer>) -> Sum,
    ) -> Result<Gathered, Problem> {
        let mut found = Programs::<Q::Answer>::default();
        let mut rows = vec![None; self.captures.len()];
        self.watch.all.store(self.captures.len() as u64, Ordering::Relaxed);
        self.gathering.run(question, &self.captures, |of| {
            if let Some(place) = rows.get_mut(of.index) {
                *place = Some(row(&of));
            }
            if let Ok(answered) = of.found {
                found.add_all(answered.programs);
            }
            self.watch.done.fetch_add(1, Ordering::Relaxed);
            Ok::<(), Problem>(())
        })?;
        let complete = found.complete;
        let captures = Captures { captures: rows.into_iter().flatten().collect(), complete };
        Ok(Gathered { sum: make(found), captures })
    }
}

/// Reads a file that `save`, `to_bytes` or the command's `--save` wrote: its name, or its bytes.
#[pyfunction]
pub(crate) fn read(saved: &Bound<'_, PyAny>) -> PyResult<Gathered> {
    let (name, bytes) = match saved.cast::<PyBytes>() {
        Ok(bytes) => ("saved bytes".to_owned(), bytes.as_bytes().to_vec()),
        Err(_) => {
            let path = saved.extract::<PathBuf>()?;
            (path.display().to_string(), std::fs::read(&path)?)
        }
    };
    Ok(Gathered::read(&name, &bytes)?)
}

#[pymethods]
impl Gathered {
    /// The kind of answer: `counts`, `coverage` or `profile`.
    #[getter]
    fn answer(&self) -> &'static str {
        each!(&self.sum, found => kind(found))
    }

    /// The outcome of each capture: a table with one row for each, in the given order.
    #[getter]
    fn captures(&self) -> PyResult<Table> {
        let [table] = self.captures.tables().try_into().map_err(|_| Problem::defect("a table is missing"))?;
        Ok(Table::of(&table)?)
    }

    /// Whether every capture that counts was decoded to its end.
    #[getter]
    const fn complete(&self) -> bool {
        self.captures.complete
    }

    /// The sum of this and another one.
    fn merge(&self, other: &Self) -> PyResult<Self> {
        let sum = match (self.sum.clone(), other.sum.clone()) {
            (Sum::Counts(one), Sum::Counts(other)) => Sum::Counts(merged(one, other)?),
            (Sum::Coverage(one), Sum::Coverage(other)) => Sum::Coverage(merged(one, other)?),
            (Sum::Profile(one), Sum::Profile(other)) => Sum::Profile(merged(one, other)?),
            _ => {
                let problem = format!("is of {}, but the other is of {}", self.answer(), other.answer());
                return Err(Problem::argument("merge", problem).into());
            }
        };
        let captures = [&self.captures.captures[..], &other.captures.captures[..]].concat();
        let complete = self.captures.complete && other.captures.complete;
        Ok(Self { sum, captures: Captures { captures, complete } })
    }

    /// Execution counts, for each binary.
    fn counts(&self, py: Python<'_>) -> PyResult<Py<answer::Counts>> {
        let Sum::Counts(found) = &self.sum else { return Err(self.of_another("counts")) };
        let tables = answers::counted(&answered(found.clone(), Vec::new()))?;
        answer::Counts::new(py, tables, Vec::new())
    }

    /// The coverage of the programs. `image` and the other options are those of `open`.
    #[pyo3(signature = (**options))]
    fn coverage(
        &self,
        py: Python<'_>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<answer::Coverage>> {
        let Sum::Coverage(found) = &self.sum else { return Err(self.of_another("coverage")) };
        let (programs, said) = programs(options, found)?;
        let tables = answers::covered(&answered(found.clone(), programs), &Default::default())?;
        answer::Coverage::new(py, tables, said)
    }

    /// The costs of functions. `image` and the other options are those of `open`; `measure` is as for a session.
    #[pyo3(signature = (*, measure = None, **options))]
    fn profile(
        &self,
        py: Python<'_>,
        measure: Option<&str>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<answer::Profile>> {
        let Sum::Profile(found) = &self.sum else { return Err(self.of_another("profile")) };
        let measure = Measure { unit: options::unit(measure)?, frequency: None };
        let (programs, said) = programs(options, found)?;
        let tables = answers::profiled(&answered(found.clone(), programs), ("gathered", measure))?;
        answer::Profile::new(py, tables, said)
    }

    /// The sum of each program alone, with the program's identity.
    fn by_program(&self) -> Vec<(String, Self)> {
        each!(&self.sum, found => alone(found))
            .into_iter()
            .map(|(id, sum)| {
                let captures = Captures { captures: Vec::new(), complete: self.captures.complete };
                (id, Self { sum, captures })
            })
            .collect()
    }

    /// The bytes of a saved file, for the command with the answer's name.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.saved()?))
    }

    /// Writes a saved file.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        Ok(std::fs::write(path, self.saved()?)?)
    }

    fn __repr__(&self) -> String {
        let (all, programs) = (self.captures.captures.len(), each!(&self.sum, found => found.programs.len()));
        format!("<tracewalk.Gathered {}: {all} captures, {programs} programs>", self.answer())
    }
}

impl Gathered {
    fn read(name: &str, bytes: &[u8]) -> Result<Self, Problem> {
        let problem = |error: SavedError| Problem::new(error.kind.name(), format!("{name}: {error}"));
        let kinds = [CountedBinary::KIND, ProgramCoverage::KIND, ProgramProfiles::KIND];
        let sum = match saved_kind(bytes, &kinds) {
            Some(kind) if kind == CountedBinary::KIND => Sum::Counts(Programs::read(bytes).map_err(problem)?),
            Some(kind) if kind == ProgramCoverage::KIND => {
                Sum::Coverage(Programs::read(bytes).map_err(problem)?)
            }
            Some(_) => Sum::Profile(Programs::read(bytes).map_err(problem)?),
            None => {
                let remedy = "give a file that --save of `tracewalk counts`, `coverage` or `profile` wrote";
                return Err(Problem::new("not_saved", format!("{name}: is not a saved file; {remedy}")));
            }
        };
        let complete = each!(&sum, found => found.complete);
        Ok(Self { sum, captures: Captures { captures: vec![OneOfMany::saved(name)], complete } })
    }

    fn saved(&self) -> Result<Vec<u8>, Problem> {
        let mut bytes = Vec::new();
        each!(&self.sum, found => found.save(&mut bytes))?;
        Ok(bytes)
    }

    fn of_another(&self, wanted: &str) -> PyErr {
        let problem = format!("contains {}, but {wanted} was requested", self.answer());
        Problem::argument("answer", problem).into()
    }
}

const fn kind<T: Save>(_: &Programs<T>) -> &'static str {
    T::KIND
}

fn merged<T: Save>(mut one: Programs<T>, other: Programs<T>) -> Result<Programs<T>, Problem> {
    if let (Some(expected), Some(found)) = (one.measure(), other.measure())
        && expected != found
    {
        let error = MergeError::Measure { expected, found };
        return Err(Problem::new(error.name(), error.to_string()));
    }
    one.add_all(other);
    Ok(one)
}

/// The sum of each program alone.
fn alone<T: Save + Clone>(found: &Programs<T>) -> Vec<(String, Sum)>
where
    Sum: From<Programs<T>>,
{
    let one = |(id, program): (&_, &OfProgram<T>)| {
        let programs = BTreeMap::from([(Clone::clone(id), program.clone())]);
        (ToString::to_string(id), Programs { programs, complete: found.complete }.into())
    };
    found.programs.iter().map(one).collect()
}

macro_rules! sums {
    ($($variant:ident($found:ident))+) => {
        $(impl From<Programs<$found>> for Sum {
            fn from(found: Programs<$found>) -> Self {
                Self::$variant(found)
            }
        })+
    };
}

sums! { Counts(CountedBinary) Coverage(ProgramCoverage) Profile(ProgramProfiles) }

/// The programs that the options name, which must include all that ran.
fn programs<T>(
    options: Option<&Bound<'_, PyDict>>,
    found: &Programs<T>,
) -> PyResult<(Vec<FollowedProgram>, Vec<crate::notice::Said>)> {
    let Settings { request, follow, .. } = Settings::of_keywords(options)?;
    let notices = Notices::default();
    let directories = follow.names.unwrap_or_default();
    let programs = FollowedProgram::of_images(&request, &directories, &notices).map_err(Problem::from)?;
    if let Some(missing) = found.programs.keys().find(|id| programs.iter().all(|known| known.id != **id)) {
        let problem = format!("found no image of {missing}, whose code ran; {NO_PROGRAM}");
        return Err(Problem::new("other_program", problem).into());
    }
    let said = notices.into_vec().iter().map(crate::notice::Said::of).collect();
    Ok((programs, said))
}

/// The sum, with the programs.
fn answered<T>(programs: Programs<T>, known: Vec<FollowedProgram>) -> Answered<T> {
    let code = known.into_iter().map(|program| (program.id, program.code)).collect();
    Answered { programs, code, ..Answered::default() }
}
