//! Where the packets of a Micro Trace Buffer are, by which of them continue each other.

use tracewalk::flow::runs_straight;
use tracewalk::ids::{Address, Isa, Location};
use tracewalk::program::Program;
use tracewalk::protocol::mtb::order::{self, Dump, Evidence, Guess};

/// Where packets stand by what they say.
pub(crate) fn mtb(dump: Dump<'_>, program: &Program) -> Option<Guess> {
    order::by_evidence(dump, |from: Address, to: Address| {
        if program.is_empty() {
            order::within_reach(from, to)
        } else {
            runs_straight(program, Location::new(from, Isa::T32), to)
        }
    })
}

/// Whether bytes that may be anything are packets that go on from one to the next.
pub(crate) const fn speaks_for_trace(evidence: &Evidence) -> bool {
    evidence.fits > 3 * evidence.breaks + 3
}
