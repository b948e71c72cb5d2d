//! The sources of the crates as modules, items and the paths that they name.
//!
//! Reads the files of `crates/*/src`. A [`Sources`] knows which file defines what, and what each file names.
//! Code for tests alone (`#[cfg(test)]`, `#[test]`) is left out. Macros are not expanded: the names in their
//! arguments are found, the items that they generate are not.

mod names;
mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use names::{Methods, Target};

/// A path from a crate's name down, like `["tracewalk", "protocol", "pft"]`. Ends in `*` for a glob.
pub(crate) type ModulePath = Vec<String>;

/// The meaning of a name in a module.
#[derive(Debug)]
enum Binding {
    /// A module, in this file or in another.
    Module,
    /// An item that is defined here. The variants of an enum can be imported.
    Item { variants: BTreeSet<String> },
    /// A name that a `use` imported.
    Alias(Vec<String>),
}

/// The kind of place where a path occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a private `use`.
    Use,
    /// In a `use` that re-exports.
    Reexport,
    /// In the code.
    Code,
    /// The name of a macro with `!`, or of an attribute that brings in a file.
    Macro,
    /// A method that is called by `self.name()`, as a path from `Self`'s type.
    Method,
}

/// A path that a module names, as written, with `Self` replaced.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) line: usize,
    pub(crate) path: Vec<String>,
    pub(crate) place: Place,
}

/// One module.
#[derive(Debug)]
pub(crate) struct Module {
    /// The path relative to the workspace.
    pub(crate) file: String,
    pub(crate) named: Vec<Named>,
    names: BTreeMap<String, Vec<Binding>>,
    globs: Vec<Vec<String>>,
    /// Types that have methods here, with the methods.
    methods: Vec<(Vec<String>, String)>,
}

/// Every module of some crates.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) modules: BTreeMap<ModulePath, Module>,
    /// Files and modules that could not be found or read.
    pub(crate) problems: Vec<String>,
}

impl Sources {
    /// Reads every library and program in the folder `crates` of `root`.
    pub(crate) fn of_workspace(root: &Path) -> Result<Self, String> {
        let mut sources = Self::default();
        for (file, name) in crate_roots(root)? {
            sources.add_files(root, &file, &[name])?;
        }
        Ok(sources)
    }

    /// The number of files.
    pub(crate) fn files(&self) -> usize {
        self.modules.values().map(|module| &module.file).collect::<BTreeSet<_>>().len()
    }

    /// Adds the module `path` in `file`, and those that it declares.
    fn add_files(&mut self, root: &Path, file: &Path, path: &[String]) -> Result<(), String> {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let shown = file.strip_prefix(root).unwrap_or(file).display().to_string();
        for child in self.add_text(&text, &shown, path)? {
            match file_of(file, path, &child) {
                Some(child_file) => self.add_files(root, &child_file, &child)?,
                None => self.problems.push(format!("{shown}: found no file for module {}", child.join("::"))),
            }
        }
        Ok(())
    }

    /// Adds the module `path` with this text; returns the modules that it declares in other files.
    pub(crate) fn add_text(
        &mut self,
        text: &str,
        file: &str,
        path: &[String],
    ) -> Result<Vec<ModulePath>, String> {
        let read = read::read(text, file, path).map_err(|error| {
            let at = error.span().start();
            format!("{file}:{}:{}: {error}", at.line, at.column + 1)
        })?;
        self.modules.extend(read.modules);
        Ok(read.declared)
    }
}

/// The root file of every library and program in `crates`, with the name of its root module. If a crate also
/// has a library, the program is named like the library with `_program` appended.
fn crate_roots(root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let crates = root.join("crates");
    let entries = fs::read_dir(&crates).map_err(|error| format!("{}: {error}", crates.display()))?;
    let mut roots = Vec::new();
    for entry in entries {
        let folder = entry.map_err(|error| format!("{}: {error}", crates.display()))?.path();
        let package = folder.file_name().unwrap_or_default().to_string_lossy().replace('-', "_");
        let (library, program) = (folder.join("src/lib.rs"), folder.join("src/main.rs"));
        if program.exists() {
            let name = if library.exists() { format!("{package}_program") } else { package.clone() };
            roots.push((program, name));
        }
        if library.exists() {
            roots.push((library, package));
        }
    }
    roots.sort();
    Ok(roots)
}

/// The file of the module `child`. The file `file`, which contains `module`, declares it.
fn file_of(file: &Path, module: &[String], child: &[String]) -> Option<PathBuf> {
    let stem = file.file_stem()?.to_str()?;
    let folder = file.parent()?;
    let mut below = match stem {
        "lib" | "main" | "mod" => folder.to_path_buf(),
        _ => folder.join(stem),
    };
    // Modules with a body in between are folders.
    below.extend(child.get(module.len()..)?);
    [below.with_extension("rs"), below.join("mod.rs")].into_iter().find(|file| file.exists())
}

#[cfg(test)]
impl Sources {
    /// Sources in a test: paths of modules, each with its text. Each module is a file.
    pub(crate) fn of_texts(texts: &[(&str, &str)]) -> Self {
        let mut sources = Self::default();
        for (path, text) in texts {
            let module = path.split("::").map(str::to_owned).collect::<Vec<_>>();
            sources.add_text(text, path, &module).expect("the text is Rust");
        }
        sources
    }
}
