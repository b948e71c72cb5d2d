//! Answers: tables with names, and notices about them.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tracewalk_analysis::Statistics;

use crate::answers::Tables;
use crate::notice::Said;
use crate::table::Table;

/// The answer of an analysis: tables, by their names.
#[pyclass(name = "Answer", module = "tracewalk", subclass, frozen)]
#[derive(Debug)]
pub(crate) struct Answer {
    tables: Vec<Py<Table>>,
    names: Vec<String>,
    statistics: Statistics,
    complete: bool,
    unmet: Vec<String>,
    notices: Vec<Said>,
}

#[pymethods]
impl Answer {
    /// The tables.
    #[getter]
    fn tables(&self, py: Python<'_>) -> Vec<Py<Table>> {
        self.tables.iter().map(|table| table.clone_ref(py)).collect()
    }

    /// Whether decoding reached the end of the capture; losses do not change it.
    #[getter]
    const fn complete(&self) -> bool {
        self.complete
    }

    /// The checks that were asked for and do not hold: a sentence for each.
    #[getter]
    fn unmet(&self) -> Vec<String> {
        self.unmet.clone()
    }

    /// The notices about the answer.
    #[getter]
    fn notices(&self) -> Vec<Said> {
        self.notices.clone()
    }

    /// The totals: bytes, packets, malformed stretches, ranges, instructions and gaps.
    #[getter]
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Statistics { bytes, packets, malformed, ranges, instructions, gaps } = self.statistics;
        let counts = PyDict::new(py);
        counts.set_item("bytes", bytes)?;
        counts.set_item("packets", packets)?;
        counts.set_item("malformed", malformed)?;
        counts.set_item("ranges", ranges)?;
        counts.set_item("instructions", instructions)?;
        counts.set_item("gaps", gaps)?;
        Ok(counts)
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<Table>> {
        let known = self.names.iter().position(|known| known == name);
        let table = known.and_then(|known| self.tables.get(known));
        table.map(|table| table.clone_ref(py)).ok_or_else(|| {
            PyKeyError::new_err(format!("{name}: no such table; there are {}", self.names.join(", ")))
        })
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (answer, class) = (slf.get(), slf.get_type().name()?);
        let shown = answer.tables.iter().zip(&answer.names);
        let tables = shown.map(|(table, name)| Ok(format!("{name} ({} rows)", table.bind(slf.py()).len()?)));
        let tables = tables.collect::<PyResult<Vec<_>>>()?.join(", ");
        let part = if answer.complete { "" } else { ", of a part of the capture" };
        Ok(format!("<tracewalk.{class}: {tables}{part}>"))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let tables =
            self.tables.iter().map(|table| table.bind(py).call_method0("_repr_html_")?.extract::<String>());
        Ok(tables.collect::<PyResult<Vec<_>>>()?.concat())
    }
}

impl Answer {
    fn of(py: Python<'_>, tables: Tables, notices: Vec<Said>) -> PyResult<Self> {
        let Tables { tables, statistics, complete, unmet } = tables;
        let tables = tables.into_iter().map(|table| Py::new(py, table)).collect::<PyResult<Vec<_>>>()?;
        let names = tables.iter().map(|table| table.bind(py).getattr("name")?.extract());
        Ok(Self { names: names.collect::<PyResult<_>>()?, tables, statistics, complete, unmet, notices })
    }
}

/// A class for the answers of an analysis, with its tables as attributes.
macro_rules! answers {
    ($($(#[doc = $about:literal])+ $class:ident { $($(#[doc = $doc:literal])+ $table:ident,)+ })+) => {
        $(
            $(#[doc = $about])+
            #[pyclass(module = "tracewalk", extends = Answer, frozen)]
            #[derive(Debug)]
            pub(crate) struct $class;

            #[pymethods]
            impl $class {
                $(
                    $(#[doc = $doc])+
                    #[getter]
                    fn $table(slf: PyRef<'_, Self>) -> PyResult<Py<Table>> {
                        let py = slf.py();
                        slf.as_super().__getitem__(py, stringify!($table))
                    }
                )+
            }

            impl $class {
                pub(crate) fn new(py: Python<'_>, tables: Tables, notices: Vec<Said>) -> PyResult<Py<Self>> {
                    Py::new(py, PyClassInitializer::from(Answer::of(py, tables, notices)?).add_subclass(Self))
                }
            }
        )+

        pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_class::<$class>()?;)+
            Ok(())
        }
    };
}

answers! {
    /// The contents of a capture.
    Info {
        /// The sources.
        sources,
        /// How many packets of each kind each source has.
        packets,
        /// The buffers.
        buffers,
        /// The inferred settings, with their evidence.
        findings,
        /// The images of the program.
        images,
        /// The ITMs.
        itms,
        /// How many packets of each kind each ITM has.
        itm_packets,
    }
    /// The coverage of a program.
    Coverage {
        /// The source files.
        files,
        /// The functions.
        functions,
        /// The lines of source files.
        lines,
        /// The conditional branches, and how often each was taken and not taken.
        branches,
    }
    /// Execution counts, for each binary.
    Counts {
        /// Ranges of instructions that ran one after the other.
        ranges,
        /// Branches that were taken.
        branches,
        /// The origins of the counts, and the losses.
        sources,
    }
    /// The costs of functions.
    Profile {
        /// The functions.
        functions,
        /// The lines of source files.
        lines,
        /// The calls between functions.
        calls,
        /// The costs of each task in each file.
        binaries,
    }
    /// How often exceptions were taken, and how long they took.
    Interrupts {
        /// A row for each exception.
        interrupts,
    }
    /// Which tasks of an operating system ran.
    Tasks {
        /// A row for each task.
        tasks,
        /// A row for each switch.
        switches,
    }
    /// Spans and marks in time.
    Timeline {
        /// A row for each span and each mark.
        timeline,
    }
    /// What differs between two captures.
    Diff {
        /// The functions whose costs or calls differ.
        functions,
        /// The lines and functions that only one of the captures ran.
        lines,
        /// Where the paths of the sources part.
        sources,
    }
    /// The crash of a program, and its cause.
    Crash {
        /// A row for each source.
        crashes,
        /// The functions that were running.
        stack,
        /// The path to the crash.
        path,
        /// The last instructions.
        last,
        /// The known registers.
        registers,
        /// The proof of the cause.
        proof,
    }
}
