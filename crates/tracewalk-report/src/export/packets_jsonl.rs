//! `packets --format jsonl`: one object for each packet (docs/formats.md).

use std::io::{self, Write};

use tracewalk::ids::TraceId;
use tracewalk::protocol::Field;
use tracewalk::source::PacketItem;
use tracewalk::span::CaptureOffset;

use super::json::Line;
use tracewalk_analysis::Section;
use tracewalk_analysis::record::PacketRecord;
use tracewalk_analysis::sink::Sink;

/// The format's version, in every object.
const VERSION: u64 = 1;

/// Writes JSON lines of packets.
#[derive(Debug)]
pub struct PacketsJsonl<W> {
    out: W,
    line: Line,
    id: Option<TraceId>,
}

impl<W: Write> PacketsJsonl<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, line: Line::default(), id: None }
    }
}

impl<W: Write> Sink<PacketRecord<'_>> for PacketsJsonl<W> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.id = section.id;
        Ok(())
    }

    fn record(&mut self, record: PacketRecord<'_>) -> io::Result<()> {
        let mut object = self.line.start(VERSION, record.at, self.id);
        object.bytes("bytes", record.bytes);
        match record.content {
            PacketItem::Packet(packet) => {
                object.text("packet", packet.name());
                packet.fields(&mut |name, field| match field {
                    Field::Number(value) => object.number(name, value),
                    Field::Bits(value) => object.hex(name, value),
                    Field::Flag(value) => object.flag(name, value),
                    Field::Address(value) => object.address(name, value),
                    Field::Text(value) => object.text(name, value),
                });
            }
            PacketItem::Malformed(reason) => {
                object.text("packet", if reason.is_damage() { "malformed" } else { reason.name() });
                object.text("reason", reason.name());
                object.text("message", &reason.to_string());
            }
            PacketItem::Unsynchronised => object.text("packet", "unsynced"),
        }
        object.close();
        self.line.end(&mut self.out)
    }

    fn cut(&mut self, at: CaptureOffset) -> io::Result<()> {
        let mut object = self.line.start(VERSION, at, self.id);
        object.bytes("bytes", &[]);
        object.text("packet", "cut");
        object.close();
        self.line.end(&mut self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tracewalk::protocol::Malformation;
    use tracewalk_analysis::samples::{ISync, packets};

    #[test]
    fn packets_name_their_own_fields() {
        let mut out = Vec::new();
        let contents = [
            (PacketItem::Unsynchronised, &[1_u8, 2][..]),
            (PacketItem::Packet(&ISync), &[8]),
            (PacketItem::Malformed(Malformation::ReservedHeader { found: 0xa8 }), &[0xa8, 0]),
        ];
        packets(&mut PacketsJsonl::new(&mut out), &contents);
        let text = String::from_utf8(out).unwrap();
        let found: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let expected = [
            json!({ "v": 1, "offset": 0, "id": null, "bytes": "0102", "packet": "unsynced" }),
            json!({
                "v": 1, "offset": 2, "id": null, "bytes": "08", "packet": "i_sync", "reason": 1,
                "addr": "0x08000306", "isa": "T32",
            }),
            json!({
                "v": 1, "offset": 3, "id": null, "bytes": "a800", "packet": "malformed", "reason": "reserved_header",
                "message": "found reserved header 0xa8, expected a packet header",
            }),
        ];
        assert_eq!(found, expected);
    }
}
