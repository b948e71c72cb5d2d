//! tracewalk for Python: the module `tracewalk._native`, which is the core of the package `tracewalk`.
//!
//! A session runs on a thread of its own ([`worker`]), so that Python continues, takes Ctrl-C, and receives progress.
//! Answers are tables of Arrow's columns ([`table`]), which pandas, polars, pyarrow and DuckDB take without a copy.
#![forbid(unsafe_code)]

mod answer;
mod answers;
mod flow;
mod gathered;
mod notice;
mod options;
mod problem;
mod session;
mod table;
mod worker;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<answer::Answer>()?;
    module.add_class::<flow::Flow>()?;
    module.add_class::<gathered::Gathered>()?;
    module.add_class::<notice::Said>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<session::SourceInfo>()?;
    module.add_class::<table::Table>()?;
    answer::add(module)?;
    problem::add(module)?;
    module.add_class::<options::Programs>()?;
    module.add_function(wrap_pyfunction!(gathered::gather, module)?)?;
    module.add_function(wrap_pyfunction!(gathered::read, module)?)?;
    module.add_function(wrap_pyfunction!(session::diff, module)?)?;
    module.add_function(wrap_pyfunction!(session::open, module)?)
}
