//! The place in memory of an image of raw bytes, if it differs from the stated one.
//!
//! Branches are relative, so a program can be followed at any load address. Only at the right one do the addresses in
//! the trace hold the instructions that the trace reports.
//!
//! ```text
//! make directives of the trace's beginning
//! for each place that puts an address that the trace names often on an instruction of the image, first at coarse
//!     alignments, then at fine ones: follow the directives until something contradicts
//! the place at which most could be followed without contradiction is the answer
//! ```

use tracewalk::directive::{Directive, Handler, PreferredReturn, Rules};
use tracewalk::flow::{Element, Engine, Flow, GapReason};
use tracewalk::ids::{Address, Location};
use tracewalk::program::Program;
use tracewalk::protocol::mtb::order;
use tracewalk::protocol::{Decode, Item, Loss, Lower, Packets, etmv3, etmv4, mtb, pft};
use tracewalk::source::SourceConfig;
use tracewalk::span::Span;

use super::finding::{Answer, Certainty, Finding};
use super::mtb_order;
use crate::contents::Sample;

/// An image of raw bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawImage<'a> {
    /// The stated address.
    pub(crate) address: Address,
    pub(crate) bytes: &'a [u8],
}

/// The place of an image, and the evidence for it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) address: Address,
    /// How many instructions could be followed with the image at this place.
    pub(crate) instructions: u64,
    pub(crate) finding: Finding,
}

/// The result of following a trace through an image at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fit {
    address: Address,
    instructions: u64,
    contradictions: u64,
    /// The work: all instructions, and the blocks that they were in.
    walked: u64,
    blocks: u64,
}

/// How many directives are followed: enough that a wrong place contradicts some of them.
const DIRECTIVES: usize = 4000;
/// Usual alignments of images, the most usual first.
const ALIGNMENTS: [u32; 4] = [0x1000, 0x100, 0x10, 4];
/// The most places tried at one alignment.
const MOST_PLACES: u32 = 1 << 17;
/// More contradictions than this, and one for each `RIGHT_FOR_EACH` instructions, exclude a place.
const ENOUGH_AGAINST: u64 = 3;
/// The number of right instructions for each contradiction, if an image is patched only in places.
const RIGHT_FOR_EACH: u64 = 500;
/// The same, for an image that is moved away from its stated address. A short image may fit by chance if a loop of the
/// trace can be followed.
const CERTAIN_FOR_EACH: u64 = 5000;
/// The most instructions without a branch that count: memory that is not code may have an endless number of them.
const MOST_OF_A_BLOCK: u64 = 16;
/// Fewer instructions prove nothing.
const ENOUGH: u64 = 200;
/// More instructions than this, and more in each block, are no program's.
const STRAIGHT: u64 = 4096;
const STRAIGHT_IN_EACH: u64 = 64;
/// The most instructions that are walked at all places together.
const MOST_WALKED: u64 = 1 << 27;

/// The place of `image` when the trace was made; `None` if no place is better than the stated one. `others` is the
/// program without the image.
pub(crate) fn place(
    sample: &Sample,
    config: &SourceConfig,
    image: RawImage<'_>,
    others: &Program,
) -> Option<Place> {
    let directives = directives(sample, config);
    // The seam between a Micro Trace Buffer's newest and oldest packet may not show without the program.
    let seams = u64::from(matches!(config, SourceConfig::Mtb(_)));
    let anchor = anchor(&directives, others)?;
    // `moved` counts in 32 bits: the lower halves of greater addresses would match places that were not traced. Among 64-bit
    // addresses, a short image such as a vDSO fits a loop of a kernel that no image holds.
    if [anchor, image.address].iter().any(|address| address.get() > u64::from(u32::MAX)) {
        return None;
    }
    let program = varied(image.bytes);
    if program.is_empty() {
        return None;
    }
    let length = u32::try_from(image.bytes.len()).ok()?;
    let fit = |address| {
        let fit = follow(&program, &directives, config.rules(), address);
        Fit { address, contradictions: fit.contradictions.saturating_sub(seams), ..fit }
    };
    let stated = fit(image.address);
    let mut best = stated;
    let mut next = None::<Fit>;
    let mut left = MOST_WALKED;
    for alignment in ALIGNMENTS {
        if length / alignment > MOST_PLACES || best.is_convincing() {
            break;
        }
        // The anchor is an address in the image: the image starts at it, or before it by less than its length.
        let last = anchor.low_word() & !(alignment - 1);
        for index in 0..=length / alignment {
            let address = last.wrapping_sub(index * alignment);
            // The image may not extend past the end of the address space.
            if address.checked_add(length.saturating_sub(1)).is_none() {
                continue;
            }
            let found = fit(Address::from(address));
            left = left.checked_sub(found.walked)?;
            if found.address != image.address && found.is_better_than(&best) {
                next = Some(best);
                best = found;
            } else if found.address != best.address && next.is_none_or(|next| found.is_better_than(&next)) {
                next = Some(found);
            }
        }
    }
    if best.address == image.address || !best.is_convincing() {
        return None;
    }
    let answer = |fit: &Fit| {
        let plural = if fit.contradictions == 1 { "" } else { "s" };
        let evidence =
            format!("{} instructions, {} contradiction{plural}", fit.instructions, fit.contradictions);
        Answer::new(fit.address.to_string(), evidence)
    };
    let doubtful = next.is_some_and(|next| next.score() * 10 > best.score() * 9);
    let certainty = if doubtful { Certainty::Doubtful } else { Certainty::Certain };
    let finding =
        Finding { about: "address", best: answer(&best), runner_up: Some(answer(&stated)), certainty };
    Some(Place { address: best.address, instructions: best.instructions, finding })
}

impl Fit {
    fn take(&mut self, element: &Element) {
        match element {
            Element::Block(block) => {
                self.instructions += u64::from(block.instructions).min(MOST_OF_A_BLOCK);
                self.walked += u64::from(block.instructions);
                self.blocks += 1;
            }
            Element::Gap(gap) if matches!(gap.reason, GapReason::Contradiction(_)) => {
                self.contradictions += 1;
            }
            Element::Gap(_) | Element::Event(_) | Element::Proof(_) => {}
        }
    }

    const fn is_convincing(&self) -> bool {
        self.instructions >= ENOUGH && self.contradictions * CERTAIN_FOR_EACH < self.instructions
    }

    const fn is_better_than(&self, other: &Self) -> bool {
        self.score() > other.score()
    }

    const fn score(&self) -> u64 {
        self.instructions.saturating_sub(self.contradictions * RIGHT_FOR_EACH)
    }
}

/// The image at address 0, without long stretches of one word over and over: memory that was not written holds no code, and
/// walking through it would take as long as it is.
fn varied(image: &[u8]) -> Program {
    const STRETCH: usize = 1 << 14;
    let is_one_word = |stretch: &[u8]| {
        stretch.len() > 4 && stretch.iter().zip(&stretch[4..]).all(|(byte, next)| byte == next)
    };
    let mut program = Program::new();
    let mut start = 0;
    let stretches = image.chunks(STRETCH).collect::<Vec<_>>();
    for same in stretches.chunk_by(|stretch, next| is_one_word(stretch) == is_one_word(next)) {
        let end = start + same.iter().map(|stretch| stretch.len()).sum::<usize>();
        if let ([first, ..], Some(bytes)) = (same, image.get(start..end))
            && !is_one_word(first)
        {
            // The stretches do not overlap.
            let _ = program.add(Address::new(start as u64), bytes);
        }
        start = end;
    }
    program
}

/// The directives of the beginning of the trace.
fn directives(sample: &Sample, config: &SourceConfig) -> Vec<Directive> {
    match config {
        SourceConfig::Etmv3(config) => {
            lowered(sample.bytes(), etmv3::Decoder::new(config), etmv3::Lowering::new(config))
        }
        SourceConfig::Pft(config) => lowered(sample.bytes(), pft::Decoder::new(config), pft::Lowering::new()),
        SourceConfig::Etmv4(config) => {
            lowered(sample.bytes(), etmv4::Decoder::new(config), etmv4::Lowering::new(config))
        }
        SourceConfig::Mtb(_) => lowered(&mtb_packets(sample), mtb::Decoder, mtb::Lowering::new()),
    }
}

/// The packets of a Micro Trace Buffer, in a possible order of writing, independent of the program's address.
fn mtb_packets(sample: &Sample) -> Vec<u8> {
    let dump = order::Dump::new(sample.bytes(), None);
    let pieces = mtb_order::by_evidence(dump, mtb_order::within_reach)
        .map_or_else(Vec::new, |guess| guess.best.layout.pieces);
    pieces.into_iter().flat_map(|piece| dump.data.get(piece.bytes).unwrap_or_default()).copied().collect()
}

fn lowered<D, L>(bytes: &[u8], decoder: D, mut lowering: L) -> Vec<Directive>
where
    D: Decode,
    L: Lower<Packet = D::Packet>,
{
    let mut directives = Vec::new();
    let mut packets = Packets::new(decoder);
    for piece in bytes.chunks(1 << 10) {
        packets.push(piece, &mut |item, span, _: &[u8]| {
            let emit = &mut |directive, _: Span| directives.push(directive);
            match item {
                Item::Packet(packet) => lowering.lower(&packet, span, emit),
                Item::Malformed(_) => lowering.lost(span, Loss::Lost, emit),
                Item::Unsynchronised => {}
            }
        });
        if directives.len() >= DIRECTIVES {
            break;
        }
    }
    directives
}

/// The median of the addresses in the trace, which is most likely inside the image.
fn anchor(directives: &[Directive], others: &Program) -> Option<Address> {
    let mut addresses = directives
        .iter()
        .filter_map(|directive| match directive {
            Directive::Begin { at: Some(at), .. }
            | Directive::Confirm(at)
            | Directive::Continue(at)
            | Directive::WaypointTo(at)
            | Directive::WaypointAt(at) => Some(at.address),
            _ => None,
        })
        .filter(|&address| others.code(address).is_none())
        .collect::<Vec<_>>();
    addresses.sort_unstable();
    addresses.get(addresses.len() / 2).copied()
}

/// Follows the directives through a program at address 0 instead of `base`, until there are too many contradictions.
fn follow(program: &Program, directives: &[Directive], rules: Rules, base: Address) -> Fit {
    let mut flow = Flow::with_engine(rules, Engine::Walk);
    let mut fit = Fit::default();
    for &directive in directives {
        flow.follow(program, moved(directive, base), Span::default(), &mut |element| fit.take(&element));
        if fit.walked > STRAIGHT + fit.blocks * STRAIGHT_IN_EACH {
            return Fit { instructions: 0, ..fit };
        }
        if fit.contradictions > ENOUGH_AGAINST + fit.instructions / RIGHT_FOR_EACH {
            break;
        }
    }
    fit
}

/// The directive for a program at address 0 instead of `base`.
fn moved(directive: Directive, base: Address) -> Directive {
    // Addresses have 32 bits and wrap: memory before the image appears at the other end.
    let address = |address: Address| Address::from(address.low_word().wrapping_sub(base.low_word()));
    let place = |at: Location| Location::new(address(at.address), at.isa);
    match directive {
        Directive::Begin { at, why } => Directive::Begin { at: at.map(place), why },
        Directive::Confirm(at) => Directive::Confirm(place(at)),
        Directive::WaypointTo(at) => Directive::WaypointTo(place(at)),
        Directive::WaypointAt(at) => Directive::WaypointAt(place(at)),
        Directive::Unseen { instructions, then } => Directive::Unseen { instructions, then: place(then) },
        Directive::Continue(at) => Directive::Continue(place(at)),
        Directive::Resume(at) => Directive::Resume(place(at)),
        Directive::RunTo { address: until, end } => Directive::RunTo { address: address(until), end },
        Directive::Exception { exception, handler, preferred_return } => Directive::Exception {
            exception,
            handler: match handler {
                Handler::At(at) => Handler::At(place(at)),
                other => other,
            },
            preferred_return: match preferred_return {
                PreferredReturn::At(at) => PreferredReturn::At(address(at)),
                other => other,
            },
        },
        other => other,
    }
}
