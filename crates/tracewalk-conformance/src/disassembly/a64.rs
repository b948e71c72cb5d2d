//! Parses objdump's text of an A64 instruction.

use tracewalk::ids::{Address, Isa, Location};
use tracewalk::isa::{Access, Barrier, Class, Direction, Raises, Return};

use super::Reading;

/// The reading of an instruction; `target` is the number at the end of its operands.
pub(super) fn read(mnemonic: &str, target: Option<Address>) -> Reading {
    let mut reading = Reading {
        class: Class::Other,
        link: false,
        returns: None,
        raises: None,
        it_block: 0,
        access: access(mnemonic),
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

/// Atomic operations, after `ld` for those that return the old value, and after `st` for those that do not:
/// of integers (also unprivileged) and of floating-point numbers.
const ATOMIC: &[&str] = &[
    "add", "clr", "eor", "set", "smax", "smin", "umax", "umin", "tadd", "tclr", "tset", "fadd", "fmax",
    "fmin", "bfadd", "bfmax", "bfmin",
];

/// Other beginnings of names of instructions that read and write memory: compare and swap, swap, copies.
const BOTH: &[&str] = &["cas", "swp", "cpy", "rcw"];

/// The direction of the data. SETF8, SETF16 and SETFFR are not memory sets.
fn access(mnemonic: &str) -> Option<Access> {
    let is_atomic = |rest: &str| ATOMIC.iter().any(|operation| rest.starts_with(operation));
    let begins = |names: &[&str]| names.iter().any(|name| mnemonic.starts_with(name));
    if mnemonic == "stmopa" {
        // An outer product of SME.
        return None;
    }
    let direction = match (mnemonic.strip_prefix("ld"), mnemonic.strip_prefix("st")) {
        (Some(rest), _) | (_, Some(rest)) if is_atomic(rest) => Direction::Swap,
        (Some(_), _) => Direction::Load,
        (_, Some(_)) => Direction::Store,
        _ if begins(BOTH) => Direction::Swap,
        _ if begins(&["setp", "setm", "sete", "setg"]) => Direction::Store,
        _ => return None,
    };
    Some(Access { direction, bytes: 0, transfers: 0 })
}
