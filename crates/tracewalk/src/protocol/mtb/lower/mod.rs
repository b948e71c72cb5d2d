//! Packets → directives.
//!
//! ```text
//! packets ─ Reader ─▶ steps: directives, and returns from exceptions ─ Lowering ─▶ directives
//! ```
//!
//! A packet names the place that a return from an exception led to. If a handler starts there, that does not say whether
//! the interrupted code continues, which may be that handler, or whether another exception was tail-chained: EXC_RETURN of the
//! next return does. Steps after such a return are held back until it comes.

mod nesting;
mod read;

use alloc::collections::VecDeque;

use super::packet::Packet;
use crate::directive::{Directive, Granularity, Rules};
use crate::ids::Address;
use crate::protocol::{Emit, Loss, Lower};
use crate::span::Span;

use nesting::{Look, Nesting};
use read::{Reader, Step, code};

/// What flow has to know of an MTB beside its directives: it exists in M profile only.
pub const RULES: Rules = Rules {
    granularity: Granularity::Runs,
    barriers_are_waypoints: false,
    return_stack: false,
    halfwords_count: false,
    m_profile: true,
    ..Rules::NONE
};

/// The most steps that are held back. It bounds memory; no chip has a buffer for more.
const MOST_HELD: usize = 1 << 18;

/// The meaning of a packet stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lowering {
    reader: Reader,
    nesting: Nesting,
    /// A return that is not decided, and the steps after it. Empty if nothing is open.
    held: VecDeque<(Step, Span)>,
    /// How the first of them is being decided.
    look: Option<Look>,
    /// How many of them [`Lowering::look`] has seen.
    seen: usize,
}

impl Lowering {
    /// Begins with nothing known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, where the processor was found halted here, and tracing continued up to there: what was executed after
    /// the last packet ends before this instruction.
    #[must_use]
    pub fn halted_at(self, program_counter: Option<Address>) -> Self {
        Self { reader: self.reader.halted_at(program_counter), ..self }
    }

    /// Passes on certain directives. Undecided steps stay open, unless they `must` be decided.
    fn decide(&mut self, must: bool, emit: &mut impl Emit) {
        while let Some((step, span)) = self.held.front().copied() {
            let directive = match step {
                Step::Directive(directive) => {
                    self.nesting.step(&step);
                    Some(directive)
                }
                Step::Replaced { .. } => {
                    self.nesting.step(&step);
                    None
                }
                Step::Returned { to_thread, to } => {
                    let mut look = match self.look.take() {
                        Some(look) => look,
                        None => {
                            self.seen = 1;
                            self.nesting.look(to_thread, to)
                        }
                    };
                    while !look.is_decided() && self.seen < self.held.len() {
                        if let Some((step, _)) = self.held.get(self.seen) {
                            look.step(step);
                        }
                        self.seen += 1;
                    }
                    if !look.is_decided() && !must && self.held.len() < MOST_HELD {
                        self.look = Some(look);
                        return;
                    }
                    let went_on = look.went_on();
                    self.nesting.returned(to_thread, to, went_on);
                    // Flow looks for a handler where the trace does not say that the interrupted code continues.
                    Some(if went_on == Some(true) {
                        Directive::Continue(code(to))
                    } else {
                        Directive::Resume(code(to))
                    })
                }
            };
            self.held.pop_front();
            if let Some(directive) = directive {
                emit.emit(directive, span);
            }
        }
    }
}

impl Lower for Lowering {
    type Packet = Packet;

    fn lower(&mut self, packet: &Packet, span: Span, emit: &mut impl Emit) {
        let held = &mut self.held;
        self.reader.packet(*packet, span, &mut |step, span| held.push_back((step, span)));
        self.decide(false, emit);
    }

    fn lost(&mut self, span: Span, loss: Loss, emit: &mut impl Emit) {
        let held = &mut self.held;
        self.reader.lost(span, loss, &mut |step, span| held.push_back((step, span)));
        self.decide(true, emit);
    }

    fn finish(&mut self, emit: &mut impl Emit) {
        let held = &mut self.held;
        self.reader.finish(&mut |step, span| held.push_back((step, span)));
        self.decide(true, emit);
    }
}
