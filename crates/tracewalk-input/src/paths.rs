//! Files that a description may name: those in its own directory.
//!
//! A capture and its description travel together and are opened by people who did not write them. So a name in a
//! description is relative, has no `..` that leaves the directory, and does not leave it through a symbolic link.

use std::fmt;
use std::path::{Component, Path, PathBuf};

/// Why a description may not name a file so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

impl fmt::Display for PathProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "is an empty name, expected a file",
            Self::Absolute => "is absolute, expected a file in the directory of its description",
            Self::Parent => "leaves the directory of its description by `..`",
            Self::Link => "leaves the directory of its description by a symbolic link",
            Self::Special => "is of a pipe or a device, expected a file",
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
        if name.is_empty() {
            return Err(PathProblem::Empty);
        }
        let mut depth = 0_u32;
        for component in Path::new(name).components() {
            match component {
                Component::Normal(_) => depth += 1,
                Component::CurDir => {}
                Component::ParentDir => depth = depth.checked_sub(1).ok_or(PathProblem::Parent)?,
                Component::RootDir | Component::Prefix(_) => return Err(PathProblem::Absolute),
            }
        }
        let path = self.directory.join(name);
        match (self.directory.canonicalize(), path.canonicalize()) {
            (Ok(directory), Ok(path)) if !path.starts_with(&directory) => Err(PathProblem::Link),
            (_, Ok(path)) if !path.is_file() && !path.is_dir() => Err(PathProblem::Special),
            _ => Ok(path),
        }
    }
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
    }
}
