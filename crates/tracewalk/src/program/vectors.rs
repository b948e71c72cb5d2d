//! Reading M profile's vector table.
//!
//! ARMv7-M Architecture Reference Manual (DDI 0403E), B1.5.2 and B1.5.3: word `n` is the address of exception
//! `n`'s handler with bit 0 set. The length of the table is not recorded: the table ends at the first
//! handler, or at a word that cannot be a vector.

use super::regions::Regions;
use crate::ids::Address;

/// The number of the first interrupt. The system's vectors before it are always there; 1 is reset.
const SYSTEM_VECTORS: u16 = 16;
/// ARMv8-M has the most: 480 interrupts (DDI 0553B, B3.9).
const MOST_VECTORS: u16 = SYSTEM_VECTORS + 480;

/// The numbers and handlers of the exceptions in the table.
pub(super) fn handlers(regions: &Regions, table: Address) -> impl Iterator<Item = (u16, Address)> {
    // The table ends where the first handler after it starts.
    let mut bytes = 4 * u64::from(MOST_VECTORS);
    let mut numbers = 1..MOST_VECTORS;
    core::iter::from_fn(move || {
        loop {
            let number = numbers.next()?;
            let offset = 4 * u64::from(number);
            let word = regions.word(table.checked_add(offset)?).filter(|_| offset < bytes)?;
            let handler = Address::from(word & !1);
            if word & 1 == 1 && regions.code(handler).is_some() {
                bytes = bytes.min(handler.offset_from(table).unwrap_or(bytes));
                return Some((number, handler));
            }
            // Unused vectors are 0 or erased flash; a handler may also lie in code that no image holds. The
            // system's reserved vectors hold anything, such as the table's checksum. Any other even word is
            // not a vector and ends the table.
            if word & 1 == 0 && word != 0 && number >= SYSTEM_VECTORS {
                return None;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::super::{Program, Vectors};
    use super::*;
    use crate::ids::Exception;

    /// A table at 0x1000 with these vectors after the stack pointer, followed by `code` as words.
    fn program(vectors: &[u32], code: &[u32]) -> Program {
        let words = [0x2000_4000].iter().chain(vectors).chain(code).flat_map(|word| word.to_le_bytes());
        let mut program = Program::new();
        program.add(Address::new(0x1000), &words.collect::<Vec<_>>()).expect("nothing else is there");
        program.set_vector_table(Address::new(0x1000));
        program
    }

    fn table(interrupts: &[u32]) -> Vec<u32> {
        let mut vectors = Vec::from([0x1101, 0x1103, 0x1105, 0, 0, 0, 0xefff_f0c4, 0, 0, 0]);
        vectors.extend([0x1107, 0x1105, 0, 0x1109, 0x110b]);
        vectors.extend(interrupts);
        vectors
    }

    #[test]
    fn a_handler_that_one_vector_names_gives_its_exception() {
        let program = program(&table(&[0x1105, 0x110d, 0x1105]), &[0xbf00_bf00; 60]);
        assert_eq!(program.vectors_to(Address::new(0x110a)), Vectors::One(Exception::M(15)));
        assert_eq!(program.vectors_to(Address::new(0x110c)), Vectors::One(Exception::M(17)));
        assert_eq!(program.vectors_to(Address::new(0x1104)), Vectors::Several);
        assert_eq!(program.vectors_to(Address::new(0x1120)), Vectors::None);
        assert_eq!(Program::new().vectors_to(Address::new(0x1120)), Vectors::Unknown);
    }

    #[test]
    fn a_table_ends_where_code_begins() {
        // The first handler starts after 17 words; after it another word looks like a vector.
        let mut vectors = table(&[0x1105]);
        vectors[0] = 0x1045;
        let code = [0xbf00_bf00, 0x1109].repeat(40);
        assert_eq!(program(&vectors, &code).vectors_to(Address::new(0x1108)), Vectors::One(Exception::M(14)));
        // An even word ends the table as well.
        let code = [0x4770_4770, 0x1109].repeat(40);
        assert_eq!(
            program(&table(&[]), &code).vectors_to(Address::new(0x1108)),
            Vectors::One(Exception::M(14))
        );
    }
}
