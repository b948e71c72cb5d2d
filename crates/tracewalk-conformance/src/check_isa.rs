//! The command `check-isa`: compares the classification of instructions with objdump's disassembly of library code.
//!
//! The compiler's own libraries come in many variants of A32 and T32. Each variant is linked whole, so that
//! branches have their real targets, and disassembled. The A64 code is a C library for Linux. Pseudo-random
//! encodings, the same in every run, add encodings that libraries do not use. The texts of Armv8.1-M's own
//! instructions, which tracewalk disassembles itself, are compared too.

mod texts;

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tracewalk::ids::Isa;
use tracewalk::isa::{Class, Instruction, classify};
use tracewalk_generate::arguments::Arguments;

use crate::disassembly::{Line, Reading};

const COMPILER: &str = "arm-none-eabi-gcc";
const LINKER: &str = "arm-none-eabi-ld";
const DISASSEMBLER: &str = "arm-none-eabi-objdump";
const DISASSEMBLER_64: &str = "aarch64-linux-gnu-objdump";

/// The Debian packages with these programs and libraries.
const PACKAGES: &str =
    "gcc-arm-none-eabi, libnewlib-arm-none-eabi, binutils-aarch64-linux-gnu and libc6-arm64-cross";

/// The A64 libraries, where Debian's `libc6-arm64-cross` puts them.
const LIBRARIES_64: [&str; 3] = [
    "/usr/aarch64-linux-gnu/lib/libc.so.6",
    "/usr/aarch64-linux-gnu/lib/libm.so.6",
    "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1",
];

/// The number of pseudo-random encodings that are compared in each instruction set.
const RANDOM_ENCODINGS: usize = 500_000;

/// The most differences that are shown.
const SHOWN: usize = 40;

/// The number of compared instructions, and the differences.
#[derive(Debug, Default)]
struct Tally {
    a32: u64,
    t32: u64,
    a64: u64,
    direct: u64,
    indirect: u64,
    accesses: u64,
    /// The differences, as text.
    differences: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    arguments.finish()?;
    let directory = tempfile::tempdir()?;
    println!("{}", check(directory.path())?);
    Ok(())
}

/// The standard output of a successful command.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{name}: {error} (Debian's {PACKAGES} are needed)"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(format!("{name}: {}\n{}", output.status, text(&output.stderr))),
    }
}

fn check(directory: &Path) -> Result<String, String> {
    let mut libraries = Tally::default();
    let variants = variants()?;
    for flags in &variants {
        let file = link(flags, directory)?;
        let text = output(Command::new(DISASSEMBLER).arg("-d").arg(file))?;
        compare(&text, Isa::A32, &mut libraries);
    }
    for library in LIBRARIES_64 {
        compare(&output(Command::new(DISASSEMBLER_64).args(["-d", library]))?, Isa::A64, &mut libraries);
    }
    let mut random = Tally::default();
    for isa in [Isa::A32, Isa::T32, Isa::A64] {
        let words = if isa == Isa::A64 { Isa::A64 } else { Isa::A32 };
        compare(&disassemble_random(isa, directory)?, words, &mut random);
    }
    for tally in [&libraries, &random] {
        if !tally.differences.is_empty() {
            return Err(report(tally));
        }
    }
    let (texts, differences) = texts::compare(directory)?;
    if texts == 0 || !differences.is_empty() {
        return Err(report(&Tally { differences, ..Tally::default() }));
    }
    let Tally { a32, t32, a64, .. } = libraries;
    if a32 == 0 || t32 == 0 || a64 == 0 {
        return Err(format!("found {a32} A32, {t32} T32 and {a64} A64 instructions in the libraries"));
    }
    Ok(format!(
        "no difference from objdump\n{} library variants: {libraries}\npseudo-random encodings: {random}\ntexts of \
         Armv8.1-M: {texts}",
        variants.len(),
    ))
}

fn report(tally: &Tally) -> String {
    let mut lines = tally.differences.iter().take(SHOWN).cloned().collect::<Vec<_>>();
    lines.push(format!("{} differences from objdump", tally.differences.len()));
    lines.join("\n")
}

/// The compiler's variants, as lists of flags.
fn variants() -> Result<Vec<Vec<String>>, String> {
    let text = output(Command::new(COMPILER).arg("-print-multi-lib"))?;
    let variants = text
        .lines()
        .filter_map(|line| line.split_once(';'))
        .map(|(_, flags)| flags.split('@').skip(1).map(|flag| format!("-{flag}")).collect())
        .collect();
    Ok(variants)
}

/// All of a variant's libraries as one program.
fn link(flags: &[String], directory: &Path) -> Result<PathBuf, String> {
    let file = directory.join("libraries.elf");
    let mut command = Command::new(LINKER);
    command
        .args(["--whole-archive", "--allow-multiple-definition", "--unresolved-symbols=ignore-all"])
        .args(["--no-warn-mismatch", "--defsym=__dso_handle=0", "-Ttext=0x8000", "-o"])
        .arg(&file);
    for library in ["libgcc.a", "libc.a", "libm.a"] {
        let path = output(Command::new(COMPILER).args(flags).arg(format!("-print-file-name={library}")))?;
        command.arg(path.trim());
    }
    output(&mut command)?;
    Ok(file)
}

/// objdump's reading of pseudo-random encodings, as ARMv7; T32 begins with all 16-bit encodings.
fn disassemble_random(isa: Isa, directory: &Path) -> Result<String, String> {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut code = Vec::new();
    if isa == Isa::T32 {
        // IT is left out, because it would change the meaning of the next instructions.
        code.extend((0..0xe800_u16).filter(|code| code >> 8 != 0xbf).flat_map(u16::to_le_bytes));
    }
    for _ in 0..RANDOM_ENCODINGS {
        let encoding = random.word();
        match isa {
            Isa::A32 => code.extend(defined_a32(encoding).to_le_bytes()),
            Isa::A64 => code.extend(likely_a64(encoding).to_le_bytes()),
            _ => code.extend(halfwords(defined_t32(encoding))),
        }
    }
    let file = directory.join("random.bin");
    fs::write(&file, code).map_err(|error| format!("{}: {error}", file.display()))?;
    let (disassembler, architecture) =
        if isa == Isa::A64 { (DISASSEMBLER_64, "aarch64") } else { (DISASSEMBLER, "armv7") };
    let mut command = Command::new(disassembler);
    command.args(["-D", "-z", "-b", "binary", "-m", architecture]);
    if isa == Isa::T32 {
        command.args(["-M", "force-thumb"]);
    }
    output(command.arg(file))
}

/// A word of code as T32 stores it: the upper halfword first.
fn halfwords(word: u32) -> [u8; 4] {
    let [a, b, c, d] = word.to_le_bytes();
    [c, d, a, b]
}

/// The A32 encoding, changed to one that ARMv7 defines if objdump does not mark it as undefined.
fn defined_a32(word: u32) -> u32 {
    const MISCELLANEOUS: u32 = 0b0001_0000 << 20;
    let op2 = word >> 4 & 0b111;
    match (word >> 21 & 0b11, op2) {
        // Halfword loads and stores with PC, which objdump takes for MSR.
        _ if word >> 25 & 0b111 == 0 && word >> 4 & 0b1001 == 0b1001 => word & !(1 << 12),
        _ if word & (0b1111_1001 << 20 | 1 << 7) != MISCELLANEOUS || word >> 28 == 0b1111 => {
            defined_coprocessor(word)
        }
        // BX, BXJ, BLX and ERET whose should-be bits have the wrong value.
        (0b01, 0b001..=0b011) => word | 0b1111_1111_1111 << 8,
        (0b11, 0b110) => word & 0b1111 << 28 | 0x0160_006e,
        // BKPT with a condition, which objdump takes for MSR.
        (0b01, 0b111) => word & !(0b1111 << 28) | 0b1110 << 28,
        _ => word,
    }
}

/// The A64 encoding, three times out of four moved into the group of branches, exceptions and system
/// instructions, and two of these three times into its part where most bits are fixed. Half of the remaining
/// encodings are loads or stores, some of them SVE's.
fn likely_a64(word: u32) -> u32 {
    const SYSTEM_OR_REGISTER: u32 = 0b1101_0100 << 24;
    match word & 0b11 {
        0b00 if word & 0b1100 == 0 => word & !(0b111 << 26) | 0b1000_0010 << 24,
        0b00 if word & 0b1000 == 0 => word & !(1 << 25) | 1 << 27,
        0b00 => word,
        0b01 => word & !(0b111 << 26) | 0b101 << 26,
        0b10 => word & !(0b1111_1100 << 24) | SYSTEM_OR_REGISTER,
        // Most register fields are all ones or zero there.
        _ => (word & !(0b1111_1100 << 24) | SYSTEM_OR_REGISTER | 0b1_1111 << 16) & !(0b1111 << 12),
    }
}

/// The T32 encoding, changed to a 32-bit one that ARMv7 defines if objdump does not mark it as undefined.
fn defined_t32(word: u32) -> u32 {
    const SINGLE: u32 = 0b1111_1000;
    const WIDE_OFFSET: u32 = 1 << 23;
    let word = word | 0b111 << 29;
    let word = if word >> 27 == 0b11100 { word | 1 << 27 } else { word };
    // The addressing modes of loads and stores are 000000, 1xx1xx, 1100xx and 1110xx.
    match word {
        _ if word >> 25 != SINGLE >> 1 || word & WIDE_OFFSET != 0 => defined_coprocessor(word),
        _ if word & 1 << 11 == 0 => word & !(0b1_1111 << 6),
        _ if word & 1 << 8 == 0 => word | 1 << 10,
        _ => word,
    }
}

fn defined_coprocessor(word: u32) -> u32 {
    const NO_LOAD_STORE: u32 = 1 << 25;
    match word >> 26 & 0b11 {
        // objdump knows mnemonics of processors before ARMv7 for all coprocessors but 10, 11, 14 and 15.
        0b11 if word & NO_LOAD_STORE != 0 => word | 0b1010 << 8,
        // objdump accepts an address without U, P and W, and lists of no registers or too many.
        0b11 => (word | 1 << 23 | 0b1010 << 8 | 0b10) & !0b1110_0000,
        _ => word,
    }
}

/// Marsaglia's xorshift64, so that every run compares the same encodings.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from(self.0 >> 32).unwrap_or(u32::MAX)
    }
}

/// Compares every instruction in `text`, objdump's disassembly. Words in it are instructions of the set
/// `words`.
fn compare(text: &str, words: Isa, tally: &mut Tally) {
    // The number of instructions that the last IT still makes conditional.
    let mut it_block = 0_u8;
    for text in text.lines() {
        let Some(line) = Line::parse(text, words) else {
            it_block = 0;
            continue;
        };
        let in_it_block = it_block > 0;
        it_block = it_block.saturating_sub(1);
        if line.doubtful {
            continue;
        }
        let reading = line.read();
        match classify(&line.code, line.address, line.isa) {
            Ok(found) => {
                if let Some(difference) = difference(&line, &reading, &found, in_it_block) {
                    tally.differences.push(format!("{text}\n    {difference}"));
                }
            }
            Err(reason) => tally.differences.push(format!("{text}\n    found {reason:?}")),
        }
        if reading.it_block > 0 {
            it_block = reading.it_block;
        }
        tally.count(line.isa, &reading);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { a32, t32, a64, direct, indirect, accesses, .. } = self;
        write!(
            f,
            "{a32} A32, {t32} T32 and {a64} A64 instructions; {direct} direct and {indirect} indirect branches, {accesses} \
             loads and stores"
        )
    }
}

impl Tally {
    fn count(&mut self, isa: Isa, reading: &Reading) {
        let by_isa = match isa {
            Isa::A32 => &mut self.a32,
            Isa::A64 => &mut self.a64,
            _ => &mut self.t32,
        };
        *by_isa += 1;
        self.accesses += u64::from(reading.access.is_some());
        match reading.class {
            Class::Direct(_) => self.direct += 1,
            Class::Indirect => self.indirect += 1,
            Class::Other | Class::Barrier(_) | Class::Wait | Class::TransactionStart => {}
        }
    }
}

/// How the classification differs from the text.
fn difference(line: &Line<'_>, reading: &Reading, found: &Instruction, in_it_block: bool) -> Option<String> {
    // In an IT block, the block makes a branch conditional, which the classification cannot know.
    let conditional = reading.conditional_branch && !in_it_block;
    let differs = |field, found, expected| Some(format!("found {field} {found}, expected {expected}"));
    if usize::from(found.bytes) != line.code.len() {
        differs("size", found.bytes.to_string(), line.code.len().to_string())
    } else if found.class != reading.class {
        differs("class", format!("{:?}", found.class), format!("{:?}", reading.class))
    } else if found.is_branch() && found.conditional != conditional {
        differs("conditional", found.conditional.to_string(), conditional.to_string())
    } else if found.link != reading.link {
        differs("link", found.link.to_string(), reading.link.to_string())
    } else if found.returns != reading.returns {
        differs("returns", format!("{:?}", found.returns), format!("{:?}", reading.returns))
    } else if found.raises != reading.raises {
        differs("raises", format!("{:?}", found.raises), format!("{:?}", reading.raises))
    } else if found.it_block != reading.it_block {
        differs("IT block of", found.it_block.to_string(), reading.it_block.to_string())
    } else if found.access != reading.access {
        differs("access", format!("{:?}", found.access), format!("{:?}", reading.access))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(text: &str) -> usize {
        let mut tally = Tally::default();
        compare(text, Isa::A32, &mut tally);
        tally.differences.len()
    }

    #[test]
    fn a_wrong_reading_is_a_difference() {
        assert_eq!(differences("    8004:\teb0037fa \tbl\t15ff4 <abort>"), 0);
        assert_eq!(differences("    8004:\teb0037fa \tbl\t15ff8 <abort>"), 1, "another target");
        assert_eq!(differences("    8004:\teb0037fa \tb\t15ff4 <abort>"), 1, "no link");
        assert_eq!(differences("    8004:\teb0037fa \tbleq\t15ff4 <abort>"), 1, "a condition");
        assert_eq!(differences("    8004:\teb0037fa \tsvc\t0x0"), 1, "no branch");
        assert_eq!(differences("    8004:\te92d4010 \tpush\t{r4, r5, lr}"), 1, "another number of registers");
    }

    #[test]
    fn an_it_block_takes_the_condition_from_its_branches() {
        let block = "    8c02:\tbf18      \tit\tne\n    8c04:\t4770      \tbxne\tlr\n";
        assert_eq!(differences(block), 0);
        assert_eq!(differences("    8c04:\t4770      \tbxne\tlr\n"), 1);
    }
}
