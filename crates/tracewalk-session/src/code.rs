//! A core's program, in the form that reports need.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracewalk::ids::{self, Address};
use tracewalk::plain::plain;
use tracewalk::program::{Scope, ViewId};
use tracewalk_analysis::call_stack::Task;
use tracewalk_analysis::{Code, Interrupts, symbols};
use tracewalk_input::cpu::Profile;
use tracewalk_input::image::{Image, ImageForm, ImageLoader, ImageRequest, Memory};
use tracewalk_input::records::RecordForm;
use tracewalk_input::symbols::{
    Content, CurrentTask, Frame, Function, LineRow, SourceLines, SymbolTable, TaskName,
};

use crate::notice::NoticeKind;
use crate::observer::{Late, Observer, Say};

/// Symbols and lines of one core's images.
struct ImageSymbols {
    symbols: SymbolTable,
    lines: Mutex<Lines>,
    files: Mutex<SourceFiles>,
    /// Images as their files say, if a system loaded them elsewhere.
    linked: Mutex<BTreeMap<PathBuf, Option<Image>>>,
}

/// Source lines, and the list for problems with them.
struct Lines {
    lines: SourceLines,
    /// The frames that were found last, in the form of the files and in that of reports.
    last: (Arc<[Frame]>, Arc<[symbols::Frame]>),
    /// How many of the problems are in the list.
    noted: usize,
    late: Late,
}

/// Source files by the names that the debug information gives them.
struct SourceFiles {
    /// Further directories for files that are not at their recorded path.
    directories: Vec<PathBuf>,
    /// The lines of each file; `None` for a file that is not at hand.
    files: HashMap<String, Option<Vec<String>>>,
    /// The list of files that are not at hand.
    late: Late,
}

/// A longer file is not source text.
const LONGEST_SOURCE: u64 = 16 << 20;

/// How programs are read.
pub(crate) struct Reader<'a> {
    /// The processor's profile, if the capture states it.
    pub(crate) profile: Option<Profile>,
    /// The names of the chip's interrupts.
    pub(crate) interrupts: Interrupts,
    /// The names of tasks.
    pub(crate) threads: BTreeMap<Task, String>,
    /// The directories to search for source files; `None` if names and lines are not wanted.
    pub(crate) source_dirs: Option<&'a [PathBuf]>,
}

impl Reader<'_> {
    /// The program in `memory`, and its view in each context.
    pub(crate) fn code(&self, memory: &Memory, observer: &dyn Observer) -> Arc<Code> {
        let (mut notes, late) = (Vec::new(), observer.late());
        let mut code =
            self.view(memory, memory.seen_in(ViewId::default(), Scope::EVERYWHERE), (&mut notes, &late));
        for (view, context) in memory.program.views().skip(1) {
            let seen = self.view(memory, memory.seen_in(view, context), (&mut notes, &late));
            code.views.insert(view, Arc::new(seen));
        }
        code.program = Arc::new(memory.program.clone());
        code.threads.clone_from(&self.threads);
        if let Some((file, form)) = self.source_dirs.and_then(|_| without_names(memory)) {
            observer.say(NoticeKind::NoNames { file, form });
        }
        notes.sort();
        notes.dedup();
        for note in notes {
            observer.say(NoticeKind::NamesMissing(note));
        }
        Arc::new(code)
    }

    /// One view of `memory`. The whole memory may know the processor if `seen` does not.
    fn view(&self, memory: &Memory, seen: Memory, (notes, late): (&mut Vec<String>, &Late)) -> Code {
        let interrupts = self.interrupts.clone();
        let Some(source_dirs) = self.source_dirs else {
            return Code { program: seen.program.into(), interrupts, ..Code::unknown() };
        };
        let symbols = SymbolTable::of(&seen);
        let of_images = || memory.images.iter().find_map(|visible| visible.image.attributes.profile);
        let profile = self.profile.or(symbols.profile()).or_else(of_images);
        let lines = symbols.source_lines();
        let problems = lines.notes();
        notes.extend(symbols.notes().iter().chain(&problems).map(ToString::to_string));
        let directories = all_directories(&seen, source_dirs);
        let files = SourceFiles { directories, files: HashMap::new(), late: late.clone() };
        let profile = match profile {
            Some(Profile::M) => ids::Profile::M,
            _ => ids::Profile::Ar,
        };
        Code {
            program: Arc::new(seen.program),
            symbols: Box::new(ImageSymbols {
                symbols,
                lines: Mutex::new(Lines {
                    lines,
                    last: (Arc::default(), Arc::default()),
                    noted: problems.len(),
                    late: late.clone(),
                }),
                files: Mutex::new(files),
                linked: Mutex::default(),
            }),
            interrupts,
            profile,
            threads: BTreeMap::new(),
            states_tasks: false,
            views: BTreeMap::new(),
        }
    }
}

/// The first file of records, if no image has names.
pub(crate) fn without_names(memory: &Memory) -> Option<(PathBuf, RecordForm)> {
    let images = || memory.images.iter().map(|visible| &visible.image);
    let records = images().find_map(|image| match image.form {
        ImageForm::Records(form) => Some((image.file.clone(), form)),
        ImageForm::Elf32 | ImageForm::Elf64 | ImageForm::Raw | ImageForm::Names => None,
    });
    records.filter(|_| images().all(|image| image.elf_bytes().is_none()))
}

/// The source files that the debug information of images names, at the paths that their lines would be read from. An
/// unreadable image names none.
pub(crate) fn source_files(
    images: &[ImageRequest],
    loader: &mut ImageLoader,
    directories: &[PathBuf],
) -> BTreeSet<PathBuf> {
    let memories = images.iter().filter_map(|request| loader.memory([request]).ok());
    memories.flat_map(|memory| files_of(&memory, directories)).collect()
}

fn files_of(memory: &Memory, directories: &[PathBuf]) -> BTreeSet<PathBuf> {
    let directories = all_directories(memory, directories);
    let names = SymbolTable::of(memory).source_lines().files();
    names.iter().filter_map(|name| find(name, &directories)).collect()
}

/// The directories of source files: the user's, and those of the images.
fn all_directories(memory: &Memory, stated: &[PathBuf]) -> Vec<PathBuf> {
    let beside_images = memory.images.iter().filter_map(|visible| visible.image.file.parent());
    stated.iter().cloned().chain(beside_images.map(Path::to_owned)).collect()
}

impl Lines {
    fn frames(&mut self, address: Address) -> Arc<[symbols::Frame]> {
        let frames = self.lines.lines_for(address);
        if self.lines.count_notes() > self.noted {
            self.note_problems();
        }
        if !Arc::ptr_eq(&frames, &self.last.0) {
            let frame = |frame: &Frame| symbols::Frame {
                function: frame.function.clone(),
                file: frame.file.clone(),
                line: frame.line,
            };
            self.last.1 = frames.iter().map(frame).collect();
            self.last.0 = frames;
        }
        Arc::clone(&self.last.1)
    }

    /// Lists the problems that showed since.
    #[cold]
    fn note_problems(&mut self) {
        let problems = self.lines.notes();
        for problem in problems.iter().skip(self.noted) {
            self.late.add(NoticeKind::NamesMissing(problem.to_string()).into());
        }
        self.noted = problems.len();
    }
}

impl symbols::Symbols for ImageSymbols {
    fn function(&self, address: Address) -> Option<symbols::Function<'_>> {
        let function = self.symbols.function_at(address)?;
        Some(symbols::Function { name: &function.name, start: function.start })
    }

    fn frames(&self, address: Address) -> Arc<[symbols::Frame]> {
        held(&self.lines).frames(address)
    }

    fn has_lines(&self) -> bool {
        !held(&self.lines).lines.is_empty()
    }

    fn source_line(&self, file: &str, line: u32) -> Option<String> {
        held(&self.files).line(file, line)
    }

    fn functions(&self) -> Vec<symbols::Extent> {
        self.symbols.functions().iter().map(extent).collect()
    }

    fn functions_named(&self, name: &str) -> Vec<symbols::Extent> {
        self.symbols.functions().iter().filter(|function| function.is_called(name)).map(extent).collect()
    }

    fn line_extents(&self, is_wanted: &mut dyn FnMut(&str, u32) -> bool) -> Vec<symbols::LineExtent> {
        let everywhere = Address::new(0)..Address::new(u64::MAX);
        let rows = held(&self.lines).lines.wanted_rows(everywhere, is_wanted);
        let extent = |row: &LineRow| symbols::LineExtent {
            start: row.start,
            end: row.start.get() + u64::from(row.bytes),
        };
        rows.iter().map(extent).collect()
    }

    fn stretches(&self) -> Vec<symbols::Stretch> {
        let stretch = |(start, end, content)| {
            let isa = match content {
                Content::Code(isa) => Some(isa),
                Content::Data => None,
            };
            symbols::Stretch { start, end, isa }
        };
        self.symbols.contents().map(stretch).collect()
    }

    fn object(&self, address: Address) -> Option<symbols::Object> {
        self.symbols.object_at(address).map(object)
    }

    fn objects(&self) -> Vec<symbols::Object> {
        self.symbols.objects().iter().map(object).collect()
    }

    fn current_task(&self) -> Option<symbols::CurrentTask> {
        let CurrentTask { system, pointer, name } = held(&self.lines).lines.current_task(&self.symbols)?;
        let name = name.map(|TaskName { offset, characters }| symbols::TaskName { offset, characters });
        Some(symbols::CurrentTask { system, pointer, name })
    }

    fn data_with_low_half(&self, low_half: u16) -> Option<Address> {
        self.symbols.data_with_low_half(low_half)
    }

    fn binary(&self, address: Address) -> Option<&str> {
        self.symbols.image_at(address)?.file.file_name()?.to_str()
    }

    fn in_moved_file(&self, address: Address) -> Option<(&str, Address)> {
        let image = self.symbols.image_at(address)?;
        let mut known = held(&self.linked);
        let linked = known.entry(image.file.clone()).or_insert_with(|| image.linked()).as_ref()?;
        let at = image.address_in(linked, address).filter(|at| *at != address)?;
        Some((image.file.file_name()?.to_str()?, at))
    }

    fn source_checksums(&self) -> Vec<symbols::SourceChecksum> {
        let checksum = |(file, md5): (Arc<str>, [u8; 16])| symbols::SourceChecksum {
            file: file.as_ref().to_owned(),
            md5,
        };
        held(&self.lines).lines.checksums().into_iter().map(checksum).collect()
    }

    fn source_file(&self, file: &str) -> Option<symbols::SourceFile> {
        let path = find(file, &held(&self.files).directories)?;
        let text = std::fs::read(&path).ok()?;
        let path = plain(std::fs::canonicalize(&path).unwrap_or(path).to_string_lossy()).into_owned();
        Some(symbols::SourceFile { path, text })
    }
}

fn object(object: &tracewalk_input::symbols::Object) -> symbols::Object {
    symbols::Object { name: object.name.clone(), start: object.start, end: object.end }
}

fn extent(function: &Function) -> symbols::Extent {
    symbols::Extent {
        name: function.name.clone(),
        symbol: function.symbol.clone(),
        start: function.start,
        end: function.end(),
        isa: function.isa,
    }
}

impl SourceFiles {
    fn line(&mut self, file: &str, line: u32) -> Option<String> {
        let Self { directories, files, late } = self;
        let lines = files.entry(file.to_owned()).or_insert_with(|| {
            let lines = read(file, directories);
            if lines.is_none() {
                late.add_missing_source(file);
            }
            lines
        });
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        lines.as_ref()?.get(index).cloned()
    }
}

/// The content of a lock. A panic while it was held left the content intact.
fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lines of the file that the debug information calls `name`.
fn read(name: &str, directories: &[PathBuf]) -> Option<Vec<String>> {
    let bytes = std::fs::read(find(name, directories)?).ok()?;
    // Tabs would break the columns, and other control characters the terminal.
    let clean = |line: &str| plain(line.trim_end().replace('\t', "    ").into()).into_owned();
    Some(String::from_utf8_lossy(&bytes).lines().map(clean).collect())
}

/// The file that the debug information calls `name`: at that path, or beside an image or in one of the user's
/// directories, with as many of the name's folders as possible.
fn find(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    let path = name.replace('\\', "/");
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect::<Vec<_>>();
    let ends = (0..parts.len()).map(|skipped| parts[skipped..].join("/"));
    let elsewhere = ends.flat_map(|end| directories.iter().map(move |directory| directory.join(&end)));
    std::iter::once(PathBuf::from(&path)).chain(elsewhere).find(|file| {
        std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() <= LONGEST_SOURCE)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_file_is_found_by_the_end_of_its_name_and_its_lines_are_clean() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("src")).unwrap();
        std::fs::write(directory.path().join("src/main.c"), "int\tx;\r\n\x1b[31mred").unwrap();
        let directories = [directory.path().to_owned()];
        let expected = Some(vec!["int    x;".to_owned(), "\u{fffd}[31mred".to_owned()]);
        assert_eq!(read("/build/machine/project/src/main.c", &directories), expected);
        assert_eq!(read("C:\\project\\src\\main.c", &directories), expected);
        assert_eq!(read("/build/machine/other.c", &directories), None);
    }
}
