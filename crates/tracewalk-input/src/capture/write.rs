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
    /// Two buffers have the same name, so that a source cannot say in which it is.
    SameName {
        /// The name.
        name: String,
    },
    /// A file is not in the directory of the description, or below.
    Outside {
        /// The file.
        file: PathBuf,
        /// The directory.
        directory: PathBuf,
    },
    /// A file's name is not Unicode.
    Name {
        /// The file.
        file: PathBuf,
    },
}

impl fmt::Display for DescribeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameName { name } => write!(f, "two trace buffers are called {}", Plain(name)),
            Self::Outside { file, directory } => {
                let (file, directory) = (Plain(file.display()), Plain(directory.display()));
                write!(f, "{file} is not in {directory}, where the description is")
            }
            Self::Name { file } => write!(f, "the name of {} is not Unicode", Plain(file.display())),
        }
    }
}

impl std::error::Error for DescribeError {}

impl Capture {
    /// The text of a `capture.toml` in `directory` that describes this capture. All files have to be there or below.
    ///
    /// What is usual for a processor is not written, since the processor says it. Sources that have no trace in the buffer
    /// are left out.
    pub fn to_toml(&self, directory: &Path) -> Result<String, DescribeError> {
        let mut text = Text(String::new());
        let several = self.buffers.len() > 1;
        for (index, buffer) in self.buffers.iter().enumerate() {
            if self.buffers.iter().take(index).any(|other| other.name == buffer.name) {
                return Err(DescribeError::SameName { name: buffer.name.clone() });
            }
            text.table(if several { "[[capture]]" } else { "[capture]" });
            write_buffer(&mut text, buffer, several, directory)?;
            if let (0, Some(frequency)) = (index, &self.timestamp_frequency) {
                text.field("timestamp_frequency", frequency.value);
            }
        }
        for buffer in &self.buffers {
            for source in &buffer.sources {
                write_source(&mut text, source, several.then_some(&buffer.name));
            }
        }
        for image in &self.images {
            write_image(&mut text, image, directory)?;
        }
        Ok(text.0)
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

/// A text as TOML writes it.
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
    directory: &Path,
) -> Result<(), DescribeError> {
    let file = relative(&buffer.file, directory)?;
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
    // A table of its own: a snapshot has dozens.
    for (index, (name, stated)) in source.other_registers().enumerate() {
        if index == 0 {
            text.table("[source.other_registers]");
        }
        text.line(format_args!("{} = 0x{:08x}", Quoted(name), stated.value));
    }
}

fn write_image(text: &mut Text, image: &ImageRequest, directory: &Path) -> Result<(), DescribeError> {
    text.table("[[image]]");
    text.field("file", Quoted(&relative(&image.file, directory)?));
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

/// The file's name from the directory, with `/` between its parts on every system.
fn relative(file: &Path, directory: &Path) -> Result<String, DescribeError> {
    let outside = || DescribeError::Outside { file: file.to_owned(), directory: directory.to_owned() };
    let canonical =
        |path: &Path| if path.as_os_str().is_empty() { Path::new(".") } else { path }.canonicalize();
    let path = match file.strip_prefix(directory) {
        Ok(path) if !path.components().any(|part| part == Component::ParentDir) => path.to_owned(),
        _ => {
            let (file, directory) =
                canonical(file).and_then(|file| Ok((file, canonical(directory)?))).map_err(|_| outside())?;
            file.strip_prefix(&directory).map_err(|_| outside())?.to_owned()
        }
    };
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => {
                parts.push(part.to_str().ok_or_else(|| DescribeError::Name { file: file.to_owned() })?);
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) | Component::ParentDir => return Err(outside()),
        }
    }
    Ok(parts.join("/"))
}
