//! The names of source files: those in the debugging information, or those that `--path-map` gives them.

use std::collections::{BTreeMap, BTreeSet};

use tracewalk_analysis::coverage::{Difference, ProgramInput, Report};
use tracewalk_analysis::symbols::SourceFile;

use crate::args::Coverage;

/// The files of a report that `--path-map` renamed.
#[derive(Debug)]
pub(super) struct Paths {
    /// By their names: their names in the debugging information.
    renamed: BTreeMap<String, String>,
    /// The numbers of the options that match no file of the report.
    pub(super) unused: Vec<usize>,
}

impl Paths {
    /// Renames source files by the first `--path-map` that matches.
    pub(super) fn of(report: &mut Report, args: &Coverage) -> Self {
        let maps = &args.path_maps;
        let mut paths = Self { renamed: BTreeMap::new(), unused: Vec::new() };
        if maps.is_empty() {
            return paths;
        }
        let inlined =
            report.copies.iter().flat_map(|copy| &copy.inlined).filter_map(|call| call.file.as_deref());
        let names =
            report.files.iter().map(|file| file.name.as_str()).chain(inlined).collect::<BTreeSet<_>>();
        let new_name = |name: &str| args.shown_path(name);
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
    /// `--path-map` names the file.
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
