//! The contents of an image.

use std::ops::Range;
use std::path::PathBuf;

use tracewalk::ids::{Address, Location};

use super::attributes::Attributes;
use crate::bytes::Bytes;
use crate::records::RecordForm;

/// A program image: the memory that one file describes.
#[derive(Clone, Debug)]
pub struct Image {
    /// The file.
    pub file: PathBuf,
    /// The stretches of memory that it fills, in the file's order.
    pub segments: Vec<Segment>,
    /// The build's own ID; `None` if there is none.
    pub build_id: Option<Vec<u8>>,
    /// The ELF file's build attributes; empty for other images.
    pub attributes: Attributes,
    /// The program's entry, if the ELF file has one.
    pub entry: Option<Location>,
    /// The whole file; of records the memory in them, one segment after the other.
    pub(super) bytes: Bytes,
    /// How far an ELF file is from its own addresses, which are as if it began at 0: of what a kernel loaded.
    pub(super) moved: u64,
    /// The form of the file.
    pub form: ImageForm,
}

/// The form of an image's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageForm {
    /// An ELF file with addresses of 32 bits.
    Elf32,
    /// An ELF file with addresses of 64 bits.
    Elf64,
    /// Hexadecimal records, which have addresses and no names.
    Records(RecordForm),
    /// Plain bytes, at an address that is stated elsewhere.
    Raw,
    /// Names of a kernel alone, as `/proc/kallsyms` lists them.
    Names,
}

/// How wide addresses in an ELF file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Bits32,
    Bits64,
}

/// A stretch of memory that an image fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its name in messages: a section's name, or `segment` or `section` and its number.
    pub name: String,
    /// The address of its first byte.
    pub address: Address,
    /// Whether the file marks code. Raw bytes and records may be code.
    pub executable: bool,
    /// Where its bytes are in the file; checked to be inside it.
    pub(super) range: Range<usize>,
}

impl Image {
    /// A list of a kernel's names, as `/proc/kallsyms` has them, and no code.
    #[must_use]
    pub fn of_names(file: PathBuf, list: Bytes) -> Self {
        Self {
            file,
            segments: Vec::new(),
            build_id: None,
            attributes: Attributes::default(),
            entry: None,
            bytes: list,
            moved: 0,
            form: ImageForm::Names,
        }
    }

    /// The list of a kernel's names, if it is one.
    pub(crate) fn names(&self) -> Option<&[u8]> {
        (self.form == ImageForm::Names).then_some(&*self.bytes)
    }

    /// Whether another file of the same name has the same content, in any directory.
    #[must_use]
    pub fn is_copy_of(&self, other: &Self) -> bool {
        self.form == other.form
            && self.file.file_name() == other.file.file_name()
            && self.segments == other.segments
            && *self.bytes == *other.bytes
    }

    /// The bytes of one of its segments.
    #[must_use]
    pub fn segment_bytes(&self, segment: &Segment) -> &[u8] {
        self.bytes.get(segment.range.clone()).unwrap_or(&[])
    }

    /// The ELF file's bytes, in which names and lines are looked for; `None` for other images, which have none.
    #[must_use]
    pub fn elf_bytes(&self) -> Option<&Bytes> {
        self.elf_file().map(|(_, bytes)| bytes)
    }

    /// The ELF file's bytes, and how wide addresses in it are; `None` for other images, and for one that is not at its own addresses.
    pub(crate) const fn elf_file(&self) -> Option<(Width, &Bytes)> {
        match self.form {
            _ if self.moved > 0 => None,
            ImageForm::Elf32 => Some((Width::Bits32, &self.bytes)),
            ImageForm::Elf64 => Some((Width::Bits64, &self.bytes)),
            ImageForm::Records(_) | ImageForm::Raw | ImageForm::Names => None,
        }
    }

    /// The ELF file's bytes, how wide addresses in it are, and how far from its own addresses it is in memory, modulo 2^64: a system
    /// maps a file where it likes. `None` for other images.
    pub(crate) fn named_file(&self) -> Option<(Width, &Bytes, u64)> {
        if let Some((width, bytes)) = self.elf_file() {
            return Some((width, bytes, 0));
        }
        let linked = self.linked()?;
        if self.moved > 0 {
            return linked.elf_file().map(|(width, _)| (width, &self.bytes, self.moved));
        }
        let mapped = self.segments.first()?;
        // The mapping may begin with what is no code, and end before the code does.
        let part = linked
            .segments
            .iter()
            .find(|part| part.range.start < mapped.range.end && mapped.range.start < part.range.end)?;
        let place = |segment: &Segment| segment.address.get().wrapping_sub(segment.range.start as u64);
        let (width, _) = linked.elf_file()?;
        Some((width, &self.bytes, place(mapped).wrapping_sub(place(part))))
    }

    /// Whether some bytes of the file are in this and in another image of the same file.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let overlap = |one: &Segment, other: &Segment| {
            one.range.start < other.range.end && other.range.start < one.range.end
        };
        self.segments.iter().any(|one| other.segments.iter().any(|other| overlap(one, other)))
    }

    /// Where the byte at `address` is in another image of the same file; `None` if it is in none of its segments.
    #[must_use]
    pub fn address_in(&self, other: &Self, address: Address) -> Option<Address> {
        let segment = self.segment_at(address)?;
        let offset = usize::try_from(address.offset_from(segment.address)?).ok()?;
        let in_file = segment.range.start + offset;
        let segment = other.segments.iter().find(|segment| segment.range.contains(&in_file))?;
        let offset = u64::try_from(in_file - segment.range.start).ok()?;
        segment.address.get().checked_add(offset).map(Address::new)
    }

    /// The segment that has a byte at `address`.
    #[must_use]
    pub fn segment_at(&self, address: Address) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.contains(address))
    }
}

impl Segment {
    /// How many bytes it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether it has no bytes. An image's segments have some.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Whether it has a byte at `address`.
    #[must_use]
    pub fn contains(&self, address: Address) -> bool {
        address.offset_from(self.address).is_some_and(|offset| offset < self.range.len() as u64)
    }
}
