//! The places of a Micro Trace Buffer's packets in a dump, without registers: dumps made by hand, the corpus, any
//! bytes.
#![expect(clippy::single_range_in_vec_init, reason = "lists of ranges are what is compared here")]

use std::ops::Range;
use std::path::PathBuf;

use object::{Object, ObjectSegment};
use proptest::prelude::*;
use serde_json::Value;
use tracewalk::flow::runs_straight;
use tracewalk::ids::{Address, Isa, Location};
use tracewalk::program::Program;
use tracewalk::protocol::mtb::order::{Dump, Layout, Piece, by_registers};
use tracewalk::protocol::mtb::{Config, Packet, Registers};
use tracewalk_session::mtb_order::{Ending, Guess, by_evidence, within_reach};

/// The corpus, in a folder beside the project.
fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus")
}

#[tracewalk_corpus::test]
fn the_vectors_with_registers_are_read_the_same_without_them() {
    let corpus = corpus();
    let text = std::fs::read_to_string(corpus.join("vectors.json")).expect("vectors.json is readable");
    let file = serde_json::from_str::<Value>(&text).expect("vectors.json is JSON");
    let word = |value: &Value| u32::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok();
    let mut tested = 0;
    for vector in
        file["vectors"].as_array().expect("a list").iter().filter(|vector| vector["protocol"] == "mtb")
    {
        let config = &vector["config"];
        let (Some(position), Some(master)) = (word(&config["POSITION"]), word(&config["MASTER"])) else {
            continue;
        };
        let digits = vector["bytes"].as_str().expect("bytes are a string").as_bytes();
        let byte = |pair| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16).expect("hex digits");
        let data = digits.chunks(2).map(byte).collect::<Vec<_>>();
        let dump = Dump::new(&data, None);
        let registers = Registers { position, master, flow: None, base: None };
        let layout =
            by_registers(dump, &Config::from_registers(registers)).expect("the dump holds the buffer");
        let guess = by_evidence(dump, within_reach).expect("there are packets");
        assert_eq!(guess.best.layout, layout, "{}: {}", vector["id"], guess.best.evidence);
        tested += 1;
    }
    assert!(tested >= 2, "only {tested} MTB vectors have registers");
}

/// A buffer of the corpus, its program, and the places of its packets by the registers.
fn case(name: &str) -> (Vec<u8>, Program, Layout) {
    let folder = corpus().join("synthetic").join(name);
    let read = |name: &str| std::fs::read(folder.join(name)).expect("the corpus is complete");
    let registers = String::from_utf8(read("registers.txt")).expect("text");
    let register = |name: &str| {
        let line = registers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("=0x"));
        u32::from_str_radix(line.expect("the register is there"), 16).expect("hex digits")
    };
    let registers = Registers {
        position: register("MTB_POSITION"),
        master: register("MTB_MASTER"),
        flow: Some(register("MTB_FLOW")),
        base: Some(register("MTB_BASE")),
    };
    let data = read("mtb.bin");
    let dump = Dump::new(&data, None);
    let layout = by_registers(dump, &Config::from_registers(registers)).expect("the dump holds the buffer");
    let elf = read("program.elf");
    let mut program = Program::new();
    for segment in object::File::parse(&*elf).expect("an ELF file").segments() {
        let bytes = segment.data().expect("the segment is in the file");
        program.add(Address::new(segment.address()), bytes).expect("segments do not overlap");
    }
    program.set_vector_table(Address::new(0));
    (data, program, layout)
}

#[tracewalk_corpus::test]
fn without_registers_the_image_shows_where_a_buffer_wrapped() {
    for name in ["mix-m0-mtb-full", "mix-m0-mtb-4k"] {
        let (data, program, layout) = case(name);
        let dump = Dump::new(&data, None);
        let reaches = |from, to| runs_straight(&program, Location::new(from, Isa::T32), to);
        let guess = by_evidence(dump, reaches).expect("there are packets");
        assert_eq!(guess.best.layout, layout, "{name}");
        assert_eq!(guess.best.evidence.breaks, 0, "{name}");
        assert!(guess.runner_up.is_none_or(|other| other.evidence.score() < guess.best.evidence.score()));
        // A rule of thumb about distances finds packets, too.
        assert!(by_evidence(dump, within_reach).is_some(), "{name}");
    }
}

/// Packets from pairs of addresses.
fn memory(packets: &[(u32, u32)]) -> Vec<u8> {
    packets
        .iter()
        .flat_map(|&(source, destination)| Packet::from_words(source, destination).to_bytes())
        .collect()
}

/// A path that jumps about in 64 KiB: each packet starts 8 bytes after the destination of the one before.
fn path(packets: u32) -> Vec<(u32, u32)> {
    let place = |index: u32| 0x0800_0000 | (index.wrapping_mul(0x9e37_79b1) >> 16 & !1);
    (0..packets).map(|index| (place(index) + 8, place(index + 1))).collect()
}

fn guess(data: &[u8]) -> Guess {
    by_evidence(Dump::new(data, None), within_reach).expect("there are packets")
}

fn guessed_ranges(data: &[u8]) -> Vec<Range<usize>> {
    guess(data).best.layout.pieces.into_iter().map(|piece| piece.bytes).collect()
}

#[test]
fn without_registers_a_break_in_a_full_buffer_is_where_it_wrapped() {
    let mut packets = path(64);
    packets.rotate_left(20);
    let guess = guess(&memory(&packets));
    assert_eq!(guess.best.layout.pieces[0], Piece { bytes: 44 * 8..512, continues: false });
    assert_eq!(guess.best.layout.pieces[1], Piece { bytes: 0..44 * 8, continues: true });
    let evidence = guess.best.evidence;
    assert!(evidence.wrapped && evidence.breaks_at_wrap);
    assert_eq!((evidence.packets, evidence.fits, evidence.breaks), (64, 63, 0));
    let runner_up = guess.runner_up.expect("there are other places to cut");
    assert!(runner_up.evidence.score() < evidence.score());
}

#[test]
fn without_registers_empty_entries_end_a_buffer_that_has_not_wrapped() {
    for fill in [0, 0xdead_beef_u32, 0xffff_ffff, 0xa5a5_a5a5, 0x5555_5555] {
        let mut data = memory(&path(20));
        data.extend(fill.to_le_bytes().repeat(24));
        assert_eq!(guessed_ranges(&data), [0..160], "filled with {fill:x}");
        assert_eq!(guess(&data).best.evidence.unwritten, 12);
    }
}

#[test]
fn without_registers_an_s_bit_is_no_break() {
    let mut packets = path(64);
    packets[30].0 ^= 0x1_0000;
    packets[30].1 |= 1;
    packets.rotate_left(20);
    let guess = guess(&memory(&packets));
    assert_eq!(guess.best.layout.pieces[0].bytes, 44 * 8..512);
    assert_eq!((guess.best.evidence.restarts, guess.best.evidence.breaks), (1, 0));
}

#[test]
fn without_registers_a_loop_that_fills_the_buffer_is_read_from_the_start() {
    let guess = guess(&memory(&[(0x0800_0010, 0x0800_0000); 32]));
    assert_eq!(guess.best.layout.pieces, [Piece { bytes: 0..256, continues: false }]);
    assert!(!guess.best.evidence.breaks_at_wrap);
}

#[test]
fn without_registers_the_halves_of_a_return_must_meet() {
    let packets = [
        (0x0800_0201, 0x0800_0400),
        (0x0800_0404, 0xffff_fff8),
        (0xffff_fff9, 0x0800_0200),
        (0x0800_0208, 0x0900_0000),
    ];
    for turn in 0..4 {
        let mut turned = packets;
        turned.rotate_right(turn);
        let expected = if turn == 0 { vec![0..32] } else { vec![turn * 8..32, 0..turn * 8] };
        assert_eq!(guessed_ranges(&memory(&turned)), expected, "turned by {turn}");
    }
}

#[test]
fn without_registers_a_jump_to_nowhere_and_the_fault_after_it_are_packets_too() {
    // The last entries of a crash: a branch to an address without memory, and the exception that it caused.
    let mut packets = path(64);
    let last = packets[61].1 + 8;
    packets[62] = (last, 0xbf00_de4c);
    packets[63] = (0xbf00_de4d, 0x0800_0300);
    let mut wrapped = packets.clone();
    wrapped.rotate_left(20);
    assert_eq!(guessed_ranges(&memory(&wrapped)), [44 * 8..512, 0..44 * 8]);
    assert_eq!(guess(&memory(&wrapped)).best.evidence.fits, 63);
    // The same crash without the exception, which a locked-up processor never takes.
    packets.pop();
    packets.resize(128, (0, 0));
    assert_eq!(guessed_ranges(&memory(&packets)), [0..63 * 8]);
}

#[test]
fn without_registers_the_buffer_is_found_in_a_dump_of_all_memory() {
    // Data that is not packets, then the buffer at its alignment, then zeros.
    let mut data = 0x4000_0c3f_u32.to_le_bytes().repeat(256);
    data.extend((0..256_u32).flat_map(|index| index.wrapping_mul(0x9e37_79b1).to_le_bytes()));
    let mut packets = path(256);
    packets.rotate_left(100);
    data.extend(memory(&packets));
    data.extend([0; 4096]);
    assert_eq!(guessed_ranges(&data), [2048 + 156 * 8..4096, 2048..2048 + 156 * 8]);
}

#[test]
fn without_registers_packets_that_do_not_go_together_begin_no_buffer() {
    // Words that look like packets by chance between empty ones, and the buffer after them.
    let by_chance = (0..6).map(|index| (0x0100_0000 * (index + 1), 0x0100_0000 * (index + 9)));
    let packets = [vec![(0, 0); 2], by_chance.collect(), path(20), vec![(0, 0); 5]].concat();
    assert_eq!(guessed_ranges(&memory(&packets)), [8 * 8..28 * 8]);
}

#[test]
fn without_registers_a_full_block_that_does_not_go_round_may_be_a_part_of_the_buffer() {
    // The packets break inside, between the newest and the oldest, and the last one does not continue at the first.
    let mut packets = path(16);
    packets[7..].iter_mut().for_each(|packet| *packet = (packet.0 ^ 0x0400_0000, packet.1 ^ 0x0400_0000));
    let Guess { best, .. } = guess(&memory(&packets));
    let pieces = vec![Piece { bytes: 56..128, continues: false }, Piece { bytes: 0..56, continues: false }];
    assert_eq!(best.layout.pieces, pieces);
    assert_eq!(best.evidence.end, Ending::Unheld(128..256));
}

/// The guess for a dump at an address, with holes.
fn found_at(data: &[u8], address: u64, holes: &[Range<usize>]) -> Guess {
    let dump = Dump { data, address: Some(Address::new(address)), holes };
    by_evidence(dump, within_reach).expect("there are packets")
}

#[test]
fn without_registers_what_a_dump_lacks_is_named_and_the_break_is_still_found() {
    let mut packets = path(64);
    packets.rotate_left(20);
    let data = memory(&packets);
    let oldest = 44 * 8;
    // A hole in the newer part, one in the older, and the first and last bytes.
    for missing in [64..80, 400..416, 0..16, 496..512] {
        let (start, end) = if missing.start == 0 {
            (16, 512)
        } else if missing.end == 512 {
            (0, 496)
        } else {
            (0, 512)
        };
        let is_inside = start == 0 && end == 512;
        let holes = if is_inside { vec![missing.clone()] } else { Vec::new() };
        let Guess { best, .. } = found_at(&data[start..end], 0x2000_0000 + start as u64, &holes);
        let addresses = 0x2000_0000 + missing.start as u64..0x2000_0000 + missing.end as u64;
        assert_eq!(best.layout.missing, [addresses], "{missing:?}");
        assert_eq!(best.evidence.end, Ending::Shown, "{missing:?}");
        assert_eq!(best.layout.pieces[0].bytes.start, oldest - start, "{missing:?}");
        assert_eq!(
            best.layout.pieces.last().map(|piece| piece.bytes.end),
            Some(oldest - start),
            "{missing:?}"
        );
    }
    // A hole at the break itself.
    let Guess { best, .. } = found_at(&data, 0x2000_0000, &[oldest - 8..oldest + 8]);
    assert!(best.layout.lost_newest);
    assert_eq!(best.layout.missing, [0x2000_0000 + oldest as u64 - 8..0x2000_0000 + oldest as u64 + 8]);
}

#[test]
fn without_registers_half_a_buffer_may_be_all_of_a_smaller_one() {
    let data = memory(&path(64));
    let unheld = |half: Range<usize>| {
        let address = 0x2000_0000 + half.start as u64;
        found_at(&data[half], address, &[]).best.evidence.end
    };
    assert_eq!(unheld(0..256), Ending::Unheld(0x2000_0100..0x2000_0200));
    assert_eq!(unheld(256..512), Ending::Unheld(0x2000_0000..0x2000_0100));
    // The memory after the buffer shows its end.
    let mut data = data;
    data.resize(1024, 0);
    assert_eq!(found_at(&data, 0x2000_0000, &[]).best.evidence.end, Ending::Shown);
}

#[test]
fn without_registers_two_packets_that_alternate_show_no_end_and_one_does() {
    let two = [(0x0800_0010, 0x0800_0000), (0x0800_0008, 0x0800_000c)];
    assert_ne!(guess(&memory(&two.repeat(16))).best.evidence.end, Ending::Shown);
    assert_eq!(guess(&memory(&two[..1].repeat(32))).best.evidence.end, Ending::Shown);
}

#[test]
fn without_registers_a_dump_may_begin_inside_a_packet() {
    let mut packets = path(64);
    packets.rotate_left(20);
    let Guess { best, .. } = found_at(&memory(&packets)[4..], 0x2000_0004, &[]);
    assert_eq!(best.layout.missing, [0x2000_0000..0x2000_0004]);
    assert_eq!(best.layout.pieces[0].bytes.start, 44 * 8 - 4);
}

#[test]
fn without_packets_there_is_no_guess() {
    let nothing = |data: &[u8]| by_evidence(Dump::new(data, None), within_reach).is_none();
    assert!(nothing(&[]));
    assert!(nothing(&[0; 64]));
    assert!(nothing(&[0xff; 64]));
    assert!(nothing(&0x4002_3c00_u32.to_le_bytes().repeat(8)));
}

proptest! {
    #[test]
    fn any_dump_can_be_searched(data in proptest::collection::vec(any::<u8>(), 0..600), address in any::<u32>()) {
        for reaches in [true, false] {
            let guess = by_evidence(Dump::new(&data, Some(Address::from(address))), |_, _| reaches);
            for piece in guess.into_iter().flat_map(|guess| guess.best.layout.pieces) {
                // The buffer's alignment is an alignment in memory, not in the dump.
                let first = u64::from(address) + piece.bytes.start as u64;
                prop_assert!(piece.bytes.end <= data.len() && first.is_multiple_of(8), "{piece:?}");
            }
        }
    }

    #[test]
    fn any_turn_of_a_path_is_found_without_registers(exponent in 4_u32..8, turn in 1_usize..1000) {
        let mut packets = path(1 << exponent);
        let turn = turn % packets.len();
        packets.rotate_right(turn);
        let end = packets.len() * 8;
        let expected = if turn == 0 { vec![0..end] } else { vec![turn * 8..end, 0..turn * 8] };
        prop_assert_eq!(guessed_ranges(&memory(&packets)), expected);
    }
}
