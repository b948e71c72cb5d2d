//! Stand-in for Parquet, if the feature `parquet` is off: it returns an error that names it.

use std::io::{self, Write};
use std::marker::PhantomData;

use tracewalk_analysis::table::{Cell, Table, TakeRows};

/// Fails.
#[derive(Debug)]
pub struct TableParquet<W>(PhantomData<W>);

impl<W: Write> TableParquet<W> {
    /// Writes nothing to `out`.
    pub fn new(_: W) -> Self {
        Self(PhantomData)
    }

    /// Writes nothing to `out`.
    pub fn of(_: W, _: &'static str) -> Self {
        Self(PhantomData)
    }
}

impl<W: Write> TakeRows for TableParquet<W> {
    fn table(&mut self, _: &Table) -> io::Result<()> {
        Err(lacking())
    }

    fn row(&mut self, _: &[Cell]) -> io::Result<()> {
        Err(lacking())
    }

    fn finish(&mut self, _: bool) -> io::Result<()> {
        Err(lacking())
    }
}

fn lacking() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this format needs a build with the feature `parquet`")
}
