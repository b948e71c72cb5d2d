//! The CoreSight frame vectors of the shared corpus: short captures with the bytes of each ID as the specification and
//! OpenCSD's deformatter read them.

use serde_json::Value;
use tracewalk::frame::{
    Discontinuity, Formatter, FormatterOptions, FrameSink, Framing, Owner, Piece, RecoveringDeframer,
};

#[derive(Default)]
struct ByOwner(Vec<(Owner, Vec<u8>)>);

impl FrameSink for ByOwner {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        match self.0.last_mut() {
            Some((last, bytes)) if *last == owner => bytes.extend_from_slice(piece.bytes),
            _ => self.0.push((owner, piece.bytes.to_vec())),
        }
    }

    fn discontinuity(&mut self, _: Discontinuity) {}
}

fn owner(id: &Value) -> Owner {
    match id.as_u64() {
        None => Owner::Unknown,
        Some(id) => Owner::from_id_byte(u8::try_from(id << 1 | 1).expect("7 bits")),
    }
}

#[tracewalk_corpus::test]
fn every_frame_vector_gives_the_expected_bytes_of_each_id_however_it_is_cut() {
    let file = crate::support::vectors_file();
    let vectors = file["vectors"].as_array().expect("a list of vectors");
    let mut tested = 0;
    for vector in vectors.iter().filter(|vector| vector["protocol"] == "coresight-frames") {
        let name = &vector["id"];
        let framing = match vector["config"]["mode"].as_str() {
            Some("frame-aligned") => Framing::Buffer,
            Some("tpiu-fsync" | "tpiu-fsync+hsync") => Framing::Port,
            mode => panic!("{name}: unknown mode {mode:?}"),
        };
        let expected: Vec<(Owner, Vec<u8>)> = vector["expected"]
            .as_array()
            .expect("a list of pieces")
            .iter()
            .inspect(|piece| assert_eq!(piece["kind"], "id_data", "{name}"))
            .map(|piece| (owner(&piece["id"]), crate::support::hex(&piece["data"])))
            .collect();
        let input = crate::support::hex(&vector["bytes"]);
        for size in 1..=input.len() {
            let mut found = ByOwner::default();
            let mut deframer = RecoveringDeframer::new(framing);
            input.chunks(size).for_each(|piece| deframer.push(piece, &mut found));
            let tail = deframer.finish(&mut found);
            assert_eq!(found.0, expected, "{name} in pieces of {size}");
            assert_eq!(deframer.account().total(), input.len() as u64, "{name}");
            assert_eq!(tail.bytes, u64::from(name == "F-019"), "{name} has an incomplete frame at the end");
        }
        tested += 1;
    }
    assert!(tested >= 18, "only {tested} frame vectors found");
}

/// Vectors that agree with the formatter's choices: an ID byte only at a change of owner, and padding to the
/// end of the frame.
const WRITTEN_ALIKE: [&str; 8] = ["F-001", "F-002", "F-004", "F-005", "F-006", "F-008", "F-013", "F-014"];

#[tracewalk_corpus::test]
fn the_formatter_writes_the_bytes_of_the_vectors() {
    let file = crate::support::vectors_file();
    let vectors = file["vectors"].as_array().expect("a list of vectors");
    for name in WRITTEN_ALIKE {
        let vector = vectors.iter().find(|vector| vector["id"] == name).expect("the vector is there");
        let mut written = Vec::new();
        let mut formatter = Formatter::new(FormatterOptions::default());
        for piece in vector["expected"].as_array().expect("a list of pieces") {
            match owner(&piece["id"]) {
                Owner::Source(id) => formatter.write(id, &crate::support::hex(&piece["data"]), &mut written),
                Owner::Trigger => formatter.trigger(&mut written),
                Owner::Padding => formatter.flush(&mut written),
                owner => panic!("{name}: no formatter writes for {owner}"),
            }
        }
        assert_eq!(written, crate::support::hex(&vector["bytes"]), "{name}");
    }
}
