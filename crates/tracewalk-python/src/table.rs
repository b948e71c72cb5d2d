//! A table of Arrow's columns, for Python.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tracewalk_analysis::table::{self, Cell, TakeRows};
use tracewalk_report::columns::{Batches, batch};

use crate::problem::Problem;

/// A table: named columns of one type each.
///
/// pandas, polars, pyarrow and DuckDB read it directly, without a copy: `pyarrow.table(table)`,
/// `polars.DataFrame(table)`.
#[pyclass(name = "Table", module = "tracewalk", frozen)]
#[derive(Clone, Debug)]
pub(crate) struct Table {
    name: String,
    version: u32,
    schema: SchemaRef,
    batches: Arc<[RecordBatch]>,
}

/// The most rows that a notebook shows.
const SHOWN: usize = 20;

#[pymethods]
impl Table {
    /// The name, which is the same in all versions.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The version of the columns. A column that is added after the others does not change it.
    #[getter]
    const fn version(&self) -> u32 {
        self.version
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    /// The rows as dictionaries. For many rows use `to_pandas` or `to_polars`.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, pyo3::types::PyDict>>> {
        self.rows(usize::MAX)
            .map(|(batch, row)| {
                let dictionary = pyo3::types::PyDict::new(py);
                for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                    dictionary.set_item(field.name(), value(py, column, row)?)?;
                }
                Ok(dictionary)
            })
            .collect()
    }

    /// The table as a pyarrow.Table, which has to be installed.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// The table as a pandas.DataFrame; pandas and pyarrow have to be installed.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_pyarrow(slf)?.call_method0("to_pandas")
    }

    /// The table as a polars.DataFrame, which has to be installed.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// Arrow's schema, by the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// The record batches, by the Arrow PyCapsule interface. The columns have their own types, whatever is requested.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.iter().cloned().map(Ok).collect::<Vec<_>>().into_iter();
        stream_capsule(py, Box::new(RecordBatchIterator::new(batches, Arc::clone(&self.schema))))
    }

    fn __repr__(&self) -> String {
        let columns = self.column_names().join(", ");
        format!("<tracewalk.Table {}: {} rows of {columns}>", self.name, self.num_rows())
    }

    fn _repr_html_(&self) -> String {
        let mut page =
            format!("<table><caption>{}, {} rows</caption><thead><tr>", escaped(&self.name), self.num_rows());
        for field in self.schema.fields() {
            page.push_str(&format!("<th>{}</th>", escaped(field.name())));
        }
        page.push_str("</tr></thead><tbody>");
        for (batch, row) in self.rows(SHOWN) {
            page.push_str("<tr>");
            for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                let is_address = field.metadata().get("kind").is_some_and(|kind| kind == "address");
                page.push_str(&format!("<td>{}</td>", escaped(&shown(column, row, is_address))));
            }
            page.push_str("</tr>");
        }
        page.push_str("</tbody></table>");
        page
    }
}

impl Table {
    pub(crate) fn of(table: &table::Table) -> Result<Self, Problem> {
        let batch = batch(table).map_err(|error| arrow(&error))?;
        Ok(Self::from_batches(batch.schema(), vec![batch]))
    }

    pub(crate) fn from_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let of = |key: &str| schema.metadata().get(key).cloned().unwrap_or_default();
        let (name, version) = (of("tracewalk.table"), of("tracewalk.version"));
        Self { name, version: version.parse().unwrap_or_default(), schema, batches: batches.into() }
    }

    /// The first rows, each with its batch and its position in the batch.
    fn rows(&self, most: usize) -> impl Iterator<Item = (&RecordBatch, usize)> {
        self.batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row))).take(most)
    }
}

/// Collects rows in record batches.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    open: Option<Batches>,
    batches: Vec<RecordBatch>,
}

/// The number of rows in a batch.
const BATCH: usize = 1 << 14;

impl Collected {
    pub(crate) fn table(mut self) -> Option<Table> {
        let open = self.open.as_mut()?;
        let schema = open.schema();
        if open.rows() > 0 {
            self.batches.push(open.take().ok()?);
        }
        Some(Table::from_batches(schema, self.batches))
    }
}

impl TakeRows for Collected {
    fn table(&mut self, table: &table::Table) -> std::io::Result<()> {
        self.open.get_or_insert_with(|| Batches::of(table));
        table.rows.iter().try_for_each(|row| self.row(row))
    }

    fn row(&mut self, row: &[Cell]) -> std::io::Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.row(row);
        if open.rows() >= BATCH {
            self.batches.push(open.take().map_err(std::io::Error::other)?);
        }
        Ok(())
    }

    fn finish(&mut self, _: bool) -> std::io::Result<()> {
        Ok(())
    }
}

pub(crate) fn arrow(error: &ArrowError) -> Problem {
    Problem::new("arrow", error.to_string())
}

pub(crate) fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(|error| arrow(&error))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// A capsule with a stream. A consumer that takes the stream leaves an empty one in the capsule.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

fn value<'py>(py: Python<'py>, column: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match column.data_type() {
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any(),
        DataType::Boolean => column.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any(),
        _ => column.as_string::<i32>().value(row).into_pyobject(py)?.into_any(),
    })
}

/// A cell for people.
fn shown(column: &dyn Array, row: usize, is_address: bool) -> String {
    if column.is_null(row) {
        return "-".to_owned();
    }
    match column.data_type() {
        DataType::UInt64 if is_address => format!("{:#010x}", column.as_primitive::<UInt64Type>().value(row)),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Float64 => format!("{:.3}", column.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => column.as_boolean().value(row).to_string(),
        _ => column.as_string::<i32>().value(row).to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
