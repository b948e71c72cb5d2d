//! Checks before any work that outputs can be written, and do not overwrite inputs.
//!
//! Files are compared by the file system's identity, through symbolic and hard links.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::file::{OutputFile, is_standard, target};
use super::folder::check_empty;
use crate::args::PlacesArgs;
use crate::failure::Failure;

/// A destination of a command's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Destination<'a> {
    /// The option that names the destination.
    pub(crate) option: &'static str,
    pub(crate) path: &'a Path,
    pub(crate) kind: DestinationKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DestinationKind {
    /// A file, or standard output.
    File,
    /// A folder that has to be empty.
    NewFolder,
    /// A folder whose files are replaced.
    Folder,
}

impl<'a> Destination<'a> {
    /// Standard output, for commands without another destination.
    pub(crate) fn standard_output() -> Self {
        Self::file("the result", Path::new("-"))
    }

    /// `-o`, or standard output.
    pub(crate) fn output(path: Option<&'a Path>) -> Self {
        path.map_or_else(Self::standard_output, |path| Self::file("-o", path))
    }

    /// `-o`, `--save`, and the files of places: with `--save` alone nothing is printed, unless `prints`.
    pub(crate) fn of_places(
        places: &'a PlacesArgs,
        (output, prints): (Option<&'a Path>, bool),
        save: Option<&'a Path>,
    ) -> Vec<Self> {
        let output = (output.is_some() || save.is_none() || prints).then(|| Self::output(output));
        let save = save.map(|path| Self::file("--save", path));
        let captures = places.captures.as_deref().map(|path| Self::file("--captures", path));
        let resume = places.resume.as_deref().map(|path| Self::file("--resume", path));
        output.into_iter().chain(save).chain(captures).chain(resume).collect()
    }

    /// Whether the destination is standard output.
    pub(crate) fn is_standard_output(&self) -> bool {
        self.kind == DestinationKind::File && is_standard(self.path)
    }

    /// A folder that has to be empty.
    pub(crate) const fn new_folder(path: &'a Path) -> Self {
        Self { option: "-o", path, kind: DestinationKind::NewFolder }
    }

    /// The file that an option names.
    pub(crate) const fn file(option: &'static str, path: &'a Path) -> Self {
        Self { option, path, kind: DestinationKind::File }
    }
}

/// Refuses outputs that cannot be written, that are one of the inputs, or that are the same twice.
pub(crate) fn check(outputs: &[Destination<'_>], inputs: Vec<PathBuf>) -> Result<(), Failure> {
    let inputs = identities(inputs);
    let mut known = Vec::<(&Destination<'_>, Identity)>::new();
    for output in outputs {
        let Destination { option, path, kind } = output;
        let identity = Identity::of_output(path);
        refuse_input(option, path, &inputs)?;
        if let Some((other, _)) = known.iter().find(|(_, other)| identity.as_ref() == Some(other)) {
            let hint = format!("give another file with {option}");
            let problem = match is_standard(path) {
                true => format!("{option} and {} both write to standard output", other.option),
                false => format!("{}: {option} and {} write to the same file", path.display(), other.option),
            };
            return Err(Failure::input("output_twice", problem, hint));
        }
        known.extend(identity.map(|identity| (output, identity)));
        match kind {
            DestinationKind::File if is_standard(path) => {}
            DestinationKind::File => try_file(path)?,
            _ if is_standard(path) => {
                return Err(Failure::input(
                    "needs_folder",
                    "the output is several files, but standard output is one",
                    format!("give a folder with {option}"),
                ));
            }
            DestinationKind::NewFolder => check_empty(path)?,
            DestinationKind::Folder => {}
        }
    }
    Ok(())
}

/// The files that the results replace. Inputs that are known only after opening a capture are compared with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replaced {
    /// The files, each with its option.
    files: Vec<(&'static str, PathBuf)>,
    /// Further directories of source files.
    source_dirs: Vec<PathBuf>,
}

impl Replaced {
    /// The outputs that exist.
    pub(crate) fn by(outputs: &[Destination<'_>], source_dirs: &[PathBuf]) -> Self {
        let replaced = outputs.iter().filter(|output| !is_standard(output.path) && output.path.is_file());
        let files = replaced.map(|output| (output.option, output.path.to_owned()));
        Self { files: files.collect(), source_dirs: source_dirs.to_vec() }
    }

    /// Refuses to replace one of the source files that `find` returns, including those in these folders. The search takes a
    /// while, and is done only if a result replaces a file.
    pub(crate) fn spare(&self, find: impl FnOnce(&[PathBuf]) -> BTreeSet<PathBuf>) -> Result<(), Failure> {
        if self.files.is_empty() {
            return Ok(());
        }
        let inputs = identities(find(&self.source_dirs));
        self.files.iter().try_for_each(|(option, path)| refuse_input(option, path, &inputs))
    }
}

/// Refuses to read what standard output is appended to.
pub(crate) fn spare_from_standard_output(inputs: impl Iterator<Item = PathBuf>) -> Result<(), Failure> {
    let Some(output) = Identity::of(Path::new("/dev/stdout")) else { return Ok(()) };
    match identities(inputs).into_iter().find(|(_, input)| *input == output) {
        Some((input, _)) => Err(Failure::input(
            "output_is_input",
            format!("{}: is read, and standard output is appended to it", input.display()),
            "redirect the output to another file",
        )),
        None => Ok(()),
    }
}

/// The identities of files.
fn identities(files: impl IntoIterator<Item = PathBuf>) -> Vec<(PathBuf, Identity)> {
    files.into_iter().filter_map(|path| Identity::of(&path).map(|identity| (path, identity))).collect()
}

/// Refuses an output that is one of the inputs.
fn refuse_input(option: &str, path: &Path, inputs: &[(PathBuf, Identity)]) -> Result<(), Failure> {
    let identity = Identity::of_output(path);
    let Some((input, _)) = inputs.iter().find(|(_, input)| identity.as_ref() == Some(input)) else {
        return Ok(());
    };
    let what = if input == path { String::new() } else { format!(", as {}", input.display()) };
    Err(Failure::input(
        "output_is_input",
        format!("{}: is read{what}, but {option} would overwrite it", path.display()),
        format!("give another file with {option}"),
    ))
}

/// Checks whether a file could be written.
fn try_file(path: &Path) -> Result<(), Failure> {
    let tried = match target(path) {
        // Opening a pipe may wait for its reader, and closing it would end the reader.
        Ok(None) => Ok(()),
        Ok(Some(_)) => OutputFile::create(path).map(drop),
        Err(error) => Err(error),
    };
    tried.map_err(|error| Failure::write(path, error))
}

/// The identity of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Identity {
    StandardOutput,
    #[cfg(unix)]
    Number {
        device: u64,
        file: u64,
    },
    /// A file that does not exist yet, by its directory's canonical name; on other systems, any file.
    Path(PathBuf),
}

impl Identity {
    /// `None` for a file that cannot be overwritten, like a pipe.
    fn of(path: &Path) -> Option<Self> {
        match fs::metadata(path) {
            Ok(found) if found.is_file() || found.is_dir() => {
                #[cfg(unix)]
                {
                    use std::os::unix::fs::MetadataExt as _;
                    Some(Self::Number { device: found.dev(), file: found.ino() })
                }
                #[cfg(not(unix))]
                path.canonicalize().ok().map(Self::Path)
            }
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let path = target(path).ok().flatten()?;
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let parent = parent.unwrap_or(Path::new(".")).canonicalize().ok()?;
                Some(Self::Path(parent.join(path.file_name()?)))
            }
            Err(_) => None,
        }
    }

    fn of_output(path: &Path) -> Option<Self> {
        if is_standard(path) { Some(Self::StandardOutput) } else { Self::of(path) }
    }
}
