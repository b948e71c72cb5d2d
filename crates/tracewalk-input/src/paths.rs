//! Files that a description may name: those in its own directory.
//!
//! A capture and its description travel together and are opened by people who did not write them. So a name in a
//! description is relative, has no `..` that leaves the directory, and does not leave it through a symbolic link.
//!
//! They may have been written where letter case says nothing, `\` stands between directories, and names are absolute: by
//! Arm DS on Windows. A name that is not there as it is written is looked for like that, in the same directory.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Why a description may not name a file so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathProblem {
    /// The name is empty.
    Empty,
    /// The name is absolute.
    Absolute,
    /// The name leaves the description's directory by `..`.
    Parent,
    /// The name is, or passes, a symbolic link that leaves the description's directory.
    Link,
    /// It is a pipe or a device, which whoever opens it might wait for without end.
    Special,
    /// No file has exactly this name, and several have it but for letter case.
    Ambiguous,
}

impl PathProblem {
    /// A short name that stays what it is.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Empty { .. } => "path_empty",
            Self::Absolute { .. } => "path_absolute",
            Self::Parent { .. } => "path_parent",
            Self::Link { .. } => "path_link",
            Self::Special { .. } => "path_special",
            Self::Ambiguous { .. } => "path_ambiguous",
        }
    }
}

impl fmt::Display for PathProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "is an empty name, expected a file",
            Self::Absolute => "is absolute, expected a file in the directory of its description",
            Self::Parent => "leaves the directory of its description by `..`",
            Self::Link => "leaves the directory of its description by a symbolic link",
            Self::Special => "is of a pipe or a device, expected a file",
            Self::Ambiguous => "is of several files that differ from it in letter case only",
        })
    }
}

/// The directory that a description's names are confined to.
#[derive(Clone, Debug)]
pub(crate) struct Confinement {
    directory: PathBuf,
}

impl Confinement {
    pub(crate) fn new(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        // The parent of a bare file name is the empty path, which no system call takes.
        let directory = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
        Self { directory }
    }

    /// The path of the file with this name. Whether it exists is found out when it is opened.
    pub(crate) fn resolve(&self, name: &str) -> Result<PathBuf, PathProblem> {
        let Name { parts, is_absolute } = Name::of(name)?;
        let as_written = self.directory.join(name);
        if !is_absolute {
            self.check(&as_written)?;
            if as_written.symlink_metadata().is_ok() {
                return Ok(as_written);
            }
        }
        // Of an absolute path the directories above this one are not known here: the longest end of it that is here.
        let ends = match parts.len() {
            deep if deep > DEEPEST => 0,
            parts if is_absolute => parts,
            _ => 1,
        };
        for skipped in 0..ends {
            if let Some(path) = self.find(parts.get(skipped..).unwrap_or_default())? {
                self.check(&path)?;
                return Ok(path);
            }
        }
        if is_absolute { Err(PathProblem::Absolute) } else { Ok(as_written) }
    }

    /// Whether what stands at a path may be opened.
    fn check(&self, path: &Path) -> Result<(), PathProblem> {
        match (self.directory.canonicalize(), path.canonicalize()) {
            (Ok(directory), Ok(path)) if !path.starts_with(&directory) => Err(PathProblem::Link),
            (_, Ok(path)) if !path.is_file() && !path.is_dir() => Err(PathProblem::Special),
            _ => Ok(()),
        }
    }

    /// What these parts lead to, in any letter case where nothing has them as they are written.
    fn find(&self, parts: &[&str]) -> Result<Option<PathBuf>, PathProblem> {
        let mut path = self.directory.clone();
        for part in parts {
            // Directories outside of this one are not even listed.
            self.check(&path)?;
            let exact = path.join(part);
            path = match exact.symlink_metadata() {
                Ok(_) => exact,
                Err(_) => match in_any_case(&path, part)? {
                    Some(found) => found,
                    None => return Ok(None),
                },
            };
        }
        Ok((!parts.is_empty()).then_some(path))
    }
}

/// A name with more directories is not looked for in other case: each is listed.
const DEEPEST: usize = 64;

/// The entry of a directory that has this name but for letter case.
fn in_any_case(directory: &Path, name: &str) -> Result<Option<PathBuf>, PathProblem> {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(None) };
    let wanted = name.to_lowercase();
    let has_name =
        |entry: &fs::DirEntry| entry.file_name().to_str().is_some_and(|found| found.to_lowercase() == wanted);
    let mut found = entries.filter_map(Result::ok).filter(has_name);
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(PathProblem::Ambiguous),
        (first, _) => Ok(first.map(|entry| entry.path())),
    }
}

/// A name in a description, taken apart.
struct Name<'a> {
    /// What stands between `/` and `\`, with no `.` and no `..`.
    parts: Vec<&'a str>,
    /// Whether it starts with a drive or a server of Windows.
    is_absolute: bool,
}

impl<'a> Name<'a> {
    fn of(name: &'a str) -> Result<Self, PathProblem> {
        if name.is_empty() {
            return Err(PathProblem::Empty);
        }
        let mut start = name.chars();
        let has_drive = start.next().is_some_and(|first| first.is_ascii_alphabetic())
            && start.next() == Some(':')
            && matches!(start.next(), Some('/' | '\\'));
        let rest = if has_drive { name.get(2..).unwrap_or("") } else { name };
        let is_absolute = has_drive || rest.starts_with('\\');
        if !is_absolute && Path::new(name).has_root() {
            return Err(PathProblem::Absolute);
        }
        let mut parts = Vec::new();
        for part in rest.split(['/', '\\']) {
            match part {
                "" | "." => {}
                ".." if parts.pop().is_none() => return Err(PathProblem::Parent),
                ".." => {}
                part => parts.push(part),
            }
        }
        Ok(Self { parts, is_absolute })
    }
}

/// Whether a file's name ends so, in any case.
pub(crate) fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::TemporaryDirectory;

    #[test]
    fn names_stay_in_the_directory() {
        let here = Confinement::new("captures");
        assert_eq!(here.resolve("trace.bin"), Ok(PathBuf::from("captures/trace.bin")));
        assert_eq!(here.resolve("./a/../trace.bin"), Ok(PathBuf::from("captures/./a/../trace.bin")));
        assert_eq!(here.resolve(""), Err(PathProblem::Empty));
        assert_eq!(here.resolve("/etc/passwd"), Err(PathProblem::Absolute));
        assert_eq!(here.resolve("../trace.bin"), Err(PathProblem::Parent));
        assert_eq!(here.resolve("a/../../captures/trace.bin"), Err(PathProblem::Parent));
        for outside in ["..\\trace.bin", "a\\..\\..\\trace.bin", "a/..\\../trace.bin", "C:\\..\\trace.bin"] {
            assert_eq!(here.resolve(outside), Err(PathProblem::Parent), "{outside}");
        }
        for absolute in
            ["C:\\trace.bin", "c:/trace.bin", "\\\\server\\share\\trace.bin", "\\trace.bin", "C:\\"]
        {
            assert_eq!(here.resolve(absolute), Err(PathProblem::Absolute), "{absolute}");
        }
    }

    #[test]
    fn names_written_on_windows_are_found_in_the_directory() {
        let inside = TemporaryDirectory::new();
        fs::create_dir_all(inside.path().join("Dumps")).unwrap();
        let memory = inside.write("Dumps/Kernel.BIN", b"1");
        let trace = inside.write("trace.bin", b"1");
        let confinement = Confinement::new(inside.path());
        for name in [
            "dumps/kernel.bin",
            "DUMPS\\KERNEL.BIN",
            ".\\Dumps\\..\\dumps\\Kernel.bin",
            "C:\\Users\\me\\snapshot\\dumps\\kernel.bin",
            "C:/Users/me/snapshot/Dumps/Kernel.BIN",
            "\\\\server\\me\\DUMPS\\Kernel.BIN",
        ] {
            assert_eq!(confinement.resolve(name).as_ref(), Ok(&memory), "{name}");
        }
        assert_eq!(confinement.resolve("D:\\elsewhere\\Trace.Bin"), Ok(trace.clone()));
        // What has the name exactly is meant, whatever stands beside it.
        inside.write("TRACE.bin", b"1");
        assert_eq!(confinement.resolve("trace.bin"), Ok(trace));
        assert_eq!(confinement.resolve("Trace.Bin"), Err(PathProblem::Ambiguous));
        // A name of many directories costs nothing.
        assert_eq!(
            confinement.resolve(&format!("C:{}", "\\x".repeat(1_000_000))),
            Err(PathProblem::Absolute)
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_in_the_directory() {
        let outside = TemporaryDirectory::new();
        let inside = TemporaryDirectory::new();
        std::os::unix::fs::symlink(outside.write("secret", b"1"), inside.path().join("out")).unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.path().join("directory")).unwrap();
        std::os::unix::fs::symlink(inside.write("trace.bin", b"1"), inside.path().join("in")).unwrap();
        let confinement = Confinement::new(inside.path());
        assert_eq!(confinement.resolve("out"), Err(PathProblem::Link));
        assert_eq!(confinement.resolve("directory/secret"), Err(PathProblem::Link));
        assert_eq!(confinement.resolve("in"), Ok(inside.path().join("in")));
        for name in ["OUT", "Directory/Secret", "DIRECTORY\\secret", "C:\\x\\directory\\SECRET", "C:\\Out"] {
            assert_eq!(confinement.resolve(name), Err(PathProblem::Link), "{name}");
        }
    }
}
