//! Tables as CSV, JSON and text: each written here, for every table alike.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use tracewalk_analysis::table::{Cell, Column, Table};

use crate::Palette;

/// The version of the JSON document's shape. A field that is added does not change it.
const VERSION: u32 = 1;

/// Writes a line with the columns' names, and one for each row, with commas (RFC 4180). What is unknown is empty.
pub fn write_table_csv(out: &mut dyn Write, table: &Table) -> io::Result<()> {
    let names = table.columns.iter().map(|column| quoted(&column.name)).collect::<Vec<_>>();
    write!(out, "{}\r\n", names.join(","))?;
    for row in &table.rows {
        let cells = row.iter().map(|cell| match cell {
            Cell::Text(text) => quoted(text),
            cell => plain(cell).unwrap_or_default(),
        });
        write!(out, "{}\r\n", cells.collect::<Vec<_>>().join(","))?;
    }
    Ok(())
}

/// Writes one document with all tables, in which each row is an object. What is unknown is `null`.
pub fn write_tables_json(out: &mut dyn Write, tables: &[Table]) -> io::Result<()> {
    let column = |column: &Column| {
        let mut object = Map::new();
        object.insert("name".to_owned(), column.name.as_ref().into());
        object.insert("kind".to_owned(), column.kind.name().into());
        if let Some(unit) = column.unit {
            object.insert("unit".to_owned(), unit.into());
        }
        Value::Object(object)
    };
    let row = |columns: &[Column], row: &[Cell]| {
        let fields = columns.iter().zip(row).map(|(column, cell)| (column.name.to_string(), value(cell)));
        Value::Object(fields.collect())
    };
    let table = |table: &Table| {
        json!({
            "name": table.name,
            "version": table.version,
            "columns": table.columns.iter().map(column).collect::<Vec<_>>(),
            "rows": table.rows.iter().map(|cells| row(&table.columns, cells)).collect::<Vec<_>>(),
        })
    };
    let tables = tables.iter().map(table).collect::<Vec<_>>();
    serde_json::to_writer(
        &mut *out,
        &json!({ "format": "tracewalk tables", "version": VERSION, "tables": tables }),
    )?;
    out.write_all(b"\n")
}

/// Writes tables for people: columns below each other, numbers to the right. What is unknown is `-`.
pub fn write_tables_text(out: &mut dyn Write, tables: &[Table], palette: &Palette) -> io::Result<()> {
    for (index, table) in tables.iter().filter(|table| !table.rows.is_empty()).enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let Palette { head, quiet, .. } = palette;
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

/// A cell as a word; `None` for what is unknown.
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

fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Integer(value) => (*value).into(),
        Cell::Number(value) => (*value).into(),
        Cell::Address(address) => address.to_string().into(),
        Cell::Text(text) => text.as_str().into(),
        Cell::Flag(value) => (*value).into(),
        _ => Value::Null,
    }
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
        let document = written(|out| write_tables_json(out, &[table()]));
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
    fn columns_stand_below_each_other_for_people() {
        let text = written(|out| write_tables_text(out, &[table()], &Palette::PLAIN));
        let lines = text.lines().collect::<Vec<_>>();
        assert_eq!(lines.len(), 4);
        assert_eq!(
            lines[1].find("[cycles]").map(|at| at + "[cycles]".len()),
            lines[2].find(" 0 ").map(|at| at + 2)
        );
        assert!(lines[3].trim_start().starts_with('-'));
        // A table without rows is left out.
        let empty = Table { rows: Vec::new(), ..table() };
        assert_eq!(written(|out| write_tables_text(out, &[empty], &Palette::PLAIN)), "");
    }
}
