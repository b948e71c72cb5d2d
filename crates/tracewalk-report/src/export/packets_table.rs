//! `packets --format csv` and `json`: how many packets of each kind, as a table.

use std::collections::BTreeMap;
use std::io;

use tracewalk::source::PacketItem;
use tracewalk_analysis::Section;
use tracewalk_analysis::record::PacketRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::table::{Cell, Column, Kind, Table, TakeRows};

/// Writes the table `packet_counts`, a source's rows as soon as it has ended.
#[derive(Debug)]
pub struct PacketTable<R> {
    rows: R,
    /// The cells that name the source.
    source: [Cell; 3],
    /// The number of packets of each kind, and their bytes.
    counts: BTreeMap<&'static str, (u64, u64)>,
}

impl<R: TakeRows> PacketTable<R> {
    /// Hands rows to `rows`.
    pub const fn new(rows: R) -> Self {
        Self { rows, source: [Cell::Unknown, Cell::Unknown, Cell::Unknown], counts: BTreeMap::new() }
    }
}

impl<R: TakeRows> Sink<PacketRecord<'_>> for PacketTable<R> {
    fn begin(&mut self) -> io::Result<()> {
        let columns = [
            Column::new("packet", Kind::Text),
            Column::new("count", Kind::Integer),
            Column::new("bytes", Kind::Integer).of("bytes"),
        ];
        self.rows.table(&Table::of_sources("packet_counts", 1, columns))
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.source = section.cells();
        Ok(())
    }

    fn record(&mut self, record: PacketRecord<'_>) -> io::Result<()> {
        let name = match record.content {
            PacketItem::Packet(packet) => packet.name(),
            PacketItem::Malformed(reason) if !reason.is_damage() => reason.name(),
            PacketItem::Malformed(_) => "malformed",
            PacketItem::Unsynchronised => "unsynced",
        };
        let (count, bytes) = self.counts.entry(name).or_default();
        *count += 1;
        *bytes += record.bytes.len() as u64;
        Ok(())
    }

    fn end_section(&mut self) -> io::Result<()> {
        for (packet, (count, bytes)) in std::mem::take(&mut self.counts) {
            let cells = [packet.into(), count.into(), bytes.into()];
            self.rows.row(&[&self.source[..], &cells].concat())?;
        }
        Ok(())
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        self.rows.finish(complete)
    }
}
