//! Checks tables of abbreviations before they are expanded.
//!
//! An abbreviation of five bytes takes a hundred in memory. An attribute whose value is in the abbreviation
//! takes no bytes in an entry, so entries of one byte each could have millions of attributes.

use std::collections::BTreeSet;

use gimli::{
    Abbreviation, AttributeSpecification, DW_FORM_flag_present, DW_FORM_implicit_const,
    DebugInfoUnitHeadersIter, Reader as _, Result,
};

use super::Reader;

/// The most attributes of an abbreviation that take no bytes in entries. Compilers write a dozen.
const MOST_IMPLICIT: u64 = 32;

/// Subtracts the memory that the units' tables will take from `room`. Malformed tables are left to their reader.
pub(super) fn check(
    section: &Reader,
    mut units: DebugInfoUnitHeadersIter<Reader>,
    room: &mut u64,
) -> std::result::Result<(), String> {
    let tables = std::iter::from_fn(|| units.next().ok()?).map(|unit| unit.debug_abbrev_offset().0);
    for offset in tables.collect::<BTreeSet<_>>() {
        let mut table = section.clone();
        if table.skip(offset).is_err() {
            continue;
        }
        while let Ok(Some((attributes, implicit))) = next(&mut table) {
            if implicit > MOST_IMPLICIT {
                return Err(format!(
                    "damaged debugging information: an abbreviation has {implicit} attributes without bytes, expected at most {MOST_IMPLICIT}"
                ));
            }
            let attributes = attributes.saturating_mul(size_of::<AttributeSpecification>() as u64);
            // Vectors double as they grow.
            let size = attributes.saturating_add(size_of::<Abbreviation>() as u64).saturating_mul(2);
            *room = room.checked_sub(size).ok_or("its abbreviations take too much memory")?;
        }
    }
    Ok(())
}

/// The numbers of attributes of the next abbreviation, and of those without bytes (DWARF 5, 7.5.3).
fn next(table: &mut Reader) -> Result<Option<(u64, u64)>> {
    if table.read_uleb128()? == 0 {
        return Ok(None);
    }
    let (_tag, _has_children) = (table.read_uleb128()?, table.read_u8()?);
    let (mut attributes, mut implicit) = (0, 0);
    loop {
        let (name, form) = (table.read_uleb128()?, table.read_uleb128()?);
        if (name, form) == (0, 0) {
            return Ok(Some((attributes, implicit)));
        }
        let [is_present, is_constant] =
            [DW_FORM_flag_present, DW_FORM_implicit_const].map(|implicit| form == u64::from(implicit.0));
        if is_constant {
            table.read_sleb128()?;
        }
        attributes += 1;
        implicit += u64::from(is_present || is_constant);
    }
}
