//! Files that a description may name: those in its own directory.
//!
//! A capture and its description travel together, and people open descriptions that they did not write. So a
//! name in a description is relative, has no `..` that leaves the directory, and does not leave it through a
//! symbolic link. The caller may allow further directories; the description itself cannot. A name may then
//! also be absolute or contain `..`, if its target, with symbolic links resolved, lies in one of them.
//!
//! Arm DS on Windows writes descriptions in which letter case is not significant, `\` separates directories,
//! and names are absolute. A name that does not exist as written is therefore searched in the same directory
//! by these rules.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Why a description may not name a file this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", prefix = "path_")]
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
    /// Further directories are allowed, but the name leads into none of them.
    Outside,
    /// The file is a pipe or a device, which might block a reader forever.
    Special,
    /// No file has exactly this name, and several differ from it only in letter case.
    Ambiguous,
}

impl PathProblem {
    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for PathProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "is empty, expected the name of a file",
            Self::Absolute => "is absolute, expected a file in the directory of the description",
            Self::Parent => "leaves the directory of the description through `..`",
            Self::Link => "leaves the directory of the description through a symbolic link",
            Self::Outside => {
                "leads neither into the directory of the description nor into another allowed one"
            }
            Self::Special => "names a pipe or a device, expected a file",
            Self::Ambiguous => "matches several files, which differ from it only in letter case",
        })
    }
}

/// The directories that a description's names are confined to.
#[derive(Clone, Debug)]
pub(crate) struct Confinement {
    /// The description's own directory. Names are relative to it.
    directory: PathBuf,
    /// Directories that the caller allows besides the description's own.
    roots: Vec<PathBuf>,
}

impl Confinement {
    /// Confines the names of descriptions in `directory` to it and to `roots`.
    pub(crate) fn new(directory: impl Into<PathBuf>, roots: &[PathBuf]) -> Self {
        let directory = directory.into();
        // The parent of a bare file name is the empty path, which no system call accepts.
        let directory = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
        Self { directory, roots: roots.to_vec() }
    }

    /// The path of the file with this name. Opening it shows whether it exists.
    pub(crate) fn resolve(&self, name: &str) -> Result<PathBuf, PathProblem> {
        let Name { parts, is_absolute } = match Name::of(name) {
            Err(PathProblem::Parent | PathProblem::Absolute) if !self.roots.is_empty() => {
                return self.resolve_outside(name);
            }
            name => name?,
        };
        let as_written = self.directory.join(name);
        // On Windows, a name with a drive is absolute. On other systems, the drive has no meaning.
        if is_absolute
            && as_written.is_absolute()
            && !self.roots.is_empty()
            && self.check(&as_written).is_ok()
        {
            return Ok(as_written);
        }
        if !is_absolute {
            self.check(&as_written)?;
            if as_written.symlink_metadata().is_ok() {
                return Ok(as_written);
            }
        }
        // Directories above this one are unknown: search the longest suffix of an absolute path that exists
        // here.
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

    /// The path of a file outside the description's directory.
    fn resolve_outside(&self, name: &str) -> Result<PathBuf, PathProblem> {
        let as_written = self.directory.join(name);
        let path = match as_written.symlink_metadata() {
            Err(_) if name.contains('\\') => self.directory.join(name.replace('\\', "/")),
            _ => as_written,
        };
        self.check(&path)?;
        // Resolved, without the detour through the description's directory: messages then name the file that
        // was checked.
        Ok(path.canonicalize().unwrap_or(path))
    }

    /// Whether the file or directory at `path` may be opened.
    fn check(&self, path: &Path) -> Result<(), PathProblem> {
        let Ok(directory) = self.directory.canonicalize() else { return Ok(()) };
        // A path that does not exist is judged by its nearest existing ancestor.
        let Some(real) = path.ancestors().find_map(|path| path.canonicalize().ok()) else { return Ok(()) };
        let roots = self.roots.iter().filter_map(|root| root.canonicalize().ok());
        if !std::iter::once(directory).chain(roots).any(|allowed| real.starts_with(allowed)) {
            return Err(if self.roots.is_empty() { PathProblem::Link } else { PathProblem::Outside });
        }
        match path.canonicalize() {
            Ok(path) if !path.is_file() && !path.is_dir() => Err(PathProblem::Special),
            _ => Ok(()),
        }
    }

    /// The path of these parts; a part that does not exist as written is searched in any letter case.
    fn find(&self, parts: &[&str]) -> Result<Option<PathBuf>, PathProblem> {
        let mut path = self.directory.clone();
        for part in parts {
            // Directories outside this one are not even listed.
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

/// Names with more directories are not searched in any letter case, because each directory is listed.
const DEEPEST: usize = 64;

/// The entry of a directory that has this name, ignoring letter case.
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
    /// The components between `/` and `\`, without `.` and `..`.
    parts: Vec<&'a str>,
    /// Whether the name starts with a Windows drive or server.
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

/// Whether a file's name has this extension, in any letter case.
pub(crate) fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::TemporaryDirectory;

    #[test]
    fn names_stay_in_the_directory() {
        let here = Confinement::new("captures", &[]);
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
        let confinement = Confinement::new(inside.path(), &[]);
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
        // An exact match wins over names that differ in letter case.
        inside.write("TRACE.bin", b"1");
        assert_eq!(confinement.resolve("trace.bin"), Ok(trace));
        assert_eq!(confinement.resolve("Trace.Bin"), Err(PathProblem::Ambiguous));
        // A name of many directories costs nothing.
        assert_eq!(
            confinement.resolve(&format!("C:{}", "\\x".repeat(1_000_000))),
            Err(PathProblem::Absolute)
        );
    }

    #[test]
    fn names_lead_into_directories_that_are_allowed_and_into_no_others() {
        let place = TemporaryDirectory::new();
        let [secret, share] = ["secret/key", "share/run/trace.bin"].map(|name| place.write(name, b"1"));
        let description = place.path().join("described");
        fs::create_dir(&description).unwrap();
        let allowed = Confinement::new(&description, &[place.path().join("share")]);
        let real = |path: PathBuf| path.canonicalize().unwrap();
        for name in [
            "../share/run/trace.bin",
            "..\\share\\run\\trace.bin",
            "../secret/../share/run/trace.bin",
            share.to_str().unwrap(),
        ] {
            assert_eq!(allowed.resolve(name).map(real), Ok(real(share.clone())), "{name}");
        }
        // A missing file is not searched elsewhere, and the error does not reveal what is elsewhere.
        assert!(allowed.resolve("../share/run/missing.bin").is_ok());
        for name in [
            "../secret/key",
            "../secret/missing",
            "../secret",
            "..",
            "/etc/passwd",
            "/missing",
            "../share/../secret/key",
            "../share/run/../../secret/missing/deep",
            "../shared",
            secret.to_str().unwrap(),
        ] {
            assert_eq!(allowed.resolve(name), Err(PathProblem::Outside), "{name}");
        }
        assert_eq!(allowed.resolve(""), Err(PathProblem::Empty));
        assert_eq!(allowed.resolve("trace.bin"), Ok(description.join("trace.bin")));
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_into_directories_that_are_allowed_and_into_no_others() {
        use std::os::unix::fs::symlink;

        let place = TemporaryDirectory::new();
        let [secret, share] = ["secret/key", "share/trace.bin"].map(|name| place.write(name, b"1"));
        let root = place.path().join("share");
        let description = place.path().join("described");
        fs::create_dir(&description).unwrap();
        symlink(&share, description.join("trace")).unwrap();
        symlink(&root, description.join("share")).unwrap();
        symlink(&secret, description.join("key")).unwrap();
        symlink(&secret, root.join("key")).unwrap();
        symlink(place.path().join("secret"), root.join("secret")).unwrap();
        // The allowed directory may itself be a link.
        symlink(&root, place.path().join("link")).unwrap();
        for root in [root, place.path().join("link")] {
            let allowed = Confinement::new(&description, &[root]);
            for name in ["trace", "share/trace.bin", "../share/trace.bin", "../link/trace.bin"] {
                assert!(allowed.resolve(name).is_ok(), "{name}");
            }
            for name in
                ["key", "KEY", "../share/key", "../share/secret/key", "share/secret/missing", "share/key"]
            {
                assert_eq!(allowed.resolve(name), Err(PathProblem::Outside), "{name}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_in_the_directory() {
        let outside = TemporaryDirectory::new();
        let inside = TemporaryDirectory::new();
        std::os::unix::fs::symlink(outside.write("secret", b"1"), inside.path().join("out")).unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.path().join("directory")).unwrap();
        std::os::unix::fs::symlink(inside.write("trace.bin", b"1"), inside.path().join("in")).unwrap();
        let confinement = Confinement::new(inside.path(), &[]);
        assert_eq!(confinement.resolve("out"), Err(PathProblem::Link));
        assert_eq!(confinement.resolve("directory/secret"), Err(PathProblem::Link));
        assert_eq!(confinement.resolve("in"), Ok(inside.path().join("in")));
        for name in ["OUT", "Directory/Secret", "DIRECTORY\\secret", "C:\\x\\directory\\SECRET", "C:\\Out"] {
            assert_eq!(confinement.resolve(name), Err(PathProblem::Link), "{name}");
        }
    }
}
