//! Selects the code that a report covers, by the names of files and functions.

use std::borrow::Cow;
use std::cell::Cell;

use tracewalk_analysis::coverage::Filter;

use tracewalk_session::Pattern;

use crate::args::Coverage;

/// The options' selection.
#[derive(Debug)]
pub(super) struct Selection<'a> {
    args: &'a Coverage,
    files: Names<'a>,
    functions: Names<'a>,
    /// Whether each `--path-map` renamed a file, selected or not.
    maps: Vec<Cell<bool>>,
}

#[derive(Debug)]
struct Names<'a> {
    include: Vec<Watched<'a>>,
    exclude: Vec<Watched<'a>>,
}

/// A pattern, and whether something matched it.
#[derive(Debug)]
struct Watched<'a> {
    pattern: &'a Pattern,
    matched: Cell<bool>,
}

impl<'a> Selection<'a> {
    pub(super) fn of(args: &'a Coverage) -> Self {
        Self {
            args,
            files: Names::of(&args.include, &args.exclude),
            functions: Names::of(&args.include_function, &args.exclude_function),
            maps: vec![Cell::new(false); args.path_maps.len()],
        }
    }

    /// Whether there are patterns.
    pub(super) fn is_given(&self) -> bool {
        self.files.is_given() || self.functions.is_given()
    }

    /// Whether there are patterns to include, and none of them matches anything.
    pub(super) fn leaves_nothing(&self) -> bool {
        let unmatched = |patterns: &[Watched<'_>]| {
            !patterns.is_empty() && patterns.iter().all(|watched| !watched.matched.get())
        };
        unmatched(&self.files.include) || unmatched(&self.functions.include)
    }

    /// Whether the `--path-map` of this number renamed a file to which patterns were applied.
    pub(super) fn renamed_by(&self, map: usize) -> bool {
        self.maps.get(map).is_some_and(Cell::get)
    }

    /// The path that the report shows.
    fn shown_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        let Some((map, path)) = self.args.renamed(path) else { return Cow::Borrowed(path) };
        self.maps.get(map).into_iter().for_each(|is_used| is_used.set(true));
        Cow::Owned(path)
    }

    /// The options whose patterns matched nothing.
    pub(super) fn unused(&self) -> Vec<(&'static str, &Pattern)> {
        let options = [
            ("--include", &self.files.include),
            ("--exclude", &self.files.exclude),
            ("--include-function", &self.functions.include),
            ("--exclude-function", &self.functions.exclude),
        ];
        let unused = options.into_iter().flat_map(|(option, patterns)| {
            let unused = patterns.iter().filter(|watched| !watched.matched.get());
            unused.map(move |watched| (option, watched.pattern))
        });
        unused.collect()
    }
}

impl<'a> Names<'a> {
    fn of(include: &'a [Pattern], exclude: &'a [Pattern]) -> Self {
        let watched = |patterns: &'a [Pattern]| {
            patterns.iter().map(|pattern| Watched { pattern, matched: Cell::new(false) }).collect()
        };
        Self { include: watched(include), exclude: watched(exclude) }
    }

    /// Whether there are patterns.
    fn is_given(&self) -> bool {
        !self.include.is_empty() || !self.exclude.is_empty()
    }

    /// Whether code with all of these names is selected.
    fn select(&self, names: &[&str]) -> bool {
        // Every pattern is tried, so that each shows whether it matches anything.
        let any =
            |patterns: &[Watched<'_>]| patterns.iter().filter(|watched| watched.is_match(names)).count() > 0;
        let (included, excluded) = (any(&self.include), any(&self.exclude));
        (self.include.is_empty() || included) && !excluded
    }
}

impl Watched<'_> {
    fn is_match(&self, names: &[&str]) -> bool {
        let matches = names.iter().any(|name| self.pattern.is_match(name));
        self.matched.set(self.matched.get() || matches);
        matches
    }
}

impl Filter for Selection<'_> {
    fn keeps(&self, file: Option<&str>, functions: &[&str]) -> bool {
        // Patterns are for the paths that the report shows.
        let shown = file.filter(|_| self.files.is_given()).map(|file| self.shown_path(file));
        let files = shown.as_deref();
        let (file, function) = (self.files.select(files.as_slice()), self.functions.select(functions));
        file && function
    }
}
