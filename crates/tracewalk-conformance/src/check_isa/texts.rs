//! The texts of Armv8.1-M's own instructions, compared with objdump's of a program with vectors.

use std::path::Path;
use std::process::Command;

use tracewalk::ids::{Isa, Location, Profile};
use tracewalk::program::Program;
use tracewalk_report::disassembly::Disassembler;

use super::{COMPILER, DISASSEMBLER, output};
use crate::disassembly::Line;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/firmware/vectors.c");

/// The beginnings of the names of instructions that have no vector among their operands. BF is not compared, because objdump
/// does not add the branch's offset to an address; nor is VSCCLRM, whose registers it prints as a range.
const WITHOUT_VECTORS: &[&str] = &[
    "aut", "asrl", "bti", "bxaut", "cinc", "cinv", "clrm", "cneg", "cs", "dls", "le", "lsll", "lsrl", "pac",
    "sq", "srshr", "uq", "urshr", "vctp", "vpnot", "vpst", "wls",
];

/// The beginnings of the names of instructions with a label.
const WITH_LABEL: &[&str] = &["le", "wls"];

/// Instructions in which objdump 2.40 does not subtract the shift from the size of the elements.
const WRONG_SHIFT: &[&str] = &["vqshrn", "vqrshrn", "vqshrun", "vqrshrun"];

/// The number of texts that are compared, and the differences.
pub(super) fn compare(directory: &Path) -> Result<(usize, Vec<String>), String> {
    let file = directory.join("vectors.o");
    let mut compiler = Command::new(COMPILER);
    compiler.args([
        "-mcpu=cortex-m55",
        "-mfloat-abi=hard",
        "-mcmse",
        "-O3",
        "-ffast-math",
        "-c",
        SOURCE,
        "-o",
    ]);
    output(compiler.arg(&file))?;
    // Unless the architecture is named, objdump prints coprocessor instructions in place of vectors.
    let mut disassembler = Command::new(DISASSEMBLER);
    disassembler.args(["-d", "-m", "armv8.1-m.main", "-M", "force-thumb", "-j", ".text"]);
    let text = output(disassembler.arg(&file))?;

    let lines = text.lines().filter_map(|text| Line::parse(text, Isa::T32)).collect::<Vec<_>>();
    let mut program = Program::new();
    for line in &lines {
        program.add(line.address, &line.code).map_err(|error| error.to_string())?;
    }
    let disassembler = Disassembler::new(Profile::M);
    let (mut compared, mut differences) = (0, Vec::new());
    for line in lines.iter().filter(|line| is_own(line) && !begins(line.mnemonic, WRONG_SHIFT)) {
        let ours =
            disassembler.disassemble(&program, Location::new(line.address, Isa::T32)).unwrap_or_default();
        let ours = format!("{} {}", ours.mnemonic, ours.operands);
        let theirs = format!("{} {}", line.mnemonic, line.operands);
        if normal(&ours) != normal(&theirs) {
            differences.push(format!("{}: found {ours}, expected {theirs}", line.address));
        }
        compared += 1;
    }
    Ok((compared, differences))
}

fn begins(mnemonic: &str, names: &[&str]) -> bool {
    names.iter().any(|name| mnemonic.starts_with(name))
}

/// Whether only Armv8.1-M has the instruction.
fn is_own(line: &Line<'_>) -> bool {
    let mut words = line.operands.split(|c: char| !c.is_ascii_alphanumeric());
    let is_new = |word: &str| {
        matches!(word, "p0" | "P0" | "VPR" | "FPCXTNS") || word.len() == 2 && word.starts_with('q')
    };
    line.mnemonic != "vscclrm" && (begins(line.mnemonic, WITHOUT_VECTORS) || words.any(is_new))
}

/// The text without differences of spelling: core registers by number, no offset of 0, and numbers and labels in decimal.
fn normal(text: &str) -> String {
    let text = text.split(" <").next().unwrap_or_default().trim_end().to_lowercase();
    let text = text.replace(", #0]", "]").replace("fpcxtns", "fpcxt_ns");
    let word = |word: &str| {
        let digits = word.strip_prefix("0x").or(begins(&text, WITH_LABEL).then_some(word));
        match (word, digits.and_then(|digits| u64::from_str_radix(digits, 16).ok())) {
            ("sb", _) => "r9".to_owned(),
            ("sl", _) => "r10".to_owned(),
            ("fp", _) => "r11".to_owned(),
            ("ip", _) => "r12".to_owned(),
            (_, Some(number)) => number.to_string(),
            (word, None) => word.to_owned(),
        }
    };
    let parts = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let parts = parts.map(|part| match part.char_indices().last() {
        Some((end, separator)) if !separator.is_ascii_alphanumeric() => word(&part[..end]) + &part[end..],
        _ => word(part),
    });
    parts.collect()
}
