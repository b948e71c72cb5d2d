//! Frames: every byte is accounted for once, any cut gives the same, and what was formatted comes back.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use tracewalk::frame::{
    Account, AlignmentRanking, Deframer, Discontinuity, Formatter, FormatterOptions, FrameAlignment,
    FrameSink, Framing, Owner, Piece, RecoveringDeframer, Tail,
};
use tracewalk::ids::TraceId;

use crate::input::Input;

#[derive(Default)]
struct Found {
    bytes: Vec<(u64, Owner, u8)>,
    discontinuities: Vec<Discontinuity>,
}

impl FrameSink for Found {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        assert!(!piece.bytes.is_empty());
        let places = piece.bytes.iter().enumerate();
        self.bytes.extend(places.map(|(index, &byte)| (piece.place(index).0, owner, byte)));
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        self.discontinuities.push(discontinuity);
    }
}

/// Frames from any bytes, and any bytes as frames.
pub fn frames(data: &[u8]) {
    let mut input = Input(data);
    let framing = match input.byte() {
        0 => Framing::Buffer,
        1 => Framing::Port,
        other => Framing::PortFrom(FrameAlignment::new(other & 15).expect("below 16")),
    };
    let (recovers, cut) = (input.flag(), usize::from(input.byte()).max(1));
    if input.flag() {
        return format(&mut input, cut);
    }
    macro_rules! deframe {
        ($deframer:ident, $size:expr) => {{
            let mut deframer = $deframer::new(framing);
            let mut found = Found::default();
            input.0.chunks($size).for_each(|piece| deframer.push(piece, &mut found));
            let tail = deframer.finish(&mut found);
            (found, tail, deframer.account())
        }};
    }
    let deframe = |size: usize| match recovers {
        true => deframe!(RecoveringDeframer, size),
        false => deframe!(Deframer, size),
    };
    let (whole, tail, account) = deframe(input.0.len().max(1));
    check_tiling(input.0, &whole, tail, &account);
    let (cut, cut_tail, cut_account) = deframe(cut);
    assert!(cut.bytes == whole.bytes, "the cut changes the bytes");
    assert!(cut.discontinuities == whole.discontinuities, "the cut changes the losses");
    assert_eq!((cut_tail, cut_account), (tail, account));
    let _ = AlignmentRanking::of(input.0, None).is_clear();
}

fn check_tiling(input: &[u8], found: &Found, tail: Tail, account: &Account) {
    assert_eq!(account.total(), input.len() as u64, "{account:?}");
    let mut uses = vec![0_u8; input.len()];
    let mut claim = |at: u64| uses[at as usize] += 1;
    found.bytes.iter().for_each(|&(at, ..)| claim(at));
    let lost = found.discontinuities.iter();
    lost.for_each(|lost| (lost.at.0..lost.at.0 + lost.bytes).for_each(&mut claim));
    (tail.at.0..tail.at.0 + tail.bytes).for_each(&mut claim);
    assert!(uses.iter().all(|&uses| uses <= 1), "a byte has two uses");
    assert!(found.bytes.is_sorted_by_key(|&(at, ..)| at));
}

fn format(input: &mut Input<'_>, cut: usize) {
    let mut every = || NonZeroU32::new(u32::from(input.byte()));
    let options =
        FormatterOptions { repeat_id_after: every(), full_sync_every: every(), half_sync_every: every() };
    let mut formatter = Formatter::new(options);
    let (mut output, mut sent) = (Vec::new(), BTreeMap::<u8, Vec<u8>>::new());
    while !input.0.is_empty() {
        let id = TraceId::new(input.byte() % 0x6f + 1).expect("1 to 0x6f");
        let length = usize::from(input.byte() % 64);
        let bytes = input.bytes(length);
        formatter.write(id, bytes, &mut output);
        sent.entry(id.get()).or_default().extend(bytes);
    }
    formatter.flush(&mut output);
    let start = FrameAlignment::new(0).expect("below 16");
    let port = options.full_sync_every.is_some() || options.half_sync_every.is_some();
    let mut deframer = RecoveringDeframer::new(if port { Framing::PortFrom(start) } else { Framing::Buffer });
    let mut found = Found::default();
    output.chunks(cut).for_each(|piece| deframer.push(piece, &mut found));
    deframer.finish(&mut found);
    let mut back = BTreeMap::<u8, Vec<u8>>::new();
    for (_, owner, byte) in found.bytes {
        if let Owner::Source(id) = owner {
            back.entry(id.get()).or_default().push(byte);
        }
    }
    sent.retain(|_, bytes| !bytes.is_empty());
    assert!(back == sent, "what was formatted did not come back");
}
