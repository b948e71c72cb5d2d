//! A difference as a table.

use super::Difference;
use crate::table::{Cell, Column, Kind, Table};

impl Difference {
    /// A row for each line that the difference is about: `lost`, `lost_branches`, `gained`, `new_uncovered`, `new_code_uncovered` or
    /// `unjudged`.
    #[must_use]
    pub fn table(&self) -> Table {
        let columns = [
            Column::new("file", Kind::Text),
            Column::new("line", Kind::Integer),
            Column::new("change", Kind::Text),
        ];
        let mut table = Table::new("difference", 1, columns);
        for (name, change) in &self.files {
            let kinds = [
                ("lost", &change.lost),
                ("lost_branches", &change.lost_branches),
                ("gained", &change.gained),
                ("new_uncovered", &change.new_uncovered),
                ("new_code_uncovered", &change.new_code_uncovered),
                ("unjudged", &change.unjudged),
            ];
            let lines =
                kinds.into_iter().flat_map(|(kind, lines)| lines.iter().map(move |line| (*line, kind)));
            let mut lines = lines.collect::<Vec<_>>();
            lines.sort_unstable();
            for (line, kind) in lines {
                table.push([Cell::from(name.as_str()), line.into(), kind.into()]);
            }
        }
        table
    }
}
