//! `--format parquet`: a table as Apache Parquet, for DuckDB, pandas, polars, Spark and others.

use std::io::{self, Write};

use arrow_schema::Schema;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use tracewalk_analysis::table::{Cell, Table, TakeRows};

use super::tables::OneTable;
use crate::columns::Batches;

/// Writes one table as Parquet, compressed by Snappy. The file's metadata has the table's name and version,
/// and whether the capture was decoded to its end (`tracewalk.complete`).
#[derive(Debug)]
pub struct TableParquet<W> {
    out: W,
    table: OneTable,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    batches: Batches,
    /// The writer's output is handed on after each row group.
    writer: ArrowWriter<Vec<u8>>,
    /// The rows of the row group that were given to the writer.
    written: usize,
}

/// The number of rows that are handed to the encoder at once.
const BATCH: usize = 1 << 12;
/// The number of rows in a row group, which has its own statistics and can be skipped by readers.
const ROW_GROUP: usize = 1 << 17;

impl<W: Write> TableParquet<W> {
    /// Writes the first table.
    pub const fn new(out: W) -> Self {
        Self { out, table: OneTable::first(), open: None }
    }

    /// Writes the table of this name.
    pub const fn of(out: W, name: &'static str) -> Self {
        Self { out, table: OneTable::of(name), open: None }
    }
}

impl<W: Write> TakeRows for TableParquet<W> {
    fn table(&mut self, table: &Table) -> io::Result<()> {
        if self.table.begins(table.name) {
            self.open = Some(Open::new(Batches::of(table))?);
        }
        table.rows.iter().try_for_each(|row| self.row(row))
    }

    fn row(&mut self, row: &[Cell]) -> io::Result<()> {
        let Some(open) = self.open.as_mut().filter(|_| self.table.is_open()) else { return Ok(()) };
        open.batches.row(row);
        if open.batches.rows() >= BATCH { open.write(&mut self.out) } else { Ok(()) }
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        let open = match self.open.take() {
            Some(open) => open,
            // A Parquet file has to have a table.
            None => Open::new(Batches::of(&Table::new("nothing", 1, [])))?,
        };
        open.finish(complete, &mut self.out)
    }
}

impl Open {
    fn new(batches: Batches) -> io::Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("tracewalk version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_max_row_group_row_count(Some(ROW_GROUP))
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batches.schema(), Some(properties))?;
        for (key, value) in metadata(&batches.schema()) {
            writer.append_key_value_metadata(KeyValue::new(key, value));
        }
        Ok(Self { batches, writer, written: 0 })
    }

    fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        let batch = self.batches.take().map_err(io::Error::other)?;
        self.writer.write(&batch)?;
        self.written += batch.num_rows();
        if self.written >= ROW_GROUP {
            self.writer.flush()?;
            self.written = 0;
        }
        out.write_all(&std::mem::take(self.writer.inner_mut()))
    }

    fn finish(mut self, complete: bool, out: &mut impl Write) -> io::Result<()> {
        if self.batches.rows() > 0 {
            self.write(out)?;
        }
        self.writer
            .append_key_value_metadata(KeyValue::new("tracewalk.complete".to_owned(), complete.to_string()));
        out.write_all(&self.writer.into_inner()?)
    }
}

fn metadata(schema: &Schema) -> Vec<(String, String)> {
    let mut metadata = schema.metadata().clone().into_iter().collect::<Vec<_>>();
    metadata.sort_unstable();
    metadata
}

#[cfg(test)]
mod tests {
    use arrow_array::RecordBatch;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use tracewalk_analysis::table::{Column, Kind};

    use super::*;

    fn table(rows: u64) -> Table {
        let columns = [Column::new("number", Kind::Integer), Column::new("name", Kind::Text)];
        let mut table = Table::new("things", 2, columns);
        for row in 0..rows {
            let name = if row % 3 == 0 { Cell::Unknown } else { format!("thing {}", row % 7).into() };
            table.push([row.into(), name]);
        }
        table
    }

    /// The batches, the metadata, and how many row groups there are.
    type Read = (Vec<RecordBatch>, Vec<(String, Option<String>)>, usize);

    fn read(bytes: Vec<u8>) -> Read {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        let metadata = reader.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
        let metadata = metadata.into_iter().map(|pair| (pair.key, pair.value)).collect();
        let groups = reader.metadata().num_row_groups();
        (reader.build().unwrap().map(Result::unwrap).collect(), metadata, groups)
    }

    #[test]
    fn what_is_written_is_read_again_over_several_row_groups() {
        let rows = ROW_GROUP as u64 * 2 + 5000;
        let mut out = Vec::new();
        super::super::write_tables(&mut TableParquet::new(&mut out), &[table(rows)], false).unwrap();
        let (batches, metadata, groups) = read(out);
        assert_eq!(groups, 3);
        assert_eq!(batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>(), rows);
        let read = arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap();
        let expected = crate::columns::batch(&table(rows)).unwrap();
        assert_eq!(read.columns(), expected.columns());
        let of =
            |key: &str| metadata.iter().find(|(known, _)| known == key).and_then(|(_, value)| value.clone());
        assert_eq!(of("tracewalk.table").as_deref(), Some("things"));
        assert_eq!(of("tracewalk.version").as_deref(), Some("2"));
        assert_eq!(of("tracewalk.complete").as_deref(), Some("false"));
    }

    #[test]
    fn the_table_that_was_asked_for_is_written_even_without_rows() {
        let other = Table { name: "others", ..table(4) };
        for (name, rows) in [("things", 0), ("others", 4)] {
            let mut out = Vec::new();
            super::super::write_tables(
                &mut TableParquet::of(&mut out, name),
                &[table(0), other.clone()],
                true,
            )
            .unwrap();
            let (batches, metadata, _) = read(out);
            assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
            assert!(metadata.contains(&("tracewalk.table".to_owned(), Some(name.to_owned()))));
        }
    }

    #[test]
    fn no_table_is_a_file_without_columns() {
        let mut out = Vec::new();
        TableParquet::new(&mut out).finish(true).unwrap();
        let (batches, metadata, _) = read(out);
        assert!(batches.is_empty());
        assert!(metadata.contains(&("tracewalk.complete".to_owned(), Some("true".to_owned()))));
    }
}
