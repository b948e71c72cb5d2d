//! Frames are taken in groups of eight. A frame's place in the group and the ends of pieces change nothing.

use super::index::assert_indexed_as_deframed;
use super::*;

/// A frame without ID bytes, or with one of a known source.
pub(in crate::frame) fn ordinary_frame(number: usize) -> [u8; FRAME_BYTES] {
    let mut frame =
        [0x84, 0x88, 0x90, 0x41, 0x94, 0x57, 0x40, 0xcc, 0x08, 0x21, 0x80, 0x84, 0x88, 0x41, 0x90, 0];
    frame[15] = [0, 0x25, 0x80, 0xff][number % 4];
    if number % 3 == 1 {
        frame[2 * (number % 8)] = 0x21;
    }
    frame
}

/// A frame with something that needs a look. `kind` selects what it is, its place in the frame, and whether
/// it is delayed.
pub(in crate::frame) fn odd_frame(kind: u8) -> [u8; FRAME_BYTES] {
    let place = 2 * usize::from(kind % 8);
    let delayed = if kind & 8 == 0 { 0 } else { 1 << (kind % 8) };
    let mut frame = ordinary_frame(0);
    match kind >> 4 {
        // A known source, an unknown one, padding, the trigger, and reserved IDs.
        what @ 0..=5 => {
            frame[place] = [0x21, 0x33, 0x01, 0xfb, 0xe1, 0xf9][usize::from(what)];
            frame[15] = delayed;
        }
        // Padding to the end of the frame, and padding that is not the only change.
        what @ 6..=8 => {
            frame[place] = 0x01;
            frame[place + 1..].fill(0);
            frame[15] = delayed;
            if delayed != 0 && place < 14 {
                frame[place + 1] = 5;
            }
            match what {
                7 => frame[14] = 0x21,
                8 => frame[0] = 0x21,
                _ => {}
            }
        }
        9 => frame[place] = 0xff,
        // HSYNC and FSYNC inside the frame.
        10 => frame[place..place + 2].copy_from_slice(&[0xff, 0x7f]),
        11 => {
            let place = place.min(FRAME_BYTES - FSYNC.len()) - usize::from(delayed != 0 && place > 0);
            frame[place..place + FSYNC.len()].copy_from_slice(&FSYNC);
        }
        12 => frame = [FSYNC; 4].concat().try_into().expect("a frame's bytes"),
        13 => frame[15] = 0xff,
        // Every pair is a change.
        14 => {
            (0..8).for_each(|pair| frame[2 * pair] = if pair % 2 == 0 { 0x21 } else { 0x23 });
            frame[15] = if delayed == 0 { 0 } else { 0xff };
        }
        _ => frame = [0; FRAME_BYTES],
    }
    frame
}

/// The bytes before the frames.
fn fronts() -> [Vec<u8>; 4] {
    let doubtful = odd_frame(0x10);
    [
        Vec::new(),
        FSYNC.to_vec(),
        [&FSYNC[..], &doubtful, &doubtful[..3], &FSYNC].concat(),
        [&doubtful[..], &[FSYNC; 4].concat()].concat(),
    ]
}

fn assert_pieces_change_nothing(framing: Framing, input: &[u8], sizes: impl IntoIterator<Item = usize>) {
    let sizes = sizes.into_iter().collect::<Vec<_>>();
    for recovers in [true, false] {
        let (whole, whole_tail, whole_account) = deframe_with(framing, recovers, input, &[]);
        assert_tiling(input, &whole, whole_tail, &whole_account);
        for &size in &sizes {
            let cuts = std::vec![size; input.len() / size];
            let (cut, tail, account) = deframe_with(framing, recovers, input, &cuts);
            assert!(cut.bytes == whole.bytes, "pieces of {size} of {input:x?} in {framing:?}");
            assert_eq!(cut.discontinuities, whole.discontinuities, "pieces of {size} of {input:x?}");
            assert_eq!((tail, account), (whole_tail, whole_account), "pieces of {size} of {input:x?}");
        }
    }
}

#[test]
fn padding_in_the_first_frame_after_a_misplaced_full_sync_is_not_taken_for_a_frame_of_padding() {
    let unknown_source = [0x21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let begins_padding = [0x60, 0x21, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0x01, 5, 0, 0b0100_0000];
    // Alone, this frame is no reason for a loss, but together with the frame before it is.
    let is_not_padding = [0x1c; FRAME_BYTES];
    let input = [&FSYNC[..], &unknown_source, &[0xd0; 3], &FSYNC, &begins_padding, &is_not_padding].concat();
    for size in [1, 7, 16, input.len()] {
        let cuts = std::vec![size; input.len() / size];
        let (found, ..) = deframe(Framing::Port, &input, &cuts);
        let misplaced = Discontinuity { at: CaptureOffset(20), bytes: 3, cause: Cause::MisplacedSync };
        assert_eq!(found.discontinuities, [misplaced], "pieces of {size}");
        // All but the ID byte and the last bytes of both frames.
        assert_eq!(found.bytes.iter().filter(|(at, ..)| *at >= 27).count(), 29, "pieces of {size}");
    }
}

#[test]
fn an_odd_frame_at_any_place_of_a_group_is_the_same_in_pieces_and_in_the_whole() {
    for kind in (0..=u8::MAX).step_by(5) {
        for place in 0..8 {
            let mut frames = (0..18).map(ordinary_frame).collect::<Vec<_>>();
            frames[place] = odd_frame(kind);
            let front = &fronts()[(usize::from(kind) + place) % 4];
            let input = [front, frames.as_flattened()].concat();
            let framing = [Framing::Buffer, Framing::Port, port_from(0)][usize::from(kind / 5) % 3];
            assert_pieces_change_nothing(framing, &input, [1, 40, 135]);
            assert_indexed_as_deframed(framing, 128, &input);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn pieces_of_any_size_change_nothing(
        front in 0..4_usize,
        frames in prop::collection::vec(prop_oneof![
            3 => any::<usize>().prop_map(ordinary_frame),
            1 => any::<u8>().prop_map(odd_frame),
        ], 0..30),
        framing in framing(),
        length in 1..300_u64,
    ) {
        let input = [&fronts()[front], frames.as_flattened()].concat();
        assert_pieces_change_nothing(framing, &input, 1..=9 * FRAME_BYTES);
        assert_indexed_as_deframed(framing, length, &input);
    }
}
