//! The outcome of each of many captures, as a row of a table.
//!
//! ```
//! use tracewalk_analysis::captures::{CaptureOutcome, Captures, OneOfMany};
//! use tracewalk_analysis::table::Tabular;
//!
//! let captures = Captures { captures: vec![OneOfMany::saved("night.twcov")], complete: true };
//! assert_eq!(captures.count(CaptureOutcome::Saved), 1);
//! assert_eq!(captures.tables()[0].rows.len(), 1);
//! ```

use serde::{Deserialize, Serialize};

use crate::table::{Cell, Column, Kind, Table, Tabular};

/// The outcomes of many captures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captures {
    /// A row for each.
    pub captures: Vec<OneOfMany>,
    /// Whether every capture that counts was decoded to its end.
    pub complete: bool,
}

/// A capture and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OneOfMany {
    /// The capture's name.
    pub capture: String,
    /// The outcome.
    pub outcome: CaptureOutcome,
    /// How many sources were followed.
    pub sources: u64,
    /// The sources' bytes of trace.
    pub bytes: u64,
    /// How many instructions ran.
    pub instructions: u64,
    /// The number of places where execution could not be followed.
    pub gaps: u64,
    /// How many warnings there were.
    pub warnings: u64,
    /// The kind and the sentence of the reason why it was left out, or of the first part that could not be read.
    pub problem: Option<(String, String)>,
}

/// The outcome of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureOutcome {
    /// All of the capture was decoded, and counts.
    Whole,
    /// Only a part of the capture could be decoded; that part counts.
    Partial,
    /// Nothing of the capture counts.
    LeftOut,
    /// The capture was saved before, and counts as saved.
    Saved,
}

impl OneOfMany {
    /// An answer that was saved before, of an unknown number of captures.
    #[must_use]
    pub fn saved(name: impl Into<String>) -> Self {
        Self {
            capture: name.into(),
            outcome: CaptureOutcome::Saved,
            sources: 0,
            bytes: 0,
            instructions: 0,
            gaps: 0,
            warnings: 0,
            problem: None,
        }
    }
}

impl CaptureOutcome {
    /// A short name for line formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Partial => "partial",
            Self::LeftOut => "left_out",
            Self::Saved => "saved",
        }
    }
}

impl Captures {
    /// The names of the tables.
    pub const TABLES: [&'static str; 1] = ["captures"];

    /// How many captures had this outcome.
    #[must_use]
    pub fn count(&self, outcome: CaptureOutcome) -> u64 {
        self.captures.iter().filter(|capture| capture.outcome == outcome).count() as u64
    }
}

impl Tabular for Captures {
    fn tables(&self) -> Vec<Table> {
        let column = |(name, kind)| Column::new(name, kind);
        let columns = [
            ("capture", Kind::Text),
            ("outcome", Kind::Text),
            ("sources", Kind::Integer),
            ("bytes", Kind::Integer),
            ("instructions", Kind::Integer),
            ("gaps", Kind::Integer),
            ("warnings", Kind::Integer),
            ("error", Kind::Text),
            ("message", Kind::Text),
        ];
        let [name] = Self::TABLES;
        let mut table = Table::new(name, 1, columns.map(column));
        for OneOfMany { capture, outcome, sources, bytes, instructions, gaps, warnings, problem } in
            &self.captures
        {
            // A value that was not measured is unknown, not zero.
            let is_measured = matches!(outcome, CaptureOutcome::Whole | CaptureOutcome::Partial);
            let count = |count: &u64| Cell::from(Some(*count).filter(|_| is_measured));
            let (error, message) = problem.clone().unzip();
            table.push([
                capture.as_str().into(),
                outcome.name().into(),
                count(sources),
                count(bytes),
                count(instructions),
                count(gaps),
                (*warnings).into(),
                error.into(),
                message.into(),
            ]);
        }
        vec![table]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_unknown() {
        let one = |outcome, problem| OneOfMany {
            capture: "a".to_owned(),
            outcome,
            sources: 0,
            bytes: 0,
            instructions: 0,
            gaps: 0,
            warnings: 0,
            problem,
        };
        let problem = Some(("file".to_owned(), "is not there".to_owned()));
        let captures = vec![one(CaptureOutcome::Whole, None), one(CaptureOutcome::LeftOut, problem)];
        let tables = Captures { captures, complete: true }.tables();
        let rows = &tables[0].rows;
        assert_eq!(rows[0][2..6], [Cell::Integer(0), Cell::Integer(0), Cell::Integer(0), Cell::Integer(0)]);
        assert_eq!(rows[0][7..], [Cell::Unknown, Cell::Unknown]);
        assert_eq!(rows[1][2..6], [Cell::Unknown, Cell::Unknown, Cell::Unknown, Cell::Unknown]);
        assert_eq!(rows[1][7], Cell::from("file"));
    }
}
