//! Packets → directives.
//!
//! ```text
//! packet with S, or nothing known before it:
//!     A = 0: the instruction at the source was executed, and execution went on at the destination
//!     A = 1: the exception was taken, and nothing before it is known
//! otherwise execution stands at the destination of the packet before:
//!     A = 0: it ran up to and including the source
//!     A = 1: it ran up to the source, which was not executed
//! destination EXC_RETURN: an exception returned; the next packet, with EXC_RETURN as its source, says where to
//! ```

use alloc::vec::Vec;

use super::packet::{Magic, Packet};
use crate::directive::{BeginReason, Directive, Granularity, Handler, PreferredReturn, Rules, RunEnd};
use crate::ids::{Address, Isa, Location};
use crate::protocol::{Emit, Loss, Lower};
use crate::span::Span;

/// What flow has to know of an MTB beside its directives: it exists in M profile only.
pub const RULES: Rules = Rules {
    granularity: Granularity::Runs,
    barriers_are_waypoints: false,
    return_stack: false,
    halfwords_count: false,
    m_profile: true,
    ..Rules::NONE
};

/// How many handlers can be interrupted before their first instruction at once. Priorities nest less deeply.
const NESTED_HANDLERS: usize = 16;

/// The meaning of a packet stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lowering {
    arrival: Arrival,
    /// An exception, or the end of one, that a more urgent exception may still overtake before its first instruction.
    held: Option<(Directive, Span)>,
    /// Handlers that were interrupted before their first instruction and still have to run. A return to one of these
    /// looks like a tail-chained exception, but is none. At most [`NESTED_HANDLERS`].
    not_begun: Vec<Address>,
    /// Where the processor was found halted after the last packet.
    halted_at: Option<Address>,
    /// The newest packet.
    last: Span,
}

/// What the packet before says of where execution stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Arrival {
    /// Nothing is known yet.
    #[default]
    Unknown,
    /// Trace was lost: nothing is known any more.
    Lost,
    /// An instruction branched here.
    Branched { to: Address },
    /// An exception came at `source` (a return address, or EXC_RETURN where an exception ended), and led here.
    Excepted { source: Address, to: Address },
    /// The first half of a return; the second one says where to.
    Commanded(Magic),
}

impl Lowering {
    /// Begins with nothing known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, where the processor was found halted here, and tracing went on up to there: what was executed behind
    /// the last packet ends before this instruction.
    #[must_use]
    pub fn halted_at(self, program_counter: Option<Address>) -> Self {
        Self { halted_at: program_counter, ..self }
    }

    /// A packet behind which nothing is known.
    fn begin(&mut self, packet: Packet, why: BeginReason, span: Span, emit: &mut impl Emit) {
        self.not_begun.clear();
        self.arrival = Arrival::Unknown;
        let source = packet.source();
        if let Some(command) = Magic::at(source) {
            emit.emit(Directive::Begin { at: None, why }, span);
            if let Magic::ExceptionReturn(_) = command {
                emit.emit(Directive::ExceptionReturn, span);
            }
            self.second_half(command, packet, span, emit);
            return;
        }
        emit.emit(Directive::Begin { at: Some(code(source)), why }, span);
        if !packet.atomic() {
            emit.emit(Directive::RunTo { address: source, end: RunEnd::Jumps }, span);
        }
        self.leave(packet, span, emit);
    }

    /// Execution runs on from `from` to the source of `packet`, and leaves from there.
    fn run(&mut self, from: Address, packet: Packet, span: Span, emit: &mut impl Emit) {
        let end = if packet.atomic() { RunEnd::Before } else { RunEnd::Jumps };
        let handler_begins = matches!(self.arrival, Arrival::Excepted { .. });
        if packet.atomic() && handler_begins && packet.source() == from {
            if self.not_begun.len() == NESTED_HANDLERS {
                self.not_begun.remove(0);
            }
            self.not_begun.push(from);
        }
        emit.emit(Directive::RunTo { address: packet.source(), end }, span);
        // Addresses are whole: where a run fits its ends, what the packets before it told cannot matter any more.
        emit.emit(Directive::Synchronised, span);
        self.leave(packet, span, emit);
    }

    /// Execution has come to the source of `packet` and goes to its destination.
    fn leave(&mut self, packet: Packet, span: Span, emit: &mut impl Emit) {
        let (source, to) = (packet.source(), packet.destination());
        match (packet.atomic(), Magic::at(to)) {
            (false, None) => {
                emit.emit(Directive::Continue(code(to)), span);
                self.arrival = Arrival::Branched { to };
            }
            (false, Some(command)) => {
                if let Magic::ExceptionReturn(_) = command {
                    emit.emit(Directive::ExceptionReturn, span);
                }
                self.arrival = Arrival::Commanded(command);
            }
            (true, None) => {
                let exception = Directive::Exception {
                    exception: None,
                    handler: Handler::At(code(to)),
                    preferred_return: PreferredReturn::At(source),
                };
                self.held = Some((exception, span));
                self.arrival = Arrival::Excepted { source, to };
            }
            // No handler stands there, and no debugger can start anything there.
            (true, Some(_)) => self.lost(span, Loss::Lost, emit),
        }
    }

    /// The second half of a return: `packet` says where to.
    fn second_half(&mut self, command: Magic, packet: Packet, span: Span, emit: &mut impl Emit) {
        let (source, to) = (packet.source(), packet.destination());
        if Magic::at(to).is_some() {
            self.lost(span, Loss::Lost, emit);
            return;
        }
        let not_begun = self.not_begun.iter().rposition(|&handler| handler == to);
        match (command, not_begun) {
            (Magic::ExceptionReturn(_), None) => {
                self.held = Some((Directive::Resume(code(to)), span));
                self.arrival = Arrival::Excepted { source, to };
            }
            (Magic::ExceptionReturn(_), Some(index)) => {
                self.not_begun.remove(index);
                emit.emit(Directive::Continue(code(to)), span);
                self.arrival = Arrival::Excepted { source, to };
            }
            (Magic::FunctionReturn, _) => {
                emit.emit(Directive::Continue(code(to)), span);
                self.arrival = Arrival::Branched { to };
            }
        }
    }

    fn flush(&mut self, emit: &mut impl Emit) {
        if let Some((directive, span)) = self.held.take() {
            emit.emit(directive, span);
        }
    }
}

impl Lower for Lowering {
    type Packet = Packet;

    fn lower(&mut self, packet: &Packet, span: Span, emit: &mut impl Emit) {
        let packet = *packet;
        self.last = span;
        let source = packet.source();
        let overtakes = !packet.start()
            && packet.atomic()
            && matches!(self.arrival, Arrival::Excepted { source: before, to } if before == source && to != source);
        if overtakes {
            // A more urgent exception arrived while this one was being entered, whose handler has not begun.
            self.held = None;
        }
        self.flush(emit);
        if packet.start() {
            self.begin(packet, BeginReason::Enabled, span, emit);
            return;
        }
        match (self.arrival, Magic::at(source)) {
            (Arrival::Unknown | Arrival::Lost, _) => {
                self.begin(packet, BeginReason::Synchronised, span, emit);
            }
            (Arrival::Excepted { .. }, Some(command)) if overtakes => {
                self.second_half(command, packet, span, emit);
            }
            (Arrival::Excepted { .. }, None) if overtakes => self.leave(packet, span, emit),
            (Arrival::Branched { to } | Arrival::Excepted { to, .. }, None) => {
                self.run(to, packet, span, emit);
            }
            (Arrival::Commanded(command), Some(done)) if command == done => {
                self.second_half(command, packet, span, emit);
            }
            // An exception took the place of the return (its packet shows where the return would have gone).
            (Arrival::Commanded(Magic::ExceptionReturn(_)), None) if packet.atomic() => {
                self.leave(packet, span, emit);
            }
            // Halves that do not belong together: what lies between is not in the buffer.
            (Arrival::Branched { .. } | Arrival::Excepted { .. }, Some(_)) | (Arrival::Commanded(_), _) => {
                emit.emit(Directive::Lost, span);
                self.begin(packet, BeginReason::Synchronised, span, emit);
            }
        }
    }

    fn lost(&mut self, span: Span, loss: Loss, emit: &mut impl Emit) {
        self.flush(emit);
        if self.arrival != Arrival::Lost {
            emit.emit(loss.directive(), span);
        }
        self.arrival = Arrival::Lost;
    }

    fn finish(&mut self, emit: &mut impl Emit) {
        self.flush(emit);
        let known = matches!(self.arrival, Arrival::Branched { .. } | Arrival::Excepted { .. });
        if let Some(address) = self.halted_at.filter(|_| known) {
            emit.emit(Directive::RunTo { address, end: RunEnd::Before }, self.last);
        }
    }
}

/// The MTB exists in M profile only, whose instructions are all T32.
const fn code(address: Address) -> Location {
    Location::new(address, Isa::T32)
}
