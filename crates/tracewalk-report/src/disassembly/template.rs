//! Instructions as rows of a table: the bits as the manual prints them, and a text with places for the operands.
//!
//! A pattern has 32 bits, the first halfword first: `0` and `1` are fixed, and the bits of one letter are a field, its highest bit
//! first. A text has its operands in angle brackets. `<u:s|u>` is one of the alternatives, chosen by the field `u`; every other
//! operand is a kind and the letter of its field:
//!
//! | kind | operand |
//! |---|---|
//! | `q`, `2`, `4` | a vector register; two or four consecutive ones |
//! | `r`, `z` | a core register except `pc`; except `sp`, with 15 as zero |
//! | `e`, `o` | the core register of twice the number; the next one, except `sp` |
//! | `n`, `N` | a number; a shift amount, in which 0 stands for 32 |
//! | `T`, `D`, `L`, `R` | of a field with size and shift: the size, twice the size, the shift to the left, to the right |
//! | `f` | the fraction bits of a fixed-point number, counted down from the highest |
//! | `I`, `O`, `B`, `F` | the immediate `i`: shifted by bytes; with ones below; one byte for each bit; as a float |
//! | `c`, `C` | a condition; its opposite |
//! | `x` | a lane, with the field `h` as its highest bit |
//! | `a`, `A` | an address of `p`, `a`, `w`, `n` and `i`, scaled by the digit; the base is a core or a vector register |
//! | `b`, `t` | the labels of a branch future: of the branch; of the instruction after it |
//! | `j`, `J` | a label forwards, or signed if there is a field `a`; a label backwards |
//! | `k`, `K` | the letters of a VPT block; the rest of VCMP or VPT |
//! | `l`, `d`, `s` | a list of core registers; of double or single registers with VPR |
//! | `y`, `Y`, `m` | a register of the floating-point system; a special register; the parts of it that are written |
//! | `=` | nothing: the fields `n` and `m` are equal |
//!
//! A row does not apply if one of its operands has no meaning.

use std::fmt::Write as _;

use tracewalk::ids::{Address, Location};

use super::DECIMAL_BELOW;
use super::instruction::Disassembled;
use super::m_profile::{floating_point_register, special, written_flags};

/// The names of the conditions that can fail.
pub(super) const CONDITIONS: [&str; 14] =
    ["eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le"];

/// An instruction, or several whose texts differ in operands only.
pub(super) struct Row {
    mask: u32,
    value: u32,
    pattern: &'static str,
    text: &'static str,
}

/// The text of an instruction.
pub(super) struct Written {
    pub(super) text: String,
    /// Where the instruction may branch to.
    pub(super) address: Option<Address>,
}

impl Written {
    /// The instruction of `bytes` bytes, with the condition or letter of its block before the types.
    pub(super) fn disassembled(self, bytes: u8, suffix: &str) -> Disassembled {
        let (mnemonic, operands) = self.text.split_once(' ').unwrap_or((&self.text, ""));
        let types = mnemonic.find('.').unwrap_or(mnemonic.len());
        let (name, types) = mnemonic.split_at(types);
        let mnemonic = format!("{name}{suffix}{types}");
        Disassembled { bytes, mnemonic, operands: operands.to_owned(), target: self.address, literal: None }
    }
}

/// The rows of patterns and texts.
pub(super) const fn rows<const COUNT: usize>(texts: &[(&'static str, &'static str); COUNT]) -> [Row; COUNT] {
    let mut rows = [const { Row { mask: 0, value: 0, pattern: "", text: "" } }; COUNT];
    let mut index = 0;
    while index < COUNT {
        let (pattern, text) = texts[index];
        let (mask, value) = fixed_bits(pattern);
        rows[index] = Row { mask, value, pattern, text };
        index += 1;
    }
    rows
}

const fn fixed_bits(pattern: &str) -> (u32, u32) {
    let (mut mask, mut value, mut count) = (0, 0, 0);
    let mut rest = pattern.as_bytes();
    while let [bit, after @ ..] = rest {
        rest = after;
        if *bit != b' ' {
            mask = mask << 1 | matches!(*bit, b'0' | b'1') as u32;
            value = value << 1 | (*bit == b'1') as u32;
            count += 1;
        }
    }
    assert!(count == 32, "a pattern has 32 bits");
    (mask, value)
}

/// The text of the instruction by the first row that applies.
pub(super) fn written(rows: &[Row], word: u32, at: Location) -> Option<Written> {
    rows.iter()
        .filter(|row| word & row.mask == row.value)
        .find_map(|row| Operands { pattern: row.pattern, word, at }.written(row.text))
}

struct Operands {
    pattern: &'static str,
    word: u32,
    at: Location,
}

impl Operands {
    fn written(&self, text: &str) -> Option<Written> {
        let mut written = Written { text: String::new(), address: None };
        let mut rest = text;
        while let Some((before, operand, after)) = bracketed(rest) {
            written.text.push_str(before);
            self.push(operand, &mut written)?;
            rest = after;
        }
        written.text.push_str(rest);
        Some(written)
    }

    fn push(&self, operand: &str, written: &mut Written) -> Option<()> {
        if let Some((letter, alternatives)) = operand.split_once(':') {
            let chosen = alternatives.split('|').nth(self.field(letter.chars().next()?).try_into().ok()?)?;
            written.text.push_str(Some(chosen).filter(|chosen| *chosen != "-")?);
            return Some(());
        }
        let mut letters = operand.chars();
        let (kind, letter) = (letters.next()?, letters.next().unwrap_or_default());
        let text = match kind {
            'b' | 't' | 'j' | 'J' => {
                let address = self.label(kind)?;
                if matches!(kind, 'j' | 'J') {
                    written.address = Some(address);
                }
                format!("0x{:x}", address.get())
            }
            'a' | 'A' => self.address(kind, letter.to_digit(4)?)?,
            _ => self.operand(kind, self.field(letter), letter)?,
        };
        written.text.push_str(&text);
        Some(())
    }

    fn operand(&self, kind: char, value: u32, letter: char) -> Option<String> {
        let immediate = u64::from(self.field('i'));
        Some(match kind {
            'q' => format!("q{value}"),
            '2' => vector_registers(value, 2)?,
            '4' => vector_registers(value, 4)?,
            'r' => core_register(value).filter(|_| value != 15)?,
            'z' => core_register(value).filter(|_| value != 13).map(|name| name.replace("pc", "zr"))?,
            'e' => core_register(2 * value)?,
            'o' => core_register(2 * value + 1).filter(|_| !matches!(value, 6 | 7))?,
            'n' => number(value.into()),
            'N' => number(if value == 0 { 32 } else { value.into() }),
            'T' => element_size(value)?.to_string(),
            'D' => (2 * element_size(value)?).to_string(),
            'L' => (value - element_size(value)?).to_string(),
            'R' => (2 * element_size(value)? - value).to_string(),
            'f' => ((1 << self.width(letter)) - value).to_string(),
            'I' => number(immediate << (8 * value)),
            'O' => number(((immediate + 1) << (8 * (value + 1))) - 1),
            'B' => number((0..8).filter(|bit| value >> bit & 1 == 1).map(|bit| 0xff << (8 * bit)).sum()),
            'F' => format!("{:?}", expanded_float(value)),
            'c' => (*CONDITIONS.get(usize::try_from(value).ok()?)?).to_owned(),
            'C' => (*CONDITIONS.get(usize::try_from(value ^ 1).ok()?)?).to_owned(),
            'x' => number((self.field('h') << self.width(letter) | value).into()),
            'k' => block_letters(value).filter(|_| value != 0)?,
            'K' => {
                if value == 0 {
                    "cmp".to_owned()
                } else {
                    format!("pt{}", block_letters(value)?)
                }
            }
            'l' => core_registers(value)?,
            'd' => extension_registers("d", self.field('h') << 4 | self.field('v'), value, 16)?,
            's' => extension_registers("s", self.field('v') << 1 | self.field('h'), value, 32)?,
            'y' => floating_point_register(value)?.to_owned(),
            'Y' => special(value)?.to_owned(),
            'm' => written_flags(self.field('y'), value).to_owned(),
            '=' if self.field('n') == self.field('m') => String::new(),
            _ => return None,
        })
    }

    /// The bits of a letter.
    fn field(&self, letter: char) -> u32 {
        let bits = self.pattern.chars().filter(|bit| *bit != ' ').zip((0..32).rev());
        bits.filter(|(bit, _)| *bit == letter).fold(0, |value, (_, bit)| value << 1 | self.word >> bit & 1)
    }

    /// The number of bits of a letter.
    fn width(&self, letter: char) -> usize {
        self.pattern.chars().filter(|bit| *bit == letter).count()
    }

    /// A branch future's branch is `b` halfwords ahead. Other labels have their lowest bit, `l`, apart.
    fn label(&self, kind: char) -> Option<Address> {
        let field = |letter| i64::from(self.field(letter));
        let width = self.width('a');
        let high = field('a');
        let high = if width > 0 && high >> (width - 1) == 1 { high - (1 << width) } else { high };
        let offset = (high << 12) + (field('i') << 2) + (field('l') << 1);
        let offset = match kind {
            'b' if field('b') == 0 => return None,
            'b' => 2 * field('b'),
            't' => 2 * field('b') + 2 + 2 * field('t'),
            'J' => -offset,
            _ => offset,
        };
        // PC is four bytes ahead.
        Some(self.at.moved(4 + offset).address)
    }

    fn address(&self, kind: char, scale: u32) -> Option<String> {
        let number = self.field('n');
        let base = if kind == 'A' {
            format!("q{number}")
        } else {
            core_register(number).filter(|_| number != 15)?
        };
        let sign = if self.field('a') == 0 { "-" } else { "" };
        let offset = format!("#{sign}{}", self.field('i') << scale);
        // Without the field `p`, the offset is added first.
        let indexed = self.width('p') == 0 || self.field('p') == 1;
        Some(match (indexed, self.field('w') == 1) {
            (true, false) if offset == "#0" => format!("[{base}]"),
            (true, false) => format!("[{base}, {offset}]"),
            (true, true) => format!("[{base}, {offset}]!"),
            (false, true) => format!("[{base}], {offset}"),
            (false, false) => return None,
        })
    }
}

/// The text before angle brackets, in them and after them.
fn bracketed(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('<')?;
    let (operand, after) = rest.split_once('>')?;
    Some((before, operand, after))
}

fn number(value: u64) -> String {
    if value < DECIMAL_BELOW { value.to_string() } else { format!("0x{value:x}") }
}

pub(super) fn core_register(number: u32) -> Option<String> {
    Some(match number {
        0..=12 => format!("r{number}"),
        13 => "sp".to_owned(),
        14 => "lr".to_owned(),
        15 => "pc".to_owned(),
        _ => return None,
    })
}

/// A list that cannot have `sp`, and has APSR in place of `pc`.
fn core_registers(list: u32) -> Option<String> {
    let name = |bit| core_register(bit).filter(|_| bit != 13).map(|name| name.replace("pc", "apsr"));
    let names = (0..16).filter(|bit| list >> bit & 1 == 1).map(name).collect::<Option<Vec<_>>>()?;
    (!names.is_empty()).then(|| format!("{{{}}}", names.join(", ")))
}

/// A list of vector registers that begins with `first`; `None` if one of them does not exist.
fn vector_registers(first: u32, count: u32) -> Option<String> {
    let names = (first..first + count).map(|number| format!("q{number}")).collect::<Vec<_>>();
    (first + count <= 8).then(|| format!("{{{}}}", names.join(", ")))
}

/// A list of extension registers that begins with `first`, and VPR; `None` if one of them does not exist.
fn extension_registers(prefix: &str, first: u32, count: u32, exist: u32) -> Option<String> {
    let mut text = "{".to_owned();
    for number in first..first + count {
        write!(text, "{prefix}{number}, ").ok()?;
    }
    (first + count <= exist).then(|| text + "vpr}")
}

/// The size of the elements: the highest bit of a field that has a shift below.
const fn element_size(size_and_shift: u32) -> Option<u32> {
    match size_and_shift {
        8..=15 => Some(8),
        16..=31 => Some(16),
        32..=63 => Some(32),
        _ => None,
    }
}

/// `VFPExpandImm` of the manual.
fn expanded_float(immediate: u32) -> f32 {
    let exponent = if immediate & 0b0100_0000 == 0 { 0b100000 } else { 0b011111 };
    f32::from_bits((immediate & 0b1000_0000) << 24 | exponent << 25 | (immediate & 0b0011_1111) << 19)
}

/// The letters of a VPT block's instructions after the first. The lowest bit of the mask ends it; each bit above that is set inverts
/// the predicate from there on.
fn block_letters(mask: u32) -> Option<String> {
    let inversions =
        (1..4_u32.checked_sub(mask.trailing_zeros())?).map(|index| (mask >> (4 - index)).count_ones());
    Some(inversions.map(|count| if count % 2 == 0 { 't' } else { 'e' }).collect())
}
