use std::string::String;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::ids::Address;
use crate::protocol::{Describe, Field, Item, Malformation, Packets};
use crate::span::Span;

/// The items of `bytes`, fed in pieces of this size, with their bytes.
fn items(bytes: &[u8], piece: usize) -> Vec<(Item<Packet>, Span, Vec<u8>)> {
    let mut packets = Packets::new(Decoder::new());
    let mut items = Vec::new();
    let mut note = |item, span, bytes: &[u8]| items.push((item, span, bytes.to_vec()));
    bytes.chunks(piece.max(1)).for_each(|piece| packets.push(piece, &mut note));
    packets.finish(&mut note);
    items
}

fn packets(bytes: &[u8]) -> Vec<Packet> {
    let packet = |(item, ..): (Item<Packet>, Span, Vec<u8>)| match item {
        Item::Packet(packet) => packet,
        other => panic!("{other:?}"),
    };
    items(bytes, usize::MAX).into_iter().map(packet).collect()
}

#[allow(clippy::unusual_byte_groupings, reason = "the groups are the fields of the figures")]
/// Bytes written out from the figures of DDI 0403E, D4.2 and D4.3, one packet a line.
#[test]
fn each_packet_of_the_specification_is_read() {
    use TimestampDelay as Delay;
    let table: [(&[u8], Packet); 24] = [
        (&[0, 0, 0, 0, 0, 0x80], Packet::Sync),
        (&[0, 0, 0, 0, 0, 0, 0, 0x80], Packet::Sync),
        (&[0b0111_0000], Packet::Overflow),
        (&[0b0011_0000], Packet::LocalTimestamp { delay: Delay::None, ticks: 3 }),
        (&[0b1100_0000, 0x7f], Packet::LocalTimestamp { delay: Delay::None, ticks: 127 }),
        (&[0b1101_0000, 0x80, 0x01], Packet::LocalTimestamp { delay: Delay::Timestamp, ticks: 128 }),
        (&[0b1110_0000, 0x81, 0x80, 0x01], Packet::LocalTimestamp { delay: Delay::Packet, ticks: 0x4001 }),
        (
            &[0b1111_0000, 0xff, 0xff, 0xff, 0x7f],
            Packet::LocalTimestamp { delay: Delay::Both, ticks: 0x0fff_ffff },
        ),
        (
            &[0b1001_0100, 0x85, 0x01],
            Packet::GlobalTimestampLow { value: 0x85, bits: 14, clock_changed: false, wrapped: false },
        ),
        (
            &[0b1001_0100, 0x81, 0x80, 0x80, 0b0110_0001],
            Packet::GlobalTimestampLow { value: 0x20_0001, bits: 26, clock_changed: true, wrapped: true },
        ),
        (
            &[0b1011_0100, 0x83, 0x80, 0x80, 0x01],
            Packet::GlobalTimestampHigh { value: 0x20_0003, long: false },
        ),
        (
            &[0b1011_0100, 0x83, 0x80, 0x80, 0x80, 0x80, 0x01],
            Packet::GlobalTimestampHigh { value: 0x8_0000_0003, long: true },
        ),
        (&[0b0011_1000], Packet::StimulusPage(3)),
        (&[0b1001_1100, 0x02], Packet::Extension { hardware: true, value: 0b10_001 }),
        (&[0b00000_0_01, b'A'], Packet::Stimulus { port: 0, size: Size::Byte, value: 0x41 }),
        (&[0b11111_0_10, 0x34, 0x12], Packet::Stimulus { port: 31, size: Size::Halfword, value: 0x1234 }),
        (&[0b00001_0_11, 1, 2, 3, 4], Packet::Stimulus { port: 1, size: Size::Word, value: 0x0403_0201 }),
        (&[0b00000_1_01, 0b10_0001], Packet::EventCounters(Counters::new(0b10_0001))),
        (
            &[0b00001_1_10, 0x0f, 0b0001_0000],
            Packet::Exception { number: 15, action: ExceptionAction::Entered },
        ),
        (
            &[0b00001_1_10, 0x02, 0b0011_0001],
            Packet::Exception { number: 0x102, action: ExceptionAction::Returned },
        ),
        (&[0b00010_1_11, 0x06, 3, 0, 8], Packet::PcSample(Some(Address::new(0x0800_0306)))),
        (&[0b00010_1_01, 0], Packet::PcSample(None)),
        (&[0b01010_1_11, 6, 3, 0, 8], Packet::DataPc { comparator: 1, address: Address::new(0x0800_0306) }),
        (&[0b01111_1_10, 0x34, 0x12], Packet::DataAddress { comparator: 3, low_half: 0x1234 }),
    ];
    for (bytes, packet) in table {
        assert_eq!(packets(bytes), [packet]);
        // The encoder writes only the shortest sync.
        if bytes != [0, 0, 0, 0, 0, 0, 0, 0x80] {
            let mut written = Vec::new();
            encode(&packet, &mut written);
            assert_eq!(written, bytes, "{packet:?}");
        }
    }
    let value = |comparator, write, value| Packet::DataValue { comparator, write, size: Size::Byte, value };
    assert_eq!(packets(&[0b10000_1_01, 7, 0b10111_1_01, 9]), [value(0, false, 7), value(3, true, 9)]);
}

#[test]
fn after_a_reserved_header_the_next_sync_is_sought_if_there_are_any() {
    // 0x04 is reserved; the byte after it looks like a packet.
    let with = [0, 0, 0, 0, 0, 0x80, 1, b'a', 0x04, 1, b'b', 0, 0, 0, 0, 0, 0x80, 1, b'c'];
    let found = items(&with, usize::MAX);
    let kinds = found.iter().map(|(item, ..)| match item {
        Item::Packet(packet) => packet.name(),
        Item::Malformed(_) => "malformed",
        Item::Unsynchronised => "unsynced",
    });
    assert_eq!(kinds.collect::<Vec<_>>(), ["a_sync", "stimulus", "malformed", "a_sync", "stimulus"]);
    assert_eq!(found[2].2, [0x04, 1, b'b']);
    // Without synchronisation packets, decoding continues at the next byte.
    let without = items(&[1, b'a', 0x04, 1, b'b'], usize::MAX);
    assert_eq!(without.len(), 3);
    assert_eq!(without[1].0, Item::Malformed(Malformation::ReservedHeader { found: 0x04 }));
}

/// Memory that was not written, or a line that was low.
#[test]
fn zeros_around_the_packets_are_no_malformed_ones() {
    for zeros in [1, 4, 64, 65, 70, 1000, 5000] {
        for sync in [&[0, 0, 0, 0, 0, 0x80][..], &[]] {
            for piece in [1, 100, usize::MAX] {
                let after = if zeros < 65 { 0 } else { zeros };
                let bytes = [&vec![0; zeros], sync, &[1, b'a', 3, b'b', 0, 0, 0], &vec![0; after]].concat();
                let found = items(&bytes, piece);
                let packets = found.iter().filter(|(item, ..)| matches!(item, Item::Packet(_))).count();
                assert_eq!(packets, 2 + usize::from(!sync.is_empty()), "{zeros} {found:?}");
                assert!(!found.iter().any(|(item, ..)| matches!(item, Item::Malformed(_))), "{found:?}");
                let total = found.iter().map(|(_, span, _)| span.bytes()).sum::<u64>();
                assert_eq!(total, bytes.len() as u64);
            }
        }
    }
    // Between packets they are.
    let between = [&[1, b'a'][..], &[0; 5000], &[1, b'b']].concat();
    let malformed = items(&between, 100);
    assert!(malformed.iter().any(|(item, ..)| matches!(item, Item::Malformed(_))), "{malformed:?}");
}

/// DDI 0403E, D4.2.1: a synchronisation packet has 47 zero bits.
#[test]
fn zeros_at_the_end_are_no_packet_that_is_cut_off() {
    for (zeros, truncated) in [(5, true), (6, false), (16, false), (64, false), (65, false), (5000, false)] {
        for before in [&[1, b'a'][..], &[0, 0, 0, 0, 0, 0x80]] {
            let found = items(&[before, &vec![0; zeros]].concat(), 7);
            let is_wrong = found.iter().any(|(item, ..)| matches!(item, Item::Malformed(_)));
            assert_eq!(is_wrong, truncated, "{zeros}: {found:?}");
        }
    }
}

#[test]
fn lost_bytes_make_it_search_where_there_are_syncs() {
    let mut packets = Packets::new(Decoder::new());
    let mut names = Vec::new();
    let mut note = |item: Item<Packet>, _, _: &[u8]| {
        if let Item::Packet(packet) = item {
            names.push(packet.name());
        }
    };
    packets.push(&[0, 0, 0, 0, 0, 0x80, 1, b'a'], &mut note);
    packets.lose_sync(&mut note);
    packets.push(&[1, b'b', 0, 0, 0, 0, 0, 0x80, 0x70], &mut note);
    packets.finish(&mut note);
    assert_eq!(names, ["a_sync", "stimulus", "a_sync", "overflow"]);
}

/// DDI 0403E, D4.2.6: one byte if three bits are enough, else as few bytes of seven bits as hold the rest.
#[test]
fn extension_packets_take_their_shortest_form() {
    let written = |hardware, value| {
        let mut bytes = Vec::new();
        encode(&Packet::Extension { hardware, value }, &mut bytes);
        bytes
    };
    assert_eq!(written(true, 0), [0x0c]);
    assert_eq!(written(true, 7), [0x7c]);
    assert_eq!(written(true, 8), [0x8c, 0x01]);
    assert_eq!(written(true, 0x7f << 3), [0x8c, 0x7f]);
    assert_eq!(written(true, 0x80 << 3 | 5), [0xdc, 0x80, 0x01]);
    assert_eq!(written(true, 0x4000 << 3), [0x8c, 0x80, 0x80, 0x01]);
    assert_eq!(written(true, 0x20_0000 << 3), [0x8c, 0x80, 0x80, 0x80, 0x01]);
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let size = || prop::sample::select(&[Size::Byte, Size::Halfword, Size::Word][..]);
    let delay = prop::sample::select(
        &[TimestampDelay::None, TimestampDelay::Timestamp, TimestampDelay::Packet, TimestampDelay::Both][..],
    );
    let action = prop::sample::select(
        &[ExceptionAction::Entered, ExceptionAction::Exited, ExceptionAction::Returned][..],
    );
    let fitting = |size: Size, value: u32| value >> (32 - 8 * u32::from(size.bytes()));
    let time = prop_oneof![
        Just(Packet::Sync),
        Just(Packet::Overflow),
        (delay, 0_u32..1 << 28).prop_map(|(delay, ticks)| Packet::LocalTimestamp {
            delay,
            // Zero has no short form, which would be a sync's header.
            ticks
        }),
        (1_u8..4, any::<u32>()).prop_map(|(bytes, value)| Packet::GlobalTimestampLow {
            value: value & ((1 << (7 * bytes)) - 1),
            bits: 7 * bytes,
            clock_changed: false,
            wrapped: false,
        }),
        (any::<(bool, bool)>(), 0_u32..1 << 26).prop_map(|((clock_changed, wrapped), value)| {
            Packet::GlobalTimestampLow { value, bits: 26, clock_changed, wrapped }
        }),
        (any::<bool>(), 0_u64..1 << 38).prop_map(|(long, value)| Packet::GlobalTimestampHigh {
            value: if long { value } else { value >> 16 },
            long,
        }),
        (0_u8..8).prop_map(Packet::StimulusPage),
        (any::<bool>(), any::<u32>()).prop_map(|(hardware, value)| Packet::Extension { hardware, value }),
    ];
    let source = prop_oneof![
        (0_u8..32, size(), any::<u32>()).prop_map(move |(port, size, value)| Packet::Stimulus {
            port,
            size,
            value: fitting(size, value)
        }),
        (0_u8..64).prop_map(|bits| Packet::EventCounters(Counters::new(bits))),
        (0_u16..512, action).prop_map(|(number, action)| Packet::Exception { number, action }),
        any::<Option<u32>>().prop_map(|address| Packet::PcSample(address.map(Address::from))),
        (0_u8..4, any::<u32>())
            .prop_map(|(comparator, address)| Packet::DataPc { comparator, address: Address::from(address) }),
        (0_u8..4, any::<u16>())
            .prop_map(|(comparator, low_half)| Packet::DataAddress { comparator, low_half }),
        (0_u8..4, any::<bool>(), size(), any::<u32>()).prop_map(move |(comparator, write, size, value)| {
            Packet::DataValue { comparator, write, size, value: fitting(size, value) }
        }),
    ];
    prop_oneof![time, source]
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(sent in prop::collection::vec(any_packet(), 1..20)) {
        let mut bytes = Vec::new();
        sent.iter().for_each(|packet| encode(packet, &mut bytes));
        prop_assert_eq!(packets(&bytes), sent);
    }

    #[test]
    fn items_cover_any_bytes_once_however_they_are_cut(
        bytes in prop::collection::vec(prop_oneof![2 => Just(0), 1 => Just(0x80), 1 => Just(0x04), 5 => any::<u8>()], 0..200),
        piece in 1_usize..9,
    ) {
        let whole = items(&bytes, usize::MAX);
        prop_assert_eq!(&items(&bytes, piece), &whole);
        let covered: Vec<u8> = whole.iter().flat_map(|(.., bytes)| bytes.iter().copied()).collect();
        prop_assert_eq!(covered, bytes);
        let mut end = 0;
        for (_, span, bytes) in whole {
            prop_assert_eq!((span.start.0, bytes.len() as u64), (end, span.bytes()));
            end += span.bytes();
        }
    }
}

#[test]
fn packets_describe_their_fields() {
    let mut text = String::new();
    let packet = Packet::Exception { number: 15, action: ExceptionAction::Exited };
    packet.fields(&mut |name, field| {
        text += name;
        match field {
            Field::Number(number) => text += &std::format!("={number} "),
            Field::Text(word) => text += &std::format!("={word} "),
            Field::Address(address) => text += &std::format!("={address} "),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(text, "number=15 action=exited ");
}

#[allow(clippy::unusual_byte_groupings, reason = "the groups are the fields of the figures")]
#[test]
fn the_end_of_the_trace_inside_a_packet_is_named() {
    let truncated = |bytes: &[u8]| match items(bytes, usize::MAX).last() {
        Some((Item::Malformed(Malformation::Truncated { packet }), ..)) => *packet,
        other => panic!("found {other:?}, expected a truncated packet"),
    };
    assert_eq!(truncated(&[0, 0, 0]), "a_sync");
    assert_eq!(truncated(&[0b00001_0_11, 1, 2]), "stimulus");
    assert_eq!(truncated(&[0b00010_1_11, 1]), "hardware_source");
    assert_eq!(truncated(&[0b1001_0100, 0x80]), "global_timestamp");
    assert_eq!(truncated(&[0b1011_0100, 0x80]), "global_timestamp");
    assert_eq!(truncated(&[0b1100_0000, 0x80]), "local_timestamp");
    assert_eq!(truncated(&[0b1001_1100, 0x80]), "extension");
}
