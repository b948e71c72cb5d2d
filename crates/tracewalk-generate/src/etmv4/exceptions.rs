//! Exceptions, and returns from them.

use tracewalk::ids::{Address, Exception, Isa, Location, Profile};
use tracewalk::protocol::etmv4::{AddressInterpretation, Exception as ExceptionPacket, Packet};

use super::Unit;
use crate::path::{Step, Taken};
use crate::trace::EncodeError;

/// M profile's return address if the exception replaced a return and so has none.
const NO_RETURN_ADDRESS: u64 = 0xffff_fffe;

impl Unit<'_> {
    pub(super) fn exception(&mut self, index: usize, taken: &Taken) -> Result<bool, EncodeError> {
        let none = EncodeError::NoExceptionCode { exception: taken.exception };
        let number = exception_type(taken.exception).ok_or(none)?;
        let handler = self.story.handler(index, taken);
        let resumes = self.story.resumes(index, taken);
        self.give_up_undefined(taken);
        if let (None, Some(start)) = (self.synchronised_at, resumes) {
            // Before the first instruction.
            self.run_start = start;
        }
        if !self.is_inside_run && !self.unanswered && resumes.is_some() {
            self.synchronise_if_due(self.run_start)?;
        }
        if resumes.is_some() {
            self.answer_late(self.run_start)?;
        }
        let address = match std::mem::take(&mut self.unanswered) {
            true => AddressInterpretation::TargetAndReturn,
            false => AddressInterpretation::Return,
        };
        self.sender.send(&Packet::Exception(ExceptionPacket { number, address, fault_pending: false }))?;
        let none = Location::new(Address::new(NO_RETURN_ADDRESS), Isa::T32);
        self.sender.exception_address(resumes.unwrap_or(none))?;
        self.states.enter_exception(self.story.state_after(index));
        self.address(handler)?;
        self.is_inside_run = false;
        self.run_start = handler;
        self.run_length = 0;
        let exception = Exception::from_type(self.config.profile(), number);
        self.prove(Step::Exception(Taken { exception, handler: Address::new(0), ..*taken }));
        self.sender.count_cycles()?;
        Ok(true)
    }

    /// Drops an instruction that the exception resumes at: it did not complete, so the trace does not contain
    /// it unless it was a P0 instruction.
    fn give_up_undefined(&mut self, taken: &Taken) {
        let steps = &mut self.trace.path.steps;
        let is_last = |step: &&Step| matches!(step, Step::Instruction(last) if Some(last.address) == taken.preferred_return);
        if steps.len() > self.proven && steps.last().is_some_and(|step| is_last(&step)) {
            steps.pop();
        }
    }

    /// Encodes that the instruction before returned from an exception.
    pub(super) fn exception_return(&mut self) -> Result<bool, EncodeError> {
        if !self.config.is_ete() {
            self.sender.send(&Packet::ExceptionReturn)?;
            if self.config.profile() == Profile::M {
                self.sender.p0_sent(1);
            }
        }
        self.prove(Step::ExceptionReturn);
        if let Some(target) = self.returns_to.take() {
            self.address(target)?;
        }
        Ok(true)
    }

    /// The exception that wrong paths contain: an interrupt.
    pub(super) fn interrupt(&self) -> u16 {
        if self.config.profile() == Profile::M { 15 } else { 14 }
    }
}

/// TYPE of an exception; `None` if it has none.
fn exception_type(exception: Exception) -> Option<u16> {
    match exception {
        // The codes of ETMv3 and PFT.
        Exception::Ar(number) => Some(match number {
            1 => 1,
            2 | 3 | 10 => 2,
            4 => 4,
            8 => 0,
            9 => 3,
            11 | 12 | 14 | 15 => number.into(),
            _ => return None,
        }),
        other => other.to_type(),
    }
}
