//! Decisions and conditions of source code, from LLVM's coverage mapping in object files.
//!
//! `clang -fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc -c` writes the mapping. An object, an `.a` archive or a folder of
//! both goes in, a list of [`Decision`]s comes out. Objects are not linked: records of the mapping name each other by hashes.
//! Source: llvm.org/docs/CoverageMappingFormat.html, versions 6 and 7.
//!
//! ```
//! use tracewalk_input::decisions::{FaultKind, decisions_of};
//!
//! let error = decisions_of("main.o".as_ref(), b"no object").unwrap_err();
//! assert_eq!(error.fault.kind, FaultKind::NotAnObject);
//! ```

mod cursor;
mod function;
mod object;
mod regions;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{FileProblem, file};

/// A decision: conditions that `&&` and `||` join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The function, as llvm-cov names it: `file.c:name` if it is static and `file.c` is not the first of its files.
    pub function: Arc<str>,
    /// The function's files. The first is that in which the decision stands; the others hold macros.
    pub files: Arc<[Arc<str>]>,
    /// The index in `files` of the text with the decision: of a macro's definition, if a macro holds the decision.
    pub file_id: usize,
    /// The place in that text.
    pub own: SourceRange,
    /// The place in the first file: of the macro's use, if a macro holds the decision.
    pub range: SourceRange,
    /// The conditions in the order of llvm-cov: that with id 1, then the others in the order of the mapping.
    pub conditions: Vec<Condition>,
    /// Whether the conditions have the ids from 1 to the number that the mapping states.
    pub is_whole: bool,
    /// The code that runs when the decision, without a `!` before it, is true.
    pub body: Option<SourceRange>,
}

/// A condition of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The id. Evaluation begins at id 1.
    pub id: u64,
    /// The condition that follows if this one is true; 0 if the decision is over.
    pub if_true: u64,
    /// The same, if it is false.
    pub if_false: u64,
    /// The place in the decision's first file.
    pub range: SourceRange,
    /// Whether the compiler knows the value.
    pub is_constant: bool,
}

/// A stretch of source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceRange {
    /// The first character.
    pub start: Place,
    /// The place after the last character.
    pub end: Place,
}

/// A character of source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// Why a file's decisions cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionsError {
    /// The file.
    pub file: PathBuf,
    /// The problem.
    pub fault: Fault,
}

/// A problem at a place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The offset in the file, in bytes.
    pub at: u64,
    /// The problem.
    pub kind: FaultKind,
}

/// What is wrong with a file of decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The file cannot be read.
    Unreadable(FileProblem),
    /// The file is neither an ELF object nor an archive.
    NotAnObject,
    /// The folder has no objects, or no object has a coverage mapping.
    NoMapping,
    /// The data ends too early.
    Truncated,
    /// Data follows the last record.
    Trailing,
    /// A number is larger than its field allows.
    TooLarge(u64),
    /// The mapping has this version, not 6 or 7.
    Version(u64),
    /// Compressed data cannot be unpacked.
    Compressed,
    /// A name is not UTF-8.
    NotText,
    /// A region has this unknown kind.
    Region(u64),
    /// No file has this number.
    NoFile(u64),
    /// No function has a name with this hash.
    NoFunction(u64),
    /// No table of files has this hash.
    NoFiles(u64),
    /// Macro expansions are nested too deeply, or in a circle.
    TooDeep,
    /// A function has too many conditions and decisions.
    TooMany,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(problem) => write!(f, "{problem}"),
            Self::NotAnObject => f.write_str("neither an ELF object nor an archive"),
            Self::NoMapping => {
                f.write_str("no coverage mapping, as by clang's -fcoverage-mapping -fcoverage-mcdc")
            }
            Self::Truncated => f.write_str("the coverage mapping ends too early"),
            Self::Trailing => f.write_str("data after the last record of the coverage mapping"),
            Self::TooLarge(number) => write!(f, "{number} is too large in the coverage mapping"),
            Self::Version(version) => {
                write!(f, "version {version} of the coverage mapping, expected 6 or 7 (clang 18 to 22)")
            }
            Self::Compressed => f.write_str("names of the coverage mapping cannot be unpacked"),
            Self::NotText => f.write_str("a name in the coverage mapping is not UTF-8"),
            Self::Region(kind) => write!(f, "unknown kind {kind} of a region of the coverage mapping"),
            Self::NoFile(file) => write!(f, "no file {file} in the coverage mapping"),
            Self::NoFunction(hash) => {
                write!(f, "no function name with hash {hash:#x} in the coverage mapping")
            }
            Self::NoFiles(hash) => write!(f, "no files with hash {hash:#x} in the coverage mapping"),
            Self::TooDeep => f.write_str("macro expansions of the coverage mapping are nested too deeply"),
            Self::TooMany => f.write_str("a function of the coverage mapping has too many conditions"),
        }
    }
}

impl fmt::Display for DecisionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, fault: Fault { at, kind } } = self;
        write!(f, "{}: at byte {at:#x}: {kind}", tracewalk::plain::Plain(file.display()))
    }
}

impl std::error::Error for DecisionsError {}

/// The decisions of the object, the archive or the objects below the folder `path`, each function once.
///
/// # Errors
///
/// If a file cannot be read, if a mapping in it is damaged, or if there is no mapping at all.
pub fn read_decisions(path: &Path) -> Result<Vec<Decision>, DecisionsError> {
    let error = |kind| DecisionsError { file: path.to_owned(), fault: Fault { at: 0, kind } };
    let files = files(path).map_err(|problem| error(FaultKind::Unreadable(problem)))?;
    let mut found = object::Found::default();
    for path in &files {
        let unreadable = |problem| DecisionsError {
            file: path.clone(),
            fault: Fault { at: 0, kind: FaultKind::Unreadable(problem) },
        };
        let bytes = file::read(path, LONGEST_OBJECT).map_err(unreadable)?;
        found.add(&bytes, 0).map_err(|fault| DecisionsError { file: path.clone(), fault })?;
    }
    if found.has_mapping { Ok(found.decisions) } else { Err(error(FaultKind::NoMapping)) }
}

/// The longest object or archive.
const LONGEST_OBJECT: u64 = 1 << 30;

/// The most files of a folder.
const MOST_FILES: usize = 1 << 16;

/// The path itself, or the objects and archives below it if it is a folder, in the order of their paths.
fn files(path: &Path) -> Result<Vec<PathBuf>, FileProblem> {
    if !std::fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut found, mut open) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            // Links are not followed, because they may lead in a circle.
            let (path, kind) = (entry.path(), entry.file_type()?);
            let is_object = path.extension().is_some_and(|extension| extension == "o" || extension == "a");
            match kind.is_dir() {
                true => open.push(path),
                false if is_object => found.push(path),
                false => {}
            }
        }
        if found.len() + open.len() > MOST_FILES {
            return Err(FileProblem::Other(format!("more than {MOST_FILES} files")));
        }
    }
    found.sort();
    Ok(found)
}

/// The decisions of an object or an archive in memory. `file` names it in errors.
///
/// # Errors
///
/// As [`read_decisions`].
pub fn decisions_of(file: &Path, bytes: &[u8]) -> Result<Vec<Decision>, DecisionsError> {
    let mut found = object::Found::default();
    let error = |fault| DecisionsError { file: file.to_owned(), fault };
    found.add(bytes, 0).map_err(error)?;
    if found.has_mapping {
        Ok(found.decisions)
    } else {
        Err(error(Fault { at: 0, kind: FaultKind::NoMapping }))
    }
}
