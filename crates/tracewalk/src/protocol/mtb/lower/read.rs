//! Packets → steps: the meaning of each packet after the one before it.
//!
//! ```text
//! packet with S, or nothing known before it:
//!     A = 0: the instruction at the source was executed, and execution continued at the destination
//!     A = 1: the exception was taken, and nothing before it is known
//! otherwise execution is at the destination of the packet before:
//!     A = 0: it ran up to and including the source
//!     A = 1: it ran up to the source, which was not executed
//! destination EXC_RETURN: an exception returned; the next packet, with EXC_RETURN as its source, names the place
//! ```

use super::super::packet::{Magic, Packet};
use crate::directive::{BeginReason, Directive, Handler, PreferredReturn, RunEnd};
use crate::ids::{Address, Isa, Location};
use crate::protocol::Loss;
use crate::span::Span;

/// One step of a packet's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Step {
    /// A directive that needs no decision.
    Directive(Directive),
    /// An exception returned, and execution continued at `to`: in the code that was interrupted, or in the handler of an
    /// exception that was tail-chained.
    Returned {
        /// Whether EXC_RETURN states that the thread was interrupted, not another handler.
        to_thread: bool,
        /// The place where execution continued.
        to: Address,
    },
    /// An exception returned to the code at `to`, and another one took the place of that code's first
    /// instruction. Directives for both surround this step.
    Replaced {
        /// As in [`Step::Returned`].
        to_thread: bool,
        /// The place where execution would have continued.
        to: Address,
    },
}

/// Receives each step with the span of its packet.
type Take<'a> = &'a mut dyn FnMut(Step, Span);

/// Reads packets in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Reader {
    arrival: Arrival,
    /// An exception, or a return from one, that a more urgent exception may still overtake before the first
    /// instruction.
    held: Option<(Step, Span)>,
    /// The address at which the processor was found halted after the last packet.
    halted_at: Option<Address>,
    /// The newest packet.
    last: Span,
}

/// The position of execution after the previous packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Arrival {
    /// Nothing is known yet.
    #[default]
    Unknown,
    /// Trace was lost: nothing is known any more.
    Lost,
    /// An instruction branched here.
    Branched,
    /// An exception came at `source` (a return address, or EXC_RETURN if an exception ended), and led to
    /// `to`.
    Excepted { source: Address, to: Address },
    /// The first half of a return; the second half names the place.
    Commanded(Magic),
}

impl Reader {
    /// The same reader, for a processor that was found halted here.
    pub(super) fn halted_at(self, program_counter: Option<Address>) -> Self {
        Self { halted_at: program_counter, ..self }
    }

    /// Reads a packet before which nothing is known.
    fn begin(&mut self, packet: Packet, why: BeginReason, span: Span, take: Take<'_>) {
        self.arrival = Arrival::Unknown;
        let source = packet.source();
        if let Some(command) = Magic::at(source) {
            take(Step::Directive(Directive::Begin { at: None, why }), span);
            if let Magic::ExceptionReturn(_) = command {
                take(Step::Directive(Directive::ExceptionReturn), span);
            }
            self.second_half(command, packet, span, take);
            return;
        }
        take(Step::Directive(Directive::Begin { at: Some(code(source)), why }), span);
        if !packet.atomic() {
            take(Step::Directive(Directive::RunTo { address: source, end: RunEnd::Jumps }), span);
        }
        self.leave(packet, span, take);
    }

    /// Execution runs up to the source of `packet`, and leaves from there.
    fn run(&mut self, packet: Packet, span: Span, take: Take<'_>) {
        let end = if packet.atomic() { RunEnd::Before } else { RunEnd::Jumps };
        take(Step::Directive(Directive::RunTo { address: packet.source(), end }), span);
        // Addresses are never compressed: a run that fits both ends does not depend on earlier packets.
        take(Step::Directive(Directive::Synchronised), span);
        self.leave(packet, span, take);
    }

    /// Execution has reached the source of `packet` and goes to its destination.
    fn leave(&mut self, packet: Packet, span: Span, take: Take<'_>) {
        let (source, to) = (packet.source(), packet.destination());
        match (packet.atomic(), Magic::at(to)) {
            (false, None) => {
                take(Step::Directive(Directive::Continue(code(to))), span);
                self.arrival = Arrival::Branched;
            }
            (false, Some(command)) => {
                if let Magic::ExceptionReturn(_) = command {
                    take(Step::Directive(Directive::ExceptionReturn), span);
                }
                self.arrival = Arrival::Commanded(command);
            }
            (true, None) => {
                let exception = Directive::Exception {
                    exception: None,
                    handler: Handler::At(code(to)),
                    preferred_return: PreferredReturn::At(source),
                };
                self.held = Some((Step::Directive(exception), span));
                self.arrival = Arrival::Excepted { source, to };
            }
            // No handler can be there, and no debugger can start execution there.
            (true, Some(_)) => self.lost(span, Loss::Lost, take),
        }
    }

    /// The second half of a return: `packet` names the place.
    fn second_half(&mut self, command: Magic, packet: Packet, span: Span, take: Take<'_>) {
        let (source, to) = (packet.source(), packet.destination());
        if Magic::at(to).is_some() {
            self.lost(span, Loss::Lost, take);
            return;
        }
        match command {
            Magic::ExceptionReturn(value) => {
                self.held = Some((Step::Returned { to_thread: value.to_thread(), to }, span));
                self.arrival = Arrival::Excepted { source, to };
            }
            Magic::FunctionReturn => {
                take(Step::Directive(Directive::Continue(code(to))), span);
                self.arrival = Arrival::Branched;
            }
        }
    }

    fn flush(&mut self, take: Take<'_>) {
        if let Some((step, span)) = self.held.take() {
            take(step, span);
        }
    }

    /// Takes the next packet.
    pub(super) fn packet(&mut self, packet: Packet, span: Span, take: Take<'_>) {
        self.last = span;
        let source = packet.source();
        let overtakes = !packet.start()
            && packet.atomic()
            && matches!(self.arrival, Arrival::Excepted { source: before, to } if before == source && to != source);
        if overtakes {
            // A more urgent exception arrived during the entry of the held one, whose handler has not begun.
            self.held = None;
        }
        self.flush(take);
        if packet.start() {
            self.begin(packet, BeginReason::Enabled, span, take);
            return;
        }
        match (self.arrival, Magic::at(source)) {
            (Arrival::Unknown | Arrival::Lost, _) => {
                self.begin(packet, BeginReason::Synchronised, span, take);
            }
            (Arrival::Excepted { .. }, Some(command)) if overtakes => {
                self.second_half(command, packet, span, take);
            }
            (Arrival::Excepted { .. }, None) if overtakes => self.leave(packet, span, take),
            (Arrival::Branched | Arrival::Excepted { .. }, None) => self.run(packet, span, take),
            (Arrival::Commanded(command), Some(done)) if command == done => {
                self.second_half(command, packet, span, take);
            }
            // An exception replaced the return. Its packet shows the place to which the return would have
            // gone.
            (Arrival::Commanded(Magic::ExceptionReturn(value)), None) if packet.atomic() => {
                take(Step::Replaced { to_thread: value.to_thread(), to: source }, span);
                self.leave(packet, span, take);
            }
            // The halves do not belong together: packets in between are not in the buffer.
            (Arrival::Branched | Arrival::Excepted { .. }, Some(_)) | (Arrival::Commanded(_), _) => {
                take(Step::Directive(Directive::Lost), span);
                self.begin(packet, BeginReason::Synchronised, span, take);
            }
        }
    }

    /// As [`Lower::lost`](crate::protocol::Lower::lost).
    pub(super) fn lost(&mut self, span: Span, loss: Loss, take: Take<'_>) {
        self.flush(take);
        if self.arrival != Arrival::Lost {
            take(Step::Directive(loss.directive()), span);
        }
        self.arrival = Arrival::Lost;
    }

    /// As [`Lower::finish`](crate::protocol::Lower::finish).
    pub(super) fn finish(&mut self, take: Take<'_>) {
        self.flush(take);
        let known = matches!(self.arrival, Arrival::Branched | Arrival::Excepted { .. });
        if let Some(address) = self.halted_at.filter(|_| known) {
            take(Step::Directive(Directive::RunTo { address, end: RunEnd::Before }), self.last);
        }
    }
}

/// The MTB exists in M profile only, whose instructions are all T32.
pub(super) const fn code(address: Address) -> Location {
    Location::new(address, Isa::T32)
}
