//! Reads the Tarmac log of one of Arm's models as a [`Path`].
//!
//! Fast Models and the Architecture Envelope Model (with `MTS`, the Tarmac trace plug-in) write a line for
//! each instruction, followed by its effects on registers and memory:
//!
//! ```text
//! 5652 clk cpu0 IT (5616) 0009d90c:00001009d90c_NS 1400264b O EL0t_n : B        0xa7238
//! 5653 clk cpu0 IT (5617) 000a7238:0000100a7238_NS d4000121 O EL0t_n : SVC      #9
//! 5653 clk cpu0 E 000a7238:0000100a7238_NS 00000088 CoreEvent_LOWER_64_SYNC
//! 5653 clk cpu0 R ESR_EL1 56000009
//! 5653 clk cpu0 R ELR_EL1 00000000000a723c
//! ```
//!
//! `IT` is an instruction that was executed, `IS` one that was passed over. The line contains the
//! instruction's code, so the reader needs no program. Of the other lines, the reader uses those that state
//! which exception was taken and where it returns to, and skips the rest.

use std::fmt::{self, Display, Formatter};

use tracewalk::ids::{Address, Exception, Isa};
use tracewalk::isa::{self, Return};

use crate::path::{Executed, Path, State, Step, Taken};

/// Why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TarmacError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub kind: TarmacErrorKind,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TarmacErrorKind {
    /// A field of an instruction's line is not as Tarmac writes it.
    Unreadable {
        /// The field.
        field: &'static str,
    },
    /// The text covers several processors, and none was chosen.
    SeveralProcessors {
        /// The first.
        first: String,
        /// Another one.
        other: String,
    },
    /// The text contains no instruction of the processor.
    NoInstructions,
    /// The text does not state where an exception returns to.
    NoReturnAddress,
}

impl Display for TarmacError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.kind {
            TarmacErrorKind::Unreadable { field } => {
                write!(f, "found no {field} in the place where Tarmac has one")
            }
            TarmacErrorKind::SeveralProcessors { first, other } => {
                write!(f, "found {first} and {other}; choose one with --processor")
            }
            TarmacErrorKind::NoInstructions => {
                write!(f, "the text contains no instruction of the processor; expected lines with IT or IS")
            }
            TarmacErrorKind::NoReturnAddress => {
                write!(f, "an exception was taken, but no line sets its ELR before the next instruction")
            }
        }
    }
}

impl std::error::Error for TarmacError {}

/// Reads what `processor`, or the only one, executed.
pub fn read(text: &str, processor: Option<&str>) -> Result<Path, TarmacError> {
    let mut reader = Reader { processor, only: None, state: None, taking: None, path: Path::default() };
    let mut number = 0;
    for line in text.lines() {
        number += 1;
        reader.line(line).map_err(|kind| TarmacError { line: number, kind })?;
    }
    if reader.path.steps.is_empty() {
        return Err(TarmacError { line: number, kind: TarmacErrorKind::NoInstructions });
    }
    Ok(reader.path)
}

struct Reader<'a> {
    processor: Option<&'a str>,
    /// The only processor of the text, if none was chosen.
    only: Option<&'a str>,
    state: Option<State>,
    /// An exception whose handler is about to be logged.
    taking: Option<Taking<'a>>,
    path: Path,
}

/// An exception that was taken.
struct Taking<'a> {
    /// The end of the vector's name: `SYNC`, `IRQ`, `FIQ`, `SERR`.
    vector: &'a str,
    syndrome: Option<u64>,
    preferred_return: Option<Address>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &'a str) -> Result<(), TarmacErrorKind> {
        let mut words = line.split_whitespace();
        // The time and its unit.
        let processor = words.by_ref().nth(2);
        let (Some(processor), Some(item)) = (processor, words.next()) else { return Ok(()) };
        if self.processor.is_some_and(|chosen| chosen != processor) {
            return Ok(());
        }
        match item {
            "IT" | "IS" => {
                let first = *self.only.get_or_insert(processor);
                if first != processor {
                    let (first, other) = (first.to_owned(), processor.to_owned());
                    return Err(TarmacErrorKind::SeveralProcessors { first, other });
                }
                return self.instruction(words, item == "IT");
            }
            "E" => {
                let vector = words.last().and_then(|event| event.strip_prefix("CoreEvent_"));
                let vector = vector.and_then(|event| event.rsplit_once('_')).map(|(_, vector)| vector);
                if let Some(vector) = vector.filter(|name| ["SYNC", "IRQ", "FIQ", "SERR"].contains(name)) {
                    self.taking = Some(Taking { vector, syndrome: None, preferred_return: None });
                }
            }
            "R" => {
                if let (Some(taking), Some(name), Some(value)) =
                    (&mut self.taking, words.next(), words.next())
                {
                    let value = || u64::from_str_radix(&value.replace([':', '_'], ""), 16).ok();
                    if name.starts_with("ESR_EL") {
                        taking.syndrome = value();
                    } else if name.starts_with("ELR_EL") {
                        taking.preferred_return = value().map(Address::new);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// `(5617) 000a7238:0000100a7238_NS d4000121 O EL0t_n : SVC      #9`
    fn instruction(
        &mut self,
        mut words: impl Iterator<Item = &'a str>,
        passed: bool,
    ) -> Result<(), TarmacErrorKind> {
        let mut next = |field| words.next().ok_or(TarmacErrorKind::Unreadable { field });
        let no = |field| TarmacErrorKind::Unreadable { field };
        next("number")?;
        let address = next("address")?.split(':').next().unwrap_or_default();
        let address = u64::from_str_radix(address, 16).map_err(|_| no("address"))?;
        let (code, isa) = (next("instruction")?, next("instruction set")?);
        let isa = match isa {
            "A" => Isa::A32,
            "T" => Isa::T32,
            "O" => Isa::A64,
            _ => return Err(no("instruction set")),
        };
        let code = bytes_of(code, isa).ok_or_else(|| no("instruction"))?;
        let state = state_of(next("mode")?).ok_or_else(|| no("mode"))?;
        let address = Address::new(address);
        let instruction = isa::classify(&code, address, isa).map_err(|_| no("instruction"))?;
        self.enter(address)?;
        if self.state != Some(state) {
            self.path.steps.push(Step::State(state));
            self.state = Some(state);
        }
        self.path.steps.push(Step::Instruction(Executed { address, isa, bytes: instruction.bytes, passed }));
        if passed && instruction.returns == Some(Return::Exception) {
            self.path.steps.push(Step::ExceptionReturn);
        }
        Ok(())
    }

    /// Completes the exception that was taken, if any: its handler begins here.
    fn enter(&mut self, handler: Address) -> Result<(), TarmacErrorKind> {
        let Some(taking) = self.taking.take() else { return Ok(()) };
        let preferred_return = taking.preferred_return.ok_or(TarmacErrorKind::NoReturnAddress)?;
        let number = taking.exception_type();
        let last = self.path.steps.last();
        let is_own = matches!(last, Some(Step::Instruction(last)) if last.address == preferred_return);
        // An undefined instruction counts as executed; an aborted one does not.
        if is_own && taking.vector == "SYNC" && number != TRAP {
            self.path.steps.pop();
        }
        let exception = Exception::ArType(number);
        let taken = Taken { exception, preferred_return: Some(preferred_return), handler };
        self.path.steps.push(Step::Exception(taken));
        Ok(())
    }
}

/// TYPE of a trap, which includes undefined instructions.
const TRAP: u16 = 3;

impl Taking<'_> {
    /// TYPE (IHI 0064), from the vector and the syndrome's exception class (DDI 0487, ESR_ELx.EC).
    fn exception_type(&self) -> u16 {
        match (self.vector, self.syndrome.map(|syndrome| syndrome >> 26 & 0b11_1111)) {
            ("IRQ", _) => 14,
            ("FIQ", _) => 15,
            ("SERR", _) => 4,
            (_, Some(0x11..=0x13 | 0x15..=0x17)) => 2,
            (_, Some(0x20 | 0x21)) => 11,
            (_, Some(0x22 | 0x26)) => 10,
            (_, Some(0x24 | 0x25)) => 12,
            (_, Some(0x30..=0x33 | 0x38 | 0x3a | 0x3c)) => 6,
            (_, Some(0x34 | 0x35)) => 7,
            _ => TRAP,
        }
    }
}

/// The instruction's bytes. T32 prints the first halfword first.
fn bytes_of(code: &str, isa: Isa) -> Option<Vec<u8>> {
    let word = u32::from_str_radix(code, 16).ok()?;
    let halfword = |shift: u32| u16::try_from(word >> shift & 0xffff).map(u16::to_le_bytes).ok();
    match (isa, code.len()) {
        (Isa::T32, 4) => Some(halfword(0)?.to_vec()),
        (Isa::T32, 8) => Some([halfword(16)?, halfword(0)?].concat()),
        (_, 8) => Some(word.to_le_bytes().to_vec()),
        _ => None,
    }
}

/// `EL1h_n`, `usr_s`
fn state_of(mode: &str) -> Option<State> {
    let (mode, security) = mode.rsplit_once('_')?;
    let level = match mode {
        "usr" => 0,
        "hyp" => 2,
        "mon" => 3,
        mode => match mode.strip_prefix("EL") {
            Some(level) => level.get(..1)?.parse().ok()?,
            None => 1,
        },
    };
    Some(State { level, non_secure: security.starts_with('n') })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Profile, Record};

    fn record(text: &str) -> Result<String, (usize, TarmacErrorKind)> {
        let path = read(text, None).map_err(|error| (error.line, error.kind))?;
        Ok(Record::of_path(Profile::Ar, &path).to_string())
    }

    /// A log as written by a model of an A-profile processor; only the addresses were changed.
    const CALL: &str = "
0 clk cpu0 R cpsr 000003cd
1 clk cpu0 IT (1) 00000100:000010000100_NS b4000041 O EL0t_n : CBZ      x1,0x108
1 clk cpu0 IS (2) 00000108:000010000108_NS 54000040 O EL0t_n : B.EQ     0x110
2 clk cpu0 IT (3) 0000010c:00001000010c_NS d4000121 O EL0t_n : SVC      #9
2 clk cpu0 E 0000010c:00001000010c_NS EL1h 00000019 CoreEvent_ModeChange
2 clk cpu0 E 0000010c:00001000010c_NS 00000088 CoreEvent_LOWER_64_SYNC
2 clk cpu0 R ESR_EL1 56000009
2 clk cpu0 R ELR_EL1 0000000000000110
3 clk cpu0 IT (4) 00000400:000010000400_NS d69f03e0 O EL1h_n : ERET
4 clk cpu0 IT (5) 00000110:000010000110_NS f9400020 O EL0t_n : LDR      x0,[x1]
4 clk cpu0 E 00000110:000010000110_NS 00000088 CoreEvent_LOWER_64_SYNC
4 clk cpu0 R ESR_EL1 92000045
4 clk cpu0 R ELR_EL1 0000000000000110
5 clk cpu0 IT (6) 00000400:000010000400_NS d503201f O EL1h_n : NOP
";

    #[test]
    fn instructions_exceptions_and_levels_are_read() {
        let expected = "# tracewalk record 1\nP a64\nL 0 ns\nR 100 104 a64\nR 108 110 a64 !108\nX 2 110 400\nL 1 ns\n\
            R 400 404 a64\nT\nL 0 ns\nX 12 110 400\nL 1 ns\nR 400 404 a64\n";
        assert_eq!(record(CALL).as_deref(), Ok(expected));
    }

    #[test]
    fn aarch32_has_halfwords_in_the_order_of_the_manual() {
        let text = "\
1 clk cpu0 IT (1) 00000100 4770 T usr_s : BX       r14
2 clk cpu0 IT (2) 00000200 f000b800 T svc_s : B.W      0x204
3 clk cpu0 IT (3) 00000204 e12fff1e A svc_s : BX       r14
";
        let expected = "# tracewalk record 1\nP ar\nL 0\nR 100 102 t32\nL 1\nR 200 204 t32\nR 204 208 a32\n";
        assert_eq!(record(text).as_deref(), Ok(expected));
    }

    #[test]
    fn one_processor_of_several_is_chosen() {
        let text = format!("{CALL}6 clk cpu1 IT (1) 00000500 d503201f O EL3h_s : NOP\n");
        let several = TarmacErrorKind::SeveralProcessors { first: "cpu0".into(), other: "cpu1".into() };
        assert_eq!(record(&text), Err((16, several)));
        assert_eq!(read(&text, Some("cpu1")).unwrap().instructions().count(), 1);
        assert_eq!(read(&text, Some("cpu2")).unwrap_err().kind, TarmacErrorKind::NoInstructions);
    }

    #[test]
    fn what_is_not_tarmac_is_refused_with_its_line() {
        assert_eq!(record("Trace 0: 0x7f\n"), Err((1, TarmacErrorKind::NoInstructions)));
        let line = |text: &str| record(&format!("1 clk cpu0 IT (1) {text}\n"));
        let no = |field| Err((1, TarmacErrorKind::Unreadable { field }));
        assert_eq!(line("xyz d503201f O EL3h_s : NOP"), no("address"));
        assert_eq!(line("100 d503 O EL3h_s : NOP"), no("instruction"));
        assert_eq!(line("100 d503201f J EL3h_s : NOP"), no("instruction set"));
        assert_eq!(line("100 d503201f O"), no("mode"));
        let without_elr = CALL.replace("R ELR_EL1", "R FAR_EL1");
        assert_eq!(record(&without_elr), Err((10, TarmacErrorKind::NoReturnAddress)));
    }
}
