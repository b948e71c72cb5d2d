//! Where packets stand in a dump, by registers and by evidence.
#![expect(clippy::single_range_in_vec_init, reason = "lists of ranges are what is compared here")]

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use proptest::prelude::*;

use crate::ids::Address;
use crate::protocol::mtb::evidence::{by_evidence, within_reach};
use crate::protocol::mtb::order::{Dump, Layout, LayoutError, Piece, by_registers};
use crate::protocol::mtb::{BufferSize, Config, Packet, Registers};
use crate::span::StreamOffset;

const NOT_WRAPPED: bool = false;
const WRAPPED: bool = true;

fn config(size: u64, pointer: u32, wrapped: bool, base: Option<u32>) -> Config {
    let registers = Registers { position: pointer, master: 1 << 31, flow: None, base };
    let size = BufferSize::new(size).expect("a size that there is");
    Config { size, wrapped, ..Config::from_registers(registers) }
}

fn layout(bytes: usize, address: Option<u32>, config: &Config) -> Result<Layout, LayoutError> {
    by_registers(Dump { data: &vec![0; bytes], address: address.map(Address::from) }, config)
}

/// The ranges of a layout in which everything is there and continues.
fn ranges(bytes: usize, address: Option<u32>, config: &Config) -> Vec<Range<usize>> {
    let layout = layout(bytes, address, config).expect("the dump holds the buffer");
    assert_eq!(layout.missing, 0);
    assert!(layout.pieces.iter().skip(1).all(|piece| piece.continues));
    layout.pieces.into_iter().map(|piece| piece.bytes).collect()
}

#[test]
fn a_buffer_that_has_not_wrapped_ends_at_the_pointer() {
    assert_eq!(ranges(32, None, &config(32, 0x10, NOT_WRAPPED, None)), [0..16]);
    assert_eq!(ranges(32, None, &config(32, 0, NOT_WRAPPED, None)), []);
}

#[test]
fn a_buffer_that_has_wrapped_starts_at_the_pointer() {
    assert_eq!(ranges(32, None, &config(32, 0x10, WRAPPED, None)), [16..32, 0..16]);
    assert_eq!(ranges(32, None, &config(32, 0, WRAPPED, None)), [0..32]);
}

#[test]
fn a_dump_may_go_on_behind_the_memory_of_the_mtb() {
    // 0x400 bytes at 0x20001000, in a dump of 16 KiB from 0x20000000.
    let config = config(0x400, 0x34 & !7, WRAPPED, Some(0x2000_1000));
    assert_eq!(ranges(0x4000, Some(0x2000_0000), &config), [0x1030..0x1400, 0x1000..0x1030]);
}

#[test]
fn the_pointer_counts_from_the_start_of_the_memory_and_not_of_the_buffer() {
    // A dump of the buffer alone, which lies at offset 0x1000 of the memory.
    assert_eq!(
        ranges(0x400, None, &config(0x400, 0x1010, WRAPPED, Some(0x2000_0000))),
        [0x10..0x400, 0..0x10]
    );
    // A dump of all of the memory, with the address and without.
    let whole = [0x1010..0x1400, 0x1000..0x1010];
    assert_eq!(ranges(0x4000, None, &config(0x400, 0x1010, WRAPPED, Some(0x2000_0000))), whole);
    assert_eq!(ranges(0x4000, Some(0x2000_0000), &config(0x400, 0x1010, WRAPPED, Some(0x2000_0000))), whole);
    // A dump that starts somewhere before the buffer.
    assert_eq!(
        ranges(0x2000, Some(0x2000_0c00), &config(0x400, 0x1010, WRAPPED, Some(0x2000_0000))),
        [0x410..0x800, 0x400..0x410]
    );
}

#[test]
fn lpc8xx_has_no_base_and_counts_from_the_start_of_its_memory() {
    let config = config(0x200, 0x408, WRAPPED, Some(0));
    assert_eq!(ranges(0x1000, Some(0x1000_0000), &config), [0x408..0x600, 0x400..0x408]);
    assert_eq!(ranges(0x1000, None, &config), [0x408..0x600, 0x400..0x408]);
    assert_eq!(ranges(0x200, Some(0x1000_0400), &config), [8..0x200, 0..8]);
}

#[test]
fn a_kinetis_memory_that_starts_below_its_alignment_is_found_by_the_pointers_low_bits() {
    // KL25: 16 KiB from 0x1FFFF000, 15 bits of pointer. Its manual places POSITION at the address's bits 14:3.
    let buffer_at_base = config(0x1000, 0x7010, WRAPPED, Some(0x1fff_f000));
    let buffer_above = config(0x1000, 0x0010, WRAPPED, Some(0x1fff_f000));
    for pointer_bits in [None, Some(15)] {
        let at_base = Config { pointer_bits, ..buffer_at_base };
        assert_eq!(ranges(0x4000, Some(0x1fff_f000), &at_base), [0x10..0x1000, 0..0x10]);
        assert_eq!(ranges(0x4000, None, &at_base), [0x10..0x1000, 0..0x10]);
        let above = Config { pointer_bits, ..buffer_above };
        assert_eq!(ranges(0x4000, Some(0x1fff_f000), &above), [0x1010..0x2000, 0x1000..0x1010]);
        assert_eq!(ranges(0x4000, None, &above), [0x1010..0x2000, 0x1000..0x1010]);
        // Only the buffer, with the address where it really lies.
        assert_eq!(ranges(0x1000, Some(0x2000_0000), &above), [0x10..0x1000, 0..0x10]);
    }
}

#[test]
fn a_buffer_as_large_as_a_memory_that_is_not_aligned_goes_round_with_the_addresses() {
    // 16 KiB from 0x1FFFF000, 14 bits of pointer: pointer 0 is 0x20000000, pointer 0x3000 is 0x1FFFF000.
    let config = Config { pointer_bits: Some(14), ..config(0x4000, 0x3800, WRAPPED, Some(0x1fff_f000)) };
    assert_eq!(ranges(0x4000, Some(0x1fff_f000), &config), [0x800..0x1000, 0x1000..0x4000, 0..0x800]);
}

#[test]
fn what_the_dump_does_not_hold_breaks_the_order_and_is_counted() {
    let config = config(0x100, 0x40, WRAPPED, Some(0x2000_0000));
    let found = layout(0x80, None, &config).expect("the dump holds a part");
    let pieces =
        vec![Piece { bytes: 0x40..0x80, continues: false }, Piece { bytes: 0..0x40, continues: false }];
    assert_eq!(found, Layout { pieces, missing: 0x80 });
    // A dump from the middle of a packet on.
    let found = layout(0x100, Some(0x2000_0004), &config).expect("the dump holds a part");
    let pieces =
        vec![Piece { bytes: 0x3c..0xfc, continues: false }, Piece { bytes: 4..0x3c, continues: false }];
    assert_eq!(found, Layout { pieces, missing: 8 });
}

#[test]
fn a_dump_of_other_memory_is_an_error_that_says_where_the_buffer_is() {
    let config = config(0x100, 0x40, WRAPPED, Some(0x2000_0000));
    let error = layout(0x100, Some(0x2000_8000), &config).expect_err("the dump is of other memory");
    assert_eq!(error, LayoutError::OutsideDump { buffer: 0x2000_0000, dump: 0x2000_8000, dump_bytes: 0x100 });
    assert_eq!(
        alloc::format!("{error}"),
        "found 256 bytes from 0x20008000, expected the trace buffer, which POSITION places at 0x20000000"
    );
}

#[test]
fn bytes_in_order_have_their_place_in_the_dump() {
    let layout = layout(32, None, &config(32, 0x10, WRAPPED, None)).expect("the dump holds the buffer");
    let places = [0, 15, 16, 31, 32].map(|offset| layout.place_in_dump(StreamOffset(offset)));
    assert_eq!(places, [Some(16), Some(31), Some(0), Some(15), None]);
}

/// Packets from pairs of addresses.
fn memory(packets: &[(u32, u32)]) -> Vec<u8> {
    packets
        .iter()
        .flat_map(|&(source, destination)| Packet::from_words(source, destination).to_bytes())
        .collect()
}

/// A path that jumps about in 64 KiB: each packet starts 8 bytes behind where the one before went.
fn path(packets: u32) -> Vec<(u32, u32)> {
    let place = |index: u32| 0x0800_0000 | (index.wrapping_mul(0x9e37_79b1) >> 16 & !1);
    (0..packets).map(|index| (place(index) + 8, place(index + 1))).collect()
}

fn guess(data: &[u8]) -> crate::protocol::mtb::evidence::Guess {
    by_evidence(Dump { data, address: None }, within_reach).expect("there are packets")
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
fn without_registers_a_jump_to_nowhere_and_the_fault_behind_it_are_packets_too() {
    // The last entries of a crash: a branch to an address without memory, and the exception that it caused.
    let mut packets = path(64);
    let last = packets[61].1 + 8;
    packets[62] = (last, 0xbf00_de4c);
    packets[63] = (0xbf00_de4d, 0x0800_0300);
    let mut wrapped = packets.clone();
    wrapped.rotate_left(20);
    assert_eq!(guessed_ranges(&memory(&wrapped)), [44 * 8..512, 0..44 * 8]);
    assert_eq!(guess(&memory(&wrapped)).best.evidence.fits, 63);
    // The same before the exception, which a locked-up processor never takes.
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
    // Words that look like packets by chance between empty ones, and the buffer behind them.
    let by_chance = (0..6).map(|index| (0x0100_0000 * (index + 1), 0x0100_0000 * (index + 9)));
    let packets = [vec![(0, 0); 2], by_chance.collect(), path(20), vec![(0, 0); 5]].concat();
    assert_eq!(guessed_ranges(&memory(&packets)), [8 * 8..28 * 8]);
}

#[test]
fn without_registers_a_full_buffer_with_another_break_is_left_as_it_stands() {
    // Where packets break twice alike, at the buffer's start and inside, the buffer's start is the older place.
    let mut packets = path(16);
    packets[7..].iter_mut().for_each(|packet| *packet = (packet.0 ^ 0x0400_0000, packet.1 ^ 0x0400_0000));
    assert_eq!(guessed_ranges(&memory(&packets)), [0..128]);
}

#[test]
fn without_packets_there_is_no_guess() {
    let nothing = |data: &[u8]| by_evidence(Dump { data, address: None }, within_reach).is_none();
    assert!(nothing(&[]));
    assert!(nothing(&[0; 64]));
    assert!(nothing(&[0xff; 64]));
    assert!(nothing(&0x4002_3c00_u32.to_le_bytes().repeat(8)));
}

proptest! {
    #[test]
    fn any_registers_and_any_dump_give_packets_inside_the_dump_once(
        registers in any::<(u32, u32, u32)>(),
        small_pointer in any::<bool>(),
        pointer_bits in proptest::option::of(0_u8..40),
        address in proptest::option::of(prop_oneof![any::<u32>(), 0x2000_0000_u32..0x2000_2000]),
        bytes in 0_usize..5000,
    ) {
        let (position, master, base) = registers;
        let position = if small_pointer { position & 0xfff } else { position };
        let registers = Registers { position, master: master & 0x1f, flow: None, base: Some(base) };
        let config = Config { pointer_bits, ..Config::from_registers(registers) };
        if let Ok(layout) = layout(bytes, address, &config) {
            let mut used = vec![false; bytes];
            for piece in &layout.pieces {
                prop_assert_eq!(piece.bytes.len() % 8, 0);
                for byte in &mut used[piece.bytes.clone()] {
                    prop_assert!(!*byte);
                    *byte = true;
                }
            }
            prop_assert!(layout.pieces.len() <= 4);
        }
    }

    #[test]
    fn any_dump_can_be_searched(data in proptest::collection::vec(any::<u8>(), 0..600), address in any::<u32>()) {
        for reaches in [true, false] {
            let guess = by_evidence(Dump { data: &data, address: Some(Address::from(address)) }, |_, _| reaches);
            for piece in guess.into_iter().flat_map(|guess| guess.best.layout.pieces) {
                prop_assert!(piece.bytes.end <= data.len() && piece.bytes.start % 8 == 0);
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
