//! The meaning of a trace unit's packets, independent of the protocol.
//!
//! Packets go in (`protocol::*::lower`), directives come out; [`flow`](crate::flow) follows them through the
//! program. Three directives pass instructions, one for each way in which trace units count:
//! [`Directive::Instructions`] (ETMv3: one atom, one instruction), [`Directive::Waypoint`] (PFT and ETMv4:
//! one atom, everything up to the next waypoint) and [`Directive::RunTo`] (MTB and PFT's waypoint update:
//! everything up to an address). Later stages do not depend on the protocol.
//!
//! Cancelled instructions do not appear here: `lower` holds an instruction back until nothing can cancel it.
//!
//! ```
//! use tracewalk::directive::{BeginReason, Directive};
//! use tracewalk::ids::{Address, Isa, Location};
//! use tracewalk::protocol::{Item, Lower, Packets, etmv3};
//! use tracewalk::span::Span;
//!
//! let config = etmv3::Config::for_core("cortex-m3").expect("a known core");
//! let mut lowering = etmv3::Lowering::new(&config);
//! let mut directives = Vec::new();
//! let mut emit = |directive: Directive, _: Span| directives.push(directive);
//! // A-sync, I-sync at 0x100 in Thumb, and a P-header of two executed instructions.
//! let trace = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x88];
//! let mut lower = |item: Item<etmv3::Packet>, span, _: &[u8]| {
//!     if let Item::Packet(packet) = item {
//!         lowering.lower(&packet, span, &mut emit);
//!     }
//! };
//! let mut packets = Packets::new(etmv3::Decoder::new(&config));
//! packets.push(&trace, &mut lower);
//! packets.finish(&mut lower);
//! lowering.finish(&mut emit);
//! let at = Some(Location::new(Address::new(0x100), Isa::T32));
//! assert!(matches!(directives[0], Directive::Begin { at: begin, why: BeginReason::Enabled } if begin == at));
//! ```

use crate::ids::{Address, ContextId, Exception, ExceptionLevel, Location, Privilege, Vmid};

/// One step of execution, or one event, that the trace reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Directive {
    /// Tracing begins: nothing is known of what ran before. The address is absent if instructions are not traced.
    Begin {
        /// The next instruction to be executed.
        at: Option<Location>,
        /// Why tracing begins here.
        why: BeginReason,
    },
    /// The next instruction is this one; execution did not jump. Also gives the position after a loss.
    Confirm(Location),
    /// The next `executed` instructions passed their condition; then one failed its own, if `then_failed`.
    Instructions {
        /// The number of executed instructions.
        executed: u8,
        /// Whether one more was passed whose condition failed.
        then_failed: bool,
    },
    /// Everything up to and including the next waypoint was passed.
    Waypoint {
        /// Whether the waypoint passed its condition (a branch: was taken). An indirect branch that was taken goes to
        /// the newest return stack entry.
        executed: bool,
    },
    /// As an executed [`Directive::Waypoint`], after which execution continues here.
    WaypointTo(Location),
    /// As an executed [`Directive::Waypoint`] whose address may still come: an indirect branch goes to the address of the next
    /// [`Directive::Continue`], or to the newest return stack entry if another instruction is passed first.
    WaypointPending,
    /// As [`Directive::WaypointPending`] for the waypoint at this place: the waypoints on the way there were passed and not taken. If
    /// execution is not known to come that way, only this one instruction was executed. The instruction set is that of execution, and
    /// this one only if execution is not known.
    WaypointAt(Location),
    /// Instructions were executed that the trace does not name; execution continues at `then`.
    Unseen {
        /// The number of instructions; `None` if the trace does not state it.
        instructions: Option<u64>,
        /// The next instruction.
        then: Location,
    },
    /// Everything from here to `address` was passed, without any branch taken on the way.
    RunTo {
        /// The end of the run.
        address: Address,
        /// How the instruction at `address` takes part.
        end: RunEnd,
    },
    /// Execution continues here: the target of the last instruction, or the confirmation of one already known.
    Continue(Location),
    /// An exception was taken.
    Exception {
        /// The exception; `None` if the trace does not state it. The vector table may.
        exception: Option<Exception>,
        /// The start of the handler.
        handler: Handler,
        /// The place at which the architecture resumes execution.
        preferred_return: PreferredReturn,
    },
    /// The last instruction returned from an exception.
    ExceptionReturn,
    /// Execution continues here after an [`Directive::ExceptionReturn`], in the interrupted code or, if a
    /// handler starts here, in that handler: its exception was taken instead (tail-chaining). The trace does not distinguish
    /// them; the vector table does.
    Resume(Location),
    /// A transaction began or ended. After [`Transaction::Failed`], a [`Directive::Continue`] gives the address at which execution continues.
    Transaction(Transaction),
    /// A new context ID, for the instructions from here on.
    ContextId(ContextId),
    /// A new virtual machine, for the instructions from here on.
    Vmid(Vmid),
    /// A new exception level or security state, for the instructions from here on.
    Privilege(Privilege),
    /// The processor's clock speed changed since the last timestamp; the next one follows.
    ClockChanged,
    /// The time of the last traced instruction; 0 if the source did not know it.
    Timestamp(u64),
    /// Cycles that passed since the last ones counted, spent on the instruction that comes next in the trace, or
    /// before tracing began if [`Directive::Begin`] comes next.
    Cycles(u64),
    /// The trigger condition occurred.
    Trigger,
    /// Events that the trace unit was set up to report occurred: a bit for each, bit 0 for event 0.
    Events(u8),
    /// The program wrote a value into the trace.
    Instrumentation(Instrumentation),
    /// A data access of the last load or store.
    Data(Transfer),
    /// The value of an earlier access, which was still pending.
    LateData {
        /// The tag under which it was pending, 1 to 3.
        tag: u8,
        /// The value.
        value: u32,
    },
    /// A synchronisation gave the position, which does not depend on earlier trace. If execution was at the same place, everything
    /// reported before is confirmed.
    Synchronised,
    /// A synchronisation begins: up to [`Directive::Synchronised`] the trace unit makes no return stack entries for calls.
    CallsUnnoted,
    /// Trace was lost or could not be read; until the next [`Directive::Begin`] or [`Directive::Confirm`] nothing is
    /// known of the position.
    Lost,
    /// As [`Directive::Lost`], at the end of trace inside a packet: earlier trace is not in doubt.
    Cut,
}

/// Waypoints in a row, oldest first. An executed one means [`Directive::WaypointPending`], another one
/// [`Directive::Waypoint`].
///
/// Flow follows them in one loop, and changes its state once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Waypoints {
    /// Bit 0 is the oldest waypoint; set if it was executed. The highest set bit comes after the newest waypoint.
    bits: u32,
}

impl Waypoints {
    /// The most waypoints in a row.
    pub const MOST: u32 = u32::BITS - 1;

    /// No waypoints.
    pub const NONE: Self = Self { bits: 1 };

    /// One waypoint, which was executed.
    pub const EXECUTED: Self = Self { bits: 0b11 };

    /// The lowest `count` bits of `executed`, bit 0 for the oldest waypoint; `None` if that is more than [`Waypoints::MOST`].
    #[must_use]
    pub const fn new(count: u32, executed: u32) -> Option<Self> {
        if count > Self::MOST {
            return None;
        }
        let end = 1 << count;
        Some(Self { bits: executed & (end - 1) | end })
    }

    /// The number of waypoints.
    #[inline]
    #[must_use]
    pub const fn count(self) -> u32 {
        // The end is always set.
        self.bits.ilog2()
    }

    /// Whether the oldest waypoint was executed, and the others.
    #[inline]
    #[must_use]
    pub const fn split_first(self) -> Option<(bool, Self)> {
        if self.bits <= 1 { None } else { Some((self.bits & 1 != 0, Self { bits: self.bits >> 1 })) }
    }

    /// Whether the newest waypoint was executed, and the others.
    #[inline]
    #[must_use]
    pub const fn split_last(self) -> Option<(bool, Self)> {
        let Some(before) = self.count().checked_sub(1) else { return None };
        let (others, newest) = self.split_at(before);
        Some((newest.bits & 1 != 0, others))
    }

    /// The oldest `count` waypoints, or all if there are not as many, and the others.
    #[inline]
    #[must_use]
    pub const fn split_at(self, count: u32) -> (Self, Self) {
        if count >= self.count() {
            return (self, Self::NONE);
        }
        let end = 1 << count;
        (Self { bits: self.bits & (end - 1) | end }, Self { bits: self.bits >> count })
    }

    /// The same waypoints, the newest one executed if it was not, and the other way round.
    #[must_use]
    pub const fn with_newest_turned(self) -> Self {
        match self.count().checked_sub(1) {
            Some(newest) => Self { bits: self.bits ^ 1 << newest },
            None => self,
        }
    }

    /// The meaning of one waypoint.
    #[inline]
    #[must_use]
    pub const fn directive(executed: bool) -> Directive {
        if executed { Directive::WaypointPending } else { Directive::Waypoint { executed: false } }
    }
}

/// A change of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Transaction {
    /// The transaction begins: instructions from here on take effect only if it is committed.
    Started,
    /// A transaction was under way when the trace could first be followed.
    UnderWay,
    /// The outermost transaction ended, and took effect.
    Committed,
    /// The transaction failed: the instructions since its start took no effect.
    Failed,
}

impl Transaction {
    /// A short name, as the line formats print it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::UnderWay => "under_way",
            Self::Committed => "committed",
            Self::Failed => "failed",
        }
    }
}

/// A value that the program wrote into the trace, by an instruction for that (TRCIT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Instrumentation {
    /// The exception level that wrote it.
    pub level: ExceptionLevel,
    /// The value.
    pub value: u64,
}

/// Why tracing begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum BeginReason {
    /// Tracing was switched on.
    Enabled,
    /// The trace unit's FIFO had overflowed; trace before it is lost.
    Overflow,
    /// The processor left Debug state.
    DebugExit,
    /// The decoder synchronised, at the start of a capture or after damage.
    Synchronised,
}

impl BeginReason {
    /// A short name, as the line formats print it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Overflow => "overflow",
            Self::DebugExit => "debug_exit",
            Self::Synchronised => "synchronised",
        }
    }
}

/// How the instruction at the end of a [`Directive::RunTo`] takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum RunEnd {
    /// The instruction was executed and jumped, to the address of a [`Directive::Continue`].
    Jumps,
    /// The instruction was not executed: an exception came first. Branches that were not taken may be on the
    /// way.
    Before,
    /// The instruction was not executed: an exception came first. No waypoint is on the way, because the
    /// trace has an atom for each waypoint. The address may also lie inside the last instruction.
    BeforeWithoutWaypoints,
    /// The instruction was executed. The address may also lie inside an instruction, or in none: the run ends
    /// before the first instruction with a greater address.
    Through,
}

/// The start of an exception's handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Handler {
    /// At this instruction.
    At(Location),
    /// A [`Directive::Continue`] brings the address.
    Pending,
    /// No handler: the processor entered Debug state, which is not traced up to the next [`Directive::Begin`].
    DebugState,
    /// The trace does not state the handler.
    Unknown,
}

impl Handler {
    /// The handler's first instruction, if it is known.
    #[must_use]
    pub const fn location(self) -> Option<Location> {
        match self {
            Self::At(location) => Some(location),
            Self::Pending | Self::DebugState | Self::Unknown => None,
        }
    }
}

/// The place at which the architecture resumes execution after an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum PreferredReturn {
    /// At the next instruction: the one that the trace had reached.
    Next,
    /// At the last instruction passed, which has to be tried again or skipped by the handler.
    Last,
    /// At the instruction that is at fault: the last one passed if its code is undefined, which cannot have
    /// completed, or else the next one, which was not traced.
    AtFault,
    /// At this address.
    At(Address),
    /// Unknown.
    Unknown,
}

/// One access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Transfer {
    /// The address; absent if it was not traced.
    pub address: Option<Address>,
    /// The value.
    pub value: TransferValue,
    /// Whether the trace marks the value as big-endian.
    pub big_endian: bool,
}

/// The value of an access, as far as the trace has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TransferValue {
    /// The value, with high zero bytes restored.
    Value(u32),
    /// Not yet known: a [`Directive::LateData`] with this tag brings it.
    Pending(u8),
    /// Not traced.
    NotTraced,
    /// The store-exclusive did not store.
    StoreFailed,
    /// Dropped to keep the trace unit's FIFO from overflowing.
    Suppressed,
}

/// How much execution an atom of a trace covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Granularity {
    /// One instruction.
    #[default]
    Instructions,
    /// Everything up to and including the next waypoint.
    Waypoints,
    /// There are no atoms: only runs to an address.
    Runs,
}

/// The properties of a source that flow needs besides its directives.
///
/// A protocol's configuration gives them; their names are independent of its registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rules {
    /// How much execution an atom of the trace covers.
    pub granularity: Granularity,
    /// DMB and DSB are waypoints too (ISB always is).
    pub barriers_are_waypoints: bool,
    /// Returns may be traced as an executed waypoint, predicted by a stack of the calls before.
    pub return_stack: bool,
    /// A 32-bit Thumb instruction counts as two in [`Directive::Instructions`].
    pub halfwords_count: bool,
    /// The processor is of M profile: handler addresses come from a vector table.
    pub m_profile: bool,
    /// WFI, WFE and their timed forms are waypoints too.
    pub waits_are_waypoints: bool,
    /// The start of a transaction is a waypoint too.
    pub transaction_starts_are_waypoints: bool,
    /// Loads are waypoints too.
    pub loads_are_waypoints: bool,
    /// Stores are waypoints too.
    pub stores_are_waypoints: bool,
    /// Long code may have no waypoint: the trace unit sends nothing for the length of code alone.
    pub waypoints_may_be_far: bool,
    /// A waypoint that is not a branch, and that the trace reports as not executed, failed its condition.
    /// Without this rule, the trace states only that the waypoint was passed.
    pub waypoints_fail_by_condition: bool,
    /// The trace does not mark returns from exceptions: the form of an instruction decides.
    pub exception_returns_by_form: bool,
}

impl Rules {
    /// The rules of an unknown source, from which each protocol's rules start.
    pub(crate) const NONE: Self = Self {
        granularity: Granularity::Instructions,
        barriers_are_waypoints: false,
        return_stack: false,
        halfwords_count: false,
        m_profile: false,
        waits_are_waypoints: false,
        transaction_starts_are_waypoints: false,
        loads_are_waypoints: false,
        stores_are_waypoints: false,
        waypoints_may_be_far: false,
        waypoints_fail_by_condition: false,
        exception_returns_by_form: false,
    };
}
