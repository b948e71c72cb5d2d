//! Which code a report is about, by the names of files and functions.

use tracewalk_analysis::coverage::Filter;

use crate::args::{Coverage, Pattern};

/// What the options select.
#[derive(Debug)]
pub(super) struct Selection<'a> {
    files: Names<'a>,
    functions: Names<'a>,
}

#[derive(Debug)]
struct Names<'a> {
    include: &'a [Pattern],
    exclude: &'a [Pattern],
}

impl<'a> Selection<'a> {
    pub(super) fn of(args: &'a Coverage) -> Self {
        Self {
            files: Names { include: &args.include, exclude: &args.exclude },
            functions: Names { include: &args.include_function, exclude: &args.exclude_function },
        }
    }
}

impl Names<'_> {
    /// Whether something is selected that has all of these names.
    fn select(&self, names: &[&str]) -> bool {
        let any = |patterns: &[Pattern]| {
            patterns.iter().any(|pattern| names.iter().any(|name| pattern.is_match(name)))
        };
        (self.include.is_empty() || any(self.include)) && !any(self.exclude)
    }
}

impl Filter for Selection<'_> {
    fn keeps(&self, file: Option<&str>, functions: &[&str]) -> bool {
        self.files.select(file.as_slice()) && self.functions.select(functions)
    }
}
