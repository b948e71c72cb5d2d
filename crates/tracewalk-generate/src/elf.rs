//! Loads a program from an ELF file: its loaded segments, and the profile of the processor that runs it.
//!
//! ```
//! use tracewalk_generate::elf;
//! use tracewalk_generate::record::Profile;
//!
//! let elf = elf::read(&std::fs::read("../../testdata/examples/m3-etmv3/m3.elf")?)?;
//! assert_eq!(elf.profile, Profile::M);
//! assert!(!elf.program.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::error::Error;

use object::elf::{EM_AARCH64, FileHeader32, FileHeader64, PT_LOAD, SHT_ARM_ATTRIBUTES};
use object::read::elf::{AttributeReader, ElfFile, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, FileKind};
use tracewalk::ids::Address;
use tracewalk::program::Program;

use crate::record::Profile;

/// A program and the profile that runs it.
pub struct Elf {
    /// The loaded segments.
    pub program: Program,
    /// The processor's profile.
    pub profile: Profile,
}

/// Reads the loaded segments of an ARM or AArch64 file.
pub fn read(bytes: &[u8]) -> Result<Elf, Box<dyn Error>> {
    match FileKind::parse(bytes)? {
        FileKind::Elf64 => {
            let file = ElfFile::<FileHeader64<Endianness>>::parse(bytes)?;
            if file.elf_header().e_machine(file.endian()) != EM_AARCH64 {
                return Err("found a 64-bit ELF file that is not for AArch64".into());
            }
            // No M-profile processor runs A64.
            Ok(Elf { program: program(&file)?, profile: Profile::Ar })
        }
        _ => {
            let file = ElfFile::<FileHeader32<Endianness>>::parse(bytes)?;
            let profile = profile(&file)?.ok_or("no build attribute states the architecture profile")?;
            Ok(Elf { program: program(&file)?, profile })
        }
    }
}

fn program<H: FileHeader<Endian = Endianness>>(file: &ElfFile<'_, H>) -> Result<Program, Box<dyn Error>> {
    let endian = file.endian();
    let mut program = Program::new();
    for segment in file.elf_program_headers() {
        if segment.p_type(endian) == PT_LOAD {
            let data = segment.data(endian, file.data()).map_err(|()| "a segment is outside the file")?;
            program.add(Address::new(segment.p_vaddr(endian).into()), data)?;
        }
    }
    Ok(program)
}

/// The build attribute `Tag_CPU_arch_profile` (Addenda to the ABI for the Arm Architecture, 3.3.5.2).
fn profile(file: &ElfFile<'_, FileHeader32<Endianness>>) -> object::Result<Option<Profile>> {
    let endian = file.endian();
    for section in file.elf_section_table().iter() {
        if section.sh_type(endian) != SHT_ARM_ATTRIBUTES {
            continue;
        }
        for subsection in section.attributes(endian, file.data())?.subsections()? {
            for part in subsection?.subsubsections() {
                if let Some(letter) = profile_letter(part?.attributes())? {
                    return Ok(Some(if letter == u64::from(b'M') { Profile::M } else { Profile::Ar }));
                }
            }
        }
    }
    Ok(None)
}

fn profile_letter(mut attributes: AttributeReader<'_>) -> object::Result<Option<u64>> {
    const CPU_RAW_NAME: u64 = 4;
    const CPU_NAME: u64 = 5;
    const CPU_ARCH_PROFILE: u64 = 7;
    const COMPATIBILITY: u64 = 32;
    while let Some(tag) = attributes.read_tag()? {
        match tag {
            CPU_ARCH_PROFILE => return attributes.read_integer().map(Some),
            COMPATIBILITY => {
                attributes.read_integer()?;
                attributes.read_string()?;
            }
            CPU_RAW_NAME | CPU_NAME => {
                attributes.read_string()?;
            }
            tag if tag > COMPATIBILITY && tag % 2 == 1 => {
                attributes.read_string()?;
            }
            _ => {
                attributes.read_integer()?;
            }
        }
    }
    Ok(None)
}
