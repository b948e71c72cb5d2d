//! A recording as a script for GDB, for those who want to make the accesses themselves.

use std::fmt::Write as _;

use crate::plan::{Register, Step};
use crate::record::{Setup, Sink, Until};

/// The file that the script writes the trace to.
const FILE: &str = "trace.bin";

/// The script of a recording.
#[must_use]
pub fn gdb(setup: &Setup, until: Until) -> String {
    let mut text = String::from("set mem inaccessible-by-default off\nset pagination off\n");
    steps(&mut text, &setup.plan.setup);
    if let Until::Address(address) = until {
        // A string takes everything.
        let _ = writeln!(text, "thbreak *0x{address:x}");
    }
    text += "continue\n";
    steps(&mut text, &setup.plan.stop);
    match setup.sink {
        Sink::Memory(address, bytes) | Sink::Ring(address, bytes, _) => {
            let end = u64::from(address) + u64::from(bytes);
            let _ = writeln!(text, "dump binary memory {FILE} 0x{address:x} 0x{end:x}");
        }
        Sink::Etb(base) => text += &of_etb(base),
        Sink::Tmc(base) => text += &of_tmc(base),
    }
    steps(&mut text, &setup.plan.restore);
    text
}

fn word(address: u32) -> String {
    format!("{{unsigned int}}0x{address:x}")
}

/// The words of an ETB, the oldest first.
fn of_etb(base: u32) -> String {
    let [depth, status, data, read, write] = [0x04, 0x0c, 0x10, 0x14, 0x18].map(|offset| word(base + offset));
    format!(
        "set $words = {write}\nif ({status} & 1) != 0\n  set {read} = $words\n  set $words = {depth}\nelse\n  set {read} = 0\nend\n\
         shell rm -f {FILE}\nwhile $words > 0\n  append binary value {FILE} {data}\n  set $words = $words - 1\nend\n"
    )
}

/// The words of a TMC, up to the one that says that nothing is left.
fn of_tmc(base: u32) -> String {
    let data = word(base + 0x10);
    format!(
        "shell rm -f {FILE}\nset $word = {data}\nwhile $word != 0xffffffff\n  append binary value {FILE} $word\n  set $word = {data}\nend\n"
    )
}

fn steps(text: &mut String, steps: &[Step]) {
    for step in steps {
        let at = step.register();
        let (it, kept) = (word(at.address()), format!("$was_{:x}", at.address()));
        let complaint = |condition: String| format!("if {condition}\n  echo {}\\n\nend", wrong(at));
        let line = match *step {
            Step::Write(_, value) => format!("set {it} = 0x{value:x}"),
            Step::Set { value, mask, .. } => {
                let check = complaint(format!("(({it} ^ 0x{value:x}) & 0x{mask:x}) != 0"));
                format!("set {it} = 0x{value:x}\n{check}")
            }
            Step::Change { clear, set, key, .. } => {
                format!("set {kept} = {it} | 0x{key:x}\nset {it} = ({kept} & ~0x{clear:x}) | 0x{set:x}")
            }
            Step::Expect { mask, value, .. } => complaint(format!("({it} & 0x{mask:x}) != 0x{value:x}")),
            Step::Forbid { mask, value, .. } => complaint(format!("({it} & 0x{mask:x}) == 0x{value:x}")),
            Step::Poll { mask, value, .. } => format!("while ({it} & 0x{mask:x}) != 0x{value:x}\nend"),
            Step::Keep(_) => format!("set {kept} = {it}"),
            Step::Note(_) => format!("printf \"{} = 0x%x\\n\", {it}", at.name.to_lowercase()),
            Step::Restore(_) => format!("set {it} = {kept}"),
        };
        let _ = writeln!(text, "# {} {}\n{line}", at.unit, at.name);
    }
}

fn wrong(at: Register) -> String {
    format!("{} of the {} is not as it has to be", at.name, at.unit)
}
