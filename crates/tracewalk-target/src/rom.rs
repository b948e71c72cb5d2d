//! The units of a chip, by the ROM tables that point at them (IHI 0031F, D2 to D4; IHI 0029E, B2).

use std::collections::BTreeSet;

use crate::client::Client;
use crate::connection::Connection;
use crate::problem::Problem;

/// What a unit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A Micro Trace Buffer.
    Mtb,
    /// An ETM of architecture 3.
    Etmv3,
    /// An ETM of architecture 4.
    Etmv4,
    /// An Embedded Trace Buffer.
    Etb,
    /// A Trace Memory Controller with a memory of its own.
    Tmc,
    /// A Trace Memory Controller that writes to the system's memory.
    Etr,
    /// A funnel.
    Funnel,
    /// A Trace Port Interface Unit.
    Tpiu,
    /// An Instrumentation Trace Macrocell.
    Itm,
    /// A Data Watchpoint and Trace unit.
    Dwt,
    /// Any other unit.
    Other,
}

/// A unit of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// What it does.
    pub kind: Kind,
    /// Its address.
    pub base: u32,
    /// Its part number.
    pub part: u16,
}

/// The units of a chip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The units, in the tables' order.
    pub units: Vec<Unit>,
    /// The addresses of units and tables that do not answer.
    pub silent: Vec<u32>,
    /// The addresses of the tables.
    pub tables: Vec<u32>,
}

/// The places at which chips have their first table: M profile's own one (DDI 0403E, C1.2.2), and others that were seen.
const STARTS: [u32; 5] = [0xe00f_f000, 0xe00f_d000, 0xe00f_e000, 0xf000_2000, 0x4100_3000];

/// The most tables and units.
const MOST: usize = 2048;

const ENTRIES_OF_CLASS_1: u32 = 0xf00 / 4;
const ENTRIES_OF_CLASS_9: u32 = 0x800 / 4;
const ROM_ARCHITECTURE: u32 = 0x4770_0af7;
const ARM: u16 = 0x43b;
/// Arm China.
const ARM_CHINA: u16 = 0xa75;

/// Finds the units of a chip, from one table on, or from those at the usual places.
///
/// # Errors
///
/// If there is no table, or the connection fails. Units that do not answer are named.
pub fn units<C: Connection>(client: &mut Client<C>, start: Option<u32>) -> Result<Found, Problem> {
    let mut walk = Walk { client, found: Found::default(), seen: BTreeSet::new() };
    match start {
        Some(start) => walk.component(start)?,
        None => {
            for start in STARTS {
                walk.component(start)?;
            }
            // What does not answer at a usual place is no part of the chip.
            walk.found.silent.retain(|silent| !STARTS.contains(silent));
        }
    }
    if walk.found.tables.is_empty() { Err(Problem::NoRomTable) } else { Ok(walk.found) }
}

struct Walk<'a, C> {
    client: &'a mut Client<C>,
    found: Found,
    seen: BTreeSet<u32>,
}

impl<C: Connection> Walk<'_, C> {
    /// A unit, or a table with all that it points at.
    fn component(&mut self, base: u32) -> Result<(), Problem> {
        let mut waiting = vec![base];
        while let Some(base) = waiting.pop().filter(|_| self.seen.len() < MOST) {
            if !self.seen.insert(base) {
                continue;
            }
            match self.look(base) {
                Ok(mut inner) => {
                    inner.reverse();
                    waiting.extend(inner);
                }
                // One silent unit says nothing about the others.
                Err(Problem::Access { .. }) => self.found.silent.push(base),
                Err(problem) => return Err(problem),
            }
        }
        Ok(())
    }

    /// Identifies what is at an address; returns the places that it points at.
    fn look(&mut self, base: u32) -> Result<Vec<u32>, Problem> {
        let mut word = |offset: u32| self.client.read_word(base.wrapping_add(offset));
        let [first, second, third, fourth] = [word(0xff0)?, word(0xff4)?, word(0xff8)?, word(0xffc)?];
        if (first & 0xff, second & 0xf, third & 0xff, fourth & 0xff) != (0x0d, 0, 0x05, 0xb1) {
            return Ok(Vec::new());
        }
        let class = second >> 4 & 0xf;
        let (low, high) = (word(0xfe0)? & 0xff, word(0xfe4)? & 0xff);
        let (designer, bank) = (word(0xfe8)? & 0x7, word(0xfd0)? & 0xf);
        let part = u16::try_from(low | (high & 0xf) << 8).unwrap_or_default();
        let designer = u16::try_from(high >> 4 | designer << 4 | bank << 8).unwrap_or_default();
        let architecture = if class == 9 { word(0xfbc)? } else { 0 };
        let entries = match (class, architecture) {
            (1, _) => ENTRIES_OF_CLASS_1,
            (9, ROM_ARCHITECTURE) => ENTRIES_OF_CLASS_9,
            (9, _) => {
                let (kind, settings) = (word(0xfcc)? & 0xff, word(0xfc8)?);
                let kind = kind_of((designer, part), architecture & 0xffff, kind, settings);
                self.found.units.push(Unit { kind, base, part });
                return Ok(Vec::new());
            }
            // ARMv7-M's own units (DDI 0403E, C1.2.3).
            _ => {
                let kind = match (class, part) {
                    (0xe, 0x001) => Kind::Itm,
                    (0xe, 0x002) => Kind::Dwt,
                    _ => Kind::Other,
                };
                self.found.units.push(Unit { kind, base, part });
                return Ok(Vec::new());
            }
        };
        self.found.tables.push(base);
        let mut inner = Vec::new();
        for entry in (0..entries).map(|index| word(index * 4)) {
            match entry? {
                0 => break,
                // In class 9, presence has two bits (IHI 0031F, D4.4.3).
                entry if class == 9 && entry & 3 != 3 || entry & 1 == 0 => {}
                entry => inner.push(base.wrapping_add(entry & !0xfff)),
            }
        }
        Ok(inner)
    }
}

/// What a unit does. In ARMv8-M, all units of a core have the core's part number, so architecture and type come first.
fn kind_of((designer, part): (u16, u16), architecture: u32, kind: u32, settings: u32) -> Kind {
    match (architecture, kind) {
        (0x0a31, _) => Kind::Mtb,
        (0x4a13, _) => Kind::Etmv4,
        (0x1a01, _) => Kind::Itm,
        (0x1a02, _) => Kind::Dwt,
        (0x1a03..=0x1a14 | 0x2a04, _) => Kind::Other,
        _ if designer != ARM && designer != ARM_CHINA => Kind::Other,
        _ => match (part, kind) {
            (0x932, 0x31) => Kind::Mtb,
            (0x924..=0x926 | 0xd20, 0x13) => Kind::Etmv3,
            (0x975 | 0xd21..=0xd23 | 0xd31, 0x13) => Kind::Etmv4,
            (0x907, 0x21) => Kind::Etb,
            (0x961 | 0x9e8..=0x9ea, 0x21 | 0x32) if settings >> 6 & 3 == 1 => Kind::Etr,
            (0x961 | 0x9e8..=0x9ea, 0x21 | 0x32) => Kind::Tmc,
            (0x908 | 0x9eb, 0x12) => Kind::Funnel,
            (_, 0x11) => Kind::Tpiu,
            _ => Kind::Other,
        },
    }
}
