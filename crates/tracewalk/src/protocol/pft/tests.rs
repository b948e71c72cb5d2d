use alloc::vec;
use alloc::vec::Vec;
use std::collections::BTreeSet;
use std::format;
use std::string::{String, ToString};

use proptest::prelude::*;

use super::*;
use crate::directive::{BeginReason, Directive, Handler, PreferredReturn, RunEnd};
use crate::ids::{Address, ContextId, Exception, Isa, Location, Vmid};
use crate::protocol::SecurityBits;
use crate::protocol::timestamp::{TimestampCoding, TimestampFormat, TimestampWidth};
use crate::protocol::{Describe, Field, Item, Lower, Malformation, Packets};
use crate::span::Span;

const A_SYNC: [u8; 6] = [0, 0, 0, 0, 0, 0x80];
/// I-sync, tracing enabled, A32 at 0xc0008000.
const I_SYNC: [u8; 6] = [0x08, 0x00, 0x80, 0x00, 0xc0, 0x21];

fn plain() -> Config {
    Config::for_core("cortex-a15").unwrap()
}

fn cycle_accurate() -> Config {
    Config { cycle_accurate: true, ..plain() }
}

/// The results of decoding some bytes: each item, its span and its bytes.
type Items = Vec<(Item<Packet>, Span, Vec<u8>)>;

fn decode_in_chunks(config: &Config, chunks: &[&[u8]]) -> Items {
    let mut items = Vec::new();
    let mut packets = Packets::new(Decoder::new(config));
    let mut sink = |item, span, bytes: &[u8]| items.push((item, span, bytes.to_vec()));
    chunks.iter().for_each(|chunk| packets.push(chunk, &mut sink));
    packets.finish(&mut sink);
    items
}

fn decode(config: &Config, bytes: &[u8]) -> Items {
    decode_in_chunks(config, &[bytes])
}

/// The packets in bytes that hold nothing else.
fn packets_of(config: &Config, bytes: &[u8]) -> Vec<Packet> {
    let packet = |(item, _, bytes)| match item {
        Item::Packet(packet) => packet,
        other => panic!("found {other:?} at {bytes:02x?}, expected packets only"),
    };
    decode(config, bytes).into_iter().map(packet).collect()
}

/// The packets after an A-sync and an I-sync.
fn after_sync(config: &Config, bytes: &[u8]) -> Vec<Packet> {
    packets_of(config, &[&A_SYNC, &I_SYNC, bytes].concat()).split_off(2)
}

/// The packets and malformations after an A-sync and an I-sync: their starts and names.
fn names_after_sync(config: &Config, bytes: &[u8]) -> Vec<(u64, &'static str)> {
    let items = decode(config, &[&A_SYNC, &I_SYNC, bytes].concat());
    let name = |(item, span, _): (Item<Packet>, Span, Vec<u8>)| {
        let name = match item {
            Item::Packet(packet) => packet.name(),
            Item::Malformed(malformation) => malformation.name(),
            Item::Unsynchronised => "unsynced",
        };
        (span.start.0 - 12, name)
    };
    items.into_iter().skip(2).map(name).collect()
}

fn directives(packets: &[Packet]) -> Vec<Directive> {
    let mut lowering = Lowering::new();
    let mut all = Vec::new();
    let mut emit = |directive, _| all.push(directive);
    packets.iter().for_each(|packet| lowering.lower(packet, Span::default(), &mut emit));
    lowering.finish(&mut emit);
    all.retain(|directive| *directive != Directive::Synchronised);
    all
}

fn described(packet: &Packet) -> String {
    let mut text = packet.name().to_string();
    packet.fields(&mut |name, field| {
        text += &match field {
            Field::Number(number) => format!(" {name}={number}"),
            Field::Address(address) => format!(" {name}={address}"),
            Field::Text(word) => format!(" {name}={word}"),
            other => panic!("{other:?}"),
        };
    });
    text
}

fn a32(address: u32) -> Location {
    Location::new(Address::from(address), Isa::A32)
}

fn t32(address: u32) -> Location {
    Location::new(Address::from(address), Isa::T32)
}

const SECURE: SecurityBits = SecurityBits { non_secure: false, hypervisor: false };
const NON_SECURE: SecurityBits = SecurityBits { non_secure: true, hypervisor: false };

mod configuration {
    use super::*;

    fn from(etmcr: u32, etmidr: u32, etmccer: u32) -> Result<Config, ConfigError> {
        let registers =
            Registers { etmcr: Some(etmcr), etmidr: Some(etmidr), etmccer: Some(etmccer), etmtraceidr: None };
        Config::from_registers(registers, None)
    }

    #[test]
    fn registers_become_fields() {
        let config = from(0x1000_d000, 0x411c_f312, 0x35c0_1ac2).unwrap();
        assert_eq!((config.version, config.context_id_size.bytes()), (Version::V1_1, 4));
        assert!(config.cycle_accurate && config.barriers_are_waypoints);
        assert!(!config.branch_broadcast && !config.return_stack);
        assert_eq!(
            config.timestamp,
            TimestampFormat { width: TimestampWidth::Bits64, coding: TimestampCoding::Binary }
        );
        let rules = from(0x2000_0000, 0x411c_f312, 0).unwrap().rules();
        assert!(rules.return_stack && !rules.barriers_are_waypoints);
    }

    #[test]
    fn pft_1_0_has_gray_timestamps_of_48_bits_whatever_etmccer_says() {
        let config = from(0, 0x411c_f301, 0x3000_0000).unwrap();
        let gray_48 = TimestampFormat { width: TimestampWidth::Bits48, coding: TimestampCoding::Gray };
        assert_eq!(config.timestamp, gray_48);
    }

    #[test]
    fn every_core_has_a_configuration_and_case_does_not_matter() {
        assert!(Core::names().all(|name| Core::named(name).is_some_and(|core| core.name() == name)));
        assert!(Core::names().all(|name| Config::for_core(name).is_some()));
        assert_eq!(Config::for_core("Cortex-A9").map(|config| config.version), Some(Version::V1_0));
        assert_eq!(Config::for_core("cortex-m3"), None);
    }

    #[test]
    fn contradictions_are_refused() {
        let refusal = |registers, core| match Config::from_registers(registers, core) {
            Ok(config) => panic!("found {config:?}, expected a refusal"),
            Err(error) => error,
        };
        let registers = Registers { etmcr: Some(0), etmidr: Some(0x411c_f312), ..Registers::default() };
        let of_core = |etmcr, etmidr| {
            refusal(Registers { etmcr: Some(etmcr), etmidr, ..registers }, Core::named("cortex-a9"))
        };
        let with = |etmcr, etmidr| {
            refusal(Registers { etmcr: Some(etmcr), etmidr: Some(etmidr), ..registers }, None)
        };
        assert_eq!(with(0, 0x410c_f250), ConfigError::NotPft { etmidr: 0x410c_f250 });
        assert_eq!(with(0, 0x411c_f322), ConfigError::UnknownVersion { etmidr: 0x411c_f322 });
        let etmidr = 0x411c_f312;
        assert_eq!(of_core(0, Some(etmidr)), ConfigError::VersionOfCore { core: "cortex-a9", etmidr });
        let etmcr = 0x2000_0100;
        assert_eq!(with(etmcr, etmidr), ConfigError::BroadcastWithReturnStack { etmcr });
        assert_eq!(of_core(0x4000_0000, None), ConfigError::VmidOnV1_0 { etmcr: 0x4000_0000 });
        let id = refusal(Registers { etmtraceidr: Some(0x70), ..registers }, None);
        assert_eq!(id, ConfigError::TraceId { found: 0x70 });
        assert!(matches!(refusal(Registers::default(), None), ConfigError::Missing { .. }));
    }
}

mod decoding {
    use super::*;

    #[test]
    fn every_even_header_that_the_table_does_not_name_is_reserved() {
        let named = [0x00, 0x08, 0x0c, 0x3c, 0x42, 0x46, 0x66, 0x6e, 0x72, 0x76];
        for header in (0..=u8::MAX).step_by(2) {
            let reserved = names_after_sync(&plain(), &[header, 0, 0, 0])[0].1 == "reserved_header";
            let expected = match header {
                0x80 | 0x82 => true,
                0x84.. => false,
                _ => !named.contains(&header),
            };
            assert_eq!(reserved, expected, "header 0x{header:02x}");
        }
    }

    #[test]
    fn an_a_sync_may_start_inside_a_packet_that_is_read_on_trial() {
        // After the I-sync on trial, a branch packet's last byte may be the first of the A-sync's zeros.
        let bytes = [&[0x10][..], &I_SYNC, &[0x84, 0x81, 0, 0, 0, 0, 0, 0x80, 0x84, 0x84]].concat();
        let expected = [
            (0, "reserved_header"),
            (1, "i_sync"),
            (7, "atom"),
            (8, "unsynced"),
            (9, "a_sync"),
            (15, "atom"),
            (16, "atom"),
        ];
        assert_eq!(names_after_sync(&plain(), &bytes), expected);
    }

    #[test]
    fn vmid_is_reserved_in_pft_1_0() {
        let config = Config { version: Version::V1_0, ..plain() };
        assert_eq!(names_after_sync(&config, &[0x3c, 0x07])[0], (0, "reserved_header"));
        assert_eq!(after_sync(&plain(), &[0x3c, 0x07]), [Packet::Vmid(Vmid(7))]);
    }

    #[test]
    fn context_ids_without_a_size_are_the_configurations_fault() {
        let items = decode(&plain(), &[&A_SYNC[..], &[0x6e, 0x11]].concat());
        let expected = Malformation::NotEnabled { packet: "context_id", setting: "ETMCR[15:14]" };
        assert_eq!(items.last().map(|(item, ..)| *item), Some(Item::Malformed(expected)));
    }

    #[test]
    fn malformed_bytes_reach_up_to_the_next_a_sync() {
        // An information byte with bit 0 clear: no packet boundary is known after it.
        let bytes = [&[0x84, 0x08, 0x01, 0x01, 0x01, 0x01, 0x20, 0x84], &A_SYNC[..], &[0x84]].concat();
        let expected = [(0, "atom"), (1, "reserved_value"), (8, "a_sync"), (14, "atom")];
        assert_eq!(names_after_sync(&plain(), &bytes), expected);
    }

    #[test]
    fn packets_after_a_reserved_header_are_read_on_trial_up_to_the_next_a_sync() {
        let bytes = [&[0x84, 0x10, 0x84, 0x86], &A_SYNC[..], &[0x84]].concat();
        let expected =
            [(0, "atom"), (1, "reserved_header"), (2, "atom"), (3, "atom"), (4, "a_sync"), (10, "atom")];
        assert_eq!(names_after_sync(&plain(), &bytes), expected);
        // A timestamp read on trial would reach into the A-sync.
        let bytes = [&[0x10, 0x42, 0x81], &A_SYNC[..], &[0x84]].concat();
        let expected = [(0, "reserved_header"), (3, "a_sync"), (9, "atom")];
        assert_eq!(names_after_sync(&plain(), &bytes), expected);
    }

    #[test]
    fn an_a_sync_may_start_inside_the_packet_that_is_malformed() {
        // The information byte 0x00 is part of a run of zeros that ends in 0x80.
        let bytes = [0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x84];
        let expected = [(0, "reserved_value"), (1, "a_sync"), (7, "atom")];
        assert_eq!(names_after_sync(&plain(), &bytes), expected);
    }

    #[test]
    fn an_a_sync_is_one_though_a_branch_took_its_first_zero() {
        let bytes = [0x81, 0, 0, 0, 0, 0, 0x80, 0x86];
        assert_eq!(
            names_after_sync(&plain(), &bytes),
            [(0, "branch"), (2, "not_a_sync"), (3, "a_sync"), (7, "atom")]
        );
    }

    #[test]
    fn four_zeros_are_no_a_sync_and_sixty_four_are() {
        let zeros = |count: usize| [vec![0; count], vec![0x80, 0x84]].concat();
        assert_eq!(names_after_sync(&plain(), &zeros(4)), [(0, "not_a_sync")]);
        assert_eq!(names_after_sync(&plain(), &zeros(5)), [(0, "a_sync"), (6, "atom")]);
        assert_eq!(names_after_sync(&plain(), &zeros(64)), [(0, "a_sync"), (65, "atom")]);
        assert_eq!(names_after_sync(&plain(), &zeros(65)), [(0, "not_a_sync"), (1, "a_sync"), (66, "atom")]);
        assert_eq!(
            names_after_sync(&plain(), &zeros(100)),
            [(0, "not_a_sync"), (36, "a_sync"), (101, "atom")]
        );
    }

    #[test]
    fn addresses_before_the_first_whole_one_are_unknown() {
        let bytes = [&A_SYNC[..], &[0x15, 0x95, 0x42, 0x1d, 0x72, 0x15]].concat();
        let packets = packets_of(&plain(), &bytes);
        let unknown = Branch { target: None, states_isa: false, exception: None, cycles: None };
        let information = ExceptionInformation { number: 14, security: NON_SECURE };
        assert_eq!(
            packets[1..],
            [
                Packet::Branch(unknown),
                Packet::Branch(Branch { exception: Some(information), ..unknown }),
                Packet::WaypointUpdate(WaypointUpdate { reached: None, states_isa: false }),
            ]
        );
        // An address of all five bytes needs no base, and sets one.
        let bytes = [&A_SYNC[..], &[0x95, 0x82, 0x81, 0x84, 0x1c, 0x15]].concat();
        let targets = packets_of(&plain(), &bytes).split_off(1);
        assert_eq!(described(&targets[0]), "branch addr=0xc0804114 isa=T32");
        assert_eq!(described(&targets[1]), "branch addr=0xc0804114");
    }

    #[test]
    fn damage_makes_the_base_unknown_again() {
        let bytes = [&[0x10], &A_SYNC[..], &[0x15]].concat();
        let items = decode(&plain(), &[&A_SYNC, &I_SYNC, &bytes[..]].concat());
        let unknown = Branch { target: None, states_isa: false, exception: None, cycles: None };
        assert_eq!(items.last().unwrap().0, Item::Packet(Packet::Branch(unknown)));
    }

    #[test]
    fn state_is_sticky_from_i_sync_and_exception_information() {
        // I-sync: ThumbEE, Non-secure, Hyp. The exception after it omits Hyp ...
        let bytes = [0x08, 0x01, 0x80, 0x00, 0xc0, 0x2f, 0x15, 0x95, 0x42, 0x1c, 0x15];
        let packets = after_sync(&plain(), &bytes);
        let targets = packets.iter().filter_map(|packet| match packet {
            Packet::Branch(branch) => branch.target.map(|target| (target.isa, branch.exception)),
            _ => None,
        });
        // ... but byte 0 always says NS and AltISA.
        let hyp = SecurityBits { non_secure: false, hypervisor: true };
        let information = ExceptionInformation { number: 14, security: hyp };
        assert_eq!(
            targets.collect::<Vec<_>>(),
            [(Isa::T32EE, None), (Isa::T32, Some(information)), (Isa::T32, None)]
        );
    }

    #[test]
    fn debug_entry_moves_the_base() {
        let packets = after_sync(&plain(), &[0x81, 0x80, 0x80, 0x80, 0x48, 0x02, 0x95, 0x02]);
        assert_eq!(described(&packets[0]), "branch addr=0x00000000 isa=A32 exception=1 ns=0 hyp=0");
        assert_eq!(described(&packets[1]), "branch addr=0x00000228");
    }

    #[test]
    fn waypoint_updates_are_bases_unless_the_configuration_says_otherwise() {
        let bytes = [0x72, 0x95, 0x02, 0x15];
        let branch = |config: &Config| described(&after_sync(config, &bytes)[1]);
        assert_eq!(branch(&plain()), "branch addr=0xc0008228");
        let config = Config { waypoint_updates_are_bases: false, ..plain() };
        assert_eq!(branch(&config), "branch addr=0xc0008028");
    }

    #[test]
    fn a_waypoint_update_may_say_thumb_ee_after_all_five_bytes_only() {
        let packets = after_sync(&plain(), &[0x72, 0x95, 0x82, 0x81, 0x84, 0x5c, 0x40, 0x84]);
        assert_eq!(described(&packets[0]), "waypoint_update addr=0xc0804114 isa=T32EE");
        assert_eq!(packets[1].name(), "atom");
        assert_eq!(names_after_sync(&plain(), &[0x72, 0x95, 0x42, 0x84]), [(0, "reserved_value")]);
    }

    #[test]
    fn reserved_bits_are_malformed() {
        let reserved = |bytes: &[u8]| {
            let items = decode(&cycle_accurate(), &[&A_SYNC, bytes].concat());
            matches!(items[1].0, Item::Malformed(Malformation::ReservedValue { .. }))
        };
        // I-sync: Jazelle in bit 4, AltISA in A32, a misaligned A32 address.
        assert!(reserved(&[0x08, 0x00, 0x80, 0x00, 0xc0, 0x11]));
        assert!(reserved(&[0x08, 0x00, 0x80, 0x00, 0xc0, 0x05]));
        assert!(reserved(&[0x08, 0x02, 0x80, 0x00, 0xc0, 0x01]));
        // Branch: byte 5, exception information bytes 0 and 1, cycle count.
        assert!(reserved(&[0x81, 0x80, 0x80, 0x80, 0x88]));
        assert!(reserved(&[0x81, 0x80, 0x80, 0x80, 0x07]));
        assert!(reserved(&[0x81, 0x40, 0x20]));
        assert!(reserved(&[0x81, 0x40, 0x80, 0x40]));
        assert!(reserved(&[0x01, 0x01]));
    }

    #[test]
    fn the_end_of_the_trace_inside_a_packet_is_named() {
        let truncated = |bytes: &[u8]| {
            let items = decode(&cycle_accurate(), &[&A_SYNC[..], bytes].concat());
            match items.last().unwrap() {
                (Item::Malformed(Malformation::Truncated { packet }), ..) => *packet,
                other => panic!("found {other:?}, expected a truncated packet"),
            }
        };
        assert_eq!(truncated(&[0x08, 0x00]), "i_sync");
        assert_eq!(truncated(&[0x95]), "branch");
        assert_eq!(truncated(&[0xc4]), "atom");
        assert_eq!(truncated(&[0x3c]), "vmid");
        assert_eq!(truncated(&[0x42, 0x80]), "timestamp");
        assert_eq!(truncated(&[0x72]), "waypoint_update");
        assert_eq!(truncated(&[0x00, 0x00]), "a_sync");
    }

    #[test]
    fn a_source_may_begin_in_the_middle_of_a_packet() {
        let bytes = [&[0x80, 0x00, 0xc0, 0x21, 0x00, 0x84][..], &A_SYNC, &I_SYNC].concat();
        let items = decode(&plain(), &bytes);
        let kinds = items.iter().map(|(item, span, _)| (matches!(item, Item::Unsynchronised), span.start.0));
        assert_eq!(kinds.collect::<Vec<_>>(), [(true, 0), (false, 6), (false, 12)]);
    }
}

mod lowering {
    use super::*;

    fn begin(why: BeginReason) -> Directive {
        Directive::Begin { at: Some(a32(0xc000_8000)), why }
    }

    fn lowered(bytes: &[u8]) -> Vec<Directive> {
        directives(&packets_of(&plain(), &[&A_SYNC[..], bytes].concat()))
    }

    const PERIODIC: [u8; 6] = [0x08, 0x00, 0x80, 0x00, 0xc0, 0x01];

    #[test]
    fn the_first_i_sync_begins_and_the_next_periodic_one_confirms() {
        let bytes = [&PERIODIC[..], &PERIODIC, &I_SYNC].concat();
        let expected = [
            begin(BeginReason::Synchronised),
            Directive::Privilege(SECURE.privilege()),
            Directive::Confirm(a32(0xc000_8000)),
            begin(BeginReason::Enabled),
        ];
        assert_eq!(lowered(&bytes), expected);
    }

    #[test]
    fn nothing_is_followed_before_an_i_sync_but_time_and_context_are_reported() {
        let bytes = [
            &[0x84, 0x95, 0x82, 0x81, 0x84, 0x0e, 0x72, 0x15, 0x76, 0x42, 0x05, 0x3c, 0x07, 0x0c, 0x66],
            &PERIODIC[..],
            &[0x84],
        ];
        let expected = [
            Directive::Timestamp(5),
            Directive::Vmid(Vmid(7)),
            Directive::Trigger,
            begin(BeginReason::Synchronised),
            Directive::Privilege(SECURE.privilege()),
            Directive::Waypoint { executed: true },
        ];
        assert_eq!(lowered(&bytes.concat()), expected);
    }

    #[test]
    fn after_loss_nothing_is_followed_before_the_next_i_sync() {
        let mut lowering = Lowering::new();
        let mut all = Vec::new();
        let mut emit = |directive, _| all.push(directive);
        let packets = packets_of(&plain(), &[&A_SYNC[..], &PERIODIC, &[0x84], &A_SYNC, &[0x84]].concat());
        for (index, packet) in packets.iter().chain(&packets).enumerate() {
            if index == packets.len() {
                lowering.lost(Span::default(), crate::protocol::Loss::Lost, &mut emit);
                lowering.lower(&packets[2], Span::default(), &mut emit);
            }
            lowering.lower(packet, Span::default(), &mut emit);
        }
        let e = Directive::Waypoint { executed: true };
        let (begin, proven) = (begin(BeginReason::Synchronised), Directive::Synchronised);
        assert_eq!(
            all,
            [
                begin,
                proven,
                Directive::Privilege(SECURE.privilege()),
                e,
                e,
                Directive::Lost,
                begin,
                proven,
                e,
                e
            ]
        );
    }

    #[test]
    fn atoms_are_waypoints_oldest_first() {
        let atoms = lowered(&[&I_SYNC[..], &[0x92]].concat()).split_off(2);
        let expected = [true, true, false].map(|executed| Directive::Waypoint { executed });
        assert_eq!(atoms, expected);
    }

    #[test]
    fn cycles_come_before_what_they_were_spent_on() {
        let bytes = [
            &A_SYNC[..],
            &I_SYNC,
            &[0xfc, 0x01],       // I-sync: 31 cycles
            &[0x88],             // E, 2 cycles
            &[0x15, 0x0c],       // branch, 3 cycles
            &[0x42, 0x05, 0x10], // timestamp, 4 cycles
        ];
        let packets = packets_of(&cycle_accurate(), &bytes.concat());
        let expected = [
            Directive::Cycles(31),
            begin(BeginReason::Enabled),
            Directive::Privilege(SECURE.privilege()),
            Directive::Cycles(2),
            Directive::Waypoint { executed: true },
            Directive::Cycles(3),
            Directive::WaypointTo(a32(0xc000_8028)),
            Directive::Timestamp(5),
            Directive::Cycles(4),
        ];
        assert_eq!(directives(&packets), expected);
    }

    #[test]
    fn a_waypoint_update_runs_up_to_and_through_its_address() {
        let all = lowered(&[&I_SYNC[..], &[0x72, 0x03, 0x8d, 0x80, 0xfe, 0xff, 0x4f, 0x1d]].concat());
        let expected = [
            Directive::RunTo { address: Address::new(0xc000_8004), end: RunEnd::Through },
            Directive::Exception {
                exception: Some(Exception::Ar(14)),
                handler: Handler::At(a32(0xffff_0018)),
                preferred_return: PreferredReturn::Next,
            },
            Directive::Privilege(NON_SECURE.privilege()),
        ];
        assert_eq!(all[2..], expected);
    }

    #[test]
    fn exception_number_0_is_a_branch_that_changes_the_state() {
        let all = lowered(&[&I_SYNC[..], &[0x95, 0x40, 0x01]].concat());
        let expected =
            [Directive::WaypointTo(a32(0xc000_8028)), Directive::Privilege(NON_SECURE.privilege())];
        assert_eq!(all[2..], expected);
    }

    #[test]
    fn debug_entry_has_no_handler_and_no_state() {
        // Address 0, A32, Non-secure: all without meaning.
        let all = lowered(&[&I_SYNC[..], &[0x81, 0x80, 0x80, 0x80, 0x48, 0x03]].concat());
        let expected = Directive::Exception {
            exception: Some(Exception::Ar(1)),
            handler: Handler::DebugState,
            preferred_return: PreferredReturn::Next,
        };
        assert_eq!(all[2..], [expected]);
    }

    #[test]
    fn the_preferred_return_depends_on_the_exception() {
        let preferred_return = |number: u8| {
            let all = lowered(&[&I_SYNC[..], &[0x95, 0x40, number << 1]].concat());
            match all[2] {
                Directive::Exception { preferred_return, .. } => preferred_return,
                other => panic!("found {other:?}, expected an exception"),
            }
        };
        // SMC, SVC, aborts, IRQ.
        assert!([2, 10, 11, 12, 14].map(preferred_return).iter().all(|&at| at == PreferredReturn::Next));
        assert_eq!(preferred_return(9), PreferredReturn::Last);
        assert_eq!(preferred_return(8), PreferredReturn::Unknown);
        assert_eq!(preferred_return(6), PreferredReturn::Unknown);
    }

    #[test]
    fn context_is_reported_when_it_changes() {
        let config = Config { context_id_size: ContextIdSize::Byte, ..plain() };
        let bytes = [&A_SYNC[..], &I_SYNC, &[0x11, 0x6e, 0x11, 0x6e, 0x22], &I_SYNC, &[0x22]].concat();
        let expected = [
            begin(BeginReason::Enabled),
            Directive::Privilege(SECURE.privilege()),
            Directive::ContextId(ContextId(0x11)),
            Directive::ContextId(ContextId(0x22)),
            begin(BeginReason::Enabled),
        ];
        assert_eq!(directives(&packets_of(&config, &bytes)), expected);
    }
}

mod encoding {
    use super::*;

    fn encoded(config: &Config, packets: &[Packet]) -> Result<Vec<u8>, EncodeError> {
        let mut encoder = Encoder::new(config);
        let mut bytes = Vec::new();
        packets.iter().try_for_each(|packet| encoder.encode(packet, &mut bytes))?;
        Ok(bytes)
    }

    fn i_sync(location: Location) -> Packet {
        Packet::ISync(ISync {
            reason: ISyncReason::Enabled,
            location,
            security: SECURE,
            cycles: None,
            context_id: None,
        })
    }

    #[test]
    fn packets_take_their_shortest_form() {
        let mut encoder = Encoder::new(&plain());
        let mut bytes = Vec::new();
        let mut push = |packet_for: &dyn Fn(&Encoder) -> Packet| {
            let before = bytes.len();
            let packet = packet_for(&encoder);
            encoder.encode(&packet, &mut bytes).unwrap();
            bytes[before..].to_vec()
        };
        assert_eq!(push(&|_| Packet::ASync), A_SYNC);
        assert_eq!(push(&|_| i_sync(a32(0xc000_8000))), I_SYNC);
        let near = |encoder: &Encoder| Packet::Branch(encoder.branch_to(a32(0xc000_8028), SECURE, None));
        assert_eq!(push(&near), [0x15]);
        let non_secure =
            |encoder: &Encoder| Packet::Branch(encoder.branch_to(a32(0xc000_8028), NON_SECURE, None));
        assert_eq!(push(&non_secure), [0x95, 0x40, 0x01]);
        let irq =
            |encoder: &Encoder| Packet::Branch(encoder.exception(14, a32(0xffff_0018), NON_SECURE, None));
        assert_eq!(push(&irq), [0x8d, 0x80, 0xfe, 0xff, 0x4f, 0x1d]);
        let reached = |encoder: &Encoder| Packet::WaypointUpdate(encoder.waypoint_update(a32(0xffff_001c)));
        assert_eq!(push(&reached), [0x72, 0x0f]);
    }

    #[test]
    fn alt_isa_is_sent_where_it_changes_and_nowhere_else() {
        let at = |isa| Location::new(Address::new(0xc000_8000), isa);
        let update_after = |from: Location, to: Location| {
            let mut encoder = Encoder::new(&plain());
            let mut bytes = Vec::new();
            encoder.encode(&i_sync(from), &mut bytes).unwrap();
            let before = bytes.len();
            encoder.encode(&Packet::WaypointUpdate(encoder.waypoint_update(to)), &mut bytes).unwrap();
            bytes[before..].to_vec()
        };
        assert_eq!(update_after(at(Isa::T32), t32(0xc000_8010)), [0x72, 0x11]);
        assert_eq!(update_after(at(Isa::T32EE), at(Isa::T32EE)), [0x72, 0x01]);
        // All five bytes, and an information byte.
        assert_eq!(update_after(at(Isa::T32), at(Isa::T32EE)).len(), 7);
        assert_eq!(update_after(at(Isa::T32EE), at(Isa::T32)).len(), 7);
        // ARM state has no alternative.
        assert_eq!(update_after(at(Isa::T32EE), a32(0xc000_8000)).len(), 6);
        let short =
            Packet::WaypointUpdate(WaypointUpdate { reached: Some(at(Isa::T32EE)), states_isa: false });
        let refused = encoded(&plain(), &[i_sync(at(Isa::T32)), short]);
        assert_eq!(refused, Err(EncodeError::NotCompressible { location: at(Isa::T32EE) }));
    }

    #[test]
    fn an_address_that_nobody_knows_has_a_short_form_only() {
        let unknown = |states_isa| Packet::WaypointUpdate(WaypointUpdate { reached: None, states_isa });
        assert_eq!(encoded(&plain(), &[unknown(false)]), Ok(vec![0x72, 0x01]));
        assert_eq!(encoded(&plain(), &[unknown(true)]), Err(EncodeError::UnknownAddress));
    }

    #[test]
    fn what_the_configuration_excludes_is_refused() {
        let refused = |config: &Config, packet| encoded(config, &[i_sync(a32(0)), packet]).unwrap_err();
        let old = Config { version: Version::V1_0, ..plain() };
        let atom = |atoms, cycles| Packet::Atom(Atom { atoms, cycles });
        let two = Atoms::one(true).and(false).unwrap();
        let refusals = [
            refused(&old, Packet::Vmid(Vmid(1))),
            refused(&plain(), Packet::ContextId(ContextId(1))),
            refused(&plain(), atom(two, Some(1))),
        ];
        assert!(refusals.iter().all(|refusal| matches!(refusal, EncodeError::NotEnabled { .. })));
        let with_cycles = |packet| encoded(&cycle_accurate(), &[packet]).unwrap_err();
        assert_eq!(
            with_cycles(atom(two, Some(1))).to_string(),
            "found several atoms with one cycle count, which the configuration excludes"
        );
        assert_eq!(with_cycles(atom(two, None)), EncodeError::FieldMissing { field: "cycle count" });
        let small = Config { context_id_size: ContextIdSize::Byte, ..plain() };
        let error = encoded(&small, &[Packet::ContextId(ContextId(0x100))]).unwrap_err();
        assert_eq!(error, EncodeError::ValueOutOfRange { field: "context ID", value: 0x100 });
    }

    #[test]
    fn what_could_not_be_read_back_is_refused_and_changes_nothing() {
        let mut encoder = Encoder::new(&plain());
        let mut bytes = Vec::new();
        encoder.encode(&i_sync(t32(0xc000_8000)), &mut bytes).unwrap();
        let before = bytes.clone();
        let branch =
            |target, exception| Packet::Branch(Branch { target, states_isa: false, exception, cycles: None });
        let far = t32(0x1000_0000);
        let information = ExceptionInformation { number: 0x200, security: SECURE };
        let ee = Location::new(Address::new(0xc000_8000), Isa::T32EE);
        for (packet, expected) in [
            (branch(Some(far), None), EncodeError::NotCompressible { location: far }),
            (branch(Some(ee), None), EncodeError::NeedsExceptionInformation { location: ee }),
            (branch(None, None), EncodeError::UnknownAddress),
            (
                branch(Some(t32(0xc000_8000)), Some(information)),
                EncodeError::ValueOutOfRange { field: "exception number", value: 0x200 },
            ),
            (
                branch(Some(t32(0xc000_8001)), None),
                EncodeError::ValueOutOfRange { field: "address", value: 0xc000_8001 },
            ),
        ] {
            assert_eq!(encoder.encode(&packet, &mut bytes), Err(expected));
            assert_eq!(bytes, before);
        }
    }
}

mod properties {
    use super::*;

    /// The content of a packet, to be fitted to the state and the configuration.
    #[derive(Clone, Debug)]
    enum Saying {
        ASync,
        ISync(ISyncReason, Location, SecurityBits),
        Atoms(Vec<bool>),
        BranchTo(Location, SecurityBits),
        BranchWithAllBytes(Location, SecurityBits),
        UnknownBranch(u16, SecurityBits),
        Exception(u16, Location, SecurityBits),
        WaypointUpdate(Location),
        UnknownWaypointUpdate,
        ContextId,
        Trigger,
        Ignore,
        ExceptionReturn,
        Timestamp(u64, bool),
        Vmid(u8),
    }

    fn any_config() -> impl Strategy<Value = Config> {
        let width = prop_oneof![Just(TimestampWidth::Bits48), Just(TimestampWidth::Bits64)];
        let coding = prop_oneof![Just(TimestampCoding::Binary), Just(TimestampCoding::Gray)];
        let version = prop_oneof![Just(Version::V1_0), Just(Version::V1_1)];
        let context_id_size = prop_oneof![
            Just(ContextIdSize::None),
            Just(ContextIdSize::Byte),
            Just(ContextIdSize::Halfword),
            Just(ContextIdSize::Word)
        ];
        (version, any::<bool>(), context_id_size, width, coding, any::<bool>()).prop_map(
            |(version, cycle_accurate, context_id_size, width, coding, waypoint_updates_are_bases)| Config {
                version,
                cycle_accurate,
                context_id_size,
                timestamp: TimestampFormat { width, coding },
                waypoint_updates_are_bases,
                ..plain()
            },
        )
    }

    /// Locations at all distances from each other, so that addresses of every length occur.
    fn any_location(jazelle: bool) -> impl Strategy<Value = Location> {
        let isa = prop_oneof![
            4 => Just(Isa::A32),
            4 => Just(Isa::T32),
            1 => Just(Isa::T32EE),
            u32::from(jazelle) => Just(Isa::Jazelle),
        ];
        (any::<u32>(), 0_u32..32, isa).prop_map(|(noise, distance, isa)| {
            let address = Address::from(0x8000_1234 ^ noise >> distance);
            Location::new(address.aligned_for(isa), isa)
        })
    }

    fn any_security() -> impl Strategy<Value = SecurityBits> {
        (any::<bool>(), any::<bool>())
            .prop_map(|(non_secure, hypervisor)| SecurityBits { non_secure, hypervisor })
    }

    fn any_saying() -> impl Strategy<Value = Saying> {
        let exception_number = || prop_oneof![0_u16..16, 0_u16..512];
        prop_oneof![
            1 => Just(Saying::ASync),
            1 => ((0_u8..4).prop_map(ISyncReason::from_bits), any_location(false), any_security())
                .prop_map(|(reason, location, security)| Saying::ISync(reason, location, security)),
            2 => prop::collection::vec(any::<bool>(), 1..=5).prop_map(Saying::Atoms),
            3 => (any_location(true), any_security()).prop_map(|(to, state)| Saying::BranchTo(to, state)),
            1 => (any_location(true), any_security()).prop_map(|(to, state)| Saying::BranchWithAllBytes(to, state)),
            1 => (exception_number(), any_security()).prop_map(|(number, state)| Saying::UnknownBranch(number, state)),
            1 => (exception_number(), any_location(true), any_security())
                .prop_map(|(number, to, state)| Saying::Exception(number, to, state)),
            2 => any_location(true).prop_map(Saying::WaypointUpdate),
            1 => Just(Saying::UnknownWaypointUpdate),
            1 => Just(Saying::ContextId),
            1 => Just(Saying::Trigger),
            1 => Just(Saying::Ignore),
            1 => Just(Saying::ExceptionReturn),
            1 => (any::<u64>(), 0_u32..64, any::<bool>())
                .prop_map(|(noise, shift, changed)| Saying::Timestamp(noise >> shift, changed)),
            1 => any::<u8>().prop_map(Saying::Vmid),
        ]
    }

    /// The packet for `saying`; `None` if the configuration has none.
    fn packet(saying: &Saying, encoder: &Encoder, config: &Config, noise: u32) -> Option<Packet> {
        let cycles = config.cycle_accurate.then_some(noise >> (noise % 32));
        let context_id = match config.context_id_size.bytes() {
            0 => None,
            bytes => Some(ContextId(noise >> (8 * (4 - u32::from(bytes))))),
        };
        let unknown = Branch { target: None, states_isa: false, exception: None, cycles };
        Some(match *saying {
            Saying::ASync => Packet::ASync,
            Saying::ISync(reason, location, security) => {
                let cycles = cycles.filter(|_| reason != ISyncReason::Periodic);
                Packet::ISync(ISync { reason, location, security, cycles, context_id })
            }
            Saying::Atoms(ref executed) => {
                let count = if config.cycle_accurate { 1 } else { executed.len() };
                let first = Atoms::one(executed[0]);
                let atoms = executed[1..count].iter().try_fold(first, |atoms, &next| atoms.and(next))?;
                Packet::Atom(Atom { atoms, cycles })
            }
            Saying::BranchTo(to, security) => Packet::Branch(encoder.branch_to(to, security, cycles)),
            Saying::BranchWithAllBytes(to, security) => {
                Packet::Branch(Branch { states_isa: true, ..encoder.branch_to(to, security, cycles) })
            }
            Saying::UnknownBranch(0, _) => Packet::Branch(unknown),
            Saying::UnknownBranch(number, security) => {
                let exception = Some(ExceptionInformation { number, security });
                Packet::Branch(Branch { exception, ..unknown })
            }
            Saying::Exception(number, to, security) => {
                Packet::Branch(encoder.exception(number, to, security, cycles))
            }
            Saying::WaypointUpdate(to) => Packet::WaypointUpdate(encoder.waypoint_update(to)),
            Saying::UnknownWaypointUpdate => {
                Packet::WaypointUpdate(WaypointUpdate { reached: None, states_isa: false })
            }
            Saying::ContextId => Packet::ContextId(context_id?),
            Saying::Trigger => Packet::Trigger,
            Saying::Ignore => Packet::Ignore,
            Saying::ExceptionReturn => Packet::ExceptionReturn,
            Saying::Timestamp(value, clock_changed) => {
                let value = config.timestamp.value(config.timestamp.raw(value));
                Packet::Timestamp(Timestamp { value, clock_changed, cycles })
            }
            Saying::Vmid(_) if config.version == Version::V1_0 => return None,
            Saying::Vmid(vmid) => Packet::Vmid(Vmid(vmid.into())),
        })
    }

    /// Encodes every saying that has a packet; returns the packets and their bytes.
    fn say(sayings: &[Saying], config: &Config, noise: u32) -> (Vec<Packet>, Vec<u8>) {
        let mut encoder = Encoder::new(config);
        let (mut packets, mut bytes) = (Vec::new(), Vec::new());
        let mut noise = noise;
        for saying in [&Saying::ASync].into_iter().chain(sayings) {
            noise = noise.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            let Some(packet) = packet(saying, &encoder, config, noise) else { continue };
            match encoder.encode(&packet, &mut bytes) {
                Ok(()) => packets.push(packet),
                // Once one address is known, the next ones are as well.
                Err(EncodeError::UnknownAddress) => {}
                Err(error) => panic!("{error}: {packet:?}"),
            }
        }
        (packets, bytes)
    }

    /// Bytes with islands of valid packets: random bytes seldom synchronise.
    fn hostile_bytes() -> impl Strategy<Value = Vec<u8>> {
        let island = prop_oneof![
            3 => prop::collection::vec(any::<u8>(), 1..20),
            2 => Just(A_SYNC.to_vec()),
            1 => Just(I_SYNC.to_vec()),
            1 => (0_usize..200).prop_map(|zeros| vec![0; zeros]),
            1 => Just(vec![0x80]),
        ];
        prop::collection::vec(island, 0..40).prop_map(|islands| islands.concat())
    }

    proptest! {
        #[test]
        fn written_packets_are_read_back(
            config in any_config(),
            sayings in prop::collection::vec(any_saying(), 0..24),
            noise: u32,
        ) {
            let (packets, bytes) = say(&sayings, &config, noise);
            prop_assert_eq!(packets_of(&config, &bytes), packets);
        }

        #[test]
        fn any_bytes_are_covered_exactly_once_and_in_order(config in any_config(), bytes in hostile_bytes()) {
            let items = decode(&config, &bytes);
            let mut position = 0;
            for (_, span, _) in &items {
                prop_assert_eq!(span.start.0, position);
                prop_assert!(span.bytes() > 0);
                position = span.end.0;
            }
            let together = items.into_iter().flat_map(|(_, _, bytes)| bytes).collect::<Vec<_>>();
            prop_assert_eq!(together, bytes);
        }

        #[test]
        fn any_cutting_gives_the_same_items(
            config in any_config(),
            bytes in hostile_bytes(),
            size in 1_usize..40,
        ) {
            let whole = decode(&config, &bytes);
            let one_by_one = bytes.chunks(1).collect::<Vec<_>>();
            prop_assert_eq!(&decode_in_chunks(&config, &one_by_one), &whole);
            let pieces = bytes.chunks(size).collect::<Vec<_>>();
            prop_assert_eq!(&decode_in_chunks(&config, &pieces), &whole);
        }

        #[test]
        fn lowering_takes_any_packets(config in any_config(), bytes in hostile_bytes()) {
            let mut lowering = Lowering::new();
            let mut positioned = false;
            for (item, span, _) in decode(&config, &bytes) {
                let mut check = |directive: Directive, _| match directive {
                    Directive::Begin { .. } => positioned = true,
                    Directive::Lost => positioned = false,
                    Directive::Waypoint { .. } | Directive::WaypointTo(_) | Directive::RunTo { .. }
                    | Directive::Exception { .. } | Directive::Confirm(_) => {
                        assert!(positioned, "{directive:?} without a position");
                    }
                    _ => {}
                };
                match item {
                    Item::Packet(packet) => lowering.lower(&packet, span, &mut check),
                    _ => lowering.lost(span, crate::protocol::Loss::Lost, &mut check),
                }
            }
        }
    }

    #[test]
    fn every_packet_kind_is_among_the_sayings() {
        let sayings = [
            Saying::UnknownBranch(14, NON_SECURE),
            Saying::UnknownWaypointUpdate,
            Saying::ISync(ISyncReason::Overflow, t32(0x8000_0000), NON_SECURE),
            Saying::Atoms(vec![true, false]),
            Saying::BranchTo(a32(0x8000_0010), SECURE),
            Saying::WaypointUpdate(a32(0x8000_0020)),
            Saying::ContextId,
            Saying::Trigger,
            Saying::Ignore,
            Saying::ExceptionReturn,
            Saying::Timestamp(1, true),
            Saying::Vmid(1),
        ];
        for config in [plain(), cycle_accurate()] {
            let config = Config { context_id_size: ContextIdSize::Halfword, ..config };
            let (packets, bytes) = say(&sayings, &config, 7);
            assert_eq!(packets_of(&config, &bytes), packets);
            let names = packets.iter().map(Packet::name).collect::<BTreeSet<_>>();
            let all = [
                "a_sync",
                "atom",
                "branch",
                "context_id",
                "exception_return",
                "i_sync",
                "ignore",
                "timestamp",
                "trigger",
                "vmid",
                "waypoint_update",
            ];
            assert!(names.into_iter().eq(all));
        }
    }
}
