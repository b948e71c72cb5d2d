//! The build attributes of an ELF file: the processor that the program was built for.
//!
//! Addenda to, and Errata in, the ABI for the Arm Architecture (IHI 0045), "Public attributes of the aeabi section".

use object::LittleEndian;
use object::elf::FileHeader32;
use object::read::elf::AttributesSection;
use tracewalk::plain::plain;

use crate::cpu::Profile;

/// An ELF file's build attributes: the processor that the program was built for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The name of the processor or architecture that was passed to the compiler: `Cortex-M3`, `7-A`.
    pub cpu_name: Option<String>,
    /// The architecture profile.
    pub profile: Option<Profile>,
}

/// The most attributes read: a program has a handful. The limit is for other files.
const MOST_ATTRIBUTES: usize = 1000;

const TAG_FILE: u8 = 1;
const TAG_CPU_RAW_NAME: u64 = 4;
const TAG_CPU_NAME: u64 = 5;
const TAG_CPU_ARCH: u64 = 6;
const TAG_CPU_ARCH_PROFILE: u64 = 7;
const TAG_COMPATIBILITY: u64 = 32;

impl Attributes {
    /// Reads the contents of an `.ARM.attributes` section. Malformed contents are ignored.
    pub(crate) fn parse(section: &[u8]) -> Self {
        let mut attributes = Self::default();
        let mut architecture = None;
        // An error ends the reading; attributes before it stay valid.
        let _ = each_attribute(section, |tag, number, text| match tag {
            TAG_CPU_RAW_NAME | TAG_CPU_NAME if !text.is_empty() => {
                attributes.cpu_name = Some(plain(String::from_utf8_lossy(text)).into_owned());
            }
            TAG_CPU_ARCH => architecture = Some(number),
            TAG_CPU_ARCH_PROFILE => attributes.profile = profile(number),
            _ => {}
        });
        attributes.profile = attributes.profile.or_else(|| profile_of_architecture(architecture?));
        attributes
    }
}

/// Calls `visit` with the attributes that hold for the whole file: the tag, and a number or text.
fn each_attribute(section: &[u8], mut visit: impl FnMut(u64, u64, &[u8])) -> object::read::Result<()> {
    let section = AttributesSection::<FileHeader32<LittleEndian>>::new(LittleEndian, section)?;
    let mut left = MOST_ATTRIBUTES;
    for subsection in section.subsections()? {
        let subsection = subsection?;
        if subsection.vendor() != b"aeabi" {
            continue;
        }
        for part in subsection.subsubsections() {
            let part = part?;
            if part.tag() != object::elf::AttributeTag(TAG_FILE) {
                continue;
            }
            let mut reader = part.attributes();
            while let Some(tag) = reader.read_tag()? {
                left = match left.checked_sub(1) {
                    Some(left) => left,
                    None => return Ok(()),
                };
                match tag {
                    TAG_CPU_RAW_NAME | TAG_CPU_NAME => visit(tag, 0, reader.read_string()?),
                    TAG_COMPATIBILITY => {
                        let number = reader.read_integer()?;
                        visit(tag, number, reader.read_string()?);
                    }
                    // Above 32, odd tags have texts and even tags have numbers.
                    _ if tag > TAG_COMPATIBILITY && tag % 2 == 1 => visit(tag, 0, reader.read_string()?),
                    _ => visit(tag, reader.read_integer()?, &[]),
                }
            }
        }
    }
    Ok(())
}

/// Tag_CPU_arch_profile holds the profile's letter.
fn profile(value: u64) -> Option<Profile> {
    match u8::try_from(value).ok()? {
        b'A' => Some(Profile::A),
        b'R' => Some(Profile::R),
        b'M' => Some(Profile::M),
        _ => None,
    }
}

/// The architectures that have one profile only.
fn profile_of_architecture(value: u64) -> Option<Profile> {
    match value {
        // v4 to v6K
        1..=9 => Some(Profile::Classic),
        // v6-M, v6S-M, v7E-M, v8-M baseline, v8-M mainline, v8.1-M mainline
        11 | 12 | 13 | 16 | 17 | 21 => Some(Profile::M),
        15 => Some(Profile::R),
        14 | 22 => Some(Profile::A),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section with one vendor and the attributes of the whole file.
    fn section(attributes: &[u8]) -> Vec<u8> {
        let length = |bytes: usize| u32::try_from(bytes).unwrap().to_le_bytes();
        let file = [&[TAG_FILE][..], &length(attributes.len() + 5), attributes].concat();
        [b"A", &length(file.len() + 10)[..], b"aeabi\0", &file].concat()
    }

    #[test]
    fn the_processor_and_its_profile_are_read() {
        let bytes = section(b"\x05Cortex-M3\0\x06\x0a\x07M\x09\x02\x43text\0\x20\x01x\0");
        let expected = Attributes { cpu_name: Some("Cortex-M3".to_owned()), profile: Some(Profile::M) };
        assert_eq!(Attributes::parse(&bytes), expected);
        // Old compilers write no profile attribute for ARMv6-M.
        assert_eq!(Attributes::parse(&section(b"\x06\x0b")).profile, Some(Profile::M));
        assert_eq!(Attributes::parse(&section(b"\x06\x0a")).profile, None);
    }

    #[test]
    fn every_beginning_of_a_section_is_read_without_harm() {
        let bytes = section(b"\x05Cortex-M3\0\x06\x0a\x07M\x09\x02");
        for end in 0..bytes.len() {
            let attributes = Attributes::parse(&bytes[..end]);
            assert!(attributes.cpu_name.is_none(), "the length does not fit, so nothing is believed");
        }
    }
}
