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
use crate::sample::Sample;

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

/// The place of `image` when the trace was made; `None` if no place is better than the stated one. `others` is the
/// program without the image.
pub(crate) fn place(
    sample: &Sample,
    config: &SourceConfig,
    image: RawImage<'_>,
    others: &Program,
) -> Option<Place> {
    // The seam between a Micro Trace Buffer's newest and oldest packet may not show without the program.
    let seams = u64::from(matches!(config, SourceConfig::Mtb(_)));
    search(&directives(sample, config), config.rules(), image, others, seams)
}

/// The place of `image` by these directives. Their `seams` may contradict the program.
fn search(
    directives: &[Directive],
    rules: Rules,
    image: RawImage<'_>,
    others: &Program,
    seams: u64,
) -> Option<Place> {
    let anchor = anchor(directives, others)?;
    let space = Space::of(&[anchor, image.address]);
    let mut program = Program::new();
    program.add(Address::new(0), image.bytes).ok()?;
    let length = u32::try_from(image.bytes.len()).ok()?;
    let fit = |address| {
        let fit = follow(&program, directives, rules, (space, address));
        Fit { address, contradictions: fit.contradictions.saturating_sub(seams), ..fit }
    };
    let stated = fit(image.address);
    let mut best = stated;
    let mut next = None::<Fit>;
    for alignment in ALIGNMENTS {
        if length / alignment > MOST_PLACES || best.is_convincing() {
            break;
        }
        // The anchor is an address in the image: the image starts at it, or before it by less than its length.
        let last = Address::new(anchor.get() & !u64::from(alignment - 1));
        for index in 0..=length / alignment {
            let found = fit(space.from(last, Address::from(index * alignment)));
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
            Element::Block(block) => self.instructions += u64::from(block.instructions).min(MOST_OF_A_BLOCK),
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

/// The addresses that there are. Memory before an image moved to address 0 appears at the other end.
#[derive(Clone, Copy)]
enum Space {
    /// Those of AArch32 and of M profile.
    Bits32,
    Bits64,
}

impl Space {
    /// The space with these addresses: the smaller one, if that has them.
    fn of(addresses: &[Address]) -> Self {
        let is_wide = addresses.iter().any(|address| address.get() > u64::from(u32::MAX));
        if is_wide { Self::Bits64 } else { Self::Bits32 }
    }

    /// The address as counted from `base`.
    fn from(self, address: Address, base: Address) -> Address {
        match self {
            Self::Bits32 => Address::from(address.low_word().wrapping_sub(base.low_word())),
            Self::Bits64 => Address::new(address.get().wrapping_sub(base.get())),
        }
    }
}

/// Follows the directives through a program at address 0 instead of `base`, until there are too many contradictions.
fn follow(program: &Program, directives: &[Directive], rules: Rules, base: (Space, Address)) -> Fit {
    let mut flow = Flow::with_engine(rules, Engine::Walk);
    let mut fit = Fit::default();
    for &directive in directives {
        flow.follow(program, moved(directive, base), Span::default(), &mut |element| fit.take(&element));
        if fit.contradictions > ENOUGH_AGAINST + fit.instructions / RIGHT_FOR_EACH {
            break;
        }
    }
    fit
}

/// The directive for a program at address 0 instead of `base`.
fn moved(directive: Directive, (space, base): (Space, Address)) -> Directive {
    let address = |address: Address| space.from(address, base);
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

#[cfg(test)]
mod tests {
    use tracewalk::directive::BeginReason;
    use tracewalk::ids::Isa;

    use super::*;

    const NOP: u32 = 0xd503_201f;
    const RET: u32 = 0xd65f_03c0;
    /// `cbz x0, .`, without its distance.
    const CBZ: u32 = 0xb400_0000;

    /// The next of some pseudorandom numbers less than `most`.
    fn next(state: &mut u64, most: u64) -> u64 {
        *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (*state >> 33) % most
    }

    /// A64 code, and the directives of a run of it at this address.
    fn run(base: Address) -> (Vec<u8>, Vec<Directive>) {
        const WORDS: u64 = 2000;
        let state = &mut 1;
        let mut code = Vec::new();
        for _ in 0..WORDS - 20 {
            code.push(match next(state, 8) {
                0 => RET,
                1 | 2 => CBZ | u32::try_from(1 + next(state, 8)).unwrap_or_default() << 5,
                _ => NOP,
            });
        }
        code.resize(2000, RET);
        let at = |word: u64| Location::new(Address::new(base.get() + 4 * word), Isa::A64);
        let mut word = 0;
        let mut directives = vec![Directive::Begin { at: Some(at(word)), why: BeginReason::Enabled }];
        while directives.len() < DIRECTIVES {
            let instruction = code[usize::try_from(word).expect("a short program")];
            let taken = next(state, 2) == 0;
            if instruction == NOP {
                word += 1;
            } else if instruction == RET {
                word = next(state, WORDS - 20);
                directives.extend([Directive::WaypointPending, Directive::Continue(at(word))]);
            } else if taken {
                word += u64::from((instruction & 0x00ff_ffe0) >> 5);
                directives.push(Directive::WaypointPending);
            } else {
                word += 1;
                directives.push(Directive::Waypoint { executed: false });
            }
        }
        (code.iter().flat_map(|word| word.to_le_bytes()).collect(), directives)
    }

    #[test]
    fn an_image_is_found_anywhere_among_64_bit_addresses() {
        let config = etmv4::Config::for_core("cortex-a53").map(SourceConfig::Etmv4).expect("a known core");
        for base in [0x4000_0000, 0xff_ff00_0000, 0xffff_8000_0801_0000, 0xffff_ffc0_0008_1230] {
            let base = Address::new(base);
            let (bytes, directives) = run(base);
            let found = |stated| {
                let image = RawImage { address: Address::new(stated), bytes: &bytes };
                search(&directives, config.rules(), image, &Program::new(), 0)
            };
            for wrong in [0, 0x8_0000, base.get() & 0xffff_ffff ^ 0x10_0000, base.get() + 0x20_0000] {
                let place = found(wrong).expect("the image fits at one place");
                assert_eq!(place.address, base, "stated at {wrong:#x}");
                assert!(place.instructions > 4000, "{}", place.instructions);
            }
            assert!(found(base.get()).is_none(), "the image is there already");
        }
    }
}
