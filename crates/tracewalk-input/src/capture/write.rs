//! Writes `capture.toml`.

use std::fmt::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use tracewalk::plain::Plain;

use super::container::Blocks;
use super::source::{SourceDescription, known_cpu};
use super::{Arrangement, Buffer, Capture};
use crate::image::{ImageKind, ImageRequest};

/// Why a capture cannot be described in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DescribeError {
    /// Two buffers have the same name, so a source cannot name its buffer.
    SameName {
        /// The name.
        name: String,
    },
    /// The capture was not read from an existing file, but from standard input, a pipe, or a file that is
    /// gone.
    NotAFile {
        /// The name that was opened.
        file: PathBuf,
    },
    /// The capture is a perf recording, which describes itself.
    Recorded,
    /// A file's name is not Unicode.
    Name {
        /// The file.
        file: PathBuf,
    },
}

impl fmt::Display for DescribeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameName { name } => write!(f, "two trace buffers have the name {}", Plain(name)),
            Self::Recorded => f.write_str("a perf.data file already holds its description"),
            Self::NotAFile { file } => {
                write!(f, "{} is not a file that a description can name", Plain(file.display()))
            }
            Self::Name { file } => write!(f, "the name of {} is not Unicode", Plain(file.display())),
        }
    }
}

impl std::error::Error for DescribeError {}

/// A description, and the directories that are needed to open it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The text of the `capture.toml`.
    pub text: String,
    /// The directories of files outside the description's own directory; none contains another. The caller
    /// must allow these directories when opening the description, see [`Capture::open_with`].
    pub roots: Vec<PathBuf>,
}

impl Capture {
    /// A `capture.toml` in `directory` that describes this capture.
    ///
    /// Names of files are relative to the directory. A processor's usual register values are left out,
    /// because its name implies them. Sources without trace in a buffer are left out.
    ///
    /// # Errors
    ///
    /// If two buffers have the same name, or a name to write is not a file's or is not Unicode.
    pub fn to_toml(&self, directory: &Path) -> Result<Written, DescribeError> {
        let mut names = Names::new(directory);
        let mut text = Text(String::new());
        let several = self.buffers.len() > 1;
        for (index, buffer) in self.buffers.iter().enumerate() {
            if self.buffers.iter().take(index).any(|other| other.name == buffer.name) {
                return Err(DescribeError::SameName { name: buffer.name.clone() });
            }
            text.table(if several { "[[capture]]" } else { "[capture]" });
            write_buffer(&mut text, buffer, several, &mut names)?;
            if let (0, Some(frequency)) = (index, &self.timestamp_frequency) {
                text.field("timestamp_frequency", frequency.value);
            }
            if let (0, Some(dump)) = (index, &self.dump) {
                text.field("dump", Quoted(&names.of(&dump.value)?));
            }
        }
        for buffer in &self.buffers {
            for source in &buffer.sources {
                write_source(&mut text, source, several.then_some(&buffer.name));
            }
        }
        for image in &self.images {
            write_image(&mut text, image, &mut names)?;
        }
        Ok(Written { text: text.0, roots: names.roots })
    }
}

/// TOML that is being written.
struct Text(String);

impl Text {
    fn table(&mut self, name: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.line(format_args!("{name}"));
    }

    fn field(&mut self, key: &str, value: impl fmt::Display) {
        self.line(format_args!("{key} = {value}"));
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{line}");
    }
}

/// A text as a TOML string.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(f, "\\{character}")?,
                control if control.is_control() => write!(f, "\\u{:04x}", u32::from(control))?,
                other => f.write_char(other)?,
            }
        }
        f.write_char('"')
    }
}

fn write_buffer(
    text: &mut Text,
    buffer: &Buffer,
    several: bool,
    names: &mut Names<'_>,
) -> Result<(), DescribeError> {
    let file = names.of(&buffer.file)?;
    text.field("file", Quoted(&file));
    if let Some(container) = &buffer.container {
        text.field("container", Quoted(container.value.name()));
    }
    if let Some(start) = &buffer.frame_start {
        text.field("frame_start", start.value);
    }
    let Arrangement { read_pointer, swapped_words } = &buffer.arrangement;
    if let Some(pointer) = read_pointer {
        text.field("read_pointer", format_args!("{:#x}", pointer.value));
    }
    if swapped_words.as_ref().is_some_and(|swapped| swapped.value) {
        text.field("words", Quoted("swapped"));
    }
    if buffer.name != file || several {
        text.field("name", Quoted(&buffer.name));
    }
    if buffer.blocks == Blocks::Dstream {
        text.field("blocks", Quoted("dstream"));
    }
    if let Some(reading) = &buffer.wires {
        text.field("wire", Quoted(reading.wire.name()));
        let channels = reading.channels.iter();
        let channels =
            channels.map(|(role, name)| format!("{} = \"{role}\"", Quoted(name))).collect::<Vec<_>>();
        text.field("channels", format_args!("{{ {} }}", channels.join(", ")));
        if reading.inverted {
            text.field("invert", true);
        }
        if let Some(samples) = &reading.said.samples {
            text.field("rate", samples.rate);
            text.field("sample_bytes", samples.bytes);
        }
    }
    Ok(())
}

fn write_source(text: &mut Text, source: &SourceDescription, capture: Option<&String>) {
    text.table("[[source]]");
    text.field("protocol", Quoted(source.protocol.name()));
    if let Some(capture) = capture {
        text.field("capture", Quoted(capture));
    }
    if let Some(id) = source.id {
        text.field("id", id);
    }
    // A snapshot may call a core anything; a description only takes processors that are known.
    if let Some(cpu) = source.cpu.as_ref().filter(|cpu| known_cpu(&cpu.value).is_ok()) {
        text.field("cpu", Quoted(&cpu.value));
    }
    let names = source.protocol.register_names().iter();
    let registers = names.filter_map(|name| Some((name, source.registers.stated(name)?)));
    let given = registers.filter(|(_, stated)| !stated.origin.is_of_processor());
    let registers =
        given.map(|(name, stated)| format!("{name} = 0x{:08x}", stated.value)).collect::<Vec<_>>();
    if !registers.is_empty() {
        text.field("registers", format_args!("{{ {} }}", registers.join(", ")));
    }
    if let Some(name) = &source.name {
        text.field("name", Quoted(name));
    }
    if let Some(core) = &source.core {
        text.field("core", Quoted(core));
    }
    // Other registers have a separate table, because a snapshot has dozens.
    for (index, (name, stated)) in source.other_registers().enumerate() {
        if index == 0 {
            text.table("[source.other_registers]");
        }
        text.line(format_args!("{} = 0x{:08x}", Quoted(name), stated.value));
    }
}

fn write_image(text: &mut Text, image: &ImageRequest, names: &mut Names<'_>) -> Result<(), DescribeError> {
    text.table("[[image]]");
    text.field("file", Quoted(&names.of(&image.file)?));
    if let ImageKind::Raw { address, offset, length, space } = &image.kind {
        text.field("address", address);
        if *offset != 0 {
            text.field("offset", format_args!("0x{offset:x}"));
        }
        if let Some(length) = length {
            text.field("length", format_args!("0x{length:x}"));
        }
        if let Some(space) = space {
            text.field("space", Quoted(space));
        }
    }
    if !image.cores.is_empty() {
        let cores = image.cores.iter().map(|core| Quoted(core).to_string()).collect::<Vec<_>>();
        text.field("cores", format_args!("[{}]", cores.join(", ")));
    }
    if let Some(context_id) = image.scope.context_id {
        text.field("context", context_id);
    }
    if let Some(vmid) = image.scope.vmid {
        text.field("vmid", vmid);
    }
    Ok(())
}

/// The names of files in a description.
struct Names<'a> {
    /// The description's directory.
    directory: &'a Path,
    /// The directories of files outside `directory`, for [`Written::roots`].
    roots: Vec<PathBuf>,
}

impl<'a> Names<'a> {
    fn new(directory: &'a Path) -> Self {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        Self { directory, roots: Vec::new() }
    }

    /// The file's name relative to the directory, with `/` between its parts on every system.
    fn of(&mut self, file: &Path) -> Result<String, DescribeError> {
        let not_a_file = || DescribeError::NotAFile { file: file.to_owned() };
        let real = file.canonicalize().ok().filter(|real| real.is_file()).ok_or_else(not_a_file)?;
        let directory = self.directory.canonicalize().map_err(|_| not_a_file())?;
        // The target of a link in the directory may be outside.
        let is_inside = real.starts_with(&directory);
        if let (false, Some(parent)) = (is_inside, real.parent()) {
            self.allow(parent);
        }
        let path = match file.strip_prefix(self.directory) {
            Ok(path) if !path.components().any(|part| part == Component::ParentDir) => path.to_owned(),
            _ => from(&directory, &real),
        };
        let parts = path.components().filter(|part| !matches!(part, Component::CurDir | Component::RootDir));
        let parts = parts.map(|part| part.as_os_str().to_str().map(str::to_owned));
        let parts =
            parts.collect::<Option<Vec<_>>>().ok_or_else(|| DescribeError::Name { file: file.to_owned() })?;
        Ok(parts.join("/"))
    }

    /// Adds a directory whose files must be allowed.
    fn allow(&mut self, directory: &Path) {
        if self.roots.iter().any(|root| directory.starts_with(root)) {
            return;
        }
        self.roots.retain(|root| !root.starts_with(directory));
        self.roots.push(directory.to_owned());
    }
}

/// The relative path from a directory to a file, both without links; absolute if they are on different
/// drives.
fn from(directory: &Path, file: &Path) -> PathBuf {
    let shared = directory.components().zip(file.components()).take_while(|(a, b)| a == b).count();
    if shared == 0 {
        return file.to_owned();
    }
    let up = directory.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(file.components().skip(shared)).collect()
}
