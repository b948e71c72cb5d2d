//! The places of packets in a dump, by registers.
#![expect(clippy::single_range_in_vec_init, reason = "lists of ranges are what is compared here")]

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use proptest::prelude::*;

use crate::ids::Address;
use crate::protocol::mtb::order::{Dump, Layout, LayoutError, Piece, by_registers};
use crate::protocol::mtb::{BufferSize, Config, Registers};
use crate::span::StreamOffset;

const NOT_WRAPPED: bool = false;
const WRAPPED: bool = true;

fn config(size: u64, pointer: u32, wrapped: bool, base: Option<u32>) -> Config {
    let registers = Registers { position: pointer, master: 1 << 31, flow: None, base };
    let size = BufferSize::new(size).expect("a size that there is");
    Config { size, wrapped, ..Config::from_registers(registers) }
}

fn layout(bytes: usize, address: Option<u32>, config: &Config) -> Result<Layout, LayoutError> {
    by_registers(Dump::new(&vec![0; bytes], address.map(Address::from)), config)
}

/// The ranges of a layout without missing bytes, in which every piece continues.
fn ranges(bytes: usize, address: Option<u32>, config: &Config) -> Vec<Range<usize>> {
    let layout = layout(bytes, address, config).expect("the dump holds the buffer");
    assert_eq!(layout.missing, []);
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
fn a_dump_may_go_on_after_the_memory_of_the_mtb() {
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
    // KL25: 16 KiB from 0x1FFFF000, 15 bits of pointer. The manual places POSITION at the address's bits
    // 14:3.
    let buffer_at_base = config(0x1000, 0x7010, WRAPPED, Some(0x1fff_f000));
    let buffer_above = config(0x1000, 0x0010, WRAPPED, Some(0x1fff_f000));
    for pointer_bits in [None, Some(15)] {
        let at_base = Config { pointer_bits, ..buffer_at_base };
        assert_eq!(ranges(0x4000, Some(0x1fff_f000), &at_base), [0x10..0x1000, 0..0x10]);
        assert_eq!(ranges(0x4000, None, &at_base), [0x10..0x1000, 0..0x10]);
        let above = Config { pointer_bits, ..buffer_above };
        assert_eq!(ranges(0x4000, Some(0x1fff_f000), &above), [0x1010..0x2000, 0x1000..0x1010]);
        assert_eq!(ranges(0x4000, None, &above), [0x1010..0x2000, 0x1000..0x1010]);
        // Only the buffer, with its real address.
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
    assert_eq!(found, Layout { pieces, missing: vec![0x2000_0080..0x2000_0100], lost_newest: false });
    // A dump from the middle of a packet on.
    let found = layout(0x100, Some(0x2000_0004), &config).expect("the dump holds a part");
    let pieces =
        vec![Piece { bytes: 0x3c..0xfc, continues: false }, Piece { bytes: 4..0x3c, continues: false }];
    assert_eq!(found, Layout { pieces, missing: vec![0x2000_0000..0x2000_0004], lost_newest: false });
}

#[test]
fn holes_are_missing_by_their_addresses_and_pieces_beside_them_are_used() {
    let config = config(0x100, 0x40, WRAPPED, Some(0x2000_0000));
    let with_holes = |holes: &[Range<usize>]| {
        let dump = Dump { data: &[0; 0x100], address: Some(Address::new(0x2000_0000)), holes };
        by_registers(dump, &config).expect("the dump holds a part")
    };
    let found = with_holes(&[0x10..0x20, 0x84..0x88]);
    let pieces = vec![
        Piece { bytes: 0x40..0x80, continues: false },
        Piece { bytes: 0x88..0x100, continues: false },
        Piece { bytes: 0..0x10, continues: true },
        Piece { bytes: 0x20..0x40, continues: false },
    ];
    let missing = vec![0x2000_0084..0x2000_0088, 0x2000_0010..0x2000_0020];
    assert_eq!(found, Layout { pieces, missing, lost_newest: false });
    assert_eq!(found.missing_bytes(), 20);
    // The newest packets, and one half of the newest.
    assert!(with_holes(&[0x30..0x50]).lost_newest);
    assert!(with_holes(&[0x3c..0x40]).lost_newest);
    assert!(with_holes(&[0x20..0x100]).lost_newest);
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

proptest! {
    #[test]
    fn any_registers_and_any_dump_give_packets_inside_the_dump_once(
        registers in any::<(u32, u32, u32)>(),
        small_pointer in any::<bool>(),
        pointer_bits in proptest::option::of(4_u8..=32),
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
}
