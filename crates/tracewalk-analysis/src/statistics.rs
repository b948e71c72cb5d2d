//! Totals of sources.

use tracewalk::flow::Element;

use crate::table::{Cell, Column, Kind, Table, Tabular};

/// Counts over one source, or over several added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of trace.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Malformed stretches.
    pub malformed: u64,
    /// Ranges of instructions that were executed.
    pub ranges: u64,
    /// Instructions that were executed or passed.
    pub instructions: u64,
    /// The number of gaps in program flow.
    pub gaps: u64,
}

impl Statistics {
    /// Counts an element of program flow.
    #[inline]
    pub const fn element(&mut self, element: &Element) {
        match element {
            Element::Block(block) => {
                self.ranges += 1;
                self.instructions += block.instructions as u64;
            }
            Element::Gap(_) => self.gaps += 1,
            Element::Event(_) | Element::Proof(_) => {}
        }
    }

    /// Adds the totals of another part.
    pub const fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.packets += other.packets;
        self.malformed += other.malformed;
        self.ranges += other.ranges;
        self.instructions += other.instructions;
        self.gaps += other.gaps;
    }
}

impl Tabular for Statistics {
    fn tables(&self) -> Vec<Table> {
        let Self { bytes, packets, malformed, ranges, instructions, gaps } = *self;
        let counts = [
            ("bytes", bytes),
            ("packets", packets),
            ("malformed", malformed),
            ("ranges", ranges),
            ("instructions", instructions),
            ("gaps", gaps),
        ];
        let columns = counts.map(|(name, _)| Column::new(name, Kind::Integer));
        let mut table = Table::new("statistics", 1, columns);
        table.push(counts.map(|(_, count)| Cell::Integer(count)));
        vec![table]
    }
}
