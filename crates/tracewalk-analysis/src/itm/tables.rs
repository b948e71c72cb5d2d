//! Reports of ITMs, as tables.

use tracewalk::ids::TraceId;
use tracewalk::protocol::{Describe as _, Field, stm};

use super::{ItmCounts, ItmEvent};
use crate::record::ItmRecord;
use crate::table::{Cell, Column, Kind, Table, Tabular};

/// The tables of ITMs, in the order in which they are given. The events come one by one, the others at the end.
pub const ITM_TABLES: [&str; 3] = ["itm_events", "itms", "itm_packets"];

/// The table of values over time. It is only written on its own.
pub const VALUES_TABLE: &str = "itm_values";

/// The columns of `itm_events`.
const EVENT_COLUMNS: [(&str, Kind); 16] = [
    ("id", Kind::Integer),
    ("protocol", Kind::Text),
    ("offset", Kind::Integer),
    ("event", Kind::Text),
    ("port", Kind::Integer),
    ("size", Kind::Integer),
    ("value", Kind::Integer),
    ("number", Kind::Integer),
    ("action", Kind::Text),
    ("addr", Kind::Address),
    ("comparator", Kind::Integer),
    ("total", Kind::Time),
    ("text", Kind::Text),
    ("master", Kind::Integer),
    ("channel", Kind::Integer),
    ("object", Kind::Text),
];

/// The table of events, without rows.
#[must_use]
pub fn event_table() -> Table {
    let columns = EVENT_COLUMNS.map(|(name, kind)| Column::new(name, kind));
    Table::new(ITM_TABLES[0], 1, columns)
}

/// The table of values over time, without rows.
#[must_use]
pub fn values_table() -> Table {
    let columns =
        [("id", Kind::Integer), ("time", Kind::Time), ("name", Kind::Text), ("value", Kind::Integer)];
    let columns = columns.map(|(name, kind)| {
        let column = Column::new(name, kind);
        if name == "time" { column.of("ticks") } else { column }
    });
    Table::new(VALUES_TABLE, 1, columns)
}

impl ItmRecord {
    /// A row of the table of events, with the name of the data object that a comparator watches. `text` is the text that software
    /// wrote, or a description of another event.
    #[must_use]
    pub fn row(&self, object: Option<&str>) -> Vec<Cell> {
        let mut row = vec![Cell::Unknown; EVENT_COLUMNS.len()];
        let mut set = |name: &str, value: Cell| {
            let column = EVENT_COLUMNS.iter().position(|(known, kind)| *known == name && value.fits(*kind));
            column.and_then(|column| row.get_mut(column)).into_iter().for_each(|cell| *cell = value.clone());
        };
        set("offset", self.at.0.into());
        set("object", object.into());
        set("id", self.id.into());
        set("protocol", self.protocol.protocol().into());
        set("event", self.event.name().into());
        set("text", self.event.to_string().into());
        match &self.event {
            ItmEvent::Text { port, bytes } => {
                set("port", u64::from(*port).into());
                set("text", String::from_utf8_lossy(bytes).into_owned().into());
            }
            ItmEvent::Value { port, size, value } => {
                set("port", u64::from(*port).into());
                set("size", u64::from(size.bytes()).into());
                set("value", (*value).into());
            }
            ItmEvent::Packet(packet) => packet.fields(&mut |name, field| match field {
                Field::Number(value) | Field::Bits(value) => set(name, value.into()),
                Field::Flag(value) => set(name, u64::from(value).into()),
                Field::Address(address) => set(name, address.into()),
                Field::Text(text) => set(name, text.into()),
            }),
            ItmEvent::LocalTime { total, .. } => set("total", (*total).into()),
            ItmEvent::GlobalTime { value, .. } => set("value", (*value).into()),
            ItmEvent::Stm(event) => {
                set("master", u64::from(event.sender.master).into());
                set("channel", u64::from(event.sender.channel).into());
                if let stm::Packet::Data { size, .. } = event.packet {
                    set("size", u64::from(size.bytes()).into());
                }
                event.packet.fields(&mut |name, field| match field {
                    Field::Number(time) if name == "timestamp" => set("total", time.into()),
                    Field::Number(value) | Field::Bits(value) => set(name, value.into()),
                    _ => {}
                });
                if let Some(message) = &event.message {
                    set("text", message.text(|_| None).into());
                }
            }
            ItmEvent::Malformed { bytes, .. } => set("size", (*bytes).into()),
        }
        row
    }
}

/// The counts of each ITM.
impl Tabular for [(Option<TraceId>, ItmCounts)] {
    fn tables(&self) -> Vec<Table> {
        let integer = |name: &'static str| Column::new(name, Kind::Integer);
        let [_, itms, packets] = ITM_TABLES;
        let text = |name: &'static str| Column::new(name, Kind::Text);
        let counts = ["bytes", "packets", "malformed"].map(integer);
        let mut itms = Table::new(itms, 1, [integer("id"), text("protocol")].into_iter().chain(counts));
        let columns = [integer("id"), text("protocol"), text("packet"), integer("count")];
        let mut packets = Table::new(packets, 1, columns);
        for (id, counts) in self {
            let [id, protocol] = [Cell::from(*id), counts.protocol.protocol().into()];
            let all = counts.packets.values().sum::<u64>();
            itms.push([
                id.clone(),
                protocol.clone(),
                counts.bytes.into(),
                all.into(),
                counts.malformed.into(),
            ]);
            for (name, count) in &counts.packets {
                packets.push([id.clone(), protocol.clone(), (*name).into(), (*count).into()]);
            }
        }
        vec![itms, packets]
    }
}
