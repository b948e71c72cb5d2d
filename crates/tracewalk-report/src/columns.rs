//! Tables as Arrow's columns, for consumers of record batches: Parquet, Python's data frames, SQL engines.
//!
//! ```text
//! Integer, Time → UInt64    Number → Float64    Address → UInt64    Text → Utf8    Flag → Boolean
//! ```
//!
//! Every column is nullable: an unknown value is null. A column's metadata has its `kind` and `unit`; the schema's metadata has
//! the table's name and version (`tracewalk.table`, `tracewalk.version`).
//!
//! ```
//! use arrow_array::cast::AsArray as _;
//! use arrow_array::types::UInt64Type;
//! use tracewalk_analysis::Statistics;
//! use tracewalk_analysis::table::Tabular as _;
//! use tracewalk_report::columns::batch;
//!
//! let statistics = Statistics { bytes: 20, packets: 9, ..Statistics::default() };
//! let batch = batch(&statistics.tables()[0])?;
//! let packets = batch.column_by_name("packets").expect("a column");
//! assert_eq!(packets.as_primitive::<UInt64Type>().value(0), 9);
//! # Ok::<(), arrow_schema::ArrowError>(())
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use tracewalk_analysis::table::{Cell, Column, Kind, Table};

/// The rows of a table, gathered into record batches.
#[derive(Debug)]
pub struct Batches {
    schema: SchemaRef,
    columns: Vec<Builder>,
    rows: usize,
}

#[derive(Debug)]
enum Builder {
    Whole(UInt64Builder),
    Fraction(Float64Builder),
    Text(StringBuilder),
    Flag(BooleanBuilder),
}

/// The rows of the table, as one record batch.
///
/// # Errors
///
/// Arrow's error for a column that is too large for one batch.
pub fn batch(table: &Table) -> Result<RecordBatch, ArrowError> {
    let mut batches = Batches::of(table);
    table.rows.iter().for_each(|row| batches.row(row));
    batches.take()
}

impl Batches {
    /// An empty batch with the columns of this table. The table's rows are not added.
    #[must_use]
    pub fn of(table: &Table) -> Self {
        let metadata = HashMap::from([
            ("tracewalk.table".to_owned(), table.name.to_owned()),
            ("tracewalk.version".to_owned(), table.version.to_string()),
        ]);
        let fields = table.columns.iter().map(field).collect::<Vec<_>>();
        let columns = table.columns.iter().map(|column| Builder::of(column.kind)).collect();
        Self { schema: Arc::new(Schema::new_with_metadata(fields, metadata)), columns, rows: 0 }
    }

    /// The columns' names and types.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// How many rows were added since the last batch was taken.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a row. A cell that does not fit its column is a defect of the caller, and becomes null.
    pub fn row(&mut self, row: &[Cell]) {
        debug_assert_eq!(row.len(), self.columns.len());
        let cells = row.iter().chain(std::iter::repeat(&Cell::Unknown));
        self.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.add(cell));
        self.rows += 1;
    }

    /// The rows that were added since the last batch.
    ///
    /// # Errors
    ///
    /// Arrow's error for a column that is too large for one batch.
    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns = self.columns.iter_mut().map(Builder::take).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        RecordBatch::try_new_with_options(self.schema(), columns, &options)
    }
}

impl Builder {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Integer | Kind::Time | Kind::Address => Self::Whole(UInt64Builder::new()),
            Kind::Number => Self::Fraction(Float64Builder::new()),
            Kind::Flag => Self::Flag(BooleanBuilder::new()),
            // A kind that is unknown here becomes text.
            _ => Self::Text(StringBuilder::new()),
        }
    }

    fn add(&mut self, cell: &Cell) {
        match self {
            Self::Whole(column) => column.append_option(match cell {
                Cell::Integer(value) => Some(*value),
                Cell::Address(address) => Some(address.get()),
                _ => None,
            }),
            Self::Fraction(column) => column.append_option(match cell {
                Cell::Number(value) => Some(*value),
                _ => None,
            }),
            Self::Text(column) => column.append_option(match cell {
                Cell::Text(text) => Some(text),
                _ => None,
            }),
            Self::Flag(column) => column.append_option(match cell {
                Cell::Flag(value) => Some(*value),
                _ => None,
            }),
        }
    }

    fn take(&mut self) -> ArrayRef {
        match self {
            Self::Whole(column) => Arc::new(column.finish()),
            Self::Fraction(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
            Self::Flag(column) => Arc::new(column.finish()),
        }
    }
}

fn field(column: &Column) -> Field {
    let data = match column.kind {
        Kind::Integer | Kind::Time | Kind::Address => DataType::UInt64,
        Kind::Number => DataType::Float64,
        Kind::Flag => DataType::Boolean,
        _ => DataType::Utf8,
    };
    let mut metadata = HashMap::from([("kind".to_owned(), column.kind.name().to_owned())]);
    metadata.extend(column.unit.map(|unit| ("unit".to_owned(), unit.to_owned())));
    Field::new(column.name.as_ref(), data, true).with_metadata(metadata)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Float64Type, UInt64Type};
    use tracewalk::ids::Address;

    use super::*;

    #[test]
    fn every_kind_has_its_type_and_unknown_is_null() {
        let columns = [
            Column::new("name", Kind::Text),
            Column::new("at", Kind::Address),
            Column::new("spent", Kind::Time).of("cycles"),
            Column::new("mean", Kind::Number),
            Column::new("traced", Kind::Flag),
        ];
        let mut table = Table::new("things", 3, columns);
        let address = Address::new(0xffff_ffff_8000_0306);
        table.push(["a".into(), address.into(), u64::MAX.into(), 1.5.into(), true.into()]);
        table.push([Cell::Unknown, Cell::Unknown, 0_u64.into(), Cell::Unknown, Cell::Unknown]);
        let batch = batch(&table).unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (2, 5));
        let schema = batch.schema();
        assert_eq!(schema.metadata()["tracewalk.table"], "things");
        assert_eq!(schema.metadata()["tracewalk.version"], "3");
        assert_eq!(schema.field(2).metadata()["unit"], "cycles");
        assert_eq!(schema.field(1).metadata()["kind"], "address");
        assert_eq!(batch.column(0).as_string::<i32>().value(0), "a");
        assert_eq!(batch.column(1).as_primitive::<UInt64Type>().value(0), 0xffff_ffff_8000_0306);
        assert_eq!(batch.column(2).as_primitive::<UInt64Type>().values(), &[u64::MAX, 0]);
        assert_eq!(batch.column(3).as_primitive::<Float64Type>().value(0).to_bits(), 1.5_f64.to_bits());
        assert!(batch.column(4).as_boolean().value(0));
        let nulls = batch.columns().iter().map(arrow_array::Array::null_count).collect::<Vec<_>>();
        assert_eq!(nulls, [1, 1, 0, 1, 1]);
    }

    #[test]
    fn a_batch_holds_what_came_since_the_last_one() {
        let mut batches = Batches::of(&Table::new("things", 1, [Column::new("at", Kind::Integer)]));
        batches.row(&[1_u64.into()]);
        batches.row(&[2_u64.into()]);
        assert_eq!(batches.take().unwrap().num_rows(), 2);
        batches.row(&[3_u64.into()]);
        let second = batches.take().unwrap();
        assert_eq!(second.column(0).as_primitive::<UInt64Type>().values(), &[3]);
        assert_eq!(batches.take().unwrap().num_rows(), 0);
        assert_eq!(batches.rows(), 0);
    }
}
