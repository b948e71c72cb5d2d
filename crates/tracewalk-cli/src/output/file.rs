//! A file that has its name only when it is complete.
//!
//! The bytes go to a temporary file in the same directory, which takes the name at the end: a command that fails or is ended
//! leaves the old file unchanged. A symbolic link is followed, so that its target is replaced. If a new file cannot replace the
//! old one (it has other hard links, or another owner), the bytes are copied into the old one at the end. A file that is not
//! regular, like a pipe or `/dev/null`, is written directly.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempPath};

use crate::signals::{self, Leftover, Unfinished};

/// A file that is being written.
#[derive(Debug)]
pub(crate) enum OutputFile {
    /// A file that is not regular.
    Direct(BufWriter<File>),
    Replacement(Replacement),
}

/// The bytes of a file that does not have its name yet.
#[derive(Debug)]
pub(crate) struct Replacement {
    out: BufWriter<File>,
    temporary: TempPath,
    /// The final path.
    target: PathBuf,
    /// Whether to keep the old file, and only replace its bytes.
    keeps_old: bool,
    unfinished: Unfinished,
}

/// The prefix of unfinished files' names.
pub(super) const TEMPORARY: &str = ".tracewalk-";

/// The most symbolic links that are followed.
const MOST_LINKS: usize = 40;

impl OutputFile {
    /// Starts to write a file. Fails at once if it could not be finished.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        match target(path)? {
            None => Ok(Self::Direct(BufWriter::new(OpenOptions::new().append(true).open(path)?))),
            Some(target) => Replacement::create(target).map(Self::Replacement),
        }
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Direct(mut out) => out.flush(),
            Self::Replacement(replacement) => replacement.finish(),
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Direct(out) => out.write(bytes),
            Self::Replacement(replacement) => replacement.out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Direct(out) => out.flush(),
            Self::Replacement(replacement) => replacement.out.flush(),
        }
    }
}

impl Replacement {
    fn create(target: PathBuf) -> io::Result<Self> {
        let old = match fs::metadata(&target) {
            // A file that may not be written to is not replaced either.
            Ok(old) => OpenOptions::new().write(true).open(&target).map(|_| Some(old))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let ((file, unfinished), is_beside) = match (temporary(directory.unwrap_or(Path::new("."))), &old) {
            (Ok(file), _) => (file, true),
            // The file is writable, but its directory is not.
            (Err(error), Some(_)) if error.kind() == io::ErrorKind::PermissionDenied => {
                (temporary(&std::env::temp_dir())?, false)
            }
            (Err(error), _) => return Err(error),
        };
        let keeps_old = match &old {
            Some(old) if !is_beside || !is_replaceable(old, &file.as_file().metadata()?) => true,
            Some(old) => {
                file.as_file().set_permissions(old.permissions())?;
                false
            }
            None => false,
        };
        // Errors of the file itself do not name it, which has no name for the user.
        let (file, temporary) = file.into_parts();
        Ok(Self { out: BufWriter::new(file), temporary, target, keeps_old, unfinished })
    }

    fn finish(self) -> io::Result<()> {
        let Self { out, temporary, target, keeps_old, unfinished } = self;
        let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        if keeps_old {
            overwrite(&OpenOptions::new().write(true).open(&target)?, &mut file)?;
        } else {
            temporary.persist(&target)?;
        }
        drop(unfinished);
        Ok(())
    }
}

/// Replaces the bytes of an old file. The disk may be full: what needs more room than the old bytes have is written first, and
/// removed again if that fails.
fn overwrite(mut old: &File, new: &mut (impl Read + Seek)) -> io::Result<()> {
    let before = old.metadata()?.len();
    let after = new.seek(SeekFrom::End(0))?;
    if after > before {
        let tail = new.seek(SeekFrom::Start(before)).and_then(|at| old.seek(SeekFrom::Start(at)));
        tail.and_then(|_| io::copy(new, &mut old)).inspect_err(|_| _ = old.set_len(before))?;
    }
    new.seek(SeekFrom::Start(0))?;
    old.seek(SeekFrom::Start(0))?;
    io::copy(&mut new.take(before.min(after)), &mut old)?;
    old.set_len(after)
}

/// Whether a name is that of standard output.
pub(super) fn is_standard(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path.as_os_str() == *name)
}

/// The regular file that a path leads to, or would lead to; `None` for a file that is written directly.
pub(super) fn target(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        // An open file of a process, like `/dev/stderr`, may have a name that leads to another file by now.
        if path.starts_with("/proc") {
            return Ok(None);
        }
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                let to = fs::read_link(&path)?;
                path = path.parent().unwrap_or(Path::new("")).join(to);
            }
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if found.is_file() => return Ok(Some(path)),
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(path)),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

fn temporary(directory: &Path) -> io::Result<(NamedTempFile, Unfinished)> {
    let mut builder = Builder::new();
    builder.prefix(TEMPORARY);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // The mode of any new file, subject to the user's mask.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // Errors name the user's file, not the temporary one.
    if !directory.is_dir() {
        let problem = format!("there is no directory {}", directory.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, problem));
    }
    signals::unfinished(|| {
        let file = builder.tempfile_in(directory).map_err(|error| io::Error::from(error.kind()))?;
        let leftover = Leftover::File(file.path().to_owned());
        Ok((file, leftover))
    })
}

/// Whether a new file can take the place of an old one.
#[cfg(unix)]
fn is_replaceable(old: &Metadata, new: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    old.nlink() == 1 && (old.uid(), old.gid()) == (new.uid(), new.gid())
}

#[cfg(not(unix))]
fn is_replaceable(_: &Metadata, _: &Metadata) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names = names.map(|name| name.into_string().unwrap()).collect::<Vec<_>>();
        names.sort();
        names
    }

    fn write(path: &Path, text: &str) {
        let mut out = OutputFile::create(path).unwrap();
        out.write_all(text.as_bytes()).unwrap();
        out.finish().unwrap();
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_finished_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        let mut out = OutputFile::create(&path).unwrap();
        out.write_all(b"half").unwrap();
        out.flush().unwrap();
        assert!(!path.exists());
        drop(out);
        assert!(names(folder.path()).is_empty());
        write(&path, "whole");
        let mut out = OutputFile::create(&path).unwrap();
        out.write_all(b"half").unwrap();
        drop(out);
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(names(folder.path()), ["result"]);
    }

    #[test]
    fn links_and_permissions_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("there")).unwrap();
        fs::write(at("there/file"), "old").unwrap();
        fs::set_permissions(at("there/file"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("there/file", at("link")).unwrap();
        symlink("link", at("link to link")).unwrap();
        write(&at("link to link"), "new");
        assert!(at("link").is_symlink() && at("link to link").is_symlink());
        assert_eq!(fs::read_to_string(at("there/file")).unwrap(), "new");
        assert_eq!(fs::metadata(at("there/file")).unwrap().mode() & 0o777, 0o640);
        // The target of a dangling link is created.
        symlink("there/other", at("dangling")).unwrap();
        write(&at("dangling"), "made");
        assert_eq!(fs::read_to_string(at("there/other")).unwrap(), "made");
        // A file with a second hard link keeps both names.
        fs::hard_link(at("there/file"), at("name")).unwrap();
        write(&at("name"), "both");
        assert_eq!(fs::read_to_string(at("there/file")).unwrap(), "both");
        assert_eq!(names(&at("there")), ["file", "other"]);
        symlink("round", at("round")).unwrap();
        assert!(OutputFile::create(&at("round")).is_err());
    }

    #[test]
    fn where_there_is_no_room_the_old_bytes_stay() {
        /// Breaks off.
        struct Short(io::Cursor<Vec<u8>>);
        impl Read for Short {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                match self.0.position() {
                    0..20 => {
                        let room = buffer.len().min(5);
                        self.0.read(&mut buffer[..room])
                    }
                    _ => Err(io::ErrorKind::StorageFull.into()),
                }
            }
        }
        impl Seek for Short {
            fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
                self.0.seek(to)
            }
        }
        let mut old = tempfile::tempfile().unwrap();
        old.write_all(b"old bytes").unwrap();
        let text = |mut file: &File| {
            let mut text = String::new();
            file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text)).unwrap();
            text
        };
        let new = "new bytes, and many of them".to_owned();
        assert!(overwrite(&old, &mut Short(io::Cursor::new(new.clone().into()))).is_err());
        assert_eq!(text(&old), "old bytes");
        for new in [new, "few".to_owned()] {
            overwrite(&old, &mut io::Cursor::new(new.clone())).unwrap();
            assert_eq!(text(&old), new);
        }
    }

    #[test]
    fn what_is_no_file_is_written_as_it_is() {
        write(Path::new("/dev/null"), "gone");
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        assert_eq!(target(Path::new("/dev/stderr")).unwrap(), None);
    }

    #[test]
    fn new_files_have_the_usual_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, usual] = ["ours", "usual"].map(|name| folder.path().join(name));
        write(&ours, "");
        File::create(&usual).unwrap();
        assert_eq!(fs::metadata(ours).unwrap().mode(), fs::metadata(usual).unwrap().mode());
    }
}
