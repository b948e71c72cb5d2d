//! What objdump's text says of an A64 instruction.

use tracewalk::ids::{Address, Isa, Location};
use tracewalk::isa::{Barrier, Class, Raises, Return};

use super::Reading;

/// The reading of an instruction; `target` is the number that its operands end in.
pub(super) fn read(mnemonic: &str, target: Option<Address>) -> Reading {
    let mut reading = Reading {
        class: Class::Other,
        link: false,
        returns: None,
        raises: None,
        it_block: 0,
        access: None,
        conditional_branch: false,
    };
    let direct = target.map_or(Class::Other, |target| Class::Direct(Location::new(target, Isa::A64)));
    match mnemonic {
        "b" => reading.class = direct,
        "bl" => (reading.class, reading.link) = (direct, true),
        "cbz" | "cbnz" | "tbz" | "tbnz" => (reading.class, reading.conditional_branch) = (direct, true),
        _ if mnemonic.starts_with("b.") || mnemonic.starts_with("bc.") => {
            (reading.class, reading.conditional_branch) = (direct, true);
        }
        "br" | "braa" | "brab" | "braaz" | "brabz" => reading.class = Class::Indirect,
        "blr" | "blraa" | "blrab" | "blraaz" | "blrabz" => {
            (reading.class, reading.link) = (Class::Indirect, true);
        }
        "ret" | "retaa" | "retab" => {
            (reading.class, reading.returns) = (Class::Indirect, Some(Return::Function));
        }
        "eret" | "eretaa" | "eretab" => {
            (reading.class, reading.returns) = (Class::Indirect, Some(Return::Exception));
        }
        "isb" => reading.class = Class::Barrier(Barrier::Isb),
        "dsb" | "ssbb" | "pssbb" => reading.class = Class::Barrier(Barrier::Dsb),
        "dmb" => reading.class = Class::Barrier(Barrier::Dmb),
        "wfe" | "wfi" | "wfet" | "wfit" => reading.class = Class::Wait,
        "tstart" => reading.class = Class::TransactionStart,
        "svc" => reading.raises = Some(Raises::SupervisorCall),
        "hvc" => reading.raises = Some(Raises::HypervisorCall),
        "smc" => reading.raises = Some(Raises::SecureMonitorCall),
        "brk" | "hlt" => reading.raises = Some(Raises::Breakpoint),
        "udf" => reading.raises = Some(Raises::Undefined),
        _ => {}
    }
    reading
}
