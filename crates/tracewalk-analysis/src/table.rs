//! Tables: an analysis' answer as named and typed columns.
//!
//! An answer gives its tables ([`Tabular`]). The writers of text, CSV and JSON are elsewhere, and common to all tables. An unknown
//! value is [`Cell::Unknown`], never a zero or an empty text.
//!
//! ```
//! use tracewalk_analysis::Statistics;
//! use tracewalk_analysis::table::{Cell, Tabular};
//!
//! let statistics = Statistics { bytes: 20, packets: 9, ..Statistics::default() };
//! let [table] = statistics.tables().try_into().expect("one table");
//! assert_eq!((table.name, table.version), ("statistics", 1));
//! let packets = table.columns.iter().position(|column| column.name == "packets").expect("a column");
//! assert_eq!(table.rows[0][packets], Cell::Integer(9));
//! ```

use std::borrow::Cow;
use std::io;

use tracewalk::ids::{Address, TraceId};

/// An answer that has tables.
pub trait Tabular {
    /// The tables, always the same ones in the same order, without rows if there are none.
    fn tables(&self) -> Vec<Table>;
}

/// Receives tables row by row, so that a table need not fit into memory.
///
/// The order of calls is `(table row*)* finish`.
pub trait TakeRows {
    /// Begins a table, with the rows that it has already.
    fn table(&mut self, table: &Table) -> io::Result<()>;

    /// The table's next row.
    fn row(&mut self, row: &[Cell]) -> io::Result<()>;

    /// There are no more tables. `complete` is whether the capture was decoded to its end.
    fn finish(&mut self, complete: bool) -> io::Result<()>;
}

impl<T: TakeRows + ?Sized> TakeRows for &mut T {
    fn table(&mut self, table: &Table) -> io::Result<()> {
        (**self).table(table)
    }

    fn row(&mut self, row: &[Cell]) -> io::Result<()> {
        (**self).row(row)
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        (**self).finish(complete)
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The stable name: lower case, words joined by `_`.
    pub name: &'static str,
    /// The version of its columns. A new column at the end does not change it.
    pub version: u32,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each of as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The stable name: lower case, words joined by `_`.
    pub name: Cow<'static, str>,
    /// The kind of its known cells.
    pub kind: Kind,
    /// The unit of its cells, like `cycles`.
    pub unit: Option<&'static str>,
}

/// The kind of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A whole number that is not negative.
    Integer,
    /// A number with fractions.
    Number,
    /// An address.
    Address,
    /// A length of time or a moment, in whole units of the column.
    Time,
    /// Text.
    Text,
    /// Yes or no.
    Flag,
}

/// The value in a row and a column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cell {
    /// Unknown, or absent.
    Unknown,
    /// Of [`Kind::Integer`] and [`Kind::Time`].
    Integer(u64),
    /// Of [`Kind::Number`].
    Number(f64),
    /// Of [`Kind::Address`].
    Address(Address),
    /// Of [`Kind::Text`].
    Text(String),
    /// Of [`Kind::Flag`].
    Flag(bool),
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(name: &'static str, version: u32, columns: impl IntoIterator<Item = Column>) -> Self {
        Self { name, version, columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// A table whose rows belong to sources. Each begins with the source's [cells](crate::Section::cells), by which such tables join.
    #[must_use]
    pub fn of_sources(name: &'static str, version: u32, columns: impl IntoIterator<Item = Column>) -> Self {
        let source = [("id", Kind::Integer), ("protocol", Kind::Text), ("source_number", Kind::Integer)];
        let source = source.map(|(name, kind)| Column::new(name, kind));
        Self::new(name, version, source.into_iter().chain(columns))
    }

    /// Adds a row. The row's cells have to fit the columns in number and kind; anything else is a defect of the caller.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        let row = row.into_iter().collect::<Vec<_>>();
        debug_assert_eq!(row.len(), self.columns.len(), "{}", self.name);
        debug_assert!(row.iter().zip(&self.columns).all(|(cell, column)| cell.fits(column.kind)), "{row:?}");
        self.rows.push(row);
    }
}

impl Column {
    /// A column of this name and kind.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>, kind: Kind) -> Self {
        Self { name: name.into(), kind, unit: None }
    }

    /// The same column with this unit.
    #[must_use]
    pub fn of(self, unit: &'static str) -> Self {
        Self { unit: Some(unit), ..self }
    }
}

impl Kind {
    /// A short name for line formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Address => "address",
            Self::Time => "time",
            Self::Text => "text",
            Self::Flag => "flag",
        }
    }

    /// Whether its cells are numbers.
    #[must_use]
    pub const fn is_numeric(self) -> bool {
        matches!(self, Self::Integer | Self::Number | Self::Time)
    }
}

impl Cell {
    /// Whether a column of this kind may contain the cell.
    #[must_use]
    pub const fn fits(&self, kind: Kind) -> bool {
        match self {
            Self::Unknown => true,
            Self::Integer(_) => matches!(kind, Kind::Integer | Kind::Time),
            Self::Number(_) => matches!(kind, Kind::Number),
            Self::Address(_) => matches!(kind, Kind::Address),
            Self::Text(_) => matches!(kind, Kind::Text),
            Self::Flag(_) => matches!(kind, Kind::Flag),
        }
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<u16> for Cell {
    fn from(value: u16) -> Self {
        Self::Integer(value.into())
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<Address> for Cell {
    fn from(value: Address) -> Self {
        Self::Address(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<TraceId> for Cell {
    fn from(id: TraceId) -> Self {
        Self::Integer(id.get().into())
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Unknown, Into::into)
    }
}
