//! A folder whose files get their names only when all of them are complete.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempDir};

use super::file::TEMPORARY;
use crate::failure::Failure;
use crate::signals::{self, Leftover, Unfinished};

/// A folder that is being written: its files are in a temporary folder in it.
#[derive(Debug)]
pub(crate) struct OutputFolder {
    path: PathBuf,
    staging: TempDir,
    /// Removed if the folder is not finished.
    leftover: Leftover,
    is_finished: bool,
    _unfinished: Unfinished,
}

impl OutputFolder {
    /// A folder that does not exist yet, or is empty.
    pub(crate) fn new(path: &Path) -> Result<Self, Failure> {
        check_empty(path)?;
        Self::over(path)
    }

    /// A folder in which files of the same names are replaced.
    pub(crate) fn over(path: &Path) -> Result<Self, Failure> {
        let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let made = path.ancestors().take_while(is_missing).map(Path::to_owned).collect::<Vec<_>>();
        let staging = signals::unfinished(|| {
            fs::create_dir_all(path)?;
            let staging = Builder::new().prefix(TEMPORARY).tempdir_in(path)?;
            let leftover = Leftover::Folder(staging.path().to_owned(), made);
            Ok(((staging, leftover.clone()), leftover))
        });
        let ((staging, leftover), unfinished) = staging.map_err(|error| Failure::write(path, error))?;
        Ok(Self { path: path.to_owned(), staging, leftover, is_finished: false, _unfinished: unfinished })
    }

    /// The folder to write the files to.
    pub(crate) fn staging(&self) -> &Path {
        self.staging.path()
    }

    /// A new file in it.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        File::create_new(self.staging().join(name))
    }

    /// Gives all files their names.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let moved = fs::read_dir(self.staging()).and_then(|mut files| {
            files.try_for_each(|file| {
                let file = file?;
                fs::rename(file.path(), self.path.join(file.file_name()))
            })
        });
        moved.map_err(|error| Failure::write(&self.path, error))?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        if !self.is_finished {
            self.leftover.remove();
        }
    }
}

/// Refuses a folder that is not empty. What a command that was killed left there does not count.
pub(super) fn check_empty(path: &Path) -> Result<(), Failure> {
    let is_left = |name: &OsStr| name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes());
    match fs::read_dir(path) {
        Ok(mut entries) => {
            match entries.find(|entry| !entry.as_ref().is_ok_and(|entry| is_left(&entry.file_name()))) {
                Some(_) => Err(Failure::input(
                    "folder_not_empty",
                    format!("{}: is not empty", path.display()),
                    "choose a directory with -o that does not exist",
                )),
                None => Ok(()),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::write(path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_finished_leaves_nothing_that_was_not_there() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("some/where");
        let folder = OutputFolder::new(&path).unwrap();
        folder.create("one").unwrap();
        assert!(!path.join("one").exists());
        drop(folder);
        assert!(!parent.path().join("some").exists());
        fs::create_dir_all(&path).unwrap();
        let folder = OutputFolder::new(&path).unwrap();
        folder.create("one").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        // What a command that was killed left there.
        fs::create_dir(path.join(".tracewalk-abc")).unwrap();
        let folder = OutputFolder::new(&path).unwrap();
        folder.create("one").unwrap();
        folder.finish().unwrap();
        fs::remove_dir(path.join(".tracewalk-abc")).unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
        assert!(path.join("one").is_file() && OutputFolder::new(&path).is_err());
    }
}
