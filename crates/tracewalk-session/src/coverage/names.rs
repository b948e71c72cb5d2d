//! The names of source files and functions: which code they select, and what reports call the files.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tracewalk_analysis::coverage::{Difference, Filter, ProgramInput, Report};
use tracewalk_analysis::symbols::SourceFile;

use super::CoverageRequest;
use super::problem::Selects;
use crate::request::Pattern;

/// The beginning of paths in the debugging information, and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMap {
    /// The beginning.
    pub old: String,
    /// Its replacement.
    pub new: String,
}

impl PathMap {
    /// The path, if it begins with these folders.
    pub(super) fn apply(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(&self.old)?;
        let is_whole = rest.is_empty() || self.old.ends_with(['/', '\\']) || rest.starts_with(['/', '\\']);
        is_whole.then(|| format!("{}{rest}", self.new))
    }
}

impl fmt::Display for PathMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.old, self.new)
    }
}

/// The selected code.
#[derive(Debug)]
pub(super) struct Selection<'a> {
    request: &'a CoverageRequest,
    files: Names<'a>,
    functions: Names<'a>,
    /// Whether each path map renamed a file, selected or not.
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
    pub(super) fn of(request: &'a CoverageRequest) -> Self {
        Self {
            request,
            files: Names::of(&request.include, &request.exclude),
            functions: Names::of(&request.include_function, &request.exclude_function),
            maps: vec![Cell::new(false); request.path_maps.len()],
        }
    }

    /// Whether there are patterns to include, and none of them matches anything.
    pub(super) fn leaves_nothing(&self) -> bool {
        let unmatched = |patterns: &[Watched<'_>]| {
            !patterns.is_empty() && patterns.iter().all(|watched| !watched.matched.get())
        };
        unmatched(&self.files.include) || unmatched(&self.functions.include)
    }

    /// Whether the path map of this number renamed a file to which patterns were applied.
    pub(super) fn renamed_by(&self, map: usize) -> bool {
        self.maps.get(map).is_some_and(Cell::get)
    }

    /// The path that the report shows.
    fn shown_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        let Some((map, path)) = self.request.renamed(path) else { return Cow::Borrowed(path) };
        self.maps.get(map).into_iter().for_each(|is_used| is_used.set(true));
        Cow::Owned(path)
    }

    /// The patterns that matched nothing, each with its use.
    pub(super) fn unused(&self) -> impl Iterator<Item = (Selects, &Pattern)> {
        let all = [
            (Selects::Files, &self.files.include),
            (Selects::NotFiles, &self.files.exclude),
            (Selects::Functions, &self.functions.include),
            (Selects::NotFunctions, &self.functions.exclude),
        ];
        all.into_iter().flat_map(|(of, patterns)| {
            let unused = patterns.iter().filter(|watched| !watched.matched.get());
            unused.map(move |watched| (of, watched.pattern))
        })
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

/// The files of a report that a path map renamed.
#[derive(Debug)]
pub(super) struct Paths {
    /// By their names: their names in the debugging information.
    renamed: BTreeMap<String, String>,
    /// The numbers of the maps that match no file of the report.
    pub(super) unused: Vec<usize>,
}

impl Paths {
    /// Renames source files by the first path map that matches.
    pub(super) fn of(report: &mut Report, request: &CoverageRequest) -> Self {
        let maps = &request.path_maps;
        let mut paths = Self { renamed: BTreeMap::new(), unused: Vec::new() };
        if maps.is_empty() {
            return paths;
        }
        let inlined =
            report.copies.iter().flat_map(|copy| &copy.inlined).filter_map(|call| call.file.as_deref());
        let names =
            report.files.iter().map(|file| file.name.as_str()).chain(inlined).collect::<BTreeSet<_>>();
        let new_name = |name: &str| request.renamed(name).map(|(_, path)| path);
        let renamed = names.iter().filter_map(|name| Some((new_name(name)?, (*name).to_owned())));
        paths.renamed = renamed.collect();
        let unused =
            maps.iter().enumerate().filter(|(_, map)| names.iter().all(|name| map.apply(name).is_none()));
        paths.unused = unused.map(|(number, _)| number).collect();
        report.rename_files(new_name);
        paths
    }

    /// The source file of a name in the report, at that name or else at the one in the debugging information.
    pub(super) fn found(&self, inputs: &[ProgramInput<'_>], name: &str) -> Option<SourceFile> {
        let find = |name: &str| inputs.iter().find_map(|input| input.code.symbols.source_file(name));
        find(name).or_else(|| find(self.renamed.get(name)?))
    }

    /// As [`Paths::found`], with the path that reports of complete paths state: the place at which the file was found, unless
    /// a path map names the file.
    pub(super) fn source(&self, inputs: &[ProgramInput<'_>], name: &str) -> Option<SourceFile> {
        let found = self.found(inputs, name)?;
        let path = if self.renamed.contains_key(name) { name.to_owned() } else { found.path };
        Some(SourceFile { path, ..found })
    }

    /// Names the files of a difference as the report does. The difference was worked out with complete paths.
    pub(super) fn name_difference(
        difference: &mut Difference,
        report: &Report,
        source: impl Fn(&str) -> Option<SourceFile>,
    ) {
        let path = |name: &String| source(name).map_or_else(|| name.clone(), |found| found.path);
        let names = report.files.iter().map(|file| (path(&file.name), file.name.clone()));
        difference.rename_files(&names.collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_mapped_by_whole_folders() {
        let apply = |old: &str, new: &str, path: &str| {
            PathMap { old: old.to_owned(), new: new.to_owned() }.apply(path)
        };
        assert_eq!(apply("/build/a", "/home/me", "/build/a/src/x.c").as_deref(), Some("/home/me/src/x.c"));
        assert_eq!(apply("/build/a/", "", "/build/a/src/x.c").as_deref(), Some("src/x.c"));
        assert_eq!(apply("C:\\a", "b", "C:\\a\\x.c").as_deref(), Some("b\\x.c"));
        assert_eq!(apply("/build/a", "/home/me", "/build/ab/x.c"), None);
    }
}
