use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::super::timestamp::TimestampCoding;
use super::*;
use crate::protocol::{Describe as _, Item, Malformation, Packets};
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

/// The bytes of half bytes, as hexadecimal digits; spaces are ignored.
fn bytes(nibbles: &str) -> Vec<u8> {
    let mut digits = nibbles.chars().filter_map(|digit| digit.to_digit(16)).collect::<Vec<_>>();
    if digits.len() % 2 == 1 {
        digits.push(0);
    }
    digits.chunks(2).map(|pair| u8::try_from(pair[0] | pair[1] << 4).unwrap()).collect()
}

/// The names of the items of half bytes, without the null packet that fills an odd number of them.
fn names(nibbles: &str) -> Vec<&'static str> {
    let name = |(item, ..): (Item<Packet>, Span, Vec<u8>)| match item {
        Item::Packet(packet) => packet.name(),
        Item::Malformed(reason) => reason.name(),
        Item::Unsynchronised => "unsynced",
    };
    let mut names = items(&bytes(nibbles), usize::MAX).into_iter().map(name).collect::<Vec<_>>();
    if nibbles.replace(' ', "").len() % 2 == 1 && names.last() == Some(&"null") {
        names.pop();
    }
    names
}

const ONES: &str = "fffff fffff fffff fffff f";

/// After the 21 ones, more ones and a zero in different places.
#[test]
fn of_more_than_21_ones_the_last_are_the_async() {
    let sync = std::format!("{ONES} 0 f003");
    let after = |before: &str| names(&std::format!("{sync} {before} {ONES} 0 f003"))[2..].to_vec();
    assert_eq!(after(""), ["async", "version"]);
    assert_eq!(after("0"), ["null", "async", "version"]);
    assert_eq!(after("4ff"), ["d8", "async", "version"]);
    assert_eq!(after("f4 ab 2 ff"), ["d8", "async", "version"]);
    assert_eq!(after("7 ffffffffffffffff"), ["d64", "async", "version"]);
    assert_eq!(after("7 123"), ["interrupted", "async", "version"]);
    assert_eq!(after("7 123f"), ["interrupted", "async", "version"]);
    // Half of a header is left, and nothing of another.
    assert_eq!(after("f"), ["reserved_header", "async", "version"]);
    assert_eq!(after("4"), ["interrupted", "async", "version"]);
    assert_eq!(after("f0"), ["reserved_value", "async", "version"]);
}

#[test]
fn before_the_first_async_nothing_is_a_packet() {
    assert_eq!(names("4 12 fe"), ["unsynced"]);
    assert_eq!(names(&std::format!("1 {ONES} 0 f003")), ["unsynced", "async", "version"]);
    // One that the end cuts off is no packet either.
    assert_eq!(names(&std::format!("1 {ONES}")), ["unsynced"]);
    assert_eq!(names(&std::format!("{ONES} 0 fffff fffff fffff f")), ["async", "incomplete"]);
    assert_eq!(names(""), Vec::<&str>::new());
}

#[test]
fn the_end_inside_a_packet_is_no_damage_and_does_not_hide_the_packet_before() {
    let sync = std::format!("{ONES} 0 f003");
    let after = |end: &str| names(&std::format!("{sync} {end}"))[2..].to_vec();
    assert_eq!(after("4 ff 4"), ["d8", "incomplete"]);
    // A packet that ends in ones, which an ASYNC might take.
    assert_eq!(after("0 4 ff"), ["null", "d8"]);
    assert_eq!(after("f4 ff 1 f 4 f"), ["d8", "incomplete"]);
    // An ASYNC inside a packet that would be longer than the trace.
    assert_eq!(after(&std::format!("f7 1 {ONES} 0 f003")), ["reserved_value", "async", "version"]);
    assert!(!Malformation::Incomplete { packet: "d8" }.is_damage());
    assert!(Malformation::Interrupted { packet: "d8" }.is_damage());
}

#[test]
fn a_time_needs_a_version_and_reserved_lengths_are_malformed() {
    assert_eq!(names(&std::format!("{ONES} 0 e 0 {ONES} 0")), ["async", "reserved_value", "async"]);
    let sync = std::format!("{ONES} 0 f003");
    let after = |end: &str| names(&std::format!("{sync} {end}"))[2..].to_vec();
    assert_eq!(after("e f 4 12 4 12"), ["reserved_value"]);
    assert_eq!(after("f005 4 12"), ["reserved_value"]);
    for reserved in ["f02", "f03", "f04", "f05", "f0a", "f0b", "f0c", "f0d", "f0e", "f0f"] {
        assert_eq!(
            after(&std::format!("{reserved} 4 12 {ONES} 0")),
            ["reserved_value", "async"],
            "{reserved}"
        );
    }
}

#[test]
fn lost_bytes_make_it_search() {
    let mut packets = Packets::new(Decoder::new());
    let mut names = Vec::new();
    let mut note = |item: Item<Packet>, _, _: &[u8]| match item {
        Item::Packet(packet) => names.push(packet.name()),
        Item::Malformed(reason) => names.push(reason.name()),
        Item::Unsynchronised => names.push("unsynced"),
    };
    packets.push(&bytes(&std::format!("{ONES} 0 f003 4 ff 4")), &mut note);
    packets.lose_sync(&mut note);
    packets.push(&bytes(&std::format!("4 12 {ONES} 0 4 12")), &mut note);
    packets.finish(&mut note);
    assert_eq!(names, ["async", "version", "d8", "incomplete", "unsynced", "async", "d8"]);
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let time = || prop_oneof![Just(None), any::<u64>().prop_map(Some), (0_u64..5000).prop_map(Some)];
    let value = || prop_oneof![any::<u64>(), Just(u64::MAX), Just(0)];
    let size = prop::sample::select(&[Size::D4, Size::D8, Size::D16, Size::D32, Size::D64][..]);
    let address = || prop_oneof![any::<u16>(), Just(u16::MAX)];
    let coding = prop::sample::select(&[TimestampCoding::Binary, TimestampCoding::Gray][..]);
    prop_oneof![
        time().prop_map(|time| Packet::Null { time }),
        time().prop_map(|time| Packet::Flag { time }),
        (address(), any::<bool>()).prop_map(|(master, wide)| Packet::Master { master, wide }),
        (address(), any::<bool>()).prop_map(|(channel, wide)| Packet::Channel { channel, wide }),
        any::<u8>().prop_map(Packet::MasterError),
        any::<u8>().prop_map(Packet::GlobalError),
        (size, value(), any::<bool>(), time()).prop_map(|(size, value, marker, time)| Packet::Data {
            size,
            value: value >> (64 - 4 * size.nibbles()),
            marker,
            time,
        }),
        Just(Packet::Async),
        coding.prop_map(Packet::Version),
        (any::<u8>(), time()).prop_map(|(value, time)| Packet::Trigger { value, time }),
        (any::<u32>(), time()).prop_map(|(hertz, time)| Packet::Frequency { hertz, time }),
    ]
}

/// The packets with the high bytes that narrow masters and channels keep.
fn whole(sent: Vec<Packet>) -> Vec<Packet> {
    let mut sender = Sender::default();
    let whole = |mut packet| {
        match &mut packet {
            Packet::Master { master, wide: false } => *master = sender.master & 0xff00 | *master & 0xff,
            Packet::Channel { channel, wide: false } => *channel = sender.channel & 0xff00 | *channel & 0xff,
            _ => {}
        }
        sender = sender.after(&packet);
        packet
    };
    sent.into_iter().map(whole).collect()
}

fn encoded(packets: &[Packet]) -> Vec<u8> {
    let (mut encoder, mut bytes) = (Encoder::new(), Vec::new());
    packets.iter().for_each(|packet| encoder.encode(packet, &mut bytes));
    encoder.finish(&mut bytes);
    bytes
}

/// Half bytes that are often ones or zeros, so that there are ASYNCs.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let some = prop_oneof![
        4 => Just(vec![0xf; 21]),
        4 => Just(vec![0xf, 0, 0, 3]),
        2 => Just(vec![0]),
        2 => Just(vec![0xf]),
        9 => prop::collection::vec(0_u8..16, 1..6),
    ];
    prop::collection::vec(some, 0..20)
        .prop_map(|nibbles| nibbles.concat().chunks_exact(2).map(|pair| pair[0] | pair[1] << 4).collect())
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(sent in prop::collection::vec(any_packet(), 1..20)) {
        let sent = whole([vec![Packet::Async, Packet::Version(TimestampCoding::Binary)], sent].concat());
        let mut found = Vec::new();
        for (item, ..) in items(&encoded(&sent), 5) {
            match item {
                Item::Packet(packet) => found.push(packet),
                other => prop_assert!(false, "{:?}", other),
            }
        }
        // The last half byte may be a filler.
        if found.len() > sent.len() {
            prop_assert_eq!(found.pop(), Some(Packet::Null { time: None }));
        }
        prop_assert_eq!(found, sent);
    }

    #[test]
    fn items_cover_any_bytes_once_however_they_are_cut(bytes in any_bytes(), piece in 1_usize..9) {
        let whole = items(&bytes, usize::MAX);
        prop_assert_eq!(&items(&bytes, piece), &whole);
        let covered: Vec<u8> = whole.iter().flat_map(|(.., bytes)| bytes.iter().copied()).collect();
        prop_assert_eq!(covered, bytes);
        let mut end = 0;
        for (item, span, bytes) in whole {
            prop_assert_eq!((span.start.0, bytes.len() as u64), (end, span.bytes()));
            let may_be_empty = item == Item::Packet(Packet::Null { time: None });
            prop_assert!(span.bytes() > 0 || may_be_empty);
            end += span.bytes();
        }
    }
}
