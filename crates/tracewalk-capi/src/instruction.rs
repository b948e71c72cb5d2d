//! One instruction, and its effect on program flow.

use tracewalk::ids::{Address, Isa};
use tracewalk::isa::{Barrier, Class, Instruction, classify};

use crate::boundary::{fill, size_field, slice};
use crate::call::guarded;
use crate::error::tracewalk_error;
use crate::status::{Problem, tracewalk_status};
use crate::vocabulary::{isa, returns, tracewalk_isa, tracewalk_returns};

/// The effect of an instruction on program flow.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tracewalk_class {
    /// Execution continues after the instruction.
    Other = 0,
    /// A branch with its target in the instruction: `target` and `target_isa`.
    Direct = 1,
    /// A branch with a computed target.
    Indirect = 2,
    /// An instruction synchronisation barrier.
    Isb = 3,
    /// A data synchronisation barrier.
    Dsb = 4,
    /// A data memory barrier.
    Dmb = 5,
    /// A wait for an interrupt or an event.
    Wait = 6,
    /// The start of a transaction.
    TransactionStart = 7,
}

/// An instruction.
///
/// Later versions add fields at the end: the library fills in the first `size` bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tracewalk_instruction {
    /// The number of bytes of this structure that the library fills in.
    pub size: u32,
    /// The size of the instruction in bytes: 2 or 4.
    pub bytes: u32,
    /// The effect on program flow.
    pub flow: tracewalk_class,
    /// 1 if the instruction's own encoding is conditional. An IT instruction before it is ignored.
    pub conditional: u32,
    /// 1 if the instruction writes the link register.
    pub link: u32,
    /// The kind of return, judged by the instruction's form.
    pub returns: tracewalk_returns,
    /// For an IT instruction, the number of following instructions that it makes conditional; else 0.
    pub it_block: u32,
    /// The instruction set at the target of a direct branch.
    pub target_isa: tracewalk_isa,
    /// The target of a direct branch.
    pub target: u64,
}

impl tracewalk_instruction {
    /// The description of the instruction at the start of `code`.
    pub(crate) fn of(code: &[u8], address: Address, isa: Isa) -> Result<Self, Problem> {
        let found = classify(code, address, isa);
        found.map(Self::from).map_err(|why| Problem::argument(format!("{address}: {why}")))
    }
}

impl From<Instruction> for tracewalk_instruction {
    fn from(found: Instruction) -> Self {
        let target = if let Class::Direct(target) = found.class { Some(target) } else { None };
        Self {
            size: size_field::<Self>(),
            bytes: found.bytes.into(),
            flow: match found.class {
                Class::Other => tracewalk_class::Other,
                Class::Direct(_) => tracewalk_class::Direct,
                Class::Indirect => tracewalk_class::Indirect,
                Class::Barrier(Barrier::Isb) => tracewalk_class::Isb,
                Class::Barrier(Barrier::Dsb) => tracewalk_class::Dsb,
                Class::Barrier(Barrier::Dmb) => tracewalk_class::Dmb,
                Class::Wait => tracewalk_class::Wait,
                Class::TransactionStart => tracewalk_class::TransactionStart,
            },
            conditional: found.conditional.into(),
            link: found.link.into(),
            returns: returns(found.returns),
            it_block: found.it_block.into(),
            target_isa: target.map_or(tracewalk_isa::None, |target| isa(target.isa)),
            target: target.map_or(0, |target| target.address.get()),
        }
    }
}

/// The instruction set with this number from the program, which may be any.
pub(crate) fn named_isa(number: u32) -> Result<Isa, Problem> {
    tracewalk_isa::to_isa(number).ok_or_else(|| {
        Problem::argument(format!("isa: found {number}, expected a tracewalk_isa from 1 to 5"))
    })
}

/// Describes the instruction at the start of `code`, which is at `address`; `isa` is a `tracewalk_isa`, and `out_size`
/// is `sizeof(tracewalk_instruction)`. Code after the instruction is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_classify(
    code: *const u8,
    size: usize,
    address: u64,
    isa: u32,
    out: *mut tracewalk_instruction,
    out_size: usize,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        // SAFETY: the program keeps to the preconditions in the header.
        let code = unsafe { slice("code", code, size) }?;
        let found = tracewalk_instruction::of(code, Address::new(address), named_isa(isa)?)?;
        // SAFETY: as above.
        unsafe { fill(out, out_size, size_of::<tracewalk_instruction>(), &found) }?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}
