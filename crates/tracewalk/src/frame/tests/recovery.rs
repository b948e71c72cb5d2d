//! Lost and inserted bytes are detected, reported at their place, and survived.

use super::*;

/// Repeatable random numbers, so that the limits on chance below always hold.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.0 >> 33
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next()).expect("31 bits") % bound
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).expect("below 256")
    }

    /// A byte as in a trace: some values are much more likely than others.
    fn trace_byte(&mut self) -> u8 {
        match self.below(12) {
            0 => self.byte(),
            choice => [0x84, 0x88, 0x90, 0x41, 0x57, 0x94, 0x40, 0xcc, 0x08, 0x21, 0x80][choice - 1],
        }
    }
}

const SIX_BYTES: usize = 6;

/// Trace of `sources` sources in about `bytes` bytes of frames.
fn trace(random: &mut Random, sources: usize, bytes: usize, options: FormatterOptions) -> Vec<u8> {
    let mut capture = Vec::new();
    let mut formatter = Formatter::new(options);
    while capture.len() < bytes {
        let number = u8::try_from(0x10 + random.below(sources)).expect("few sources");
        let id = TraceId::new(number).expect("a trace source's ID");
        let burst: Vec<u8> = (0..1 + random.below(80)).map(|_| random.trace_byte()).collect();
        formatter.write(id, &burst, &mut capture);
        if random.below(40) == 0 {
            formatter.flush(&mut capture);
        }
    }
    formatter.flush(&mut capture);
    capture
}

fn repeating_ids() -> FormatterOptions {
    FormatterOptions { repeat_id_after: NonZeroU32::new(8), ..FormatterOptions::default() }
}

/// The differences between the output of a damaged and of the undamaged capture.
struct Damage {
    /// Bytes that were handed out as a source's but are not.
    wrong: usize,
    /// Bytes of sources that are missing although they were in the damaged capture.
    missing: usize,
}

/// Compares outputs; `place` maps a place in the damaged capture to the undamaged one.
fn damage(undamaged: &Record, damaged: &Record, place: impl Fn(u64) -> Option<u64>) -> Damage {
    let known = |record: &Record| -> Vec<_> {
        record.bytes.iter().filter(|(_, owner, _)| owner.trace_id().is_some()).copied().collect()
    };
    let mut right: BTreeMap<u64, (Owner, u8)> =
        known(undamaged).into_iter().map(|(at, owner, byte)| (at, (owner, byte))).collect();
    let mut wrong = 0;
    for (at, owner, byte) in known(damaged) {
        match place(at).and_then(|at| right.remove(&at)) {
            Some(found) if found == (owner, byte) => {}
            _ => wrong += 1,
        }
    }
    Damage { wrong, missing: right.len() }
}

#[test]
fn lost_and_inserted_bytes_are_noticed_and_frames_found_again_at_once() {
    let mut random = Random(1);
    for case in 0..120 {
        let sources = 1 + case % 3;
        // Without repeated IDs, a single source's bytes would have no owner after the loss.
        let options = if sources == 1 { repeating_ids() } else { FormatterOptions::default() };
        let capture = trace(&mut random, sources, 12_000, options);
        let framing = if case % 5 == 0 { Framing::Buffer } else { port_from(0) };
        let at = 4000 + random.below(4000);
        let (lost, inserted) =
            if case % 4 == 0 { (0, 1 + random.below(15)) } else { (1 + random.below(40), 0) };
        if (lost + inserted) % FRAME_BYTES == 0 {
            continue;
        }
        let noise: Vec<u8> = (0..inserted).map(|_| random.byte()).collect();
        let damaged = [&capture[..at], &noise, &capture[at + lost..]].concat();
        let (at, lost, inserted) = (at as u64, lost as u64, inserted as u64);
        let place = |found: u64| match found {
            _ if found < at => Some(found),
            _ if found < at + inserted => None,
            _ => Some(found - inserted + lost),
        };

        let (undamaged, ..) = deframe(framing, &capture, &[]);
        assert_eq!(undamaged.discontinuities, [], "case {case}");
        let (found, tail, account) = deframe(framing, &damaged, &[]);
        assert_tiling(&damaged, &found, tail, &account);
        let [loss] = found.discontinuities.as_slice() else {
            panic!("case {case}: {:?}", found.discontinuities)
        };
        let off = loss.at.0.abs_diff(at);
        assert!(off <= 64 && loss.bytes <= 5 * FRAME_BYTES as u64, "case {case}: {loss} instead of {at}");
        let shift = (16 - lost % 16 + inserted) % 16;
        let by = FrameAlignment::new(u8::try_from(shift).expect("below 16")).expect("below 16");
        assert_eq!(loss.cause, Cause::Shifted { by }, "case {case}");
        // After the loss, bytes have no known owner up to the next ID byte, which may be far off.
        let Damage { wrong, missing } = damage(&undamaged, &found, place);
        assert!(wrong <= FRAME_DATA_BYTES, "case {case}: {wrong} bytes are wrong");
        assert!(missing <= 600, "case {case}: {missing} bytes are missing");
    }
}

/// Payloads, most with an order of their own, which statistics may take for a sign.
#[derive(Clone, Copy, Debug)]
enum Payload {
    Random,
    Zeros,
    Even,
    Odd,
    Text,
    Counter,
    WordCounter,
    ShortPeriod(u8),
    MostlyZeros,
    Trace,
}

impl Payload {
    fn byte(self, random: &mut Random, index: usize) -> u8 {
        const TEXT: &[u8] = b"the quick brown fox jumps over the lazy dog\r\n0123456789, Hello, World!";
        let low = |number: usize| number.to_le_bytes()[0];
        match self {
            Self::Random => random.byte(),
            Self::Zeros => 0,
            Self::Even => random.byte() & 0xfe,
            Self::Odd => random.byte() | 1,
            Self::Text => TEXT[index % TEXT.len()],
            Self::Counter => low(index),
            Self::WordCounter => (index / 4).to_le_bytes()[index % 4],
            Self::ShortPeriod(period) => low(index % usize::from(period) * 37),
            Self::MostlyZeros if random.below(10) != 0 => 0,
            Self::MostlyZeros => random.byte(),
            Self::Trace => random.trace_byte(),
        }
    }
}

#[test]
fn healthy_captures_are_read_as_they_are_whatever_they_hold() {
    use Payload::{
        Counter, Even, MostlyZeros, Odd, Random as Noise, ShortPeriod, Text, Trace, WordCounter, Zeros,
    };
    let payloads = [
        Noise,
        Zeros,
        Even,
        Odd,
        Text,
        Counter,
        WordCounter,
        ShortPeriod(5),
        ShortPeriod(7),
        MostlyZeros,
        Trace,
    ];
    let mut random = Random(2);
    for case in 0..66 {
        let payload = payloads[case % payloads.len()];
        let options = if random.below(2) == 0 { repeating_ids() } else { FormatterOptions::default() };
        let sources = [1, 2, 5, 0x6f][random.below(4)];
        let longest = [4, 30, 300, 3000][random.below(4)];
        let flushes = [3, 20, 1000][random.below(3)];
        let mut expected = BTreeMap::<_, Vec<u8>>::new();
        let mut capture = Vec::new();
        let mut formatter = Formatter::new(options);
        let mut index = 0;
        while capture.len() < 10_000 {
            let number = u8::try_from(1 + random.below(sources)).expect("at most 0x6f");
            let id = TraceId::new(number).expect("a trace source's ID");
            let length = random.below(longest);
            let burst: Vec<u8> = (index..index + length).map(|at| payload.byte(&mut random, at)).collect();
            index += length;
            formatter.write(id, &burst, &mut capture);
            expected.entry(Owner::Source(id)).or_default().extend(burst);
            if random.below(flushes) == 0 {
                formatter.flush(&mut capture);
            }
        }
        formatter.flush(&mut capture);
        expected.retain(|_, bytes| !bytes.is_empty());
        for framing in [Framing::Buffer, port_from(0)] {
            let (record, ..) = deframe(framing, &capture, &[]);
            assert_eq!(record.discontinuities, [], "case {case}: {payload:?}");
            let mut found = record.by_owner();
            found.remove(&Owner::Padding);
            assert!(found == expected, "case {case}: {payload:?}");
        }
    }
}

/// Synchronisation after each atom, as long as a frame: at another place the bytes look as good as here, 64 times over.
#[test]
fn packets_as_long_as_a_frame_are_no_sign_of_a_loss() {
    let id = TraceId::new(0x10).expect("a trace source's ID");
    let (mut capture, mut bytes) = (Vec::new(), Vec::new());
    let mut formatter = Formatter::new(FormatterOptions::default());
    for address in (0x34..0x1_0000).step_by(4).take(1000) {
        let [low, high, ..] = u32::to_le_bytes(address);
        bytes.extend([0, 0, 0, 0, 0x80, 8, 0, 0, 1, low, high, 0, 0x60, 0x84, 0]);
    }
    formatter.write(id, &bytes, &mut capture);
    formatter.flush(&mut capture);
    let (record, ..) = deframe(Framing::Buffer, &capture, &[]);
    assert_eq!(record.discontinuities, []);
    assert!(record.by_owner()[&Owner::Source(id)] == bytes);
}

#[test]
fn a_capture_without_full_synchronisation_is_read_from_any_byte_on() {
    let capture = trace(&mut Random(3), 2, 6000, repeating_ids());
    let (whole, ..) = deframe(Framing::Buffer, &capture, &[]);
    for front in 0..FRAME_BYTES {
        for framing in [Framing::Port, Framing::Buffer] {
            let (found, ..) = deframe(framing, &capture[front..], &[]);
            let expected: &[Discontinuity] = &[Discontinuity {
                at: CaptureOffset(0),
                bytes: (FRAME_BYTES - front) as u64,
                cause: Cause::Start,
            }];
            let expected = if front == 0 { &[] } else { expected };
            assert_eq!(found.discontinuities, expected, "{front} bytes cut off");
            let Damage { wrong, .. } = damage(&whole, &found, |at| Some(at + front as u64));
            assert_eq!(wrong, 0);
        }
    }
}

#[test]
fn frames_are_found_after_bytes_that_are_none() {
    let mut random = Random(4);
    let noise: Vec<u8> = (0..10_003).map(|_| random.byte()).collect();
    let capture = [noise.clone(), trace(&mut random, 2, 8000, repeating_ids())].concat();
    let (found, ..) = deframe(Framing::Port, &capture, &[]);
    let [Discontinuity { at: CaptureOffset(0), bytes, cause: Cause::Start }] = found.discontinuities[..]
    else {
        panic!("{:?}", found.discontinuities)
    };
    assert!(bytes.abs_diff(noise.len() as u64) <= 32, "{bytes} bytes lost");
}

#[test]
fn on_a_port_what_looks_like_no_frames_at_all_is_none() {
    let mut random = Random(6);
    for case in 0..8 {
        let before = trace(&mut random, 2, 8000, repeating_ids());
        let noise: Vec<u8> = (0..6000).map(|_| random.byte()).collect();
        let capture = [&before[..], &noise, &trace(&mut random, 2, 8000, repeating_ids())].concat();
        let (found, tail, account) = deframe(port_from(0), &capture, &[]);
        assert_tiling(&capture, &found, tail, &account);
        let [Discontinuity { at, bytes, cause: Cause::NoFrames }] = found.discontinuities[..] else {
            panic!("case {case}: {:?}", found.discontinuities)
        };
        let end = (before.len() + noise.len()) as u64;
        assert!(at.0.abs_diff(before.len() as u64) <= 32, "case {case}: from {at:?}");
        assert!((at.0 + bytes).abs_diff(end) <= 32, "case {case}: up to {}", at.0 + bytes);
    }
}

#[test]
fn a_misplaced_full_sync_shows_where_the_frames_in_front_of_it_are() {
    let mut random = Random(5);
    let options = FormatterOptions { full_sync_every: NonZeroU32::new(40), ..repeating_ids() };
    let capture = trace(&mut random, 1, 8000, options);
    let (undamaged, ..) = deframe(Framing::Port, &capture, &[]);
    // A few frames before an FSYNC are not enough to work out the alignment without it.
    let sync =
        capture.windows(4).enumerate().skip(4000).find(|(_, bytes)| *bytes == FSYNC).expect("an FSYNC").0;
    for lost in 1..FRAME_BYTES {
        let at = sync - 200;
        let damaged = [&capture[..at], &capture[at + lost..]].concat();
        let (found, tail, account) = deframe(Framing::Port, &damaged, &[]);
        assert_tiling(&damaged, &found, tail, &account);
        let [loss] = found.discontinuities[..] else { panic!("{:?}", found.discontinuities) };
        assert_eq!(loss.cause, Cause::MisplacedSync);
        assert!(
            loss.at.0.abs_diff(at as u64) <= 48 && loss.bytes <= 5 * FRAME_BYTES as u64,
            "{loss} instead of {at}"
        );
        let place = |found: u64| Some(if found < at as u64 { found } else { found + lost as u64 });
        let Damage { wrong, missing } = damage(&undamaged, &found, place);
        assert!(wrong <= 30 && missing <= 180, "{wrong} wrong, {missing} missing");
    }
}

/// Frames of ID 0x10 only; the first one has the ID byte.
const FIRST_FRAME: [u8; FRAME_BYTES] = [0x21, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0];
const SECOND_FRAME: [u8; FRAME_BYTES] = [0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0];

#[test]
fn a_misplaced_full_sync_costs_the_frame_that_it_cuts_and_the_owner() {
    let input = [&FSYNC[..], &FIRST_FRAME, &SECOND_FRAME[..SIX_BYTES], &FSYNC, &SECOND_FRAME].concat();
    for recovers in [false, true] {
        let (found, tail, account) = deframe_with(Framing::Port, recovers, &input, &[]);
        assert_tiling(&input, &found, tail, &account);
        let loss = Discontinuity { at: CaptureOffset(20), bytes: 6, cause: Cause::MisplacedSync };
        assert_eq!(found.discontinuities, [loss]);
        let by_owner = found.by_owner();
        assert_eq!(
            by_owner.keys().copied().collect::<Vec<_>>(),
            [Owner::Unknown, Owner::Source(TraceId::new(0x10).expect("a trace source's ID")),]
        );
        assert_eq!(by_owner[&Owner::Unknown], &SECOND_FRAME[..15]);
    }
}

#[test]
fn without_recovery_an_impossible_id_is_waited_out_for_a_full_sync() {
    let impossible = [0xff; 1];
    let input =
        [&FSYNC[..], &FIRST_FRAME, &SECOND_FRAME[..SIX_BYTES], &impossible, &[0; 21], &FSYNC, &FIRST_FRAME];
    let input = input.concat();
    let (found, tail, account) = deframe_with(Framing::Port, false, &input, &[]);
    assert_tiling(&input, &found, tail, &account);
    let loss = Discontinuity { at: CaptureOffset(20), bytes: 28, cause: Cause::ImpossibleId };
    assert_eq!(found.discontinuities, [loss]);
    assert_eq!(account.data, 28);
}

#[test]
fn a_barrier_in_a_buffer_cuts_the_trace_and_costs_nothing() {
    let barrier = FSYNC.repeat(4);
    let input = [&FIRST_FRAME[..], &barrier, &SECOND_FRAME, &FIRST_FRAME].concat();
    let (found, ..) = deframe(Framing::Buffer, &input, &[]);
    assert_eq!(
        found.discontinuities,
        [Discontinuity { at: CaptureOffset(32), bytes: 0, cause: Cause::Barrier }]
    );
    let by_owner = found.by_owner();
    assert_eq!(by_owner[&Owner::Unknown], &SECOND_FRAME[..15]);

    let mut formatted = Vec::new();
    let mut formatter = Formatter::new(FormatterOptions::default());
    formatter.write(TraceId::new(0x10).expect("a trace source's ID"), &[1, 2, 3], &mut formatted);
    formatter.barrier(&mut formatted);
    assert_eq!(formatted[FRAME_BYTES..], barrier);
}

#[test]
fn half_syncs_may_go_on_for_ever_inside_a_frame() {
    let idle = HSYNC.repeat(100_000);
    let input = [&FSYNC[..], &FIRST_FRAME[..SIX_BYTES], &idle, &FIRST_FRAME[SIX_BYTES..]].concat();
    let (found, tail, account) = deframe(Framing::Port, &input, &[]);
    assert_tiling(&input, &found, tail, &account);
    assert_eq!(account.data, 14);
    assert_eq!(found.bytes.iter().map(|&(_, _, byte)| byte).collect::<Vec<_>>(), FIRST_FRAME[1..15]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn damaged_captures_are_tiled_and_cutting_them_changes_nothing(
        seed: u64,
        sources in 1..4usize,
        options in options(),
        framing in framing(),
        edits in prop::collection::vec((0..6000usize, 0..40usize, prop::collection::vec(any::<u8>(), 0..40)), 0..4),
        half_syncs in prop::collection::vec(0..3000usize, 0..40),
        cuts in prop::collection::vec(prop_oneof![0..40usize, 0..2000usize], 0..60),
    ) {
        let mut damaged = trace(&mut Random(seed), sources, 6000, options);
        for (at, lost, inserted) in edits {
            let end = damaged.len();
            damaged.splice(at.min(end)..(at + lost).min(end), inserted);
        }
        // On a port, half-syncs may be inside frames.
        for at in half_syncs {
            let at = (2 * at).min(damaged.len());
            damaged.splice(at..at, HSYNC);
        }
        let (whole, whole_tail, whole_account) = deframe(framing, &damaged, &[]);
        assert_tiling(&damaged, &whole, whole_tail, &whole_account);
        let (cut, tail, account) = deframe(framing, &damaged, &cuts);
        prop_assert_eq!(cut.bytes, whole.bytes);
        prop_assert_eq!(cut.discontinuities, whole.discontinuities);
        prop_assert_eq!((tail, account), (whole_tail, whole_account));
    }
}
