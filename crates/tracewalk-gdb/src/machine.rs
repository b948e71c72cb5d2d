//! The registers and the stack at one place, as far as flow and the program's call frame information give them: GDB
//! needs them to find the frames that flow knows.
//!
//! Frames are followed from the outermost one inwards. A register that an outer frame needs is either saved by a frame
//! further in, at the place that the call frame information gives, or still in the register.

use std::collections::BTreeMap;

use tracewalk::ids::{Address, Exception, Isa, Location};
use tracewalk_analysis::call_stack::{Frame, FrameKind};

use crate::registers::Architecture;
use crate::unwind::{EXCEPTION_FRAME, Mark, Unwinder};

/// Known registers and memory; all others are unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) registers: BTreeMap<u16, u64>,
    pub(crate) memory: BTreeMap<u64, u8>,
}

/// One frame, as GDB finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// The address at which the frame continues: the calling instruction, or the interrupted one.
    pub(crate) at: Address,
    pub(crate) frame: Frame<Mark>,
}

/// The instruction set's bit in a return address.
const THUMB: u64 = 1;

/// The instruction set's bit in xPSR, which M profile always has, and in CPSR.
const XPSR_T: u64 = 1 << 24;
const CPSR_T: u64 = 1 << 5;

/// The values of M profile's link register in a handler: a return to Handler or Thread mode on the main stack, without
/// a frame of the floating-point unit (DDI 0403E, B1.5.8).
const TO_HANDLER: u64 = 0xffff_fff1;
const TO_THREAD: u64 = 0xffff_fff9;

/// The levels of a stack, outermost first. The innermost frame is at `at`, and the whole stack is moved by `moved`
/// bytes.
pub(crate) fn levels<'a>(
    frames: impl Iterator<Item = &'a Frame<Mark>>,
    at: Address,
    moved: u64,
) -> impl Iterator<Item = Level> {
    let mut frames = frames.copied().peekable();
    std::iter::from_fn(move || {
        let mut frame = frames.next()?;
        frame.mark.cfa = frame.mark.cfa.moved(moved);
        let place = match frames.peek().map(|next| next.kind) {
            None => Some(at),
            Some(FrameKind::Call { site, .. }) => site,
            Some(FrameKind::Exception(interruption)) => interruption.returns_to,
            Some(FrameKind::Root) => None,
        };
        // The place in code that no image holds is unknown.
        Some(Level { at: place.unwrap_or(Address::new(0)), frame })
    })
}

impl Machine {
    /// The registers and the stack of these frames, outermost first.
    pub(crate) fn of(unwinder: &Unwinder, levels: &[Level], pc: Location) -> Self {
        let mut machine = Self::default();
        // The values of registers that outer frames need and no frame has saved yet.
        let mut needed = BTreeMap::new();
        let mut exceptions = 0_u32;
        for (index, level) in levels.iter().enumerate() {
            let cfa = level.frame.mark.cfa(unwinder, level.at);
            let caller = index.checked_sub(1).and_then(|outer| levels.get(outer));
            let returns_to = return_address(unwinder, level, caller, exceptions);
            exceptions += u32::from(level.frame.kind.is_exception());
            machine.enter(unwinder, (level, cfa), returns_to, &mut needed);
            match levels.get(index + 1).map(|inner| inner.frame.kind) {
                Some(FrameKind::Exception(interruption)) => {
                    let pointer = unwinder.stack_pointer(cfa, level.at);
                    machine.interrupt(unwinder, pointer, interruption.returns_to, &mut needed);
                }
                // The call writes the link register.
                Some(_) => _ = needed.remove(&unwinder.architecture.link()),
                None => {
                    let pointer = unwinder.stack_pointer(cfa, level.at);
                    needed.insert(unwinder.architecture.stack_pointer(), pointer);
                }
            }
        }
        needed.insert(unwinder.architecture.program_counter(), pc.address.get());
        needed.extend(
            status(unwinder.architecture, levels, pc).map(|value| (unwinder.architecture.status(), value)),
        );
        machine.registers = needed;
        machine
    }

    /// Stores the registers that a function has saved by the time it is at its level's place.
    fn enter(
        &mut self,
        unwinder: &Unwinder,
        (level, cfa): (&Level, u64),
        returns_to: Option<u64>,
        needed: &mut BTreeMap<u16, u64>,
    ) {
        let architecture = unwinder.architecture;
        let Some(row) = unwinder.row(level.at) else {
            // Without call frame information, it is unknown where the function keeps the registers of its caller.
            needed.remove(&architecture.link());
            needed.extend(returns_to.map(|address| (architecture.link(), address)));
            return;
        };
        let mut link = returns_to;
        for (register, offset) in &row.saved {
            let value = match *register == row.return_register {
                true => link.take(),
                false => needed.remove(register),
            };
            if let Some(value) = value {
                self.store(architecture, cfa.wrapping_add_signed(*offset), value);
            }
        }
        needed.remove(&architecture.link());
        needed.extend(link.map(|address| (row.return_register, address)));
        if row.register != architecture.stack_pointer() {
            needed.insert(row.register, cfa.wrapping_add_signed(row.offset.wrapping_neg()));
        }
    }

    /// Stores the registers that the processor pushes when it takes an exception.
    fn interrupt(
        &mut self,
        unwinder: &Unwinder,
        pointer: u64,
        returns_to: Option<Address>,
        needed: &mut BTreeMap<u16, u64>,
    ) {
        let architecture = unwinder.architecture;
        if architecture != Architecture::M {
            // The exception writes another mode's link register, or ELR.
            return;
        }
        let base = pointer.wrapping_sub(EXCEPTION_FRAME);
        for (slot, register) in [0, 1, 2, 3, 12, architecture.link()].into_iter().enumerate() {
            if let Some(value) = needed.remove(&register) {
                self.store(architecture, base.wrapping_add(4 * slot as u64), value);
            }
        }
        if let Some(address) = returns_to {
            self.store(architecture, base.wrapping_add(0x18), address.get());
            self.store(architecture, base.wrapping_add(0x1c), XPSR_T);
        }
    }

    fn store(&mut self, architecture: Architecture, at: u64, value: u64) {
        for (offset, byte) in (0..).zip(value.to_le_bytes()).take(architecture.word()) {
            self.memory.insert(at.wrapping_add(offset), byte);
        }
    }
}

/// The value of the link register when a function began. `exceptions` counts the exceptions that enclose its caller.
///
/// For the outermost known function the value is unknown. Without a link register GDB ends a backtrace with an error
/// ("PC not available") instead of a frame, and editors show no frame at all. So a function that has pushed nothing
/// seems to have called itself: GDB finds the same frame again, and reports that the backtrace ends.
fn return_address(
    unwinder: &Unwinder,
    level: &Level,
    caller: Option<&Level>,
    exceptions: u32,
) -> Option<u64> {
    let architecture = unwinder.architecture;
    let is_plain = unwinder.stack_pointer(0, level.at) == 0;
    let thumb = |address: Address| {
        // On AArch64, PSTATE and not the return address has the instruction set of AArch32 code.
        let has_thumb_bit = architecture != Architecture::A64;
        let is_thumb = caller.unwrap_or(level).frame.mark.isa.is_some_and(Isa::is_thumb);
        address.get() | if has_thumb_bit && is_thumb { THUMB } else { 0 }
    };
    match level.frame.kind {
        FrameKind::Root => is_plain.then(|| thumb(level.at)),
        FrameKind::Call { returns_to, .. } => returns_to.map(thumb),
        FrameKind::Exception(_) if architecture == Architecture::M => {
            Some(if exceptions > 0 { TO_HANDLER } else { TO_THREAD })
        }
        FrameKind::Exception(interruption) => interruption.returns_to.map(thumb),
    }
}

/// The status register, with the known fields: the instruction set and, in M profile, the exception. GDB 13 unwinds no
/// frame without the register ("Register 25 is not available"), and a register cannot be partly available. AArch64
/// needs none.
fn status(architecture: Architecture, levels: &[Level], pc: Location) -> Option<u64> {
    match architecture {
        Architecture::M => {
            Some(XPSR_T | handled(levels).map_or(0, |exception| u64::from(exception.number())))
        }
        Architecture::A32 => Some(if pc.isa.is_thumb() { CPSR_T } else { 0 }),
        Architecture::A64 => None,
    }
}

/// The innermost exception that is being handled.
pub(crate) fn handled(levels: &[Level]) -> Option<Exception> {
    levels.iter().rev().find_map(|level| match level.frame.kind {
        FrameKind::Exception(interruption) => interruption.exception,
        _ => None,
    })
}
