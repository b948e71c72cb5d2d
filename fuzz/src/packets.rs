//! Packets: they tile the input, any cut gives the same, and what is encoded again is read again.

use tracewalk::flow::runs_straight;
use tracewalk::ids::Address;
use tracewalk::ids::{Isa, Location};
use tracewalk::program::Program;
use tracewalk::protocol::timestamp::TimestampCoding;
use tracewalk::protocol::{
    Decode, Item, Packets, etmv3 as etmv3_protocol, etmv4 as etmv4_protocol, itm as itm_protocol,
    mtb as mtb_protocol, pft as pft_protocol, stm as stm_protocol,
};
use tracewalk::span::Span;

use crate::input::Input;

/// A first A-sync, so that the decoder interprets the bytes after it.
const A_SYNC: [u8; 6] = [0, 0, 0, 0, 0, 0x80];

fn decode<D: Decode>(decoder: D, bytes: &[u8], size: usize) -> Vec<(Item<D::Packet>, Span)> {
    let mut packets = Packets::new(decoder);
    let mut items = Vec::new();
    let mut note = |item, span: Span, part: &[u8]| {
        assert_eq!(bytes.get(span.start.0 as usize..span.end.0 as usize), Some(part));
        items.push((item, span));
    };
    bytes.chunks(size.max(1)).for_each(|piece| packets.push(piece, &mut note));
    packets.finish(&mut note);
    items
}

/// Decodes whole and in pieces, and checks that the items tile the input.
fn tiled<D: Decode>(new: impl Fn() -> D, bytes: &[u8], size: usize) -> Vec<(Item<D::Packet>, Span)>
where
    D::Packet: PartialEq,
{
    let whole = decode(new(), bytes, bytes.len());
    assert!(whole == decode(new(), bytes, size), "the cut changes the packets");
    let mut position = 0;
    for (_, span) in &whole {
        assert_eq!(span.start.0, position);
        // Only an STM's packets may end in the byte in which they begin.
        assert!(span.end.0 > position || D::A_SYNC.is_none());
        position = span.end.0;
    }
    assert_eq!(position, bytes.len() as u64);
    whole
}

/// The packets up to the first bytes that are not a packet.
fn packets<P: Copy>(items: &[(Item<P>, Span)]) -> impl Iterator<Item = P> {
    items.iter().map_while(|(item, _)| match item {
        Item::Packet(packet) => Some(*packet),
        _ => None,
    })
}

/// Chooses a configuration and how to cut; the rest is trace after an A-sync.
fn trace(input: &mut Input<'_>) -> (usize, Vec<u8>) {
    let size = usize::from(input.byte());
    let bytes = if input.flag() { [&A_SYNC, input.0].concat() } else { input.0.to_vec() };
    (size, bytes)
}

/// Any bytes tile, and what is encoded again, as far as it can be, is read as it was sent.
fn round_trip<D: Decode, E>(
    new: impl Fn() -> D,
    (size, bytes): (usize, &[u8]),
    mut encode: impl FnMut(&D::Packet, &mut Vec<u8>) -> Result<(), E>,
) where
    D::Packet: PartialEq + Copy,
{
    let items = tiled(&new, bytes, size);
    let (mut sent, mut again) = (Vec::new(), Vec::new());
    for packet in packets(&items) {
        if encode(&packet, &mut again).is_err() {
            break;
        }
        sent.push(packet);
    }
    let read = decode(new(), &again, size);
    assert!(packets(&read).eq(sent), "a packet is not read as it was sent: {again:02x?}");
}

/// ETMv3 packets from any bytes, with any configuration.
pub fn etmv3(data: &[u8]) {
    use etmv3_protocol::{Decoder, Encoder};
    let mut input = Input(data);
    let Some(config) = input.etmv3() else { return };
    let (size, bytes) = trace(&mut input);
    let mut encoder = Encoder::new(&config);
    round_trip(|| Decoder::new(&config), (size, &bytes), |packet, out| encoder.encode(packet, out));
}

/// PFT packets from any bytes, with any configuration.
pub fn pft(data: &[u8]) {
    use pft_protocol::{Decoder, Encoder};
    let mut input = Input(data);
    let Some(config) = input.pft() else { return };
    let (size, bytes) = trace(&mut input);
    let mut encoder = Encoder::new(&config);
    round_trip(|| Decoder::new(&config), (size, &bytes), |packet, out| encoder.encode(packet, out));
}

/// ETMv4 and ETE packets from any bytes, with any configuration.
pub fn etmv4(data: &[u8]) {
    use etmv4_protocol::{Decoder, Encoder};
    /// The A-sync, and a trace info packet, so that addresses mean something.
    const SYNCHRONISED: [u8; 14] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 1, 0];
    let mut input = Input(data);
    let Some(config) = input.etmv4() else { return };
    let size = usize::from(input.byte());
    let bytes = if input.flag() { [&SYNCHRONISED, input.0].concat() } else { input.0.to_vec() };
    let mut encoder = Encoder::new(&config);
    round_trip(|| Decoder::new(&config), (size, &bytes), |packet, out| encoder.encode(packet, out));
}

/// An ITM's packets.
pub fn itm(data: &[u8]) {
    let mut input = Input(data);
    let size = usize::from(input.byte());
    round_trip(itm_protocol::Decoder::new, (size, input.0), |packet, out| {
        itm_protocol::encode(packet, out);
        Ok::<(), ()>(())
    });
}

/// An STM's packets, after an ASYNC and a version if the input asks for them.
pub fn stm(data: &[u8]) {
    use stm_protocol::{Decoder, Encoder, Packet};
    let mut input = Input(data);
    let size = usize::from(input.byte());
    let mut encoder = Encoder::new();
    let mut bytes = Vec::new();
    if input.flag() {
        let coding = if input.flag() { TimestampCoding::Gray } else { TimestampCoding::Binary };
        [Packet::Async, Packet::Version(coding)].iter().for_each(|packet| encoder.encode(packet, &mut bytes));
    }
    bytes.extend(input.0);
    let items = tiled(Decoder::new, &bytes, size);
    let sent = packets(&items).collect::<Vec<_>>();
    let (mut encoder, mut again) = (Encoder::new(), Vec::new());
    sent.iter().for_each(|packet| encoder.encode(packet, &mut again));
    encoder.finish(&mut again);
    let read = decode(Decoder::new(), &again, size);
    // A null packet may fill the last byte.
    assert!(packets(&read).take(sent.len()).eq(sent), "a packet is not read as it was sent: {again:02x?}");
}

/// An MTB's memory: any registers, or none.
pub fn mtb(data: &[u8]) {
    use mtb_protocol::order::{Dump, by_registers};
    use mtb_protocol::{Config, Decoder, Registers};
    use tracewalk_session::mtb_order::by_evidence;
    let mut input = Input(data);
    let registers = Registers {
        position: input.word(),
        master: input.word(),
        flow: input.flag().then(|| input.word()),
        base: input.flag().then(|| input.word()),
    };
    let address = input.flag().then(|| Address::from(input.word()));
    let code = input.bytes(64);
    let mut program = Program::new();
    let _ = program.add(Address::new(0x100), code);
    let items = tiled(|| Decoder, input.0, 3);
    let again = packets(&items).flat_map(|packet| packet.to_bytes()).collect::<Vec<_>>();
    assert!(input.0.starts_with(&again));
    let dump = Dump { data: input.0, address, holes: &[] };
    let pieces = |layout: mtb_protocol::order::Layout| {
        for piece in &layout.pieces {
            assert!(input.0.get(piece.bytes.clone()).is_some_and(|bytes| bytes.len() % 8 == 0));
        }
    };
    if let Ok(layout) = by_registers(dump, &Config::from_registers(registers)) {
        pieces(layout);
    }
    let reaches = |from, to| runs_straight(&program, Location::new(from, Isa::T32), to);
    if let Some(guess) = by_evidence(dump, reaches) {
        pieces(guess.best.layout);
    }
}
