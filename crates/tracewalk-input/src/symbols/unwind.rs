//! The locations of a caller's saved registers, from an image's call frame information (DWARF 5, 6.4): for
//! each instruction, how to compute the canonical frame address from a register, and the offsets from it at
//! which registers are saved.
//!
//! This module uses no register values. Rules that are expressions are left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EndianSlice, LittleEndian, Register, RegisterRule,
    SectionId, UnwindContext, UnwindSection,
};
use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::{ElfFile, FileHeader};
use object::{Object, ObjectSection};
use tracewalk::ids::Address;

use super::dwarf;
use crate::image::{Image, Width};

/// The call frame information of a program's images.
#[derive(Clone, Debug, Default)]
pub struct CallFrames {
    tables: Vec<Table>,
}

/// The frame rules before one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameRow {
    /// The register from which the canonical frame address is computed, by its DWARF number.
    pub register: u16,
    /// The offset from the register's value to the canonical frame address.
    pub offset: i64,
    /// The saved registers, each with its offset from the canonical frame address.
    pub saved: BTreeMap<u16, i64>,
    /// The register that holds the return address, if it is not saved.
    pub return_register: u16,
    /// Whether the information states that the function has no caller.
    pub is_outermost: bool,
}

/// One section of one image.
#[derive(Clone, Debug)]
struct Table {
    bytes: Arc<[u8]>,
    bases: BaseAddresses,
    is_eh: bool,
    address_bytes: u8,
    /// The start, end and offset in the section of each function's information, sorted by start.
    functions: Vec<(u64, u64, usize)>,
}

/// The most functions that a section may describe. Each takes at least 16 bytes.
const MOST_FUNCTIONS: usize = 1 << 22;

/// The most rows of one function that are read; each covers some instructions.
const MOST_ROWS: usize = 1 << 16;

impl CallFrames {
    /// The call frame information of these images. Unreadable information is left out.
    pub fn of<'a>(images: impl IntoIterator<Item = &'a Image>) -> Self {
        Self { tables: images.into_iter().flat_map(tables).collect() }
    }

    /// The frame rules before the instruction at `address`; `None` if its image has none, or only
    /// expressions.
    #[must_use]
    pub fn row(&self, address: Address) -> Option<FrameRow> {
        self.tables.iter().find_map(|table| table.row(address.get()))
    }

    /// The greatest known distance below the canonical frame address at which the function that holds
    /// `address` saves a register or has its stack pointer.
    #[must_use]
    pub fn depth(&self, address: Address) -> Option<u64> {
        self.tables.iter().find_map(|table| table.depth(address.get()))
    }
}

impl Table {
    fn row(&self, address: u64) -> Option<FrameRow> {
        match self.is_eh {
            true => row(self, &EhFrame::new(&self.bytes, LittleEndian), address),
            false => {
                let mut section = DebugFrame::new(&self.bytes, LittleEndian);
                section.set_address_size(self.address_bytes);
                row(self, &section, address)
            }
        }
    }

    fn depth(&self, address: u64) -> Option<u64> {
        match self.is_eh {
            true => depth(self, &EhFrame::new(&self.bytes, LittleEndian), address),
            false => {
                let mut section = DebugFrame::new(&self.bytes, LittleEndian);
                section.set_address_size(self.address_bytes);
                depth(self, &section, address)
            }
        }
    }

    /// The offset of the information about the function that holds `address`.
    fn function(&self, address: u64) -> Option<usize> {
        let after = self.functions.partition_point(|(start, ..)| *start <= address);
        let (_, end, place) = self.functions.get(after.checked_sub(1)?)?;
        (address < *end).then_some(*place)
    }
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Calls `each` with the rows of the function at `address`, until it returns `false`.
fn rows<'a, S: UnwindSection<Slice<'a>>>(
    table: &Table,
    section: &S,
    address: u64,
    each: &mut dyn FnMut(&gimli::UnwindTableRow<usize>, &gimli::CommonInformationEntry<Slice<'a>>) -> bool,
) -> Option<()> {
    let place = S::Offset::from(table.function(address)?);
    let entry = section.fde_from_offset(&table.bases, place, S::cie_from_offset).ok()?;
    let mut context = UnwindContext::new();
    let mut rows = entry.rows(section, &table.bases, &mut context).ok()?;
    for _ in 0..MOST_ROWS {
        let Some(row) = rows.next_row().ok()? else { break };
        if !each(row, entry.cie()) {
            break;
        }
    }
    Some(())
}

fn row<'a, S: UnwindSection<Slice<'a>>>(table: &Table, section: &S, address: u64) -> Option<FrameRow> {
    let mut found = None;
    rows(table, section, address, &mut |row, cie| {
        if !row.contains(address) {
            return true;
        }
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return false };
        let saved = row.registers().filter_map(|(register, rule)| match rule {
            RegisterRule::Offset(offset) => Some((register.0, *offset)),
            _ => None,
        });
        let Register(return_register) = cie.return_address_register();
        let is_outermost = row.register(Register(return_register)) == Some(RegisterRule::Undefined);
        found = Some(FrameRow {
            register: register.0,
            offset,
            saved: saved.collect(),
            return_register,
            is_outermost,
        });
        false
    })?;
    found
}

fn depth<'a, S: UnwindSection<Slice<'a>>>(table: &Table, section: &S, address: u64) -> Option<u64> {
    let mut deepest = 0;
    rows(table, section, address, &mut |row, _| {
        if let CfaRule::RegisterAndOffset { offset, .. } = *row.cfa() {
            deepest = deepest.max(offset.unsigned_abs());
        }
        for (_, rule) in row.registers() {
            if let RegisterRule::Offset(offset) = rule {
                deepest = deepest.max(offset.unsigned_abs());
            }
        }
        true
    })?;
    Some(deepest)
}

/// The sections of an image that have call frame information.
fn tables(image: &Image) -> Vec<Table> {
    let Some((width, bytes)) = image.elf_file() else { return Vec::new() };
    match width {
        Width::Bits32 => tables_in::<FileHeader32<object::LittleEndian>>(bytes, 4),
        Width::Bits64 => tables_in::<FileHeader64<object::LittleEndian>>(bytes, 8),
    }
}

fn tables_in<E: FileHeader<Endian = object::LittleEndian>>(bytes: &[u8], address_bytes: u8) -> Vec<Table> {
    let Ok(file) = ElfFile::<E>::parse(bytes) else { return Vec::new() };
    let at = |name: &str| file.section_by_name(name).map_or(0, |section| section.address());
    let bases = BaseAddresses::default()
        .set_eh_frame(at(SectionId::EhFrame.name()))
        .set_text(at(".text"))
        .set_got(at(".got"));
    // Functions that the linker removed have address 0, where a program's vector table may be.
    let has_code_at_zero = file.section_by_name(".text").is_some_and(|section| section.address() == 0);
    let table = |id: SectionId| {
        let mut room = dwarf::room(bytes, None);
        let bytes = dwarf::section(&file, id, &mut room).ok()?;
        let (is_eh, bases) = (id == SectionId::EhFrame, bases.clone());
        let mut table = Table { bytes, bases, is_eh, address_bytes, functions: Vec::new() };
        table.functions = match is_eh {
            true => functions(&EhFrame::new(&table.bytes, LittleEndian), &table.bases),
            false => {
                let mut section = DebugFrame::new(&table.bytes, LittleEndian);
                section.set_address_size(address_bytes);
                functions(&section, &table.bases)
            }
        };
        table.functions.retain(|(start, ..)| *start != 0 || !has_code_at_zero);
        table.functions.sort_unstable();
        (!table.functions.is_empty()).then_some(table)
    };
    [SectionId::DebugFrame, SectionId::EhFrame].into_iter().filter_map(table).collect()
}

/// The start, end and offset of each function's information, as far as the section can be read.
fn functions<'a, S: UnwindSection<Slice<'a>>>(section: &S, bases: &BaseAddresses) -> Vec<(u64, u64, usize)> {
    let (mut found, mut entries) = (Vec::new(), section.entries(bases));
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(S::cie_from_offset) else { continue };
        found.push((entry.initial_address(), entry.end_address(), entry.offset()));
        if found.len() == MOST_FUNCTIONS {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::image::ImageKind;

    fn example(elf: &str) -> CallFrames {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/examples").join(elf);
        let bytes = std::fs::read(&file).unwrap();
        CallFrames::of([&Image::from_bytes(&file, &ImageKind::Addressed, bytes).unwrap()])
    }

    /// The expected values are from `arm-none-eabi-readelf --debug-dump=frames`.
    #[test]
    fn rows_are_what_readelf_prints() {
        let frames = example("m3-etmv3/m3.elf");
        let row = |address| frames.row(Address::new(address)).unwrap();
        let begin = row(0x244);
        assert_eq!((begin.register, begin.offset, begin.return_register), (13, 0, 14));
        assert!(begin.saved.is_empty());
        let saved = row(0x248);
        assert_eq!((saved.offset, saved.saved.len()), (36, 9));
        assert_eq!((saved.saved[&4], saved.saved[&11], saved.saved[&14]), (-36, -8, -4));
        assert_eq!((row(0x27c).offset, row(0x35e).offset, row(0x360).offset), (56, 56, 36));
        assert_eq!(frames.depth(Address::new(0x244)), Some(56));
        // The vector table.
        assert_eq!(frames.row(Address::new(0)), None);
    }
}
