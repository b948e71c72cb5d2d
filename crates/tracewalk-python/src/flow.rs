//! Program flow as a stream of record batches, made while they are read.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::table::{Cell, Table as Rows, TakeRows};
use tracewalk_analysis::values::Proving;
use tracewalk_report::columns::Batches;
use tracewalk_report::export::FlowTable;
use tracewalk_session::{Follow, Request, Session};

use crate::notice::{Said, warn};
use crate::problem::Problem;
use crate::table::{Table, schema_capsule, stream_capsule};
use crate::worker::{Listener, Watch, guarded};

/// Program flow: an iterator of tables, each with the next rows. Decoding is only a few tables ahead.
///
/// All of it can be passed to pyarrow, polars or DuckDB, once: `pyarrow.RecordBatchReader.from_stream(flow)`.
#[pyclass(name = "Flow", module = "tracewalk", frozen)]
#[derive(Debug)]
pub(crate) struct Flow {
    schema: SchemaRef,
    watch: Arc<Watch>,
    /// `None` if the flow has ended, or was passed on as a whole.
    coming: Mutex<Option<Receiver<Coming>>>,
    ended: Mutex<Option<(bool, Vec<Said>)>>,
}

#[derive(Debug)]
enum Coming {
    Schema(SchemaRef),
    Rows(RecordBatch),
    /// The end: whether everything was decoded, and the notices.
    End(Result<bool, Problem>, Vec<Said>),
}

/// The number of batches that are made ahead.
const AHEAD: usize = 2;
/// How often Python is asked for signals.
const LOOK: Duration = Duration::from_millis(50);

impl Flow {
    /// Follows a capture that is opened a second time, so that the session can do other work meanwhile.
    /// With values if `values` has the file of the halted processor's state, or none.
    pub(crate) fn begin(
        py: Python<'_>,
        request: Request,
        how: Follow,
        rows: usize,
        values: Option<Option<PathBuf>>,
    ) -> PyResult<Self> {
        let watch = Arc::<Watch>::default();
        let (sender, coming) = sync_channel(AHEAD);
        let watched = Arc::clone(&watch);
        thread::Builder::new().name("tracewalk flow".to_owned()).spawn(move || {
            let listener = Listener::new(watched);
            let followed = guarded(|| {
                follow(request, &how, (rows, &sender), values.as_ref().map(Option::as_deref), &listener)
            });
            // The flow may have been dropped.
            let _ = sender.send(Coming::End(followed, listener.take()));
        })?;
        let flow = Self {
            schema: Arc::new(arrow_schema::Schema::empty()),
            watch,
            coming: Mutex::new(Some(coming)),
            ended: Mutex::default(),
        };
        match flow.next(py)? {
            Some(Coming::Schema(schema)) => Ok(Self { schema, ..flow }),
            _ => Err(Problem::defect("program flow has no columns").into()),
        }
    }

    /// The next piece; `None` at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Coming>> {
        let Some(mut coming) = lock(&self.coming).take() else { return Ok(None) };
        loop {
            let received;
            (received, coming) = py.detach(move || (coming.recv_timeout(LOOK), coming));
            match received {
                Ok(Coming::End(followed, said)) => {
                    warn(py, &said)?;
                    *lock(&self.ended) = Some((followed?, said));
                    return Ok(None);
                }
                Ok(next) => {
                    *lock(&self.coming) = Some(coming);
                    return Ok(Some(next));
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(interrupt) = py.check_signals() {
                        self.watch.stop.store(true, Ordering::Relaxed);
                        return Err(interrupt);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Problem::defect("its thread ended").into());
                }
            }
        }
    }
}

#[pymethods]
impl Flow {
    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        Ok(match self.next(py)? {
            Some(Coming::Rows(batch)) => Some(Table::from_batches(batch.schema(), vec![batch])),
            _ => None,
        })
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Whether decoding reached the end of the capture; losses do not change it. `None` until the end of the flow.
    #[getter]
    fn complete(&self) -> Option<bool> {
        lock(&self.ended).as_ref().map(|(complete, _)| *complete)
    }

    /// The notices, at the end of the flow.
    #[getter]
    fn notices(&self) -> Vec<Said> {
        lock(&self.ended).as_ref().map(|(_, said)| said.clone()).unwrap_or_default()
    }

    /// Ends the flow early.
    fn close(&self) {
        self.watch.stop.store(true, Ordering::Relaxed);
        lock(&self.coming).take();
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_arguments))]
    fn __exit__(&self, _arguments: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }

    /// Arrow's schema, by the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// The remaining rows, by the Arrow PyCapsule interface: they can be taken once.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let coming = lock(&self.coming).take();
        let coming = coming.ok_or_else(|| {
            Problem::new("taken", "this flow has ended, or was handed over already; call flow() again")
        })?;
        stream_capsule(py, Box::new(Rest { schema: Arc::clone(&self.schema), coming: Some(coming) }))
    }

    fn __repr__(&self) -> String {
        format!("<tracewalk.Flow of {}>", self.column_names().join(", "))
    }
}

/// The remaining rows, as a reader of record batches.
struct Rest {
    schema: SchemaRef,
    coming: Option<Receiver<Coming>>,
}

impl Iterator for Rest {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.coming.as_ref()?.recv();
        match next {
            Ok(Coming::Rows(batch)) => Some(Ok(batch)),
            Ok(Coming::End(Err(problem), _)) => {
                self.coming = None;
                Some(Err(ArrowError::ExternalError(problem.to_string().into())))
            }
            _ => {
                self.coming = None;
                None
            }
        }
    }
}

impl RecordBatchReader for Rest {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Sends rows in batches of a fixed size.
struct Sending<'a> {
    sender: &'a SyncSender<Coming>,
    size: usize,
    open: Option<Batches>,
}

impl Sending<'_> {
    fn send(&self, coming: Coming) -> io::Result<()> {
        self.sender.send(coming).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn batch(&mut self) -> io::Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let batch = open.take().map_err(io::Error::other)?;
        self.send(Coming::Rows(batch))
    }
}

impl TakeRows for Sending<'_> {
    fn table(&mut self, table: &Rows) -> io::Result<()> {
        let open = Batches::of(table);
        self.send(Coming::Schema(open.schema()))?;
        self.open = Some(open);
        Ok(())
    }

    fn row(&mut self, row: &[Cell]) -> io::Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.row(row);
        if open.rows() >= self.size { self.batch() } else { Ok(()) }
    }

    fn finish(&mut self, _: bool) -> io::Result<()> {
        match &self.open {
            Some(open) if open.rows() > 0 => self.batch(),
            _ => Ok(()),
        }
    }
}

/// Follows all sources. Returns whether all were decoded to their ends.
fn follow(
    request: Request,
    how: &Follow,
    (rows, sender): (usize, &SyncSender<Coming>),
    values: Option<Option<&Path>>,
    listener: &Listener,
) -> Result<bool, Problem> {
    let mut session = Session::open_observed(request, listener)?;
    // The session has already reported the notices of the opening.
    listener.take();
    let mut flow = FlowTable::new(Sending { sender, size: rows.max(1), open: None });
    let mut complete = true;
    Sink::begin(&mut flow)?;
    session.each_source(listener, |session, source| {
        let outcome = match values {
            None => session.run_observed(source, how, &mut flow, listener)?,
            Some(dump) => {
                let code = session.code(source, Some(&[]), listener)?;
                let setup = session.value_setup(source, &code, dump)?;
                session.run_observed(source, how, &mut Proving::new(setup, &mut flow), listener)?
            }
        };
        complete &= outcome.complete;
        Ok::<(), Problem>(())
    })?;
    Sink::finish(&mut flow, complete)?;
    Ok(complete)
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
