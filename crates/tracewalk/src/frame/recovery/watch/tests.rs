//! Looking at frames in groups equals looking at each frame: the same stop, and the same state after it.

use std::vec::Vec;

use proptest::prelude::*;

use super::super::super::tests::groups::{odd_frame, ordinary_frame};
use super::*;

type Bytes = [u8; FRAME_BYTES];

/// The specification of [`Watch::look_at`], frame by frame.
fn look_at_each(watch: &mut Watch, frames: &[Bytes]) -> usize {
    let stops = |bytes: &Bytes| Frame::new(bytes).has_sync_byte() || watch.look(bytes);
    frames.iter().position(stops).unwrap_or(frames.len())
}

/// The decision about the frame that the watch stopped at.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// The frame is in order after all.
    Acquit,
    /// The frame was lost, with this number of frames that were not looked at.
    Restart(u64),
    /// A synchronisation after the frame shows that it is in order.
    BeQuiet(u64),
}

/// Two watches that learned from a number of frames.
fn watches(interval: u64, learned: u8) -> [Watch; 2] {
    let mut watch = Watch::new(None, interval);
    watch.trust(TraceId::new(0x10).into_iter().collect());
    // One frame in `interval` is learned from after 256.
    for number in 0..2 * usize::from(learned) {
        while watch.look(&ordinary_frame(number)) {
            watch.acquit(&ordinary_frame(number));
        }
    }
    [watch.clone(), watch]
}

fn assert_as_each(watches: &mut [Watch; 2], frames: &[Bytes], then: &[Then]) {
    let [groups, each] = watches;
    let mut rest = frames;
    for then in then {
        let taken = look_at_each(each, rest);
        assert_eq!(groups.look_at(rest, |bytes| Frame::new(bytes).has_sync_byte()), taken, "of {rest:x?}");
        assert!(groups == each, "another state after {taken} of {rest:x?}");
        let Some([bytes, after @ ..]) = rest.get(taken..) else { return };
        for watch in [&mut *groups, &mut *each] {
            match *then {
                Then::Acquit if watch.is_doubtful => watch.acquit(bytes),
                Then::Acquit => watch.restart(watch.next + 1),
                Then::Restart(more) => watch.restart(watch.next + 1 + more),
                Then::BeQuiet(end) => {
                    watch.be_quiet_until(watch.next + 1 + end);
                    // Frames with synchronisation in them are assembled first, and looked at then.
                    watch.look(&ordinary_frame(0));
                }
            }
        }
        rest = if matches!(then, Then::Acquit) && groups.quiet_until > groups.next { rest } else { after };
    }
}

#[test]
fn a_frame_after_a_loss_is_looked_at_once_where_the_lost_one_was_to_be_learned_from() {
    let [mut groups, mut each] = watches(1, 0);
    for watch in [&mut groups, &mut each] {
        let unknown_source = [0x33, 2, 4, 6, 8, 0, 2, 4, 6, 8, 0, 2, 4, 6, 8, 0];
        assert!(watch.look(&unknown_source));
        watch.restart(1);
    }
    // The byte after the ID of padding is still the earlier owner's. A second look takes the whole frame for
    // padding.
    let begins_padding = [2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, PADDING_ID_BYTE, 5, 0, 0b0100_0000];
    assert_eq!(
        groups.look_at(&[begins_padding], |bytes| Frame::new(bytes).has_sync_byte()),
        look_at_each(&mut each, &[begins_padding])
    );
    assert_eq!((groups.next, groups.learned, groups.is_doubtful), (2, 1, false));
}

#[test]
fn every_odd_frame_at_every_place_of_a_group_is_looked_at_as_by_itself() {
    for (interval, learned) in [(1, 0), (1, 40), (8, 129), (8, 131)] {
        for place in 0..2 * GROUP {
            for kind in (0..=u8::MAX).skip(place % 3).step_by(3) {
                let mut frames = (0..3 * GROUP).map(ordinary_frame).collect::<Vec<_>>();
                frames[place] = odd_frame(kind);
                frames[GROUP + 3] = odd_frame(kind.rotate_left(3));
                for then in [Then::Acquit, Then::Restart(0), Then::Restart(9), Then::BeQuiet(4)] {
                    let mut watches = watches(interval, learned);
                    assert_as_each(&mut watches, &frames, &[then; 3]);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn groups_are_looked_at_as_each_frame_by_itself(
        interval in 1..12_u64,
        learned: u8,
        frames in prop::collection::vec(prop_oneof![
            4 => any::<usize>().prop_map(ordinary_frame),
            1 => any::<u8>().prop_map(odd_frame),
        ], 0..60),
        then in prop::collection::vec(prop_oneof![
            Just(Then::Acquit),
            (0..20_u64).prop_map(Then::Restart),
            (0..20_u64).prop_map(Then::BeQuiet),
        ], 1..20),
    ) {
        assert_as_each(&mut watches(interval, learned), &frames, &then);
    }
}
