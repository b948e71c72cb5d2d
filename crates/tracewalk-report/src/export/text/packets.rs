//! `packets --format text`: a table for people.

use std::fmt::Write as _;
use std::io::{self, Write};

use tracewalk::protocol::Field;
use tracewalk::source::PacketItem;

use crate::layout::Fitted;
use crate::words::{CUT, counted};
use crate::{Look, Palette};
use tracewalk_analysis::Section;
use tracewalk_analysis::record::PacketRecord;
use tracewalk_analysis::sink::Sink;

/// The number of bytes on one line.
const BYTES_A_LINE: usize = 8;
/// The number of bytes of a malformed stretch that are shown.
const BYTES_OF_NO_PACKET: usize = 16;

/// Writes packets as a table.
#[derive(Debug)]
pub struct PacketsText<W> {
    out: Fitted<W>,
    palette: Palette,
    /// The line's last column, reused.
    text: String,
    first: bool,
}

impl<W: Write> PacketsText<W> {
    /// Writes to `out`.
    pub const fn new(out: W, look: Look) -> Self {
        Self { out: Fitted::new(out, look.width), palette: look.palette, text: String::new(), first: true }
    }

    fn describe(&mut self, content: PacketItem<'_>, bytes: usize) {
        let Palette { name, problem, quiet, .. } = self.palette;
        let text = &mut self.text;
        text.clear();
        // Writing to a string cannot fail.
        let _ = match content {
            PacketItem::Packet(packet) => {
                let result = write!(text, "{name}{}{name:#}", packet.name());
                let padding = 16_usize.saturating_sub(packet.name().len());
                let mut separator = format!("{:padding$} ", "");
                packet.fields(&mut |name, field| {
                    text.push_str(&separator);
                    separator = "  ".to_owned();
                    push_field(text, name, field);
                });
                result
            }
            PacketItem::Malformed(reason) if !reason.is_damage() => {
                write!(text, "{quiet}{}{quiet:#}       {reason}", reason.name())
            }
            PacketItem::Malformed(reason) => {
                write!(
                    text,
                    "{problem}malformed{problem:#}        {reason} ({})",
                    counted(bytes as u64, "byte")
                )
            }
            PacketItem::Unsynchronised => {
                write!(
                    text,
                    "{quiet}unsynced{quiet:#}         {} before synchronisation",
                    counted(bytes as u64, "byte")
                )
            }
        };
    }
}

impl<W: Write> Sink<PacketRecord<'_>> for PacketsText<W> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        let Palette { head, quiet, .. } = self.palette;
        if !std::mem::take(&mut self.first) {
            writeln!(self.out)?;
        }
        writeln!(self.out, "{head}{section}{head:#}")?;
        writeln!(self.out, "{quiet}{:>10}  {:23}  packet{quiet:#}", "offset", "bytes")
    }

    fn record(&mut self, record: PacketRecord<'_>) -> io::Result<()> {
        self.describe(record.content, record.bytes.len());
        let quiet = self.palette.quiet;
        let shown = match record.content {
            PacketItem::Packet(_) => record.bytes,
            _ => record.bytes.get(..BYTES_OF_NO_PACKET).unwrap_or(record.bytes),
        };
        // A packet that ends in the byte in which it begins has none of its own.
        let lines = shown.chunks(BYTES_A_LINE).chain(shown.is_empty().then_some(shown));
        for (index, line) in lines.enumerate() {
            let bytes = line.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
            let more = (index + 1) * BYTES_A_LINE >= shown.len() && shown.len() < record.bytes.len();
            let more = if more { " …" } else { "" };
            if index == 0 {
                writeln!(self.out, "{quiet}{:>10}  {bytes:23}{quiet:#}  {}{more}", record.at.0, self.text)?;
            } else {
                writeln!(self.out, "{quiet}{:>10}  {bytes}{more}{quiet:#}", "")?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        if complete { Ok(()) } else { writeln!(self.out, "{CUT}") }
    }
}

fn push_field(text: &mut String, name: &str, field: Field<'_>) {
    let _ = match field {
        // Patterns of bits read better in hexadecimal.
        Field::Number(value) if matches!(name, "context_id" | "value" | "timestamp") => {
            write!(text, "{name} {value:#x}")
        }
        Field::Number(value) => write!(text, "{name} {value}"),
        Field::Bits(value) => write!(text, "{name} {value:#x}"),
        Field::Flag(value) => write!(text, "{name} {value}"),
        Field::Address(address) => write!(text, "{name} {address}"),
        Field::Text(word) => write!(text, "{name} {word}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::protocol::Malformation;
    use tracewalk_analysis::samples::{ISync, packets};

    #[test]
    fn packets_are_a_table_that_abbreviates_what_is_no_packet() {
        let mut out = Vec::new();
        let contents = [
            (PacketItem::Unsynchronised, &[0x55_u8; 40][..]),
            (PacketItem::Packet(&ISync), &[8; 9]),
            (PacketItem::Malformed(Malformation::ReservedHeader { found: 0xa8 }), &[0xa8]),
        ];
        packets(&mut PacketsText::new(&mut out, Look::PLAIN), &contents);
        let expected = "\
one source without trace ID, etmv3
    offset  bytes                    packet
         0  55 55 55 55 55 55 55 55  unsynced         40 bytes before synchronisation
            55 55 55 55 55 55 55 55 …
        40  08 08 08 08 08 08 08 08  i_sync           reason 1  addr 0x08000306  isa T32
            08
        49  a8                       malformed        found reserved header 0xa8, expected a packet header (1 byte)
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
