use alloc::vec::Vec;
use std::string::ToString;

use proptest::prelude::*;

use super::*;
use crate::ids::Address;
use crate::protocol::{Decode, Describe, Field, Item, Malformation, Packets, Step};
use crate::span::Span;

const A_SYNC: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80];
const TRACE_INFO: [u8; 2] = [0x01, 0x00];

const A53: Registers = Registers {
    trcconfigr: Some(0x1),
    trctraceidr: Some(0x10),
    trcdevarch: None,
    trcidr0: Some(0x2800_0ea1),
    trcidr1: Some(0x4100_f403),
    trcidr2: Some(0x488),
    trcidr8: Some(0),
    trcidr12: None,
    trcidr13: None,
};

/// ETE 1.3 with instrumentation, Q elements, 32-bit VMIDs and a speculation of 30 elements that cycle counts commit.
const ETE: Registers = Registers {
    trcidr0: Some(0x08c1_cea1),
    trcidr1: Some(0x4100_fff0),
    trcidr2: Some(0xd000_1088),
    trcidr8: Some(30),
    trcdevarch: Some(0x4773_5a13),
    ..A53
};

/// A Cortex-R with everything: conditional trace and data trace.
const R: Registers = Registers { trcidr0: Some(0x2800_1eff), trcidr2: Some(0x4), ..A53 };

const M55: Registers =
    Registers { trcidr0: Some(0x2800_06e1), trcidr1: Some(0x4100_f454), trcidr2: Some(0x4), ..A53 };

#[test]
fn every_core_has_a_configuration_of_its_profile_and_architecture() {
    for name in Core::names() {
        let core = Core::named(name).expect("a name of its own");
        assert_eq!((core.name(), Core::names().filter(|other| *other == name).count()), (name, 1));
        let config = Config::for_core(name).expect("usual registers make a configuration");
        assert_eq!(config.profile(), core.profile(), "{name}");
        assert_eq!(
            config.has_64_bit_addresses,
            !matches!(name, "cortex-a32" | "cortex-r8" | "cortex-r52") && core.profile() == Profile::Ar,
            "{name}"
        );
        assert_eq!(config.is_ete(), core.registers().trcdevarch.is_some(), "{name}");
    }
    assert_eq!(Config::for_core("Cortex-A53"), Some(config(Registers { trctraceidr: None, ..A53 })));
    let given = Registers { trcidr1: Some(0x4100_f422), trcidr2: Some(0x1088), ..Registers::default() };
    let core = Core::named("cortex-a510").expect("a known core");
    let completed = given.or_usual_of(core);
    assert_eq!(
        (completed.trcdevarch, completed.trcidr1, completed.trcidr2),
        (None, Some(0x4100_f422), Some(0x1088))
    );
    assert!(Config::from_registers(completed, None).is_ok_and(|config| !config.is_ete()));
}

fn config(registers: Registers) -> Config {
    Config::from_registers(registers, None).expect("the registers are sound")
}

type Items = Vec<(Item<Packet>, Span, Vec<u8>)>;

fn decode_in_chunks<'a>(config: &Config, chunks: impl IntoIterator<Item = &'a [u8]>) -> Items {
    let mut items = Vec::new();
    let mut packets = Packets::new(Decoder::new(config));
    let mut sink = |item, span, bytes: &[u8]| items.push((item, span, bytes.to_vec()));
    chunks.into_iter().for_each(|chunk| packets.push(chunk, &mut sink));
    packets.finish(&mut sink);
    items
}

/// The names and lengths of the items after an A-sync and a trace info packet.
fn names(registers: Registers, bytes: &[u8]) -> Vec<(&'static str, usize)> {
    let whole = [&A_SYNC[..], &TRACE_INFO, bytes].concat();
    let name = |(item, _, bytes): (Item<Packet>, Span, Vec<u8>)| match item {
        Item::Packet(packet) => (packet.name(), bytes.len()),
        Item::Malformed(reason) => (reason.name(), bytes.len()),
        Item::Unsynchronised => ("unsynchronised", bytes.len()),
    };
    decode_in_chunks(&config(registers), [&whole[..]]).into_iter().skip(2).map(name).collect()
}

mod configuration {
    use super::*;

    fn refused(registers: Registers) -> ConfigError {
        Config::from_registers(registers, None).expect_err("the registers are refused")
    }

    #[test]
    fn registers_become_fields() {
        let a53 = config(A53);
        assert_eq!((a53.version(), a53.profile()), (Version::Etmv4(0), Profile::Ar));
        assert_eq!((a53.context_id_bytes, a53.vmid_bytes, a53.cycle_counter_bits), (4, 1, 12));
        assert!(!a53.cycle_counts_commit && a53.conditional.is_none() && !a53.q_elements);
        assert_eq!(a53.trace_id().map(TraceId::get), Some(0x10));
        let ete = config(ETE);
        assert_eq!((ete.version(), ete.greatest_speculation()), (Version::Ete(3), 30));
        assert_eq!((ete.vmid_bytes, ete.cycle_counter_bits), (4, 20));
        assert!(ete.cycle_counts_commit && ete.q_elements && ete.waits_are_waypoints);
        assert!(ete.transaction_start_is_p0);
        let m55 = config(M55);
        assert_eq!((m55.profile(), m55.version()), (Profile::M, Version::Etmv4(5)));
        assert_eq!(m55.conditional, Some(ConditionalResults::PassFail));
        let loads = config(Registers { trcconfigr: Some(0b11), ..R });
        assert!(loads.loads_are_waypoints && !loads.stores_are_waypoints && loads.data_trace);
        assert!(!config(Registers { trcconfigr: Some(0b11), ..A53 }).loads_are_waypoints);
    }

    #[test]
    fn the_version_is_that_of_trcdevarch_if_there_is_one() {
        let of = |trcdevarch| config(Registers { trcdevarch: Some(trcdevarch), ..A53 }).version();
        assert_eq!(of(0x4772_4a13), Version::Etmv4(2));
        assert_eq!(of(0x4770_5a13), Version::Ete(0));
        assert!(Version::Etmv4(6) < Version::Ete(0));
    }

    #[test]
    fn what_makes_no_configuration_is_refused() {
        let missing = |registers, register| assert_eq!(refused(registers), ConfigError::Missing { register });
        missing(Registers { trcidr1: None, ..A53 }, "TRCIDR1");
        missing(Registers { trcdevarch: None, ..ETE }, "TRCDEVARCH");
        missing(Registers { trcidr0: None, ..A53 }, "TRCIDR0");
        missing(Registers { trcidr2: None, ..A53 }, "TRCIDR2");
        missing(Registers { trcconfigr: None, ..A53 }, "TRCCONFIGR");
        let of = |registers| refused(registers).to_string();
        assert!(matches!(
            refused(Registers { trcidr1: Some(0x411c_f312), ..A53 }),
            ConfigError::NotEtmv4 { register: "TRCIDR1", found: 0x411c_f312 }
        ));
        assert!(of(Registers { trcidr1: Some(0x4100_f470), ..A53 }).contains("0x4100f470"));
        assert!(of(Registers { trcdevarch: Some(0x4774_5a13), ..ETE }).contains("ETE 1.0 to 1.3"));
        // VMIDs of 32 bits came with ETMv4.1.
        assert!(of(Registers { trcidr2: Some(0x1088), ..A53 }).contains("VMIDSIZE 4"));
        assert!(of(Registers { trcidr2: Some(0x448), ..A53 }).contains("CIDSIZE 2"));
        assert!(of(Registers { trctraceidr: Some(0x70), ..A53 }).contains("0x70"));
    }
}

mod decoding {
    use super::*;

    #[test]
    fn an_a_sync_has_eleven_zeros() {
        assert_eq!(names(A53, &[&A_SYNC[..], &[0xf7]].concat()), [("a_sync", 12), ("atom", 1)]);
        let twelve = [&[0][..], &A_SYNC, &[0xf7]].concat();
        assert_eq!(names(A53, &twelve), [("not_a_sync", 1), ("a_sync", 12), ("atom", 1)]);
        assert_eq!(names(A53, &[0xf7, 0, 0, 0, 0x80]), [("atom", 1), ("not_a_sync", 4)]);
    }

    #[test]
    fn an_address_is_unknown_between_a_loss_and_the_next_trace_info() {
        let long = [0x9a, 0x20, 0x08, 0x00, 0x00];
        let exact = [0x90];
        let bytes = [&A_SYNC[..], &TRACE_INFO, &long, &A_SYNC, &exact, &[0x08], &exact, &A_SYNC, &exact];
        let bytes = [bytes.concat(), [&TRACE_INFO[..], &exact].concat()].concat();
        let items = decode_in_chunks(&config(A53), [&bytes[..]]);
        let address = |(item, ..): &(Item<Packet>, Span, Vec<u8>)| match item {
            Item::Packet(Packet::Address(packet)) => Some(packet.sent.address.map(Address::get)),
            _ => None,
        };
        // Packets after the reserved header 0x08 are read on trial.
        let addresses = items.iter().filter_map(address).collect::<Vec<_>>();
        assert_eq!(addresses, [Some(0x1080), Some(0x1080), None, None, Some(0)]);
    }

    #[test]
    fn headers_of_other_versions_are_reserved_and_those_that_are_not_enabled_the_configurations_fault() {
        let reasons = |registers, header: u8| names(registers, &[header, 0xf7]).remove(0).0;
        for header in [0x09, 0x0a, 0x0b, 0x05, 0x70, 0x88, 0xb4] {
            assert_eq!(reasons(A53, header), "reserved_header", "0x{header:02x}");
        }
        for header in [0x20, 0x2c, 0x40, 0x6f, 0xac] {
            assert_eq!(reasons(A53, header), "not_enabled", "0x{header:02x}");
        }
        assert_eq!(reasons(ETE, 0x07), "not_enabled");
        assert_eq!(names(M55, &[0x05, 0x00, 0x07]), [("function_return", 1), ("branch_future_flush", 2)]);
    }

    #[test]
    fn a_number_that_does_not_end_is_malformed() {
        assert_eq!(names(A53, &[0x2d, 0x81, 0x81, 0x81, 0x81, 0x81, 0xf7])[0].0, "reserved_value");
        assert_eq!(
            names(A53, &[0x01, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80])[0].0,
            "reserved_value"
        );
    }

    #[test]
    fn who_is_at_fault_is_said_by_the_reason() {
        let bytes = [&A_SYNC[..], &[0xac]].concat();
        let items = decode_in_chunks(&config(A53), [&bytes[..]]);
        let expected = Malformation::NotEnabled { packet: "q", setting: "TRCIDR0.QSUPP" };
        assert_eq!(items.last().map(|(item, ..)| *item), Some(Item::Malformed(expected)));
    }

    #[test]
    fn atoms_are_read_oldest_first() {
        let mut letters = std::string::String::new();
        let mut all = std::string::String::new();
        for header in [0xd9_u8, 0xdc, 0xf5, 0xe1] {
            let atoms = Atoms::from_header(header).expect("an atom header");
            Packet::Atom(atoms).fields(&mut |name, field| {
                if let ("atoms", Field::Text(text)) = (name, field) {
                    letters.push_str(text);
                }
            });
            all.extend(atoms.iter().map(|executed| if executed { 'E' } else { 'N' }));
        }
        assert_eq!((letters.as_str(), all.as_str()), ("ENNEEENEEEEEEEEN", "ENNEEENEEEEEEEEN"));
        // Every header from 0xc0 on is the only one for its atoms.
        let headers = 0xc0..=0xff_u8;
        assert!(
            headers.clone().all(|header| Atoms::from_header(header).and_then(Atoms::header) == Some(header))
        );
        assert!((0..0xc0).all(|header| Atoms::from_header(header).is_none()));
    }
}

mod properties {
    use super::*;

    fn any_config() -> impl Strategy<Value = Config> {
        let registers = prop_oneof![Just(A53), Just(ETE), Just(R), Just(M55)];
        (registers, any::<bool>()).prop_map(|(registers, commit_by_counts)| {
            let idr0 = registers.trcidr0.map(|idr0| idr0 & !(1 << 29) | u32::from(!commit_by_counts) << 29);
            config(Registers { trcidr0: idr0, ..registers })
        })
    }

    /// A header and enough bytes for any packet.
    fn any_packet_bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 24)
    }

    /// Bytes in which an A-sync and a trace info packet are likely.
    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => prop::collection::vec(any::<u8>(), 1..12),
            1 => Just(A_SYNC.to_vec()),
            1 => Just([&A_SYNC[..], &TRACE_INFO].concat()),
            1 => (0_usize..14).prop_map(|zeros| std::vec![0; zeros]),
        ];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn what_is_encoded_is_decoded(
            config in any_config(),
            candidates in prop::collection::vec(any_packet_bytes(), 1..24),
        ) {
            let mut decoder = Decoder::new(&config);
            let mut packets = std::vec![Packet::ASync, Packet::TraceInfo(TraceInfo::default())];
            let _ = decoder.decode(&A_SYNC);
            let _ = decoder.decode(&TRACE_INFO);
            for candidate in &candidates {
                let mut next = decoder.clone();
                if let Step::Packet { packet, .. } = next.decode(candidate) {
                    decoder = next;
                    packets.push(packet);
                }
            }
            let mut encoder = Encoder::new(&config);
            let mut bytes = Vec::new();
            for packet in &packets {
                if let Err(error) = encoder.encode(packet, &mut bytes) {
                    panic!("{packet:?}: {error}");
                }
            }
            let read = decode_in_chunks(&config, [&bytes[..]]);
            let read = read.into_iter().map(|(item, ..)| item).collect::<Vec<_>>();
            prop_assert_eq!(read, packets.into_iter().map(Item::Packet).collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_tiled_and_any_cut_gives_the_same_items(
            config in any_config(),
            bytes in any_bytes(),
            cuts in prop::collection::vec(1_usize..9, 1..8),
        ) {
            let whole = decode_in_chunks(&config, [&bytes[..]]);
            let mut position = 0;
            for (_, span, part) in &whole {
                prop_assert_eq!(span.start.0, position);
                prop_assert!(span.end.0 > position);
                prop_assert_eq!(span.bytes(), part.len() as u64);
                position = span.end.0;
            }
            prop_assert_eq!(position, bytes.len() as u64);
            let mut rest = &bytes[..];
            let mut sizes = cuts.into_iter().cycle();
            let chunks = std::iter::from_fn(|| {
                let (chunk, later) = rest.split_at(rest.len().min(sizes.next()?));
                rest = later;
                (!chunk.is_empty()).then_some(chunk)
            });
            prop_assert_eq!(decode_in_chunks(&config, chunks), whole);
        }
    }

    #[test]
    fn a_packet_that_cannot_be_encoded_leaves_everything_as_it_was() {
        let mut encoder = Encoder::new(&config(A53));
        let mut bytes = Vec::new();
        let mut refuse = |packet: Packet| {
            let error = encoder.encode(&packet, &mut bytes).expect_err("it cannot be encoded");
            assert!(bytes.is_empty() && !error.to_string().is_empty(), "{packet:?}");
        };
        refuse(Packet::Q(Q { sent: None, count: None }));
        refuse(Packet::TransactionStart);
        refuse(Packet::Instrumentation(Instrumentation { exception_level: 0, value: 0 }));
        refuse(Packet::Event(0));
        refuse(Packet::Atom(
            Atoms::one(true)
                .and(false)
                .and_then(|atoms| atoms.and(false))
                .and_then(|atoms| atoms.and(true))
                .expect("few"),
        ));
        let sent = SentAddress {
            address: Some(Address::new(0x8002)),
            alignment: AddressUnit::Words,
            form: AddressForm::Long64,
        };
        refuse(Packet::Address(AddressPacket { sent, context: None }));
    }
}

#[test]
fn zeros_at_the_end_are_the_rest_of_a_buffer_that_was_not_filled() {
    let config = Config::for_core("cortex-m33").unwrap();
    for (zeros, after, malformed) in [(12, 0, 0), (9000, 0, 0), (9000, 1, 1), (4, 0, 1)] {
        for piece in [7, usize::MAX] {
            let bytes = [&A_SYNC[..], &[0; 9000][..zeros], &[0xf7; 1][..after]].concat();
            let mut packets = Packets::new(Decoder::new(&config));
            let (mut wrong, mut total, mut truncated) = (0, 0, 0);
            let mut note = |item: Item<Packet>, span: Span, _: &[u8]| {
                total += span.bytes();
                wrong += u64::from(matches!(item, Item::Malformed(_)));
                truncated += u64::from(matches!(item, Item::Malformed(Malformation::Truncated { .. })));
            };
            bytes.chunks(piece.min(bytes.len())).for_each(|piece| packets.push(piece, &mut note));
            packets.finish(&mut note);
            assert_eq!((wrong, total), (malformed, bytes.len() as u64), "{zeros} {after}");
            assert_eq!(truncated, u64::from(zeros == 4));
        }
    }
}
