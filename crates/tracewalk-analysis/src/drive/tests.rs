//! Sources in frames and stretches, looked at to the end or up to an error.

use super::*;
use tracewalk::flow::Element;
use tracewalk::frame::{Formatter, FormatterOptions, Indexer};
use tracewalk::program::Program;
use tracewalk::protocol::etmv3;
use tracewalk::source::{PacketItem, SourceConfig};

/// A-sync, I-sync at 0x100 in Thumb, and packets of one executed instruction each.
const SOURCE: [u8; 15] = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84, 0x84, 0x84];

fn config() -> SourceConfig {
    SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").unwrap())
}

/// Name, place and size of each packet.
fn packets(capture: &[u8], carrier: Carrier) -> Vec<(String, u64, usize)> {
    let mut found = Vec::new();
    let input = Input { capture, carrier, rest: None, progress: &NoProgress };
    let statistics = input.packets(&config(), |record| {
        let name = match record.content {
            PacketItem::Packet(packet) => packet.name(),
            PacketItem::Malformed(_) => "malformed",
            PacketItem::Unsynchronised => "unsynced",
        };
        found.push((name.to_owned(), record.at.0, record.bytes.len()));
        Ok(())
    });
    let bytes = found.iter().map(|(.., bytes)| *bytes as u64).sum::<u64>();
    assert_eq!(statistics.unwrap().bytes, bytes);
    found
}

#[test]
fn packets_stand_where_their_first_byte_stands_in_the_capture() {
    let id = TraceId::new(2).unwrap();
    let mut capture = Vec::new();
    let mut formatter = Formatter::new(FormatterOptions::default());
    formatter.write(id, &SOURCE, &mut capture);
    formatter.flush(&mut capture);
    let found = packets(&capture, Carrier::Frames { framing: Framing::Buffer, id });
    for (name, at, _) in &found {
        let first = capture[usize::try_from(*at).unwrap()];
        let expected = match name.as_str() {
            "a_sync" => 0,
            "i_sync" => 0x08,
            _ => 0x84,
        };
        assert_eq!(first, expected, "{name} at {at}");
    }
    assert_eq!(found.len(), 5);
}

/// The part of a capture after its first bytes, in pieces of one byte.
#[derive(Debug)]
struct Later<'a>(&'a [u8], Ending);

impl Rest for Later<'_> {
    fn each(&self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<Ending> {
        let _ = self.0.chunks(1).all(take);
        Ok(self.1)
    }
}

/// Takes nothing.
struct Nobody;

impl FrameSink for Nobody {
    fn data(&mut self, _: Owner, _: Piece<'_>) {}
    fn discontinuity(&mut self, _: Discontinuity) {}
}

#[test]
fn it_makes_no_difference_whether_it_is_known_where_frames_are() {
    let [id, other] = [2, 3].map(|id| TraceId::new(id).unwrap());
    let mut capture = Vec::new();
    let mut formatter = Formatter::new(FormatterOptions::default());
    for round in 0..100 {
        formatter.write(id, &SOURCE, &mut capture);
        formatter.write(other, &SOURCE[..round % 15], &mut capture);
    }
    formatter.flush(&mut capture);
    for barrier in [0, 640, 1280] {
        capture.splice(barrier..barrier, [0xff, 0xff, 0xff, 0x7f].repeat(4));
    }
    let expected = packets(&capture, Carrier::Frames { framing: Framing::Buffer, id });
    assert!(expected.len() > 400, "{}", expected.len());
    for length in [1, 16, 333, 1 << 16] {
        let mut indexer = Indexer::with_sections(Framing::Buffer, length);
        indexer.push(&capture, &mut Nobody);
        let (index, ..) = indexer.finish(&mut Nobody);
        assert_eq!(packets(&capture, Carrier::Indexed { index, id }), expected);
    }
}

#[test]
fn the_head_of_a_capture_in_parts_is_followed_alone() {
    let id = TraceId::new(2).unwrap();
    let mut part = Vec::new();
    let mut formatter = Formatter::new(FormatterOptions::default());
    formatter.write(id, &SOURCE, &mut part);
    formatter.flush(&mut part);
    let capture = part.repeat(50);
    let mut indexer = Indexer::new(Framing::Buffer);
    for at in (0..capture.len()).step_by(part.len()) {
        indexer.skip_to(CaptureOffset(at as u64), &mut Nobody);
        indexer.push(&part, &mut Nobody);
    }
    let (index, ..) = indexer.finish(&mut Nobody);
    let carrier = Carrier::Indexed { index, id };
    let input = Input { capture: &capture, carrier, rest: None, progress: &NoProgress };
    let (config, program) = (config(), Program::new());
    let followed = |input: &Input<'_>| {
        let mut bytes = 0;
        let take = |part: Gathered<()>| {
            bytes += part.statistics.bytes;
            Ok(())
        };
        Follower::new(&config, &program).flow_parts(input, Spread::over(1), &(), take).unwrap();
        bytes
    };
    let whole = followed(&input);
    assert_eq!(whole, 50 * SOURCE.len() as u64);
    assert_eq!(followed(&input.head(3 * part.len())), whole * 3 / 50);
}

/// The places of the packets, or the error of a capture that has arrived up to here, with the rest still to come.
fn packets_later(capture: &[u8], carrier: &Carrier, there: usize, ending: Ending) -> Vec<(String, u64)> {
    let (head, rest) = capture.split_at(there);
    let rest = Later(rest, ending);
    let input = Input { capture: head, carrier: carrier.clone(), rest: Some(&rest), progress: &NoProgress };
    let mut found = Vec::new();
    let statistics = input.packets(&config(), |record| {
        let name = match record.content {
            PacketItem::Packet(packet) => packet.name(),
            PacketItem::Malformed(_) => "malformed",
            PacketItem::Unsynchronised => "unsynced",
        };
        found.push((name.to_owned(), record.at.0));
        Ok(())
    });
    assert!(statistics.is_ok());
    found
}

#[test]
fn what_comes_later_is_decoded_as_if_it_had_been_there() {
    let id = TraceId::new(2).unwrap();
    let mut framed = Vec::new();
    let mut formatter = Formatter::new(FormatterOptions::default());
    formatter.write(id, &SOURCE, &mut framed);
    formatter.flush(&mut framed);
    let all = [
        (framed.clone(), Carrier::Frames { framing: Framing::Buffer, id }),
        (SOURCE.to_vec(), Carrier::Stretches(vec![Stretch::all(0)])),
    ];
    for (capture, carrier) in all {
        let whole = packets_later(&capture, &carrier, 0, Ending::Complete);
        assert_eq!(whole.len(), 5);
        for there in 0..=capture.len() {
            let carrier = match &carrier {
                Carrier::Stretches(_) => Carrier::Stretches(vec![Stretch::all(there)]),
                frames => frames.clone(),
            };
            assert_eq!(packets_later(&capture, &carrier, there, Ending::Complete), whole);
        }
    }
}

#[test]
fn a_packet_that_is_cut_is_malformed_unless_nobody_waits_for_its_rest() {
    let carrier = Carrier::Stretches(vec![Stretch::all(0)]);
    let names = |ending| {
        let found = packets_later(&SOURCE[..10], &carrier, 0, ending);
        found.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(Ending::Complete), ["a_sync", "malformed"]);
    assert_eq!(names(Ending::Open), ["a_sync"]);
}

#[test]
fn whoever_waits_may_end_the_work() {
    #[derive(Debug)]
    struct Broken;
    impl Rest for Broken {
        fn each(&self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<Ending> {
            assert!(take(&SOURCE));
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }
    let carrier = Carrier::Stretches(vec![Stretch::all(0)]);
    let input = Input { capture: &[], carrier, rest: Some(&Broken), progress: &NoProgress };
    let error = input.packets(&config(), |_| Ok(())).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    // The first error of `look` ends it as well.
    let later = Later(&SOURCE, Ending::Complete);
    let input = Input { rest: Some(&later), ..input };
    let mut looked = 0;
    let error = input.packets(&config(), |_| {
        looked += 1;
        Err(io::ErrorKind::Other.into())
    });
    assert_eq!((error.unwrap_err().kind(), looked), (io::ErrorKind::Other, 1));
}

#[test]
fn stretches_are_joined_only_where_they_continue() {
    // The I-sync is cut in two.
    let (first, second) = (0..8, 8..15);
    let joined = |continues| {
        Carrier::Stretches(vec![
            Stretch { bytes: first.clone(), continues: false },
            Stretch { bytes: second.clone(), continues },
        ])
    };
    let names = |carrier| packets(&SOURCE, carrier).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
    assert_eq!(names(joined(true)), ["a_sync", "i_sync", "p_header", "p_header", "p_header"]);
    assert_eq!(names(joined(false)), ["a_sync", "malformed", "unsynced"]);
    // Stretches outside the capture are left out.
    assert_eq!(names(Carrier::Stretches(vec![Stretch { bytes: 10..99, continues: false }])), ["unsynced"]);
}

#[test]
fn where_trace_was_cut_on_purpose_nothing_is_in_doubt() {
    const BARRIER: [u8; 16] =
        [0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f];
    let id = TraceId::new(2).unwrap();
    let mut frames = Vec::new();
    let mut formatter = Formatter::new(FormatterOptions::default());
    formatter.write(id, &SOURCE, &mut frames);
    formatter.flush(&mut frames);
    let framed = [&frames[..], &BARRIER, &frames].concat();
    let twice = SOURCE.repeat(2);
    let stretches = [0..SOURCE.len(), SOURCE.len()..twice.len()];
    let stretches = stretches.map(|bytes| Stretch { bytes, continues: false }).to_vec();
    let mut program = Program::new();
    program.add(tracewalk::ids::Address::new(0x100), &[0; 16]).unwrap();
    for (capture, carrier) in
        [(framed, Carrier::Frames { framing: Framing::Buffer, id }), (twice, Carrier::Stretches(stretches))]
    {
        let input = Input { capture: &capture, carrier, rest: None, progress: &NoProgress };
        let mut gaps = Vec::new();
        let mut note = |element: &Element| {
            if let Element::Gap(gap) = element {
                gaps.push((gap.reason, gap.doubt));
            }
        };
        let config = config();
        let mut follower = Follower::new(&config, &program);
        // Knowledge from an earlier run makes no difference.
        follower.flow(&input.clone().head(20), |_| Ok(())).unwrap();
        let in_order = follower.flow(&input, |record| {
            note(&record.element);
            Ok(())
        });
        assert_eq!(in_order.unwrap().instructions, 6);
        let mut found = crate::Gaps::default();
        let take = |part: Gathered<()>| {
            assert_eq!(part.doubts, crate::Doubts::default());
            assert!(!part.doubt.is_open());
            found.add_part(&part.gaps, |at| at);
            Ok(())
        };
        follower.flow_parts(&input, Spread::over(1), &(), take).unwrap();
        assert_eq!(found.trace_lost.count, 1);
        assert_eq!(gaps, [(tracewalk::flow::GapReason::TraceLost, false)]);
    }
}

#[test]
fn the_first_error_ends_the_work() {
    let carrier = Carrier::Stretches(vec![Stretch::all(SOURCE.len())]);
    let input = Input { capture: &SOURCE, carrier, rest: None, progress: &NoProgress };
    let mut seen = 0;
    let result = input.packets(&config(), |_| {
        seen += 1;
        if seen == 2 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    });
    assert_eq!(result.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(seen, 2);
}

#[test]
fn empty_stretches_are_the_same_in_order_and_in_parts() {
    let half = SOURCE.len() / 2;
    let stretch = |bytes: Range<usize>, continues| Stretch { bytes, continues };
    let cases = [
        (vec![stretch(0..15, false), stretch(15..15, false)], false),
        (vec![stretch(0..15, false), stretch(15..40, false)], false),
        (vec![stretch(0..half, false), stretch(3..3, false), stretch(half..15, true)], true),
        (vec![stretch(0..half, false), stretch(3..3, true), stretch(half..15, true)], false),
        (vec![stretch(0..0, false), stretch(0..half, true), stretch(half..15, true)], false),
    ];
    for (stretches, is_cut) in cases {
        let carrier = Carrier::Stretches(stretches.clone());
        let input = Input { capture: &SOURCE, carrier, rest: None, progress: &NoProgress };
        let (config, program) = (config(), Program::new());
        let in_order = Follower::new(&config, &program).flow(&input, |_| Ok(())).unwrap();
        let mut in_parts = Statistics::default();
        let mut follower = Follower::new(&config, &program);
        let add = |part: Gathered<()>| {
            in_parts.add(&part.statistics);
            Ok(())
        };
        follower.flow_parts(&input, Spread::over(1), &(), add).unwrap();
        assert_eq!(in_order, in_parts, "{stretches:?}");
        let whole = Input { carrier: Carrier::Stretches(vec![Stretch::all(15)]), ..input };
        let whole = Follower::new(&config, &program).flow(&whole, |_| Ok(())).unwrap();
        assert_eq!(in_order != whole, is_cut, "{stretches:?}");
    }
}

#[test]
fn a_short_source_is_decoded_by_one_thread() {
    // Workers give a part for each checkpoint, one thread alone a part for each segment and for the end.
    let parts = |mebibytes: usize| {
        let capture = SOURCE.repeat((mebibytes << 20) / SOURCE.len());
        let carrier = Carrier::Stretches(vec![Stretch::all(capture.len())]);
        let input = Input { capture: &capture, carrier, rest: None, progress: &NoProgress };
        let (config, program) = (config(), Program::new());
        let mut parts = 0;
        let count = |_: Gathered<()>| {
            parts += 1;
            Ok(())
        };
        Follower::new(&config, &program)
            .flow_parts(&input, Spread::over(2).for_counts(), &(), count)
            .unwrap();
        parts
    };
    assert_eq!(parts(3), 4);
    assert!(parts(5) > 10);
}
