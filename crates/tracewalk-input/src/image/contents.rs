//! The contents of an image.

use std::ops::Range;
use std::path::{Path, PathBuf};

use tracewalk::ids::{Address, Location};

use super::attributes::Attributes;
use crate::bytes::Bytes;
use crate::file::{self, FileProblem};
use crate::records::RecordForm;

/// A program image: the memory that one file describes.
#[derive(Clone, Debug)]
pub struct Image {
    /// The file.
    pub file: PathBuf,
    /// The stretches of memory that the image fills, in the file's order.
    pub segments: Vec<Segment>,
    /// The build-id, if there is one.
    pub build_id: Option<Vec<u8>>,
    /// The ELF file's build attributes; empty for other images.
    pub attributes: Attributes,
    /// The program's entry, if the ELF file has one.
    pub entry: Option<Location>,
    /// The whole file; for records, the memory in them, one segment after the other.
    pub(super) bytes: Bytes,
    /// The address at which a kernel loaded the ELF file, whose own addresses begin at 0; else 0.
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
    /// Hexadecimal records, which have addresses but no names.
    Records(RecordForm),
    /// Plain bytes; their address is stated elsewhere.
    Raw,
    /// Only the names of a kernel, as `/proc/kallsyms` lists them.
    Names,
}

/// The width of addresses in an ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Bits32,
    Bits64,
}

/// A stretch of memory that an image fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The segment's name in messages: a section's name, or `segment` or `section` and its number.
    pub name: String,
    /// The address of the first byte.
    pub address: Address,
    /// Whether the file marks the segment as code. Raw bytes and records are assumed to be code.
    pub executable: bool,
    /// The range of the segment's bytes in the file; checked to be inside the file.
    pub(super) range: Range<usize>,
}

impl Image {
    /// An image without code: a list of a kernel's names in the form of `/proc/kallsyms`.
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

    /// As [`Image::of_names`], of a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn read_names(file: &Path) -> Result<Self, FileProblem> {
        Ok(Self::of_names(file.to_owned(), file::map(file, file::LONGEST_IMAGE)?))
    }

    /// The list of a kernel's names, if the image is one.
    pub(crate) fn names(&self) -> Option<&[u8]> {
        (self.form == ImageForm::Names).then_some(&*self.bytes)
    }

    /// Whether the other image is of a file with the same name and content, in any directory.
    #[must_use]
    pub fn is_copy_of(&self, other: &Self) -> bool {
        self.form == other.form
            && self.file.file_name() == other.file.file_name()
            && self.segments == other.segments
            && *self.bytes == *other.bytes
    }

    /// The bytes of one of the image's segments.
    #[must_use]
    pub fn segment_bytes(&self, segment: &Segment) -> &[u8] {
        self.bytes.get(segment.range.clone()).unwrap_or(&[])
    }

    /// The ELF file's bytes, which may contain names and lines; `None` for other images, which do not.
    #[must_use]
    pub fn elf_bytes(&self) -> Option<&Bytes> {
        self.elf_file().map(|(_, bytes)| bytes)
    }

    /// The ELF file's bytes, and the width of its addresses; `None` for other images, and for one that is not
    /// at its own addresses.
    pub(crate) const fn elf_file(&self) -> Option<(Width, &Bytes)> {
        match self.form {
            _ if self.moved > 0 => None,
            ImageForm::Elf32 => Some((Width::Bits32, &self.bytes)),
            ImageForm::Elf64 => Some((Width::Bits64, &self.bytes)),
            ImageForm::Records(_) | ImageForm::Raw | ImageForm::Names => None,
        }
    }

    /// The ELF file's bytes, the width of its addresses, and the distance of its memory from these addresses,
    /// modulo 2^64: a system may map a file anywhere. `None` for other images.
    pub(crate) fn named_file(&self) -> Option<(Width, &Bytes, u64)> {
        if let Some((width, bytes)) = self.elf_file() {
            return Some((width, bytes, 0));
        }
        let linked = self.linked()?;
        if self.moved > 0 {
            return linked.elf_file().map(|(width, _)| (width, &self.bytes, self.moved));
        }
        let mapped = self.segments.first()?;
        // The mapping may begin before the code, and end before the code does.
        let part = linked
            .segments
            .iter()
            .find(|part| part.range.start < mapped.range.end && mapped.range.start < part.range.end)?;
        let place = |segment: &Segment| segment.address.get().wrapping_sub(segment.range.start as u64);
        let (width, _) = linked.elf_file()?;
        Some((width, &self.bytes, place(mapped).wrapping_sub(place(part))))
    }

    /// Whether this and another image of the same file share bytes of the file.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let overlap = |one: &Segment, other: &Segment| {
            one.range.start < other.range.end && other.range.start < one.range.end
        };
        self.segments.iter().any(|one| other.segments.iter().any(|other| overlap(one, other)))
    }

    /// The address in another image of the same file of the byte at `address`; `None` if no segment of the
    /// other has it.
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
    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether the segment has no bytes; an image's segments always have some.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Whether the segment has a byte at `address`.
    #[must_use]
    pub fn contains(&self, address: Address) -> bool {
        address.offset_from(self.address).is_some_and(|offset| offset < self.range.len() as u64)
    }
}
