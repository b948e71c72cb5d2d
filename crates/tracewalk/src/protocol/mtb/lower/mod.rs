//! Packets → directives.
//!
//! ```text
//! packets ─ Reader ─▶ steps: directives, and returns from exceptions ─ Lowering ─▶ directives
//! ```
//!
//! A packet names the place that a return from an exception led to. If a handler starts there, the packet
//! leaves open whether the interrupted code continues, which may be that handler, or another exception was
//! tail-chained. EXC_RETURN of a later return decides. Until then, steps after the ambiguous return are held
//! back.

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

/// The rules by which flow follows an MTB, which exists in M profile only.
pub const RULES: Rules = Rules {
    granularity: Granularity::Runs,
    barriers_are_waypoints: false,
    return_stack: false,
    halfwords_count: false,
    m_profile: true,
    ..Rules::NONE
};

/// The most steps held back, to bound memory. No chip has a buffer for more.
const MOST_HELD: usize = 1 << 18;

/// Turns packets into directives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lowering {
    reader: Reader,
    nesting: Nesting,
    /// An undecided return and the steps after it. Empty if everything is decided.
    held: VecDeque<(Step, Span)>,
    /// The decision on the first held step, if it has begun.
    look: Option<Look>,
    /// The number of held steps that [`Lowering::look`] has seen.
    seen: usize,
}

impl Lowering {
    /// A lowering for the start of a source's trace.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same lowering, for a processor that was found halted at `program_counter` with tracing on:
    /// execution after the last packet ends before this instruction.
    #[must_use]
    pub fn halted_at(self, program_counter: Option<Address>) -> Self {
        Self { reader: self.reader.halted_at(program_counter), ..self }
    }

    /// Emits directives up to the first undecided step. With `must`, decides every step.
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
                    // Flow looks for a handler unless the trace shows that the interrupted code continues.
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
