//! Common code of all protocols' tests: the firmware, and decoding with `tracewalk`.

pub(crate) mod opencsd;

use std::path::PathBuf;

use tracewalk::directive::{Directive, Rules};
use tracewalk::flow::{Engine, Flow};
use tracewalk::program::Program;
use tracewalk::protocol::{Decode, Item, Lower, Packets};
use tracewalk::span::Span;
use tracewalk_generate::firmware::Firmware;
use tracewalk_generate::found::{Found, first_difference};
use tracewalk_generate::path::Path;
use tracewalk_generate::record::Profile;

/// An example program and its executed path.
pub(crate) fn firmware(name: &str) -> Firmware {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware");
    Firmware::read(&folder, name, |file| std::fs::read(file)).unwrap()
}

/// Decodes all of `bytes`, which must consist of complete packets, with the parts of the core library.
pub(crate) fn decoded<D: Decode, L: Lower<Packet = D::Packet>>(
    bytes: &[u8],
    decoder: D,
    mut lowering: L,
    rules: Rules,
    program: &Program,
) -> Found {
    let mut packets = Packets::new(decoder);
    let mut items = Vec::new();
    let mut note = |item: Item<D::Packet>, span: Span, bytes: &[u8]| match item {
        Item::Packet(packet) => items.push((packet, span)),
        Item::Malformed(reason) => panic!("{reason} at {span}: {bytes:02x?}"),
        Item::Unsynchronised => panic!("unsynchronised at {span}: {bytes:02x?}"),
    };
    packets.push(bytes, &mut note);
    packets.finish(&mut note);
    let mut directives = Vec::new();
    let mut emit = |directive: Directive, span: Span| directives.push((directive, span));
    for (packet, span) in &items {
        lowering.lower(packet, *span, &mut emit);
    }
    lowering.finish(&mut emit);
    let mut found = Found::default();
    let mut flow = Flow::with_engine(rules, Engine::Walk);
    let mut take = |element| found.take(element, program);
    for (directive, span) in directives {
        flow.follow(program, directive, span, &mut take);
    }
    flow.finish(program, &mut take);
    assert_eq!(found.gaps, []);
    found
}

/// Both paths must be the same, apart from the steps that set a context ID.
pub(crate) fn assert_same(profile: Profile, traced: &Path, found: &Path, what: &str) {
    if let Some(difference) = first_difference(profile, traced, found) {
        panic!("{difference}, {what}");
    }
}
