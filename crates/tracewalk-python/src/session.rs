//! An open capture.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use pyo3::prelude::*;
use pyo3::sync::MutexExt as _;
use pyo3::types::PyDict;
use tracewalk_analysis::Doubtful;
use tracewalk_session::{Follow, OfCounts, OfCoverage, OfProfile, OpenError, Request, Trust};

use crate::answer;
use crate::answers::{self, Measure, Tables};
use crate::flow::Flow;
use crate::notice::{Said, warn};
use crate::options::{self, Belief, Names, Numbers, Programs, Settings, Several};
use crate::problem::Problem;
use crate::worker::{Listener, Watch, Worker, guarded, wait};

/// A source of trace in a capture.
#[pyclass(name = "Source", module = "tracewalk", frozen, get_all)]
#[derive(Clone, Debug)]
pub(crate) struct SourceInfo {
    /// The trace ID; `None` in a buffer without IDs.
    id: Option<u8>,
    /// The protocol: `etmv3`, `pft`, `etmv4` or `mtb`.
    protocol: &'static str,
    /// The processor, if it was stated or inferred.
    cpu: Option<String>,
}

#[pymethods]
impl SourceInfo {
    fn __repr__(&self) -> String {
        format!("<tracewalk.Source {}>", self.text())
    }
}

impl SourceInfo {
    fn text(&self) -> String {
        let id = self.id.map(|id| format!("{id:#04x} ")).unwrap_or_default();
        let cpu = self.cpu.as_ref().map(|cpu| format!(" {cpu}")).unwrap_or_default();
        format!("{id}{}{cpu}", self.protocol)
    }
}

/// An open capture, with its inferred settings.
///
/// All methods can be called from any thread; one of them works at a time.
#[pyclass(module = "tracewalk", frozen)]
#[derive(Debug)]
pub(crate) struct Session {
    worker: Mutex<Worker>,
    request: Request,
    follow: Follow,
    /// The treatment of instructions in doubt, if it was stated.
    doubtful: Option<Doubtful>,
    name: String,
    progress: Option<Py<PyAny>>,
    sources: Vec<SourceInfo>,
    notices: Mutex<Vec<Said>>,
}

/// Opens a capture: a file of trace bytes, a perf.data file, a capture.toml, or a snapshot directory.
///
/// Missing settings are inferred from the bytes and the image. The arguments are the command's options; `tracewalk help python`
/// lists them.
#[pyfunction]
#[pyo3(signature = (
    capture, *, image = None, source = None, container = None, ids = None, root = None, svd = None, symfs = None, debug_dir = None,
    kallsyms = None, registers = None, frame_start = None, read_pointer = None, swap_words = false, dump_address = None, vector_table = None,
    mtb_position = None, mtb_master = None, mtb_base = None, mtb_pc = None, strict = false, memory = None, threads = None,
    trust_image = false, doubtful = None, source_dirs = None, programs = None, progress = None,
))]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn open(
    py: Python<'_>,
    capture: PathBuf,
    image: Option<Several>,
    source: Option<Several>,
    container: Option<String>,
    ids: Option<Vec<u8>>,
    root: Option<Several>,
    svd: Option<PathBuf>,
    symfs: Option<PathBuf>,
    debug_dir: Option<Several>,
    kallsyms: Option<PathBuf>,
    registers: Option<PathBuf>,
    frame_start: Option<u8>,
    read_pointer: Option<u32>,
    swap_words: bool,
    dump_address: Option<u32>,
    vector_table: Option<u32>,
    mtb_position: Option<u32>,
    mtb_master: Option<u32>,
    mtb_base: Option<u32>,
    mtb_pc: Option<u32>,
    strict: bool,
    memory: Option<String>,
    threads: Option<u16>,
    trust_image: bool,
    doubtful: Option<String>,
    source_dirs: Option<Vec<PathBuf>>,
    programs: Option<Bound<'_, Programs>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Session> {
    let names = Names {
        image: image.unwrap_or_default(),
        source: source.unwrap_or_default(),
        root: root.unwrap_or_default(),
        debug_dir: debug_dir.unwrap_or_default(),
        container,
        symfs,
        kallsyms,
        svd,
        registers,
        memory,
        ids: ids.unwrap_or_default(),
        swap_words,
        strict,
    };
    let numbers = Numbers {
        frame_start,
        read_pointer,
        dump_address,
        vector_table,
        mtb_position,
        mtb_master,
        mtb_base,
        mtb_pc,
    };
    let belief = Belief { threads, trust_image, doubtful, source_dirs };
    let name = capture.display().to_string();
    let Settings { request, follow, doubtful } = Settings::new(names, numbers, belief)?;
    let shared = programs.map(|programs| programs.get().0.clone());
    let request = Request { capture, shared, may_lack_trace: true, ..request };
    let capture = request.capture.clone();
    let (worker, (opened, said)) = Worker::open(py, request.clone(), progress.as_ref(), move |session| {
        if session.sources().is_empty() && !session.itms().is_empty() {
            return Err(OpenError::OnlyItm(capture).into());
        }
        let source = |source: &tracewalk_session::Source| SourceInfo {
            id: source.id.map(tracewalk::ids::TraceId::get),
            protocol: source.config.protocol(),
            cpu: source.description.cpu.as_ref().map(|cpu| cpu.value.to_string()),
        };
        Ok(session.sources().iter().map(source).collect::<Vec<_>>())
    })?;
    warn(py, &said)?;
    let (sources, notices) = (opened?, Mutex::new(said));
    Ok(Session { worker: Mutex::new(worker), request, follow, doubtful, name, progress, sources, notices })
}

/// Compares two captures of one program. The options are those of `open`, for both.
#[pyfunction]
#[pyo3(signature = (capture, other, *, ignore_interrupts = false, progress = None, **options))]
pub(crate) fn diff(
    py: Python<'_>,
    capture: PathBuf,
    other: PathBuf,
    ignore_interrupts: bool,
    progress: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<answer::Diff>> {
    let Settings { request, follow, .. } = Settings::of_keywords(options)?;
    let (watch, (sender, answer)) = (Arc::<Watch>::default(), channel());
    let watched = Arc::clone(&watch);
    thread::Builder::new().name("tracewalk".to_owned()).spawn(move || {
        let listener = Listener::new(watched);
        let open = |capture| -> Result<_, Problem> {
            Ok(tracewalk_session::Session::open_observed(Request { capture, ..request.clone() }, &listener)?)
        };
        let found = guarded(|| {
            let mut sessions = [open(capture)?, open(other)?];
            answers::diff(&mut sessions, &follow, ignore_interrupts, &listener)
        });
        // The caller may have gone.
        let _ = sender.send((found, listener.take()));
    })?;
    let progress = progress.cloned().map(Bound::unbind);
    let (tables, said) = wait(py, answer, &watch, progress.as_ref())?;
    warn(py, &said)?;
    answer::Diff::new(py, tables?, said)
}

#[pymethods]
impl Session {
    /// The sources whose program flow can be decoded.
    #[getter]
    fn sources(&self) -> Vec<SourceInfo> {
        self.sources.clone()
    }

    /// The notices about the capture and about the answers so far.
    #[getter]
    fn notices(&self) -> Vec<Said> {
        lock(&self.notices).clone()
    }

    /// Program flow, a row for each element, made while it is read: an iterator of tables of `rows` rows.
    /// With `values`, a row for each instruction, and after it for each access to memory and each register that it wrote, as far as
    /// the path proves it; `dump` has registers and memory of the halted processor.
    #[pyo3(signature = (*, rows = 16384, names = true, values = false, dump = None))]
    fn flow(
        &self,
        py: Python<'_>,
        rows: usize,
        names: bool,
        values: bool,
        dump: Option<PathBuf>,
    ) -> PyResult<Flow> {
        let follow = self.follow.clone();
        let trust = Trust { doubtful: self.doubtful.unwrap_or(Doubtful::Keep), ..follow.trust };
        let follow = Follow { names: follow.names.filter(|_| names), trust, ..follow };
        Flow::begin(py, self.request.clone(), follow, rows, (values || dump.is_some()).then_some(dump))
    }

    /// The contents of the capture.
    fn info(&self, py: Python<'_>) -> PyResult<Py<answer::Info>> {
        let (tables, said) = self.run(py, |session, listener| answers::info(session, listener))?;
        answer::Info::new(py, tables, said)
    }

    /// The coverage of the program. `base` is an LCOV tracefile, a JSON document or a saved file to compare with. `fail_under` has a
    /// percentage for each metric, and `fail_on` is `loss` or `regression`: checks that do not hold are in `unmet`.
    #[pyo3(signature = (*, base = None, fail_under = None, fail_on = None))]
    fn coverage(
        &self,
        py: Python<'_>,
        base: Option<PathBuf>,
        fail_under: Option<BTreeMap<String, f64>>,
        fail_on: Option<Several>,
    ) -> PyResult<Py<answer::Coverage>> {
        let checks = options::checks(base, fail_under, fail_on)?;
        let (follow, name) = (self.follow.clone(), self.name.clone());
        let (tables, said) = self.run(py, move |session, listener| {
            answers::covered(&session.answer(&OfCoverage::default(), &follow, &name, listener)?, &checks)
        })?;
        answer::Coverage::new(py, tables, said)
    }

    /// Execution counts, for each binary.
    fn counts(&self, py: Python<'_>) -> PyResult<Py<answer::Counts>> {
        let (follow, name) = (self.follow.clone(), self.name.clone());
        let (tables, said) = self.run(py, move |session, listener| {
            answers::counted(&session.answer(&OfCounts, &follow, &name, listener)?)
        })?;
        answer::Counts::new(py, tables, said)
    }

    /// The costs of functions. `measure` is `instructions`, `cycles`, `time`, or the best that the trace has. `start` and `end`
    /// bound the part that is measured, in the notation of the command's `--from` and `--to`.
    #[pyo3(signature = (*, measure = None, start = None, end = None))]
    fn profile(
        &self,
        py: Python<'_>,
        measure: Option<&str>,
        start: Option<&str>,
        end: Option<&str>,
    ) -> PyResult<Py<answer::Profile>> {
        let view = options::view((start, end), measure)?;
        let measure = Measure { unit: options::unit(measure)?, frequency: None };
        let (follow, name) = (self.follow.clone(), self.name.clone());
        let (tables, said) = self.run(py, move |session, listener| {
            let question = OfProfile { view };
            let answered = session.answer(&question, &follow, &name, listener)?;
            question.view.finish()?;
            answers::profiled(&answered, (&name, measure))
        })?;
        answer::Profile::new(py, tables, said)
    }

    /// How often exceptions were taken, and how long they took; with `functions`, functions too.
    #[pyo3(signature = (*, measure = None, functions = false, start = None, end = None))]
    fn interrupts(
        &self,
        py: Python<'_>,
        measure: Option<&str>,
        functions: bool,
        start: Option<&str>,
        end: Option<&str>,
    ) -> PyResult<Py<answer::Interrupts>> {
        let view = options::view((start, end), measure)?;
        let measure = Measure { unit: options::unit(measure)?, frequency: None };
        let follow = self.follow.clone();
        let (tables, said) = self.run(py, move |session, listener| {
            answers::interrupts(session, &follow, (view, measure, functions), listener)
        })?;
        answer::Interrupts::new(py, tables, said)
    }

    /// Which tasks of an operating system ran, for how long, and what made each of them run. `dump` is a file with the memory of the
    /// halted processor, which has the names of tasks.
    #[pyo3(signature = (*, dump = None))]
    fn tasks(&self, py: Python<'_>, dump: Option<PathBuf>) -> PyResult<Py<answer::Tasks>> {
        let follow = self.follow.clone();
        let (tables, said) = self
            .run(py, move |session, listener| answers::tasks(session, &follow, dump.as_deref(), listener))?;
        answer::Tasks::new(py, tables, said)
    }

    /// Spans and marks in time: a row for each function call, exception, task and gap.
    #[pyo3(signature = (*, measure = None, start = None, end = None))]
    fn timeline(
        &self,
        py: Python<'_>,
        measure: Option<&str>,
        start: Option<&str>,
        end: Option<&str>,
    ) -> PyResult<Py<answer::Timeline>> {
        let view = options::view((start, end), measure)?;
        let measure = Measure { unit: options::unit(measure)?, frequency: None };
        let follow = self.follow.clone();
        let (tables, said) = self.run(py, move |session, listener| {
            answers::timeline(session, &follow, (view, measure), listener)
        })?;
        answer::Timeline::new(py, tables, said)
    }

    /// The crash of the program, and its cause; of the log of a halted processor also without trace. `dump` is a file with registers, if the capture has none.
    #[pyo3(signature = (*, dump = None))]
    fn crash(&self, py: Python<'_>, dump: Option<PathBuf>) -> PyResult<Py<answer::Crash>> {
        let follow = self.follow.clone();
        let (tables, said) =
            self.run(py, move |session, listener| answers::crash(session, &follow, dump.as_ref(), listener))?;
        answer::Crash::new(py, tables, said)
    }

    fn __repr__(&self) -> String {
        let sources = self.sources.iter().map(SourceInfo::text).collect::<Vec<_>>().join(", ");
        format!("<tracewalk.Session {}: {sources}>", self.name)
    }
}

impl Session {
    /// Runs work on the session's thread; warns of its notices.
    fn run(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut tracewalk_session::Session, &Listener) -> Result<Tables, Problem> + Send + 'static,
    ) -> PyResult<(Tables, Vec<Said>)> {
        let worker = self.worker.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let done = worker.run(py, self.progress.as_ref(), work);
        drop(worker);
        let (tables, said) = done?;
        lock(&self.notices).extend(said.iter().cloned());
        warn(py, &said)?;
        Ok((tables?, said))
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
