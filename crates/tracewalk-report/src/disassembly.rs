//! Instructions as text.
//!
//! A location in a program goes in, mnemonic and operands come out. Program flow does not use this module: it has a far smaller
//! decoder of its own.
//!
//! ```
//! use tracewalk::ids::{Address, Isa, Location, Profile};
//! use tracewalk::program::Program;
//! use tracewalk_report::disassembly::Disassembler;
//!
//! let mut program = Program::new();
//! program.add(Address::new(0x100), &[0x70, 0x47])?;
//! let at = Location::new(Address::new(0x100), Isa::T32);
//! let instruction = Disassembler::new(Profile::M).disassemble(&program, at).expect("code is there");
//! assert_eq!((instruction.mnemonic.as_str(), instruction.operands.as_str()), ("bx", "lr"));
//! # Ok::<(), tracewalk::program::AddRegionError>(())
//! ```

use std::fmt;

use exarmo_aarch32::{BranchKind, DecodeError, Instruction as Decoded, TokenKind, TokenSink, a32, t32};
use tracewalk::ids::{Address, Isa, Location, Profile};
use tracewalk::program::Program;

mod block;
mod instruction;
mod m_profile;
mod mve;
mod template;

pub use instruction::Disassembled;

/// The disassembler for A32, T32 and A64.
#[derive(Clone, Copy, Debug)]
pub struct Disassembler {
    profile: Profile,
}

impl Disassembler {
    /// A disassembler for code of this profile.
    #[must_use]
    pub const fn new(profile: Profile) -> Self {
        Self { profile }
    }

    /// The instruction at `at`; `None` if the program has no byte there.
    #[must_use]
    pub fn disassemble(&self, program: &Program, at: Location) -> Option<Disassembled> {
        let code = program.code(at.address)?;
        Some(match at.isa {
            Isa::A32 => match code.first_chunk() {
                Some(word) => written(a32::decode_word(u32::from_le_bytes(*word)), code, at, 4),
                None => data(code),
            },
            Isa::T32 | Isa::T32EE => self.thumb(program, code, at),
            Isa::Jazelle => data(code.get(..1).unwrap_or(code)),
            Isa::A64 => match code.first_chunk() {
                Some(word) => a64(u32::from_le_bytes(*word), code, at),
                None => data(code),
            },
        })
    }

    fn thumb(self, program: &Program, code: &[u8], at: Location) -> Disassembled {
        let Some(first) = code.first_chunk().copied().map(u16::from_le_bytes) else { return data(code) };
        let bytes = t32::length(first);
        if self.profile == Profile::M
            && let Some(text) = m_profile(program, code, at)
        {
            return text;
        }
        written(t32::decode_bytes(code, block::it_state(program, at)), code, at, bytes)
    }
}

/// The instruction, if A profile lacks it or has another one in its place.
fn m_profile(program: &Program, code: &[u8], at: Location) -> Option<Disassembled> {
    let first = code.first_chunk().copied().map(u16::from_le_bytes)?;
    if t32::length(first) == 2 {
        let branch = m_profile::non_secure_branch(first)?;
        return Some(branch.disassembled(2, block::condition(program, at)));
    }
    let second = code.get(2..)?.first_chunk().copied().map(u16::from_le_bytes)?;
    let word = u32::from(first) << 16 | u32::from(second);
    if let Some(vector) = mve::disassemble(word, at) {
        return Some(vector.disassembled(4, block::vpt_letter(program, at)));
    }
    match m_profile::disassemble(word, at) {
        Some(instruction) => Some(instruction.disassembled(4, block::condition(program, at))),
        None => m_profile::is_a_profile_only(word).then(|| data(code.get(..4).unwrap_or(code))),
    }
}

fn written(decoded: Result<Decoded, DecodeError>, code: &[u8], at: Location, bytes: u8) -> Disassembled {
    let Ok(instruction) = decoded else { return data(code.get(..bytes.into()).unwrap_or(code)) };
    let instruction = instruction.at(at.address.get());
    let mut text = Text::default();
    // The sink writes to strings, which cannot fail.
    let _ = instruction.write_tokens(&mut text);
    text.disassembled(bytes, instruction.branch().kind != BranchKind::None)
}

#[cfg(feature = "full")]
fn a64(word: u32, code: &[u8], at: Location) -> Disassembled {
    let Ok(instruction) = exarmo_aarch64::decode_word(word) else {
        return data(code.get(..4).unwrap_or(code));
    };
    let instruction = instruction.at(at.address.get());
    let mut text = Text { registers: Registers::Numbered, ..Text::default() };
    // As above.
    let _ = instruction.write_tokens(&mut text);
    text.disassembled(4, instruction.branch().kind != BranchKind::None)
}

/// Without the A64 disassembler, which takes long to build: the word as a directive.
#[cfg(not(feature = "full"))]
fn a64(word: u32, _: &[u8], _: Location) -> Disassembled {
    let operands = format!("0x{word:08x}");
    Disassembled { bytes: 4, mnemonic: ".inst".to_owned(), operands, target: None, literal: None }
}

/// Bytes that are no instruction.
fn data(code: &[u8]) -> Disassembled {
    let (mnemonic, operands) = match *code {
        [a, b, c, d, ..] => (".word", format!("0x{:08x}", u32::from_le_bytes([a, b, c, d]))),
        [a, b, ..] => (".short", format!("0x{:04x}", u16::from_le_bytes([a, b]))),
        [a] => (".byte", format!("0x{a:02x}")),
        [] => ("", String::new()),
    };
    let bytes = u8::try_from(code.len().min(4)).expect("at most four");
    Disassembled { bytes, mnemonic: mnemonic.to_owned(), operands, target: None, literal: None }
}

/// The naming of registers with a special purpose.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Registers {
    /// By purpose: `fp`, `lr`.
    #[default]
    Named,
    /// By number, as GNU binutils do for A64: `x29`, `x30`.
    #[cfg(feature = "full")]
    Numbered,
}

impl Registers {
    fn name(self, register: &str) -> &str {
        match (self, register) {
            #[cfg(feature = "full")]
            (Self::Numbered, "fp") => "x29",
            #[cfg(feature = "full")]
            (Self::Numbered, "lr") => "x30",
            _ => register,
        }
    }
}

/// Collects the tokens of one instruction.
#[derive(Default)]
struct Text {
    registers: Registers,
    mnemonic: String,
    operands: String,
    /// The address of a label among the operands.
    address: Option<Address>,
}

/// People read smaller numbers as counts and offsets, greater ones as patterns and addresses.
const DECIMAL_BELOW: u64 = 1024;

impl Text {
    /// The instruction of `bytes` bytes with this text, which is a branch or not.
    fn disassembled(self, bytes: u8, branches: bool) -> Disassembled {
        let loads = self.mnemonic.starts_with("ldr") || self.mnemonic.starts_with("vldr");
        Disassembled {
            bytes,
            target: self.address.filter(|_| branches),
            literal: self.address.filter(|_| loads && !branches),
            mnemonic: self.mnemonic,
            operands: self.operands,
        }
    }

    fn part(&mut self, kind: TokenKind) -> &mut String {
        // A data type like `.f32` rides on the mnemonic.
        if kind == TokenKind::Mnemonic
            || (kind != TokenKind::Text && self.operands.is_empty() && self.mnemonic.is_empty())
        {
            &mut self.mnemonic
        } else {
            &mut self.operands
        }
    }
}

impl TokenSink for Text {
    fn text(&mut self, kind: TokenKind, operand: Option<u8>, text: &str) -> fmt::Result {
        self.value(kind, operand, &text)
    }

    fn value(&mut self, kind: TokenKind, _operand: Option<u8>, value: &dyn fmt::Display) -> fmt::Result {
        use fmt::Write as _;
        match kind {
            TokenKind::Immediate(number) if number.unsigned_abs() < DECIMAL_BELOW => {
                write!(self.operands, "{number}")
            }
            TokenKind::Register => {
                let name = value.to_string();
                let name = self.registers.name(&name);
                self.part(kind).write_str(name)
            }
            TokenKind::Address(address) => {
                self.address = Some(Address::new(address));
                write!(self.operands, "0x{address:x}")
            }
            TokenKind::Text => {
                let text = value.to_string();
                // The layout separates mnemonic and operands, so the tab is dropped.
                if text == "\t" { Ok(()) } else { self.part(kind).write_str(&text) }
            }
            _ => write!(self.part(kind), "{value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(profile: Profile, isa: Isa, code: &[u8]) -> Vec<String> {
        let mut program = Program::new();
        program.add(Address::new(0x1000), code).unwrap();
        let disassembler = Disassembler::new(profile);
        let mut at = Location::new(Address::new(0x1000), isa);
        let mut lines = Vec::new();
        while let Some(text) = disassembler.disassemble(&program, at) {
            lines.push(format!("{} {}", text.mnemonic, text.operands).trim_end().to_owned());
            at = at.after(text.bytes.into());
        }
        lines
    }

    #[test]
    fn thumb_is_disassembled_and_a_rest_is_data() {
        let code = [
            0x00, 0xb5, // push {lr}
            0xff, 0xf7, 0xfd, 0xff, // bl 1000
            0x01, 0x4b, // ldr r3, [pc, #4]
            0xfc, 0xd1, // bne 1004
            0xde, // half an instruction
        ];
        let expected = ["push {lr}", "bl 0x1000", "ldr r3, 0x100c", "bne 0x1004", ".byte 0xde"];
        assert_eq!(lines(Profile::M, Isa::T32, &code), expected);
    }

    #[test]
    fn a_branch_has_its_target_and_a_literal_load_its_address() {
        let mut program = Program::new();
        program.add(Address::new(0x1002), &[0x01, 0x4b, 0xfd, 0xd1]).unwrap();
        let disassembler = Disassembler::new(Profile::M);
        let load = disassembler.disassemble(&program, Location::new(Address::new(0x1002), Isa::T32)).unwrap();
        assert_eq!(load.literal, Some(Address::new(0x1008)));
        let branch =
            disassembler.disassemble(&program, Location::new(Address::new(0x1004), Isa::T32)).unwrap();
        assert_eq!(branch.target, Some(Address::new(0x1002)));
    }

    #[test]
    fn an_instruction_in_an_it_block_has_its_condition_however_execution_came_to_it() {
        let code = [
            0x0c, 0xbf, // ite eq
            0x4f, 0xf0, 0x01, 0x00, // moveq.w r0, #1
            0x00, 0x20, // movne r0, #0
            0x00, 0x20, // movs r0, #0
        ];
        assert_eq!(
            lines(Profile::M, Isa::T32, &code),
            ["ite eq", "moveq r0, #1", "movne r0, #0", "movs r0, #0"]
        );
        let mut program = Program::new();
        program.add(Address::new(0x1000), &code).unwrap();
        let at = Location::new(Address::new(0x1006), Isa::T32);
        let text = Disassembler::new(Profile::M).disassemble(&program, at).unwrap();
        assert_eq!(text.mnemonic, "movne");
    }

    /// The words and their text from GNU binutils' `objdump` of an AArch64 program, numbers below 1024 in decimal.
    #[cfg(feature = "full")]
    #[test]
    fn a64_words_are_disassembled_at_64_bit_addresses_and_a_rest_is_data() {
        let start = 0xffff_ffc0_0800_1000;
        let mut program = Program::new();
        let words = [0xa9bf_7bfd, 0x5400_0040, 0x5800_0041, 0xd65f_03c0, 0xb500_0021, 0x97ff_fffb, 0];
        let mut code = words.map(u32::to_le_bytes).concat();
        code.extend([0x1f, 0x20]);
        program.add(Address::new(start), &code).unwrap();
        let at = |index: u64| {
            let at = Location::new(Address::new(start + 4 * index), Isa::A64);
            Disassembler::new(Profile::Ar).disassemble(&program, at).unwrap()
        };
        let text = |index| {
            let one = at(index);
            (one.bytes, format!("{} {}", one.mnemonic, one.operands).trim_end().to_owned())
        };
        let expected = [
            (4, "stp x29, x30, [sp, #-16]!"),
            (4, "b.eq 0xffffffc00800100c"),
            (4, "ldr x1, 0xffffffc008001010"),
            (4, "ret"),
            (4, "cbnz x1, 0xffffffc008001014"),
            (4, "bl 0xffffffc008001000"),
            (4, "udf #0"),
            (2, ".short 0x201f"),
        ];
        let found = (0..8).map(text).collect::<Vec<_>>();
        assert_eq!(found, expected.map(|(bytes, text)| (bytes, text.to_owned())));
        let (target, literal) = (Some(Address::new(start + 0xc)), Some(Address::new(start + 0x10)));
        assert_eq!([at(1), at(2)].map(|one| (one.target, one.literal)), [(target, None), (None, literal)]);
    }

    #[test]
    fn a32_words_are_disassembled_and_a_rest_is_data() {
        let code = [0x10, 0x40, 0x2d, 0xe9, 0x1e, 0xff, 0x2f, 0x01, 0xff, 0xff];
        assert_eq!(lines(Profile::Ar, Isa::A32, &code), ["push {r4, lr}", "bxeq lr", ".short 0xffff"]);
    }
}
