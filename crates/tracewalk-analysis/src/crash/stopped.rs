//! A program that stopped itself: the trace ends in an endless loop of a function that is there for that, or at a breakpoint that is part of
//! the program.

use tracewalk::flow::{BranchKind, Ending};
use tracewalk::ids::{Address, Isa};
use tracewalk::isa::{self, Class, Raises};

use super::evidence::{Cause, CauseKind, Evidence, Role, Stop};
use super::look::instruction;
use super::path::{Path, Step};
use super::proven::Values;
use super::state::Snapshot;
use super::trail::{Happened, Running};
use crate::Code;

/// The most instructions of an endless loop, and from the last branch to a breakpoint.
const MOST: usize = 32;
/// The functions among which one that stops a program is searched, innermost first.
const INNERMOST: usize = 8;

/// The place at which a program stopped itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stopped {
    pub(super) at: Address,
    how: Stop,
}

impl Stopped {
    /// Whether it is a call of the debugger, which r0 has the operation of.
    pub(super) fn calls_debugger(self) -> bool {
        self.how == Stop::Semihosting
    }

    /// Where the path stops for good, if it does.
    pub(super) fn of(pieces: &[&Happened], code: &Code, snapshot: &Snapshot) -> Option<Self> {
        let Happened::Ran(block) = pieces.last()? else { return None };
        if block.isa != Isa::T32 {
            return None;
        }
        let next = match block.ending {
            Ending::Branch { kind: BranchKind::Indirect, taken: true, .. } => None,
            Ending::Branch { kind: BranchKind::Direct, taken: true, .. } => {
                match isa::classify(code.program.code(block.last)?, block.last, Isa::T32).ok()?.class {
                    Class::Direct(target) => Some(target.address),
                    _ => None,
                }
            }
            _ => Some(block.end),
        };
        let halted = snapshot.registers[15].map(|at| Address::from(at & !1));
        if let Some(body) = next.and_then(|next| endless(next, code)) {
            // The last instruction that ran is one of the loop, unless that has only begun.
            let is_there = body.contains(&block.last) || halted.is_some_and(|halted| body.contains(&halted));
            let at = body.into_iter().min()?;
            return is_there.then_some(Self { at, how: Stop::EndlessLoop });
        }
        let at = if breakpoint(block.last, code).is_some() {
            block.last
        } else {
            let next = next?;
            // Without a debugger, nothing shows how far execution went on after the last branch.
            let reached = |(place, ..): &(Address, isa::Instruction)| {
                Some(*place) == halted || *place == next && halted.is_none()
            };
            walk(next, code)
                .map_while(|(place, known)| (known.class == Class::Other).then_some((place, known)))
                .find(reached)?
                .0
        };
        Some(Self { at, how: breakpoint(at, code)? })
    }

    /// The cause, with the functions that were running.
    pub(super) fn cause(
        self,
        pieces: &[&Happened],
        stack: &[Running],
        code: &Code,
        operation: Option<u32>,
    ) -> Option<Cause> {
        /// SYS_EXIT and SYS_EXIT_EXTENDED (Semihosting for AArch32 and AArch64, 2.0).
        const EXITS: [u32; 2] = [0x18, 0x20];
        let is = |index: usize, wanted: &dyn Fn(&str) -> bool| {
            stack.get(index).is_some_and(|running| wanted(running.function.name(code).as_ref()))
        };
        // Rust's own functions call the one that panics.
        let is_of_core = |index: &usize| is(*index, &|name| name.starts_with("core::"));
        let index = (0..INNERMOST).rev().find(|index| is(*index, &is_stop));
        let index = index.and_then(|index| (index + 1..).take_while(is_of_core).last().or(Some(index)));
        let is_stop = match (self.how, operation) {
            (Stop::EndlessLoop, _) => index.is_some() || is_masked(self.at, pieces, code),
            (Stop::Semihosting, None) => index.is_some(),
            (Stop::Semihosting, Some(operation)) => EXITS.contains(&operation),
            (Stop::Breakpoint, _) => true,
        };
        let function = stack.get(index.unwrap_or_default()).map(|running| running.function);
        let called_from = stack.get(index.unwrap_or_default() + 1).and_then(|running| running.at);
        let at = |at: Address| Step::ran(at, pieces, code);
        let mut proof = vec![instruction(Role::Stop, &at(self.at)?)];
        if let Some(operation) = operation.filter(|_| self.how == Stop::Semihosting) {
            proof.push(Evidence::Proven { name: "r0", value: operation });
        }
        proof.extend(called_from.and_then(at).map(|call| instruction(Role::Call, &call)));
        let kind = CauseKind::Stopped { at: self.at, how: self.how, function, called_from };
        is_stop.then_some(Cause { kind, proof })
    }
}

/// The instructions from a place on, along branches that are always taken; it ends where another way is possible.
fn walk(from: Address, code: &Code) -> impl Iterator<Item = (Address, isa::Instruction)> {
    let mut next = Some(from);
    let step = move || {
        let at = next?;
        let known = isa::classify(code.program.code(at)?, at, Isa::T32).ok()?;
        let is_fixed = !known.conditional && known.it_block == 0 && !known.link;
        next = match known.class {
            _ if !is_fixed => return None,
            Class::Direct(target) => Some(target.address),
            Class::Indirect | Class::TransactionStart => return None,
            Class::Other | Class::Barrier(_) | Class::Wait => at.checked_add(known.bytes.into()),
        };
        Some((at, known))
    };
    std::iter::from_fn(step).take(MOST)
}

/// The instructions of the loop that a place is in, if execution comes back to it whatever happens, without a call.
fn endless(from: Address, code: &Code) -> Option<Vec<Address>> {
    let places = walk(from, code).map(|(place, _)| place).collect::<Vec<_>>();
    let again = places.iter().skip(1).position(|place| *place == from)?;
    Some(places.into_iter().take(again + 1).collect())
}

/// Whether interrupts were masked right before a loop, so that none can end it.
fn is_masked(start: Address, pieces: &[&Happened], code: &Code) -> bool {
    /// The most instructions between both.
    const NEAR: usize = 16;
    let path = Path::of(pieces, code, &Values::default());
    let before =
        path.steps.iter().rev().skip_while(|step| walk(start, code).any(|(at, ..)| at.low_word() == step.at));
    let changes = before.take(NEAR).find_map(|step| match step.code.as_slice() {
        // CPSID i, CPSIE i (DDI 0403E, B5.2.1).
        [0x72, 0xb6] => Some(true),
        [0x62, 0xb6] => Some(false),
        // MSR BASEPRI (DDI 0403E, B5.2.3).
        [0x80..=0x8f, 0xf3, 0x11 | 0x12, 0x88] => Some(true),
        _ => None,
    });
    changes == Some(true)
}

/// The kind of breakpoint at a place, if one is there.
fn breakpoint(at: Address, code: &Code) -> Option<Stop> {
    /// The number of a semihosting call in BKPT.
    const SEMIHOSTING: u8 = 0xab;
    let bytes = code.program.code(at)?;
    let known = isa::classify(bytes, at, Isa::T32).ok()?;
    let how = if bytes.first() == Some(&SEMIHOSTING) { Stop::Semihosting } else { Stop::Breakpoint };
    (known.raises == Some(Raises::Breakpoint)).then_some(how)
}

/// Whether a function is there to stop the program, by its name.
fn is_stop(name: &str) -> bool {
    const PARTS: [&str; 11] = [
        "unwrap_failed",
        "expect_failed",
        "assert",
        "panic",
        "abort",
        "fatal",
        "terminate",
        "stack_chk_fail",
        "pure_virtual",
        "default_handler",
        "error_handler",
    ];
    const WHOLE: [&str; 8] =
        ["exit", "sys_exit", "kill", "rust_begin_unwind", "unhandled_exception", "die", "halt", "hang"];
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part)) || WHOLE.contains(&name.trim_start_matches('_'))
}
