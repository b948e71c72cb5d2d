//! Tables as CSV, JSON and text: one writer for all tables.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};
use tracewalk_analysis::table::{Cell, Column, Table, TakeRows};

use crate::layout::Fitted;
use crate::{Look, Palette};

/// The version of the JSON document's shape. A field that is added does not change it.
const VERSION: u32 = 1;

/// Writes one table as comma-separated values (RFC 4180): a line with the columns' names, and one for each row. An unknown value
/// is empty.
#[derive(Debug)]
pub struct TableCsv<W> {
    out: W,
    table: OneTable,
}

/// Selects the table that is written by a format with a single table.
#[derive(Debug)]
pub(super) struct OneTable {
    /// The table's name; the first table if `None`.
    name: Option<&'static str>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Before,
    Inside,
    After,
}

impl OneTable {
    pub(super) const fn first() -> Self {
        Self { name: None, state: State::Before }
    }

    pub(super) const fn of(name: &'static str) -> Self {
        Self { name: Some(name), state: State::Before }
    }

    /// A table of this name begins, and the previous one has ended. Returns whether to write it.
    pub(super) fn begins(&mut self, name: &str) -> bool {
        let is_chosen = self.name.is_none_or(|chosen| chosen == name);
        self.state = match self.state {
            State::Before if is_chosen => State::Inside,
            State::Before => State::Before,
            State::Inside | State::After => State::After,
        };
        self.is_open()
    }

    /// Whether further rows belong to the selected table.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Inside
    }
}

/// Writes all tables as one JSON document, in which each row is an object. An unknown value is `null`.
#[derive(Debug)]
pub struct TablesJson<W> {
    out: W,
    /// The fields of the table whose rows are written, and its version.
    open: Option<(Vec<Field>, u32)>,
    tables: usize,
    rows: usize,
}

/// A field of a row's object.
#[derive(Debug)]
struct Field {
    /// The name, as JSON.
    key: String,
    /// The index of the column.
    column: usize,
}

impl Field {
    /// The fields of a table, in the order of their names.
    fn all(columns: &[Column]) -> Vec<Self> {
        let named = columns.iter().enumerate().map(|(column, named)| (&named.name, column));
        let named = named.collect::<BTreeMap<_, _>>();
        named.into_iter().map(|(name, column)| Self { key: json!(name).to_string(), column }).collect()
    }
}

impl<W: Write> TableCsv<W> {
    /// Writes the first table.
    pub const fn new(out: W) -> Self {
        Self { out, table: OneTable::first() }
    }

    /// Writes the table of this name.
    pub const fn of(out: W, name: &'static str) -> Self {
        Self { out, table: OneTable::of(name) }
    }
}

impl<W: Write> TakeRows for TableCsv<W> {
    fn table(&mut self, table: &Table) -> io::Result<()> {
        if self.table.begins(table.name) {
            let names = table.columns.iter().map(|column| quoted(&column.name)).collect::<Vec<_>>();
            write!(self.out, "{}\r\n", names.join(","))?;
        }
        table.rows.iter().try_for_each(|row| self.row(row))
    }

    fn row(&mut self, row: &[Cell]) -> io::Result<()> {
        if !self.table.is_open() {
            return Ok(());
        }
        let cells = row.iter().map(|cell| match cell {
            Cell::Text(text) => quoted(text),
            cell => plain(cell).unwrap_or_default(),
        });
        write!(self.out, "{}\r\n", cells.collect::<Vec<_>>().join(","))
    }

    fn finish(&mut self, _complete: bool) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write> TablesJson<W> {
    /// Writes to `out`.
    pub const fn new(out: W) -> Self {
        Self { out, open: None, tables: 0, rows: 0 }
    }

    fn end_table(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some((_, version)) => write!(self.out, "],\"version\":{version}}}"),
            None => Ok(()),
        }
    }
}

impl<W: Write> TakeRows for TablesJson<W> {
    fn table(&mut self, table: &Table) -> io::Result<()> {
        self.end_table()?;
        let head = if self.tables == 0 { "{\"format\":\"tracewalk tables\",\"tables\":[" } else { "," };
        self.tables += 1;
        let columns = table.columns.iter().map(|column| {
            let mut object = json!({ "name": column.name, "kind": column.kind.name() });
            if let Some(unit) = column.unit {
                object["unit"] = unit.into();
            }
            object
        });
        let columns = columns.collect::<Value>();
        write!(self.out, "{head}{{\"columns\":{columns},\"name\":{},\"rows\":[", json!(table.name))?;
        self.open = Some((Field::all(&table.columns), table.version));
        self.rows = 0;
        table.rows.iter().try_for_each(|row| self.row(row))
    }

    fn row(&mut self, row: &[Cell]) -> io::Result<()> {
        let Some((fields, _)) = &self.open else { return Ok(()) };
        if self.rows > 0 {
            self.out.write_all(b",")?;
        }
        self.rows += 1;
        write_object(&mut self.out, fields, row)
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        self.end_table()?;
        if self.tables == 0 {
            self.out.write_all(b"{\"format\":\"tracewalk tables\",\"tables\":[")?;
        }
        let complete = if complete { "" } else { ",\"complete\":false" };
        writeln!(self.out, "],\"version\":{VERSION}{complete}}}")
    }
}

/// Writes a row as an object.
fn write_object(out: &mut impl Write, fields: &[Field], row: &[Cell]) -> io::Result<()> {
    for (index, Field { key, column }) in fields.iter().enumerate() {
        let before = if index == 0 { "{" } else { "," };
        write!(out, "{before}{key}:")?;
        match row.get(*column) {
            Some(Cell::Integer(value)) => write!(out, "{value}")?,
            Some(Cell::Number(value)) => serde_json::to_writer(&mut *out, value)?,
            // An address needs no escapes in JSON.
            Some(Cell::Address(address)) => write!(out, "\"{address}\"")?,
            Some(Cell::Text(text)) => serde_json::to_writer(&mut *out, text)?,
            Some(Cell::Flag(value)) => write!(out, "{value}")?,
            _ => out.write_all(b"null")?,
        }
    }
    out.write_all(if fields.is_empty() { b"{}" } else { b"}" })
}

/// Hands tables on.
pub fn write_tables(out: &mut dyn TakeRows, tables: &[Table], complete: bool) -> io::Result<()> {
    tables.iter().try_for_each(|table| out.table(table))?;
    out.finish(complete)
}

/// Writes a table as comma-separated values.
pub fn write_table_csv(out: &mut dyn Write, table: &Table) -> io::Result<()> {
    write_tables(&mut TableCsv::new(out), std::slice::from_ref(table), true)
}

/// Writes all tables as one JSON document.
pub fn write_tables_json(out: &mut dyn Write, tables: &[Table], complete: bool) -> io::Result<()> {
    write_tables(&mut TablesJson::new(out), tables, complete)
}

/// Writes one JSON object with a field for each table: the table's rows.
pub(super) fn write_rows_json(out: &mut dyn Write, tables: &[Table], complete: bool) -> io::Result<()> {
    let out = &mut { out };
    write!(out, "{{\"v\":{}", tables.first().map_or(VERSION, |table| table.version))?;
    for table in tables {
        let fields = Field::all(&table.columns);
        write!(out, ",{}:", json!(table.name))?;
        for (index, row) in table.rows.iter().enumerate() {
            out.write_all(if index == 0 { b"[" } else { b"," })?;
            write_object(out, &fields, row)?;
        }
        out.write_all(if table.rows.is_empty() { b"[]" } else { b"]" })?;
    }
    writeln!(out, "{}}}", if complete { "" } else { ",\"complete\":false" })
}

/// Writes tables for people: aligned columns, numbers to the right. An unknown value is `-`.
pub fn write_tables_text(out: &mut dyn Write, tables: &[Table], look: Look) -> io::Result<()> {
    let out = &mut Fitted::new(out, look.width);
    for (index, table) in tables.iter().filter(|table| !table.rows.is_empty()).enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let Palette { head, quiet, .. } = look.palette;
        writeln!(out, "{head}{}{head:#}", table.name.replace('_', " "))?;
        let title = |column: &Column| match column.unit {
            Some(unit) => format!("{} [{unit}]", column.name),
            None => column.name.to_string(),
        };
        let titles = table.columns.iter().map(title).collect::<Vec<_>>();
        let cells = |row: &Vec<Cell>| {
            row.iter().map(|cell| plain(cell).unwrap_or_else(|| "-".to_owned())).collect::<Vec<_>>()
        };
        let rows = table.rows.iter().map(cells).collect::<Vec<_>>();
        let width = |column: usize| {
            let cells = rows.iter().chain([&titles]).filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths = (0..titles.len()).map(width).collect::<Vec<_>>();
        writeln!(out, "{quiet}{}{quiet:#}", line(&titles, &widths, &table.columns))?;
        for row in &rows {
            writeln!(out, "{}", line(row, &widths, &table.columns))?;
        }
    }
    Ok(())
}

fn line(cells: &[String], widths: &[usize], columns: &[Column]) -> String {
    let padded = cells.iter().zip(widths).zip(columns).map(|((cell, width), column)| {
        if column.kind.is_numeric() { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    });
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// A cell as a word; `None` for an unknown value.
fn plain(cell: &Cell) -> Option<String> {
    Some(match cell {
        Cell::Integer(value) => value.to_string(),
        Cell::Number(value) => format!("{value:.3}"),
        Cell::Address(address) => address.to_string(),
        Cell::Text(text) => text.clone(),
        Cell::Flag(value) => value.to_string(),
        _ => return None,
    })
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use tracewalk::ids::Address;
    use tracewalk_analysis::table::Kind;

    use super::*;

    fn table() -> Table {
        let columns = [
            Column::new("name", Kind::Text),
            Column::new("at", Kind::Address),
            Column::new("spent", Kind::Time).of("cycles"),
            Column::new("mean", Kind::Number),
            Column::new("traced", Kind::Flag),
        ];
        let mut table = Table::new("things", 3, columns);
        table.push(["a, \"b\"".into(), Address::new(0x306).into(), 0_u64.into(), 1.5.into(), true.into()]);
        table.push([Cell::Text(String::new()), Cell::Unknown, Cell::Unknown, Cell::Unknown, Cell::Unknown]);
        table
    }

    fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_unknown_is_empty_and_a_zero_is_a_zero_in_csv() {
        let csv = written(|out| write_table_csv(out, &table()));
        assert_eq!(csv, "name,at,spent,mean,traced\r\n\"a, \"\"b\"\"\",0x00000306,0,1.500,true\r\n,,,,\r\n");
    }

    #[test]
    fn a_document_says_what_each_column_holds_and_unknown_is_null() {
        let document = written(|out| write_tables_json(out, &[table()], true));
        let document: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["format"], "tracewalk tables");
        assert_eq!(document["tables"][0]["version"], 3);
        let columns = &document["tables"][0]["columns"];
        assert_eq!(columns[2], json!({ "name": "spent", "kind": "time", "unit": "cycles" }));
        let rows = &document["tables"][0]["rows"];
        let first =
            json!({ "name": "a, \"b\"", "at": "0x00000306", "spent": 0, "mean": 1.5, "traced": true });
        assert_eq!(rows[0], first);
        assert_eq!(rows[1], json!({ "name": "", "at": null, "spent": null, "mean": null, "traced": null }));
    }

    #[test]
    fn csv_has_the_table_that_was_asked_for_and_json_has_all() {
        let other = Table { name: "others", ..table() };
        let tables = [table(), other.clone()];
        let csv = written(|out| write_tables(&mut TableCsv::of(out, "others"), &tables, true));
        assert_eq!(csv, written(|out| write_table_csv(out, &other)));
        let document = written(|out| write_tables_json(out, &tables, false));
        let document: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(
            (&document["tables"][1]["name"], &document["complete"]),
            (&json!("others"), &json!(false))
        );
        let nothing: Value = serde_json::from_str(&written(|out| write_tables_json(out, &[], true))).unwrap();
        assert_eq!(nothing, json!({ "format": "tracewalk tables", "tables": [], "version": 1 }));
    }

    #[test]
    fn columns_stand_below_each_other_for_people() {
        let text = written(|out| write_tables_text(out, &[table()], Look::PLAIN));
        let lines = text.lines().collect::<Vec<_>>();
        assert_eq!(lines.len(), 4);
        assert_eq!(
            lines[1].find("[cycles]").map(|at| at + "[cycles]".len()),
            lines[2].find(" 0 ").map(|at| at + 2)
        );
        assert!(lines[3].trim_start().starts_with('-'));
        // A table without rows is left out.
        let empty = Table { rows: Vec::new(), ..table() };
        assert_eq!(written(|out| write_tables_text(out, &[empty], Look::PLAIN)), "");
    }
}
