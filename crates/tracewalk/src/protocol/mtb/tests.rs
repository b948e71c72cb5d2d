//! Tests of each of the protocol's parts. The tests of flow cover the packets of whole runs.

mod lowering;
mod ordering;

use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::ids::Address;
use crate::protocol::{Describe, Field, Item, Malformation, Packets};
use crate::span::Span;

/// The items of `input`, given in pieces of `size` bytes.
fn items(input: &[u8], size: usize) -> Vec<(Item<Packet>, Span, Vec<u8>)> {
    let mut items = Vec::new();
    let mut note = |item, span, bytes: &[u8]| items.push((item, span, bytes.to_vec()));
    let mut packets = Packets::new(Decoder);
    for piece in input.chunks(size.max(1)) {
        packets.push(piece, &mut note);
    }
    packets.finish(&mut note);
    items
}

fn any_packet() -> impl Strategy<Value = Packet> {
    (any::<u32>(), any::<u32>(), any::<bool>(), any::<bool>()).prop_map(|(source, destination, a, s)| {
        Packet::new(Address::from(source), Address::from(destination)).with_atomic(a).with_start(s)
    })
}

#[test]
fn the_flag_bits_are_no_part_of_the_addresses() {
    let packet = Packet::from_words(0x0000_010d, 0x0000_0117);
    assert_eq!((packet.source(), packet.destination()), (Address::new(0x10c), Address::new(0x116)));
    assert!(packet.atomic() && packet.start());
    assert_eq!(Packet::new(Address::new(0x10d), Address::new(0x117)).words(), [0x10c, 0x116]);
}

#[test]
fn a_packet_describes_itself_by_its_fields() {
    let packet = Packet::new(Address::new(0x10c), Address::new(0x116)).with_atomic(true);
    let mut fields = Vec::new();
    packet.fields(&mut |name, field| {
        let field = match field {
            Field::Number(number) => Field::Number(number),
            Field::Address(address) => Field::Address(address),
            other => panic!("an MTB packet has no {other:?}"),
        };
        fields.push((name, field));
    });
    assert_eq!(packet.name(), "mtb");
    assert_eq!(
        fields,
        [
            ("source", Field::Address(Address::new(0x10c))),
            ("destination", Field::Address(Address::new(0x116))),
            ("a", Field::Number(1)),
            ("s", Field::Number(0)),
        ]
    );
}

#[test]
fn a_tail_of_fewer_than_eight_bytes_is_a_truncated_packet() {
    let input = [0x00, 0x01, 0, 0, 0x02, 0x01, 0, 0, 0x04, 0x01, 0];
    let items = items(&input, 3);
    assert_eq!(items.len(), 2);
    let (item, span, bytes) = &items[1];
    assert_eq!(*item, Item::Malformed(Malformation::Truncated { packet: "mtb" }));
    assert_eq!((span.start.0, bytes.as_slice()), (8, &[0x04, 0x01, 0][..]));
}

#[test]
fn the_return_values_of_every_architecture_version_are_no_addresses() {
    for value in
        [0xffff_fff1_u32, 0xffff_fff9, 0xffff_fffd, 0xffff_ffe1, 0xffff_ffe9, 0xffff_ffed, 0xffff_ffb0]
    {
        let in_packet = Address::from(value & !1);
        assert_eq!(Magic::at(in_packet), Some(Magic::ExceptionReturn(ExceptionReturn(value | 1))));
    }
    assert_eq!(Magic::at(Address::new(0xfeff_fffe)), Some(Magic::FunctionReturn));
    assert_eq!(Magic::at(Address::new(0xefff_fffe)), None);
    assert_eq!(Magic::at(Address::new(0x0800_0000)), None);
}

#[test]
fn exc_return_gives_mode_and_stack() {
    assert!(ExceptionReturn(0xffff_fffd).to_thread() && ExceptionReturn(0xffff_fffd).process_stack());
    assert!(ExceptionReturn(0xffff_fff9).to_thread() && !ExceptionReturn(0xffff_fff9).process_stack());
    assert!(!ExceptionReturn(0xffff_fff1).to_thread() && !ExceptionReturn(0xffff_fff1).floating_point());
    assert!(ExceptionReturn(0xffff_ffe9).floating_point());
    assert!(!ExceptionReturn(0xffff_ffbc).secure_stack() && ExceptionReturn(0xffff_fffd).secure_stack());
    assert_eq!(
        alloc::format!("{}", ExceptionReturn(0xffff_fff1)),
        "0xFFFFFFF1 (to handler mode, main stack)"
    );
}

#[test]
fn registers_keep_their_fields_both_ways() {
    let registers =
        Registers { position: 0x14, master: 0x8000_0261, flow: Some(0x1fe3), base: Some(0x2000_0000) };
    let config = Config::from_registers(registers);
    assert_eq!((config.pointer, config.wrapped, config.size.bytes()), (0x10, true, 32));
    assert!(config.enabled && config.halt_request && config.starts_by_signal && config.stops_by_signal);
    assert_eq!(config.watermark, Some(Watermark { pointer: 0x1fe0, halts: true, stops: true }));
    assert_eq!(config.base, Some(Address::new(0x2000_0000)));
    assert_eq!(config.to_registers(), registers);
    let nothing = Config::from_registers(Registers { position: 0, master: 0, flow: Some(0), base: None });
    assert_eq!((nothing.pointer, nothing.wrapped, nothing.size.bytes()), (0, false, 16));
    assert!(!nothing.enabled && !nothing.halt_request && !nothing.starts_by_signal);
    assert!(!nothing.stops_by_signal);
    assert_eq!(nothing.watermark, Some(Watermark { pointer: 0, halts: false, stops: false }));
    let lpc8xx = Registers { flow: None, base: Some(0), ..registers };
    assert_eq!(Config::from_registers(lpc8xx).base, None);
}

#[test]
fn a_configuration_holds_what_registers_can_hold() {
    let size = BufferSize::new(64).expect("a power of two");
    let config = Config::new(size, 0x18).expect("a multiple of 8");
    assert_eq!(
        (config.size(), config.pointer(), config.wrapped(), config.enabled()),
        (size, 0x18, false, false)
    );
    assert_eq!(Config::new(size, 0x1c), None);
    let config = config.with_wrapped(true).with_enabled(true).with_halt_request(true);
    assert!(config.wrapped() && config.enabled() && config.halt_request());
    let watermark = |pointer| Some(Watermark { pointer, halts: true, stops: false });
    let set = config.with_watermark(watermark(0x20)).map(|config| config.watermark());
    assert_eq!((set, config.with_watermark(watermark(4))), (Some(watermark(0x20)), None));
    let base = |base| config.with_base(Address::new(base)).and_then(|config| config.base());
    let last = 0xffff_fff0;
    assert_eq!([0, last, 1 << 32].map(base), [None, Some(Address::new(last)), None]);
    let bits = (0..=u8::MAX).filter(|&bits| config.with_pointer_bits(bits).is_some());
    assert!(bits.eq(4..=32));
    assert_eq!(Config::from_registers(config.to_registers()), config);
}

#[test]
fn buffers_are_powers_of_two_from_16_bytes_on() {
    assert_eq!(BufferSize::new(16).map(BufferSize::bytes), Some(16));
    assert_eq!(BufferSize::new(1 << 35).map(BufferSize::bytes), Some(1 << 35));
    for bytes in [0, 8, 24, 1 << 36] {
        assert_eq!(BufferSize::new(bytes), None);
    }
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(packet in any_packet()) {
        let items = items(&packet.to_bytes(), 8);
        prop_assert_eq!(items, [(Item::Packet(packet), Span::new(Default::default(), 8), packet.to_bytes().to_vec())]);
    }

    #[test]
    fn any_bytes_are_covered_once_in_order_however_they_are_cut(
        input in proptest::collection::vec(any::<u8>(), 0..200),
        size in 1_usize..40,
    ) {
        let whole = items(&input, input.len());
        let covered = whole.iter().flat_map(|(_, _, bytes)| bytes.iter().copied()).collect::<Vec<_>>();
        prop_assert_eq!(&covered, &input);
        let mut end = 0;
        for (item, span, bytes) in &whole {
            prop_assert_eq!((span.start.0, span.bytes()), (end, bytes.len() as u64));
            end = span.end.0;
            if let Item::Packet(packet) = item {
                prop_assert_eq!(&packet.to_bytes()[..], &bytes[..]);
            }
        }
        prop_assert_eq!(items(&input, size), whole);
    }
}
