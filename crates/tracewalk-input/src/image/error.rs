//! What can be wrong with a program image.

use std::fmt;
use std::path::PathBuf;

use tracewalk::ids::Address;
use tracewalk::plain::Plain;

use super::request::ImageRequest;
use crate::file::FileProblem;
use crate::origin::Naming;
use crate::records::{MemoryProblem, RecordForm};

/// Why an image cannot be used: the file, and its problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageError {
    /// The image's file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub kind: ImageErrorKind,
    /// The entry of a description that names the file; `None` for an option.
    pub named_by: Option<Box<Naming>>,
}

/// What is wrong with an image.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", prefix = "image_")]
#[non_exhaustive]
pub enum ImageErrorKind {
    /// The file cannot be read.
    File(FileProblem),
    /// The file has none of the forms with addresses.
    NotElf(Looks),
    /// The file's records cannot be used.
    Records {
        /// The records' form.
        form: RecordForm,
        /// The line with the problem, from 1, if it is in one line.
        line: Option<u32>,
        /// What is wrong with the records.
        problem: MemoryProblem,
    },
    /// The file is records, which have addresses, but the request has an address as well.
    HasAddresses(RecordForm),
    /// The file is ELF for another machine.
    Machine {
        /// The width of the file's addresses, 32 or 64; `None` for a class that ELF does not define.
        bits: Option<u8>,
        /// ELF's number for the machine (`e_machine`).
        machine: u16,
    },
    /// The file is for big-endian Arm.
    BigEndian,
    /// The file is shorter than its headers state.
    Truncated {
        /// The part that is missing.
        what: &'static str,
        /// The stated end of this part in the file.
        end: u64,
        /// The file's length.
        bytes: u64,
    },
    /// The file contradicts itself, in the ELF reader's words.
    Malformed(String),
    /// The file's segments together are several times as long as the file.
    Oversized {
        /// The sum of the segments' lengths.
        claimed: u64,
        /// The file's length.
        bytes: u64,
    },
    /// The file has more segments than any program.
    TooManySegments {
        /// The number of segments.
        found: usize,
        /// The greatest number of segments allowed.
        limit: usize,
    },
    /// The file has no code.
    NoCode,
    /// The file is an object file whose sections have no addresses yet.
    Unlinked,
    /// The bytes extend past the last address of memory.
    PastEndOfMemory {
        /// The address of the first byte.
        start: Address,
        /// The number of bytes.
        bytes: u64,
    },
    /// The part to load is not in the file.
    OutsideFile {
        /// The part's offset.
        offset: u64,
        /// The part's length.
        length: u64,
        /// The file's length.
        bytes: u64,
    },
    /// Two images have different bytes at the same address.
    Conflict {
        /// The image that was added first, and its part.
        other: String,
        /// The part of this image.
        part: String,
        /// The first address at which the images differ.
        at: Address,
    },
    /// The images are for more combinations of context ID and VMID than are distinguished.
    TooManyContexts,
}

/// The apparent content of a file that is not ELF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// Text.
    Text,
    /// A library of object files.
    Archive,
    /// Other bytes.
    Binary,
}

impl ImageError {
    /// The error with the place in a description that names the image.
    pub(crate) fn of(self, request: &ImageRequest) -> Self {
        Self { named_by: request.named_by.clone().map(Box::new), ..self }
    }
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Plain(self.file.display()))?;
        if let ImageErrorKind::Records { line: Some(line), .. } = &self.kind {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", Plain(&self.kind))
    }
}

impl std::error::Error for ImageError {}

impl ImageErrorKind {
    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::File(problem) => problem.name(),
            Self::Records { problem, .. } => problem.name(),
            _ => self.into(),
        }
    }
}

impl fmt::Display for ImageErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(problem) => problem.fmt(f),
            Self::NotElf(looks) => write!(f, "expected an ELF file, Intel HEX or S-records, found {looks}"),
            Self::Records { problem, .. } => problem.fmt(f),
            Self::HasAddresses(form) => {
                write!(f, "is {form}, which states its own addresses, so it cannot be loaded at another one")
            }
            Self::Machine { bits, machine } => {
                f.write_str("expected an ELF file for Arm, found one for ")?;
                if let (Some(bits), false) = (bits, object::elf::Machine(*machine) == object::elf::EM_AARCH64)
                {
                    write!(f, "{bits}-bit ")?;
                }
                match machine_name(*machine) {
                    Some(name) => f.write_str(name),
                    None => write!(f, "machine {machine}"),
                }
            }
            Self::BigEndian => f.write_str("expected a little-endian ELF file, found a big-endian one"),
            Self::Truncated { what, end, bytes } => {
                write!(f, "the file is cut off: {what} ends at byte {end}, the file at byte {bytes}")
            }
            Self::Malformed(message) => write!(f, "the ELF file is malformed: {}", Plain(message)),
            Self::Oversized { claimed, bytes } => {
                write!(f, "the segments claim {claimed} bytes, but the file has {bytes}")
            }
            Self::TooManySegments { found, limit } => {
                write!(f, "expected at most {limit} segments, found {found}")
            }
            Self::NoCode => f.write_str("the ELF file has no code"),
            Self::Unlinked => f.write_str("is an unlinked object file, whose code has no addresses"),
            Self::PastEndOfMemory { start, bytes } => {
                let bits = address_bits(start.get(), *bytes);
                write!(f, "{bytes} bytes at {start} extend past the end of the {bits}-bit address space")
            }
            Self::OutsideFile { offset, length, bytes } => {
                write!(f, "expected {length} bytes at offset {offset}, but the file has {bytes} bytes")
            }
            Self::Conflict { other, part, at } => {
                write!(f, "{} differs from {} at address {at}", Plain(part), Plain(other))
            }
            Self::TooManyContexts => {
                f.write_str("the images use too many combinations of context ID and VMID")
            }
        }
    }
}

impl fmt::Display for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Archive => "a library of object files",
            Self::Binary => "other bytes",
        })
    }
}

impl Looks {
    /// The apparent content of a file with these bytes.
    pub(crate) fn like(bytes: &[u8]) -> Self {
        let beginning = bytes.get(..4096).unwrap_or(bytes);
        let text = beginning.iter().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c' | b' '..=b'~'));
        match text {
            _ if beginning.starts_with(b"!<arch>\n") => Self::Archive,
            true => Self::Text,
            false => Self::Binary,
        }
    }
}

/// The width in bits of the address space that these bytes extend past. The space is that of 64 bits if they
/// start above 32 bits, or if their end needs more than 64.
fn address_bits(start: u64, bytes: u64) -> u32 {
    let ends = start.checked_add(bytes.saturating_sub(1)).is_some();
    if ends && u32::try_from(start).is_ok() { 32 } else { 64 }
}

/// The names of common machines.
fn machine_name(machine: u16) -> Option<&'static str> {
    use object::elf;
    Some(match elf::Machine(machine) {
        elf::EM_X86_64 | elf::EM_386 => "x86",
        elf::EM_AARCH64 => "64-bit Arm (AArch64)",
        elf::EM_ARM => "Arm",
        elf::EM_RISCV => "RISC-V",
        elf::EM_MIPS => "MIPS",
        elf::EM_PPC | elf::EM_PPC64 => "PowerPC",
        elf::EM_XTENSA => "Xtensa",
        elf::EM_AVR => "AVR",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::address_bits;

    #[test]
    fn bytes_extend_past_the_address_space_that_they_start_in() {
        assert_eq!(address_bits(0xffff_fffe, 4), 32);
        assert_eq!(address_bits(u64::MAX - 1, 4), 64);
        assert_eq!(address_bits(0x100, u64::MAX), 64);
    }
}
