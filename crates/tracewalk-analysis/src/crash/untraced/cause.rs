//! From the fault status, the stacked registers and the instruction to the cause.
//!
//! A fault's flags stay set until software clears them, so a flag alone may be of an older fault. It counts if the instruction can
//! have caused it with the stacked registers, or if no other flag could be of this exception.

use tracewalk::ids::Address;
use tracewalk::isa::Raises;

use super::Halted;
use super::frame::THUMB;
use crate::crash::evidence::{Cause, CauseKind, Evidence, Role};
use crate::crash::look::{Look, frame_word, instruction};
use crate::crash::path::Step;
use crate::crash::state::{
    BFARVALID, DACCVIOL, DIVBYZERO, FORCED, IACCVIOL, IBUSERR, IMPRECISERR, MMARVALID, PRECISERR, STKOF,
    UNALIGNED, UNDEFINSTR,
};

impl Halted<'_> {
    /// The cause, if it is proven.
    pub(super) fn cause(&self, look: &Look<'_>) -> Option<Cause> {
        let number = look.exception?.number();
        if self.number_by_control().is_some_and(|active| active != number) {
            return None;
        }
        let mut cause = match number {
            3 if self.snapshot.is_baseline() == Some(true) => self.without_status(look),
            3..=7 => self.by_status(look, self.reasons(number)?),
            _ => look.no_handler(),
        }?;
        let frame = look.frame.iter().flat_map(|frame| [6, 7].map(|index| frame_word(*frame, index)));
        let number = self.snapshot.xpsr.map(|value| Evidence::Register { name: "xpsr", value });
        for evidence in frame.chain(number) {
            if !cause.proof.contains(&evidence) {
                cause.proof.push(evidence);
            }
        }
        Some(cause)
    }

    /// The flags of CFSR that can be of this exception; `None` if the fault has another reason.
    fn reasons(&self, number: u16) -> Option<u32> {
        let status = self.snapshot.fault_status();
        let group = match number {
            3 if status.hfsr.is_none_or(|hfsr| hfsr == FORCED) => u32::MAX,
            4 => 0xff,
            5 => 0xff00,
            6 => 0xffff_0000,
            _ => return None,
        };
        Some(status.cfsr.unwrap_or_default() & group & !(MMARVALID | BFARVALID))
    }

    fn by_status(&self, look: &Look<'_>, reasons: u32) -> Option<Cause> {
        if reasons & IMPRECISERR != 0 {
            return None;
        }
        if reasons == STKOF && self.snapshot.has_stack_limits() == Some(true) {
            let proof = look.status_with(STKOF)?;
            return Some(Cause { kind: CauseKind::StackLimit { at: None }, proof });
        }
        let executed = self.executed(look);
        let candidates = [
            executed.as_ref().and_then(|(raises, step)| self.executing(look, *raises, step, reasons)),
            self.fetching(look, reasons),
        ];
        let ([found, None] | [None, found]) = candidates else { return None };
        found
    }

    /// The instruction at which the exception was taken, if it can have been executed.
    fn executed(&self, look: &Look<'_>) -> Option<(Option<Raises>, Step)> {
        let (at, frame) = look.taken.returns_to.zip(look.frame)?;
        let [.., status] = frame.words;
        self.code.symbols.function(at)?;
        if status & THUMB == 0 || look.may_be_escalated_call(at) {
            return None;
        }
        let (known, step) = look.instruction(at)?;
        Some((known.raises, step))
    }

    /// What went wrong in the instruction: the one flag that it can have set.
    fn executing(&self, look: &Look<'_>, raises: Option<Raises>, step: &Step, reasons: u32) -> Option<Cause> {
        let at = look.taken.returns_to?;
        let status = self.snapshot.fault_status();
        let is_undefined = raises == Some(Raises::Undefined);
        let accessed = look.accessed(step).and_then(|accessed| Some((accessed.address?, accessed.bytes)));
        // An address in the middle of an element is that of another access.
        let is_element = |at: u32| {
            accessed.is_some_and(|(first, bytes)| {
                first % bytes != 0 || at.wrapping_sub(first).is_multiple_of(bytes)
            })
        };
        let zero = step.effect.divisor.is_some_and(|divisor| divisor.value == Some(0));
        let find = |flag: u32| match flag {
            UNDEFINSTR if is_undefined => look.undefined(at, step),
            UNDEFINSTR if reasons == UNDEFINSTR && step.may_be_undefined() => {
                let kind = CauseKind::UndefinedInstruction { at, bytes: step.code.clone() };
                Some(Cause { kind, proof: look.status_with(UNDEFINSTR)? })
            }
            DIVBYZERO if zero => look.division(at, step),
            UNALIGNED => accessed.and_then(|_| look.unaligned(at, step)),
            PRECISERR if status.is_set(BFARVALID) => {
                look.refused(at, step, status.bfar.filter(|at| is_element(*at))?)
            }
            DACCVIOL if status.is_set(MMARVALID) => {
                look.forbidden(at, step, status.mmfar.filter(|at| is_element(*at))?)
            }
            _ => None,
        };
        // Without the status, only an instruction that cannot be executed shows why.
        let is_set = |flag: &u32| reasons & flag != 0 || *flag == UNDEFINSTR && status.cfsr.is_none();
        let flags = [UNDEFINSTR, DIVBYZERO, UNALIGNED, PRECISERR, DACCVIOL];
        let mut found = flags.into_iter().filter(is_set).filter_map(find);
        let mut cause = found.next().filter(|_| found.next().is_none())?;
        cause.proof.push(instruction(Role::Faulting, step));
        Some(cause)
    }

    /// The instruction could not be fetched, and no other flag can be of this fault.
    fn fetching(&self, look: &Look<'_>, reasons: u32) -> Option<Cause> {
        let at = look.taken.returns_to?;
        if look.may_be_escalated_call(at) {
            return None;
        }
        let kind = CauseKind::FetchAbort { at, by_bus: reasons == IBUSERR };
        let proof = look.status_with(reasons).filter(|_| matches!(reasons, IBUSERR | IACCVIOL))?;
        Some(Cause { kind, proof })
    }

    /// ARMv6-M has no fault status: the instruction and the stacked registers show it.
    fn without_status(&self, look: &Look<'_>) -> Option<Cause> {
        let (raises, step) = self.executed(look)?;
        let at = look.taken.returns_to?;
        let mut cause = match raises {
            Some(Raises::Undefined) => look.undefined(at, &step),
            Some(_) => None,
            None => look.by_elimination(at, &step),
        }?;
        if matches!(cause.kind, CauseKind::BusFault { address, .. } if self.may_be_memory(address)) {
            return None;
        }
        cause.proof.push(instruction(Role::Faulting, &step));
        Some(cause)
    }

    /// Whether an address is between others that hold memory, in its part of the address space (DDI 0419E, B3.1).
    fn may_be_memory(&self, address: Address) -> bool {
        const PART: u32 = 29;
        let stack = self.code.program.vector_table().and_then(|table| self.code.program.word(table));
        let regions = self.code.program.regions().iter().map(|region| (region.start(), region.bytes().len()));
        let pieces = self.snapshot.memory.iter().map(|(start, bytes)| (Address::from(*start), bytes.len()));
        let known = regions.chain(pieces).map(|(start, bytes)| start.get()..start.get() + bytes as u64);
        let known = known.chain(self.variables.iter().cloned());
        let known = known.chain(stack.map(|top| u64::from(top)..u64::from(top)));
        let near = known.filter(|range| range.start >> PART == address.get() >> PART);
        let span = near.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end));
        span.is_some_and(|span| span.contains(&address.get()))
    }
}
