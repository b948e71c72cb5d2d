//! The places of a Micro Trace Buffer's packets, inferred from which of them continue each other.

use tracewalk::flow::runs_straight;
use tracewalk::ids::{Address, Isa, Location};
use tracewalk::program::Program;
use tracewalk::protocol::mtb::Config;
use tracewalk::protocol::mtb::order::Dump;

use super::mtb_order::{self, Evidence, Guess, Narrowing};

/// The order of packets, by their contents.
pub(crate) fn mtb(dump: Dump<'_>, program: &Program) -> Option<Guess> {
    mtb_order::by_evidence(dump, reaches(program))
}

/// As [`mtb`], if one of the registers is known.
pub(crate) fn mtb_narrowed(dump: Dump<'_>, known: Narrowing, program: &Program) -> Option<Guess> {
    mtb_order::narrowed(dump, known, reaches(program))
}

/// The start of the buffer that the registers describe, in a dump of unknown address.
pub(crate) fn mtb_place(data: &[u8], config: &Config, program: &Program) -> Option<usize> {
    mtb_order::place_by_registers(data, config, reaches(program))
}

/// Whether the packet at this place begins at the destination of the one before.
pub(crate) fn mtb_continues(data: &[u8], at: usize, program: &Program) -> bool {
    mtb_order::continues(data, at, reaches(program))
}

fn reaches(program: &Program) -> impl Fn(Address, Address) -> bool {
    move |from, to| {
        if program.is_empty() {
            mtb_order::within_reach(from, to)
        } else {
            runs_straight(program, Location::new(from, Isa::T32), to)
        }
    }
}

/// Whether packets continue each other, but not in this program: another program was traced, or at another address.
pub(crate) fn misses_program(dump: Dump<'_>, program: &Program) -> bool {
    let speaks = |guess: Option<Guess>| guess.is_some_and(|guess| speaks_for_trace(&guess.best.evidence));
    !program.is_empty() && !speaks(mtb(dump, program)) && speaks(mtb(dump, &Program::new()))
}

/// Whether bytes of unknown content are packets that continue each other.
pub(crate) const fn speaks_for_trace(evidence: &Evidence) -> bool {
    evidence.fits > 3 * evidence.breaks + 3
}
