use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;
use crate::directive::{BeginReason, Directive, Handler, PreferredReturn};
use crate::ids::{Address, ContextId, Exception, Isa, Location, Profile, TraceId, Vmid};
use crate::protocol::SecurityBits;
use crate::protocol::branch_address::AddressEncoding;
use crate::protocol::timestamp::{TimestampCoding, TimestampFormat, TimestampWidth};
use crate::protocol::{Describe, Item, Lower, Malformation, Packets};
use crate::span::{Span, StreamOffset};

/// ETMv3.5 with everything on, on an application processor.
fn everything() -> Config {
    Config {
        minor_version: 5,
        profile: Profile::Ar,
        address_encoding: AddressEncoding::Original,
        two_atoms_per_thumb_pair: false,
        cycle_accurate: true,
        branch_broadcast: false,
        instructions: true,
        data: DataTrace { values: true, addresses: true },
        context_id_size: ContextIdSize::Word,
        timestamp: TimestampFormat { width: TimestampWidth::Bits64, coding: TimestampCoding::Binary },
        trace_id: None,
    }
}

fn any_config() -> impl Strategy<Value = Config> {
    let context_id = prop_oneof![
        Just(ContextIdSize::None),
        Just(ContextIdSize::Byte),
        Just(ContextIdSize::Halfword),
        Just(ContextIdSize::Word)
    ];
    let flags = any::<(bool, bool, bool, bool, bool, bool, bool)>();
    (0_u8..=5, context_id, flags, any::<bool>()).prop_map(
        |(
            minor_version,
            context_id_size,
            (alternative, m, cycles, data_only, values, addresses, wide),
            gray,
        )| Config {
            minor_version,
            profile: if m { Profile::M } else { Profile::Ar },
            address_encoding: if alternative {
                AddressEncoding::Alternative
            } else {
                AddressEncoding::Original
            },
            cycle_accurate: cycles,
            instructions: !data_only,
            data: DataTrace { values, addresses },
            context_id_size,
            timestamp: TimestampFormat {
                width: if wide { TimestampWidth::Bits64 } else { TimestampWidth::Bits48 },
                coding: if gray { TimestampCoding::Gray } else { TimestampCoding::Binary },
            },
            ..everything()
        },
    )
}

fn any_location() -> impl Strategy<Value = Location> {
    let isa = prop_oneof![Just(Isa::A32), Just(Isa::T32), Just(Isa::T32EE), Just(Isa::Jazelle)];
    // Few distinct high bits, so that short addresses are frequent.
    let address = prop_oneof![any::<u32>(), 0x8000_0000_u32..0x8000_1000, 0x8000_0000_u32..0x8001_0000];
    (address, isa).prop_map(|(address, isa)| Location::new(Address::from(address).aligned_for(isa), isa))
}

fn any_security() -> impl Strategy<Value = SecurityBits> {
    any::<(bool, bool)>().prop_map(|(non_secure, hypervisor)| SecurityBits { non_secure, hypervisor })
}

fn any_branch() -> impl Strategy<Value = Packet> {
    let information = (0_u16..512, any::<bool>(), any::<bool>(), any_security(), 0_u8..16).prop_map(
        |(code, cancel, alternative_isa, security, resume)| {
            BranchException::Information(ExceptionInformation {
                code,
                cancel,
                alternative_isa,
                security,
                resume,
            })
        },
    );
    let deprecated =
        (0_u8..8, any::<bool>()).prop_map(|(code, cancel)| BranchException::Deprecated { code, cancel });
    let exception = proptest::option::of(prop_oneof![3 => information, 1 => deprecated]);
    (any_location(), any::<bool>(), exception).prop_map(|(target, states_isa, exception)| {
        Packet::Branch(Branch { target: Some(target), states_isa, exception })
    })
}

fn any_i_sync() -> impl Strategy<Value = Packet> {
    let location = proptest::option::of(any_location());
    let in_progress = proptest::option::weighted(0.2, any_location());
    let context_id = proptest::option::of(prop_oneof![0_u32..256, any::<u32>()]);
    (0_u8..4, location, in_progress, any_security(), context_id, any::<Option<u32>>()).prop_map(
        |(reason, location, in_progress, security, context_id, cycles)| {
            Packet::ISync(ISync {
                reason: ISyncReason::from_bits(reason),
                location,
                in_progress,
                security,
                context_id: context_id.map(ContextId),
                cycles,
            })
        },
    )
}

fn any_data() -> impl Strategy<Value = Packet> {
    let tag = (1_u8..=3).prop_map(|number| Tag::new(number).expect("1 to 3"));
    let address = proptest::option::of(
        (any::<u32>(), any::<Option<bool>>())
            .prop_map(|(address, big_endian)| DataAddress { address: Address::from(address), big_endian }),
    );
    let value = proptest::option::of(prop_oneof![Just(0_u32), 0_u32..256, 0_u32..65536, any::<u32>()]);
    prop_oneof![
        (tag.clone(), value.clone()).prop_map(|(tag, value)| Packet::OutOfOrderData { tag, value }),
        (tag, address.clone()).prop_map(|(tag, address)| Packet::OutOfOrderPlaceholder { tag, address }),
        (address.clone(), value).prop_map(|(address, value)| Packet::NormalData { address, value }),
        address.prop_map(|address| Packet::ValueNotTraced { address }),
        Just(Packet::StoreFailed),
        Just(Packet::DataSuppressed),
    ]
}

fn any_packet() -> impl Strategy<Value = Packet> {
    prop_oneof![
        4 => any_branch(),
        2 => any_i_sync(),
        4 => any_data(),
        2 => (0x80_u8..=0xff, any::<bool>()).prop_map(|(byte, cycle_accurate)| {
            PHeader::new(byte & !1, cycle_accurate).map_or(Packet::Ignore, Packet::PHeader)
        }),
        1 => Just(Packet::ASync),
        1 => any::<u32>().prop_map(Packet::CycleCount),
        1 => Just(Packet::Trigger),
        1 => any::<u8>().prop_map(|vmid| Packet::Vmid(Vmid(vmid.into()))),
        1 => any::<(u64, bool)>().prop_map(|(value, clock_changed)| Packet::Timestamp { value, clock_changed }),
        1 => Just(Packet::Ignore),
        1 => prop_oneof![0_u32..256, any::<u32>()].prop_map(|value| Packet::ContextId(ContextId(value))),
        1 => Just(Packet::ExceptionExit),
        1 => Just(Packet::ExceptionEntry),
    ]
}

fn decode(config: &Config, bytes: &[u8], piece: usize) -> Vec<(Item<Packet>, Span)> {
    let mut items = Vec::new();
    let mut packets = Packets::new(Decoder::new(config));
    bytes
        .chunks(piece.max(1))
        .for_each(|piece| packets.push(piece, &mut |item, span, _: &[u8]| items.push((item, span))));
    packets.finish(&mut |item, span, _: &[u8]| items.push((item, span)));
    items
}

/// The packets of `wanted` that the configuration can send, and their bytes after an A-sync.
fn encode(config: &Config, wanted: &[Packet]) -> (Vec<Packet>, Vec<u8>) {
    let mut encoder = Encoder::new(config);
    let mut bytes = Vec::new();
    encoder.encode(&Packet::ASync, &mut bytes).expect("an A-sync can always be sent");
    let sendable = |packet: &&Packet| match packet {
        Packet::PHeader(p_header) => PHeader::new(p_header.byte(), config.cycle_accurate) == Some(*p_header),
        _ => true,
    };
    let mut sent = std::vec![Packet::ASync];
    for packet in wanted.iter().filter(sendable) {
        if encoder.encode(packet, &mut bytes).is_ok() {
            sent.push(*packet);
        }
    }
    (sent, bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_packet_that_a_configuration_can_send_is_read_back(
        config in any_config(),
        wanted in proptest::collection::vec(any_packet(), 0..40),
        piece in 1_usize..40,
    ) {
        let (sent, bytes) = encode(&config, &wanted);
        let read: Vec<Packet> = decode(&config, &bytes, piece)
            .into_iter()
            .map(|(item, _)| match item {
                Item::Packet(packet) => packet,
                other => panic!("{other:?} in {bytes:02x?}"),
            })
            .collect();
        prop_assert_eq!(read, sent, "{:02x?}", bytes);
    }

    #[test]
    fn any_bytes_are_tiled_and_read_the_same_however_they_are_cut(
        config in any_config(),
        wanted in proptest::collection::vec(any_packet(), 0..20),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..10),
        noise in proptest::collection::vec(any::<u8>(), 0..60),
        piece in 1_usize..20,
    ) {
        let (_, mut bytes) = encode(&config, &wanted);
        bytes.extend(noise);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let whole = decode(&config, &bytes, bytes.len());
        prop_assert_eq!(&decode(&config, &bytes, 1), &whole);
        prop_assert_eq!(&decode(&config, &bytes, piece), &whole);
        let mut position = 0;
        for (_, span) in whole {
            prop_assert_eq!(span.start.0, position);
            prop_assert!(span.bytes() > 0);
            position = span.end.0;
        }
        prop_assert_eq!(position, bytes.len() as u64);
    }
}

#[test]
fn the_round_trip_covers_every_packet() {
    let mut seen = BTreeSet::new();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..2000 {
        let config = any_config().new_tree(&mut runner).expect("a configuration").current();
        let packet = any_packet().new_tree(&mut runner).expect("a packet").current();
        seen.extend(encode(&config, &[packet]).0.iter().map(Describe::name));
    }
    assert_eq!(seen.len(), 18, "{seen:?}");
}

#[test]
fn the_end_of_the_trace_inside_a_packet_is_named() {
    let truncated = |bytes: &[u8]| {
        let items = decode(&everything(), &[&[0, 0, 0, 0, 0, 0x80], bytes].concat(), usize::MAX);
        match items.last() {
            Some((Item::Malformed(Malformation::Truncated { packet }), _)) => *packet,
            other => panic!("found {other:?}, expected a truncated packet"),
        }
    };
    assert_eq!(truncated(&[0x81]), "branch");
    assert_eq!(truncated(&[0x00, 0x00]), "a_sync");
    assert_eq!(truncated(&[0x04, 0x80]), "cycle_count");
    assert_eq!(truncated(&[0x08, 0x00]), "i_sync");
    assert_eq!(truncated(&[0x70, 0x80]), "i_sync");
    assert_eq!(truncated(&[0x3c]), "vmid");
    assert_eq!(truncated(&[0x42, 0x80]), "timestamp");
    assert_eq!(truncated(&[0x46, 0x80]), "timestamp");
    assert_eq!(truncated(&[0x6e, 0x00]), "context_id");
    assert_eq!(truncated(&[0x7a, 0x80]), "data");
}

/// A packet read out of step may take the first zeros of an A-sync for its own last bytes. In step this
/// cannot happen: after a packet that ends in zeros, the A-sync still has five zeros of its own.
#[test]
fn an_a_sync_is_one_though_a_packet_took_its_first_zeros() {
    let a_sync = [0, 0, 0, 0, 0, 0x80];
    let i_sync = [0x08, 0, 0, 0, 0, 0x21, 0x00, 0x01, 0x00, 0x00];
    let kinds = |between: &[u8], piece: usize| {
        let bytes = [&a_sync[..], &i_sync, between, &a_sync, &i_sync, &[0x84]].concat();
        let items = decode(&everything(), &bytes, piece);
        let kind = |(item, span): &(Item<Packet>, Span)| {
            let name = match item {
                Item::Packet(packet) => packet.name(),
                Item::Malformed(_) => "malformed",
                Item::Unsynchronised => "unsynced",
            };
            (name, span.end.0 - span.start.0)
        };
        items.iter().skip(2).map(kind).collect::<Vec<_>>()
    };
    let after = [("i_sync", 10), ("p_header", 1)];
    for piece in [1, 2, 3, 5, 7, 100] {
        // The end of a branch address, of a context ID and of a data value.
        let branch = [&[("branch", 2), ("malformed", 1), ("a_sync", 4)], &after[..]].concat();
        assert_eq!(kinds(&[0x81], piece), branch);
        let context_id = [&[("context_id", 5), ("malformed", 1), ("a_sync", 1)], &after[..]].concat();
        assert_eq!(kinds(&[0x6e], piece), context_id);
        let context_id = [&[("context_id", 5), ("malformed", 1), ("a_sync", 2)], &after[..]].concat();
        assert_eq!(kinds(&[0x6e, 0x11], piece), context_id);
        // Four zeros after a packet that ends in no zero are not an A-sync.
        let short = [&a_sync[..], &i_sync, &[0x84, 0, 0, 0, 0, 0x80], &i_sync, &[0x84]].concat();
        let items = decode(&everything(), &short, piece);
        assert!(matches!(
            items[..],
            [_, _, _, (Item::Malformed(Malformation::NotASync { zeros: 4, found: 0x80, .. }), _)]
        ));
    }
}

#[test]
fn a_second_address_that_announces_an_exception_is_reported_with_its_last_byte() {
    let config = Config { cycle_accurate: false, context_id_size: ContextIdSize::None, ..everything() };
    // I-sync of a load in progress at 0x1000 in Thumb; five address bytes, the last of which has bit 6.
    let bytes = [0, 0, 0, 0, 0, 0x80, 0x08, 0xa1, 0x01, 0x10, 0, 0, 0x81, 0x80, 0x80, 0x80, 0x50];
    let items = decode(&config, &bytes, 100);
    let Some((Item::Malformed(Malformation::ReservedValue { packet, field, found, .. }), _)) = items.get(1)
    else {
        panic!("{items:?}");
    };
    assert_eq!((*packet, *field, *found), ("i_sync", "second address", 0x50));
}

#[test]
fn zeros_in_front_of_a_loss_begin_no_a_sync() {
    let mut packets = Packets::new(Decoder::new(&everything()));
    let mut items = Vec::new();
    let mut note = |item: Item<Packet>, _: Span, _: &[u8]| items.push(item);
    packets.push(&[0, 0, 0, 0, 0, 0x80, 0x81, 0], &mut note);
    packets.lose_sync(&mut note);
    packets.push(&[0, 0, 0, 0, 0x80, 0x84, 0x84], &mut note);
    packets.finish(&mut note);
    assert!(matches!(items[..], [Item::Packet(_), Item::Packet(_), Item::Unsynchronised]), "{items:?}");
}

#[test]
fn the_next_byte_is_after_those_of_a_packet_that_has_begun() {
    let mut packets = Packets::new(Decoder::new(&everything()));
    packets.push(&[0, 0, 0, 0, 0, 0x80, 0x08, 0x11], &mut |_, _, _: &[u8]| {});
    assert_eq!(packets.position(), StreamOffset(8));
}

#[test]
fn what_does_not_fit_its_field_is_not_encoded() {
    let target = Some(Location::new(Address::new(0x8000), Isa::A32));
    let encoded = |packet: Packet| Encoder::new(&everything()).encode(&packet, &mut Vec::new());
    let branch =
        |exception| encoded(Packet::Branch(Branch { target, states_isa: true, exception: Some(exception) }));
    let information = |code, resume| {
        let security = SecurityBits::default();
        branch(BranchException::Information(ExceptionInformation {
            code,
            cancel: false,
            alternative_isa: false,
            security,
            resume,
        }))
    };
    let deprecated = |code| branch(BranchException::Deprecated { code, cancel: false });
    let out_of_range = |field| Err(EncodeError::OutOfRange { field });
    assert_eq!((information(0x1ff, 0), information(0x200, 0)), (Ok(()), out_of_range("exception")));
    assert_eq!((information(1, 15), information(1, 16)), (Ok(()), out_of_range("resume")));
    assert_eq!((deprecated(0), deprecated(7), deprecated(8)), (Ok(()), Ok(()), out_of_range("exception")));
    // Without its top byte an address keeps the highest four bits of the one before, here 0.
    let data = |address, big_endian| {
        let address = Some(DataAddress { address: Address::from(address), big_endian });
        encoded(Packet::ValueNotTraced { address })
    };
    assert_eq!((data(0x0fff_ffff, None), data(0x1000_0000, None)), (Ok(()), out_of_range("address")));
    assert_eq!(data(0xffff_ffff, Some(true)), Ok(()));
    // A context ID of two bytes.
    let config = Config { context_id_size: ContextIdSize::Halfword, ..everything() };
    let context_id = |id| Encoder::new(&config).encode(&Packet::ContextId(ContextId(id)), &mut Vec::new());
    assert_eq!((context_id(0xffff), context_id(0x1_0000).is_err()), (Ok(()), true));
}

/// IHI 0014Q, 7.4.2: a data address has one to five bytes of seven bits; unchanged top bytes are omitted.
#[test]
fn data_addresses_take_their_shortest_form() {
    let mut encoder = Encoder::new(&everything());
    let mut bytes_of = |address: u32, big_endian| {
        let mut bytes = Vec::new();
        let address = Some(DataAddress { address: Address::from(address), big_endian });
        encoder.encode(&Packet::ValueNotTraced { address }, &mut bytes).expect("the configuration has it");
        bytes
    };
    assert_eq!(bytes_of(0x2000_0000, Some(false)), [0x7a, 0x80, 0x80, 0x80, 0x80, 0x02]);
    assert_eq!(bytes_of(0x2000_0001, None), [0x7a, 0x01]);
    assert_eq!(bytes_of(0x2000_0001, None), [0x7a, 0x01]);
    assert_eq!(bytes_of(0x2000_0081, None), [0x7a, 0x81, 0x01]);
    assert_eq!(bytes_of(0x2000_4081, None), [0x7a, 0x81, 0x81, 0x01]);
    assert_eq!(bytes_of(0x2020_4081, None), [0x7a, 0x81, 0x81, 0x81, 0x01]);
    assert_eq!(bytes_of(0x2820_4081, None), [0x7a, 0x81, 0x81, 0x81, 0x41]);
    assert_eq!(bytes_of(0x3820_4081, Some(true)), [0x7a, 0x81, 0x81, 0x81, 0xc1, 0x13]);
}

/// The branch packets in `bytes` after an A-sync and an I-sync at 0x8000 in ARM state, Non-secure.
fn branches(config: &Config, bytes: &[u8]) -> Vec<Branch> {
    let mut all = std::vec![0, 0, 0, 0, 0, 0x80, 0x08, 0x29, 0x00, 0x80, 0x00, 0x00];
    all.extend(bytes);
    let is_branch = |(item, _)| match item {
        Item::Packet(Packet::Branch(branch)) => Some(branch),
        _ => None,
    };
    decode(config, &all, all.len()).into_iter().filter_map(is_branch).collect()
}

fn cortex_a7() -> Config {
    Config::for_core("cortex-a7").expect("a known core")
}

#[test]
fn missing_fields_are_interpreted_as_table_7_5_says() {
    // Address: the bits of the last one. Everything else is missing.
    let [branch] = branches(&cortex_a7(), &[0b0001_0101])[..] else { panic!("one branch") };
    assert_eq!(branch.target, Some(Location::new(Address::new(0x8028), Isa::A32)));
    assert_eq!(branch.exception, None);

    // Byte 0 only: Excp[8:4] and Resume are 0, Hyp stays what it was.
    let with_byte_0 = [0x81, 0x80, 0x82, 0x80, 0x48, 0b0001_1101];
    let [branch] = branches(&cortex_a7(), &with_byte_0)[..] else { panic!("one branch") };
    let expected = ExceptionInformation {
        code: 14,
        cancel: false,
        alternative_isa: false,
        security: SecurityBits { non_secure: true, hypervisor: false },
        resume: 0,
    };
    assert_eq!(branch.exception, Some(BranchException::Information(expected)));

    // A packet without byte 1 keeps Hyp as byte 1 set it before; byte 0 restates NS.
    let hyp_then_byte_0 =
        [0x81, 0x80, 0x82, 0x80, 0x48, 0b1000_0111, 0b0010_0000, 0x81, 0x80, 0x82, 0x80, 0x48, 0b0001_0100];
    let [first, second] = branches(&cortex_a7(), &hyp_then_byte_0)[..] else { panic!("two branches") };
    let security = |branch: Branch| match branch.exception {
        Some(BranchException::Information(information)) => information.security,
        other => panic!("{other:?}"),
    };
    assert_eq!(security(first), SecurityBits { non_secure: true, hypervisor: true });
    assert_eq!(security(second), SecurityBits { non_secure: false, hypervisor: true });

    // AltISA is sticky: a Thumb address of five bytes without byte 0 is ThumbEE after one with AltISA.
    let alt_isa = [0x95, 0x82, 0x81, 0x84, 0x5c, 0b0100_0000, 0x97, 0x82, 0x81, 0x84, 0x1c];
    let [first, second] = branches(&cortex_a7(), &alt_isa)[..] else { panic!("two branches") };
    assert_eq!(first.target.map(|target| target.isa), Some(Isa::T32EE));
    assert_eq!(second.target.map(|target| target.isa), Some(Isa::T32EE));
}

#[test]
fn v7_m_exception_codes_are_those_of_table_7_11() {
    let exception = |code| {
        let information = ExceptionInformation { code, ..ExceptionInformation::default() };
        BranchException::Information(information).exception(Profile::M, None)
    };
    assert_eq!(exception(0), None);
    let expected = [
        (0x001, 17),
        (0x007, 23),
        (0x008, 16),
        (0x009, 6),
        (0x00a, 2),
        (0x00b, 11),
        (0x00c, 12),
        (0x00d, 4),
        (0x00e, 14),
        (0x00f, 15),
        (0x011, 1),
        (0x013, 3),
        (0x015, 5),
        (0x018, 24),
        (0x020, 32),
        (0x1fe, 16 + 494),
        (0x1ff, 16 + 495),
    ];
    for (code, number) in expected {
        assert_eq!(exception(code), Some(Exception::M(number)), "code {code:#x}");
        let back = ExceptionInformation::for_exception(Exception::M(number), false);
        assert_eq!(back.map(|information| information.code), Some(code));
    }
}

#[test]
fn other_exception_codes_are_those_of_table_7_12() {
    for code in 1..16 {
        let information = ExceptionInformation { code, ..ExceptionInformation::default() };
        let exception = BranchException::Information(information).exception(Profile::Ar, None);
        assert_eq!(exception, u8::try_from(code).ok().map(Exception::Ar));
    }
    let named = |code| Exception::Ar(code).name();
    assert_eq!(named(2), Some("SMC"));
    assert_eq!(named(11), Some("Prefetch abort"));
    assert_eq!((named(6), named(7)), (None, None), "6 and 7 are reserved");
}

#[test]
fn deprecated_exception_codes_are_those_of_table_7_7() {
    let exception = |code, cancel, handler| {
        BranchException::Deprecated { code, cancel }.exception(Profile::Ar, Some(Address::from(handler)))
    };
    let code_0 = [(0x00, 8), (0x04, 9), (0x08, 10), (0x0c, 11), (0x10, 12)];
    for (vector, expected) in code_0 {
        assert_eq!(exception(0, false, 0xffff_0000 | vector), Some(Exception::Ar(expected)));
    }
    for (code, expected) in [(1, 14), (4, 5), (5, 15), (6, 4), (7, 1)] {
        assert_eq!(exception(code, false, 0x18), Some(Exception::Ar(expected)));
    }
}

#[test]
fn a_direct_branch_to_thumb_does_not_change_the_state_of_compression() {
    // Table 7.15: I-sync in ARM state, BLX #immed (no packet), a return to ARM state: a short packet of ARM alignment.
    let [branch] = branches(&cortex_a7(), &[0b0000_0101])[..] else { panic!("one branch") };
    assert_eq!(branch.target, Some(Location::new(Address::new(0x8008), Isa::A32)));
}

#[test]
fn leavex_does_not_change_the_state_of_compression() {
    // Table 7.16: ARM to ThumbEE with byte 0, LEAVEX (no packet), to ThumbEE again without exception information.
    let packets = [0x81, 0x82, 0x82, 0x80, 0x50, 0b0100_0000, 0b0000_0101];
    let [first, second] = branches(&cortex_a7(), &packets)[..] else { panic!("two branches") };
    assert_eq!(first.target.map(|target| target.isa), Some(Isa::T32EE));
    assert_eq!(second.target.map(|target| target.isa), Some(Isa::T32EE));
    assert!(!second.states_isa);
}

/// The directives of `packets`, without their spans. A-sync and I-sync at 0x100 in Thumb come first.
fn directives(config: &Config, packets: &[Packet]) -> Vec<Directive> {
    let i_sync = Packet::ISync(ISync {
        reason: ISyncReason::Enabled,
        location: Some(Location::new(Address::new(0x100), Isa::T32)),
        in_progress: None,
        security: SecurityBits::default(),
        context_id: None,
        cycles: None,
    });
    let mut all = Vec::new();
    let mut lowering = Lowering::new(config);
    let mut emit = |directive, _| all.push(directive);
    for packet in [Packet::ASync, i_sync].iter().chain(packets) {
        lowering.lower(packet, Span::default(), &mut emit);
    }
    lowering.finish(&mut emit);
    assert!(matches!(all[..], [Directive::Begin { .. }, Directive::Synchronised, ..]));
    all.split_off(2)
}

fn p_header(byte: u8, cycle_accurate: bool) -> Packet {
    Packet::PHeader(PHeader::new(byte, cycle_accurate).expect("a defined P-header"))
}

fn branch_to(address: u32, exception: Option<(u16, bool)>) -> Packet {
    let information = |(code, cancel)| {
        BranchException::Information(ExceptionInformation { code, cancel, ..ExceptionInformation::default() })
    };
    let target = Some(Location::new(Address::from(address), Isa::T32));
    Packet::Branch(Branch { target, states_isa: false, exception: exception.map(information) })
}

fn passed(executed: u8) -> Directive {
    Directive::Instructions { executed, then_failed: false }
}

fn taken(exception: Exception, handler: u32) -> Directive {
    Directive::Exception {
        exception: Some(exception),
        handler: Handler::At(Location::new(Address::from(handler), Isa::T32)),
        preferred_return: PreferredReturn::Next,
    }
}

#[test]
fn three_atoms_then_cancelling_irq_leave_two_instructions() {
    let found = directives(&cortex_a7(), &[p_header(0x8c, false), branch_to(0x18, Some((14, true)))]);
    assert_eq!(found, [passed(2), taken(Exception::Ar(14), 0x18)]);
}

#[test]
fn atom_then_timestamp_periodic_i_sync_and_target_then_cancel_leave_only_the_timestamp() {
    let mut config = cortex_a7();
    config.context_id_size = ContextIdSize::None;
    let time = Packet::Timestamp { value: 7, clock_changed: false };
    let i_sync = Packet::ISync(ISync {
        reason: ISyncReason::Periodic,
        location: Some(Location::new(Address::new(0x104), Isa::T32)),
        in_progress: None,
        security: SecurityBits::default(),
        context_id: None,
        cycles: None,
    });
    let packets = [
        p_header(0x84, false),
        time,
        Packet::ASync,
        i_sync,
        branch_to(0x200, None),
        branch_to(0x18, Some((12, true))),
    ];
    let found = directives(&config, &packets);
    assert_eq!(found, [Directive::Timestamp(7), taken(Exception::Ar(12), 0x18)]);
}

#[test]
fn target_then_cancel_leave_neither_the_branch_nor_its_target() {
    let packets = [p_header(0x88, false), branch_to(0x200, None), branch_to(0x10, Some((12, true)))];
    assert_eq!(directives(&cortex_a7(), &packets), [passed(1), taken(Exception::Ar(12), 0x10)]);
}

#[test]
fn target_then_irq_keep_the_first_address_as_the_one_interrupted() {
    let packets = [p_header(0x84, false), branch_to(0x200, None), branch_to(0x18, Some((14, false)))];
    let target = Directive::Continue(Location::new(Address::new(0x200), Isa::T32));
    assert_eq!(directives(&cortex_a7(), &packets), [passed(1), target, taken(Exception::Ar(14), 0x18)]);
}

#[test]
fn v7_m_cancel_after_an_exception_exit_cancels_the_return_and_not_the_instruction() {
    let config = Config::for_core("cortex-m3").expect("a known core");
    let packets = [p_header(0x84, false), Packet::ExceptionExit, branch_to(0x300, Some((14, true)))];
    assert_eq!(directives(&config, &packets), [passed(1), taken(Exception::M(14), 0x300)]);
    let packets = [p_header(0x84, false), Packet::ExceptionExit, branch_to(0x300, Some((14, false)))];
    let found = directives(&config, &packets);
    assert_eq!(found, [passed(1), Directive::ExceptionReturn, taken(Exception::M(14), 0x300)]);
}

#[test]
fn v7_a_cancel_after_an_exception_exit_cancels_both() {
    let packets = [p_header(0x84, false), Packet::ExceptionExit, branch_to(0x18, Some((12, true)))];
    assert_eq!(directives(&cortex_a7(), &packets), [taken(Exception::Ar(12), 0x18)]);
}

#[test]
fn an_undefined_instruction_is_its_own_preferred_return_address() {
    let found = directives(&cortex_a7(), &[p_header(0x84, false), branch_to(0x4, Some((9, false)))]);
    let [_, Directive::Exception { preferred_return, .. }] = found[..] else { panic!("{found:?}") };
    assert_eq!(preferred_return, PreferredReturn::Last);
}

#[test]
fn debug_entry_has_no_handler() {
    let found = directives(&cortex_a7(), &[p_header(0x84, false), branch_to(0, Some((1, false)))]);
    let [_, Directive::Exception { handler, .. }] = found[..] else { panic!("{found:?}") };
    assert_eq!(handler, Handler::DebugState);
}

#[test]
fn cycles_belong_to_the_instruction_after_them() {
    let mut config = cortex_a7();
    config.cycle_accurate = true;
    // Format 3: two W and E; format 4: N without W; format 2: W, then E and N.
    let packets = [p_header(0xe4, true), p_header(0x96, true), p_header(0x86, true)];
    let failed = Directive::Instructions { executed: 0, then_failed: true };
    let expected = [Directive::Cycles(2), passed(1), failed, Directive::Cycles(1), passed(1), failed];
    assert_eq!(directives(&config, &packets), expected);
}

#[test]
fn trace_after_a_loss_counts_only_from_the_next_a_sync_and_i_sync() {
    let config = cortex_a7();
    let mut found = Vec::new();
    let mut lowering = Lowering::new(&config);
    let mut emit = |directive, _| found.push(directive);
    let i_sync = |reason| {
        Packet::ISync(ISync {
            reason,
            location: Some(Location::new(Address::new(0x100), Isa::T32)),
            in_progress: None,
            security: SecurityBits::default(),
            context_id: None,
            cycles: None,
        })
    };
    for packet in [Packet::ASync, i_sync(ISyncReason::Enabled)] {
        lowering.lower(&packet, Span::default(), &mut emit);
    }
    lowering.lost(Span::default(), crate::protocol::Loss::Lost, &mut emit);
    for packet in [i_sync(ISyncReason::Enabled), p_header(0x84, false), Packet::ASync, p_header(0x84, false)]
    {
        lowering.lower(&packet, Span::default(), &mut emit);
    }
    lowering.lower(&i_sync(ISyncReason::Periodic), Span::default(), &mut emit);
    let synchronised = BeginReason::Synchronised;
    assert!(
        matches!(
            found[..],
            [Directive::Begin { .. }, Directive::Synchronised, Directive::Lost, Directive::Begin { why, .. }, Directive::Synchronised]
                if why == synchronised
        ),
        "{found:?}"
    );
}

#[test]
fn a_load_in_progress_is_one_instruction_and_then_trace_begins() {
    let i_sync = Packet::ISync(ISync {
        reason: ISyncReason::Enabled,
        location: Some(Location::new(Address::new(0x110), Isa::T32)),
        in_progress: Some(Location::new(Address::new(0x104), Isa::T32)),
        security: SecurityBits::default(),
        context_id: None,
        cycles: None,
    });
    let found = directives(&cortex_a7(), &[i_sync]);
    assert!(
        matches!(
            found[..],
            [Directive::Begin { .. }, Directive::Instructions { executed: 1, .. }, Directive::Begin { .. }]
        ),
        "{found:?}"
    );
}

#[test]
fn the_second_address_after_a_load_in_progress_begins_as_branch_packets_do() {
    #[rustfmt::skip]
    let bytes = [
        0x00, 0x00, 0x00, 0x00, 0x00, 0x80, // A-sync
        0x08, 0xa1, 0xdd, 0x88, 0xfd, 0x01, // I-sync, Thumb, with a load or store in progress
        0xd8,                               // not an address byte: bit 0 is clear
    ];
    let mut malformed = Vec::new();
    let mut packets = Packets::new(Decoder::new(&Config::for_core("cortex-m3").unwrap()));
    let mut note = |item: Item<Packet>, span: Span, _: &[u8]| {
        if let Item::Malformed(reason) = item {
            malformed.push((reason.name(), span.start.0));
        }
    };
    packets.push(&bytes, &mut note);
    packets.finish(&mut note);
    assert_eq!(malformed, [("reserved_value", 6)]);
}

#[test]
fn more_packets_than_may_wait_after_an_atom_release_it() {
    let packets: Vec<Packet> =
        std::iter::once(p_header(0x84, false)).chain(std::iter::repeat_n(Packet::Trigger, 1000)).collect();
    let found = directives(&cortex_a7(), &packets);
    assert_eq!(found.len(), 1001);
    assert_eq!(found[0], passed(1));
}

#[test]
fn registers_that_contradict_each_other_are_refused() {
    let core = Core::named("cortex-m4");
    let refused = |registers| Config::from_registers(registers, core).expect_err("a contradiction");
    let none = Registers::default();
    assert_eq!(
        refused(Registers { etmidr: Some(0x410c_f250), ..none }),
        ConfigError::EncodingOfCore { core: "cortex-m4", etmidr: 0x410c_f250 }
    );
    assert!(matches!(refused(Registers { etmidr: Some(0x411c_f312), ..none }), ConfigError::NotEtmv3 { .. }));
    assert!(matches!(refused(Registers { etmcr: Some(0xc000), ..none }), ConfigError::NotOnMProfile { .. }));
    assert!(matches!(refused(Registers { etmcr: Some(0xc), ..none }), ConfigError::NotOnMProfile { .. }));
    assert!(matches!(refused(Registers { etmtraceidr: Some(0x7d), ..none }), ConfigError::TraceId { .. }));
    let without_core = Config::from_registers(Registers { etmcr: Some(0), ..none }, None);
    assert_eq!(without_core, Err(ConfigError::Missing { register: "ETMIDR" }));
}

#[test]
fn the_alternative_encoding_exists_from_etmv3_4_on() {
    let encoding = |etmidr| {
        let registers = Registers { etmidr: Some(etmidr), etmcr: Some(0), ..Registers::default() };
        Config::from_registers(registers, None).map(|config| config.address_encoding)
    };
    // Cortex-M3 r1p1; the same bits with ETMv3.3, where ETMIDR[20] has no meaning.
    assert_eq!(encoding(0x4114_f240), Ok(AddressEncoding::Alternative));
    assert_eq!(encoding(0x4114_f230), Ok(AddressEncoding::Original));
}

/// ETMCR and ETMIDR: IHI 0014Q, tables 3.3 and 3.45.
#[test]
fn each_field_of_the_registers_says_one_thing() {
    let from = |etmcr, etmidr| {
        let registers =
            Registers { etmcr: Some(etmcr), etmidr: Some(etmidr), etmccer: Some(0), etmtraceidr: Some(0x2a) };
        Config::from_registers(registers, None).expect("sound registers")
    };
    // ETMv3.5 of an application processor that takes 32-bit Thumb instructions as one.
    let plain = from(0, 0x410c_f250);
    let expected = Config {
        minor_version: 5,
        profile: Profile::Ar,
        address_encoding: AddressEncoding::Original,
        two_atoms_per_thumb_pair: plain.two_atoms_per_thumb_pair,
        cycle_accurate: false,
        branch_broadcast: false,
        instructions: true,
        data: DataTrace { values: false, addresses: false },
        context_id_size: ContextIdSize::None,
        timestamp: plain.timestamp,
        trace_id: TraceId::new(0x2a),
    };
    assert_eq!(plain, expected);
    assert_eq!(from(1 << 8, 0x410c_f250), Config { branch_broadcast: true, ..expected });
    assert_eq!(from(1 << 12, 0x410c_f250), Config { cycle_accurate: true, ..expected });
    let data = |values, addresses| Config { data: DataTrace { values, addresses }, ..expected };
    assert_eq!(from(1 << 2, 0x410c_f250), data(true, false));
    assert_eq!(from(1 << 3, 0x410c_f250), data(false, true));
    for (field, context_id_size) in
        [(1, ContextIdSize::Byte), (2, ContextIdSize::Halfword), (3, ContextIdSize::Word)]
    {
        assert_eq!(from(field << 14, 0x410c_f250), Config { context_id_size, ..expected });
    }
    assert_eq!(from(1 << 20, 0x410c_f250), Config { instructions: false, ..expected });
    assert!(from(0, 0x4108_f250).two_atoms_per_thumb_pair, "ETMIDR[18] is clear");
    assert!(!from(0, 0x410c_f250).two_atoms_per_thumb_pair, "ETMIDR[18] is set");
}

#[test]
fn every_core_has_a_usual_configuration() {
    for name in Core::names() {
        let config = Config::for_core(name).expect("usual registers are sound");
        let m_profile = name.starts_with("cortex-m");
        assert_eq!(config.profile == Profile::M, m_profile, "{name}");
        assert_eq!(config.address_encoding == AddressEncoding::Alternative, m_profile, "{name}");
        assert_eq!(config.two_atoms_per_thumb_pair, name.starts_with("arm"), "{name}");
    }
}
