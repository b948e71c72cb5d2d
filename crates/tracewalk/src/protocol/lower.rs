//! The shape of a protocol's interpretation: packets → directives.

use crate::directive::{Directive, Waypoints};
use crate::span::Span;

/// A protocol's interpretation: packets → directives.
pub trait Lower {
    /// The protocol's packet.
    type Packet;

    /// Emits the meaning of `packet`, in execution order.
    ///
    /// A directive may be held back until a later packet makes it certain; the directive is emitted with the
    /// span of the packet that it came from.
    fn lower(&mut self, packet: &Self::Packet, span: Span, emit: &mut impl Emit);

    /// Trace ends or is interrupted here. One loss is one directive, however many stretches of bytes report it before the
    /// next synchronisation.
    fn lost(&mut self, span: Span, loss: Loss, emit: &mut impl Emit);

    /// The trace ends: directives that were held back are certain now.
    fn finish(&mut self, emit: &mut impl Emit);
}

/// Why the position is no longer known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// Trace is missing or malformed: what came before may be wrong as well.
    Lost,
    /// Trace ends, or continues with another recording: nothing is wrong with what came before.
    Cut,
}

impl Loss {
    /// The directive that reports the loss.
    #[must_use]
    pub const fn directive(self) -> Directive {
        match self {
            Self::Lost => Directive::Lost,
            Self::Cut => Directive::Cut,
        }
    }
}

/// Receives directives. Closures implement it; implement it yourself to force inlining.
pub trait Emit {
    /// Takes the next directive, and the span of the packet that it came from.
    fn emit(&mut self, directive: Directive, span: Span);

    /// Takes the directives of waypoints in a row, which came from one packet.
    #[inline]
    fn emit_waypoints(&mut self, waypoints: Waypoints, span: Span) {
        let mut left = waypoints;
        while let Some((executed, rest)) = left.split_first() {
            self.emit(Waypoints::directive(executed), span);
            left = rest;
        }
    }
}

impl<F: FnMut(Directive, Span)> Emit for F {
    #[inline(always)]
    fn emit(&mut self, directive: Directive, span: Span) {
        self(directive, span);
    }
}
