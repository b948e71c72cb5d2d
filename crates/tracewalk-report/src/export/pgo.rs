//! Counts of one binary, for tools that optimise a program by its profile.
//!
//! ```text
//! profgen    N, N × first-last:count, M, M × from->to:count            llvm-profgen --unsymbolized-profile
//! autofdo    the same with an empty list between, less the address of the first segment    create_llvm_prof --profiler text
//! bolt       F first last count, B from to count mispredictions        perf2bolt -pa
//! ```
//!
//! Addresses are those of the ELF file, in hexadecimal without `0x`. A range ends with its last instruction (llvm/tools/llvm-profgen,
//! `UnsymbolizedProfileReader`; bolt/include/bolt/Profile/DataAggregator.h, `parseAggregatedLBREntry`).

use std::collections::BTreeMap;
use std::io::{self, Write};

use tracewalk::ids::Address;
use tracewalk_analysis::counts::{CountedBinary, CountsReport, ReportedBinary, Way};

type Counts = BTreeMap<(Address, Address), u64>;

/// Writes an unsymbolised profile for llvm-profgen.
pub fn write_profgen(out: &mut dyn Write, report: &CountsReport<'_>) -> io::Result<()> {
    let Some(ReportedBinary { found, .. }) = report.binaries.first() else { return Ok(()) };
    write_list(out, &ranges(found), "-", 0)?;
    write_list(out, &taken(found), "->", 0)
}

/// Writes text for AutoFDO's `create_llvm_prof` and `create_gcov`.
pub fn write_autofdo(out: &mut dyn Write, report: &CountsReport<'_>) -> io::Result<()> {
    let Some(ReportedBinary { id, name, found }) = report.binaries.first() else { return Ok(()) };
    let base = found.base.map_or(0, Address::get);
    write_list(out, &ranges(found), "-", base)?;
    // Sampled addresses: none, because the ranges contain them already.
    writeln!(out, "0")?;
    write_list(out, &taken(found), "->", base)?;
    writeln!(out, "// {name}")?;
    match id.build_id() {
        Some(id) => writeln!(out, "// build_id: 0x{id}"),
        None => Ok(()),
    }
}

/// Writes pre-aggregated branches for perf2bolt.
pub fn write_bolt(out: &mut dyn Write, report: &CountsReport<'_>) -> io::Result<()> {
    let Some(ReportedBinary { found, .. }) = report.binaries.first() else { return Ok(()) };
    // A branch that is not taken leads from its block to the next one.
    for ((first, last), count) in ranges(found).into_iter().chain(branches(found, |way| !way.is_taken())) {
        writeln!(out, "F {first:x} {last:x} {count}")?;
    }
    // No trace records which branches were mispredicted.
    for ((from, to), count) in taken(found) {
        writeln!(out, "B {from:x} {to:x} {count} 0")?;
    }
    Ok(())
}

fn write_list(out: &mut dyn Write, counts: &Counts, between: &str, base: u64) -> io::Result<()> {
    writeln!(out, "{}", counts.len())?;
    for ((from, to), count) in counts {
        let [from, to] = [from, to].map(|address| address.get().wrapping_sub(base));
        writeln!(out, "{from:x}{between}{to:x}:{count}")?;
    }
    Ok(())
}

fn ranges(found: &CountedBinary) -> Counts {
    sums(found.ranges.iter().map(|(range, count)| ((range.first, range.last), *count)))
}

fn taken(found: &CountedBinary) -> Counts {
    branches(found, Way::is_taken)
}

/// The branches within the binary that went one of the wanted ways.
fn branches(found: &CountedBinary, wanted: impl Fn(Way) -> bool) -> Counts {
    let branches = found.branches.iter().filter(|((.., way), _)| wanted(*way));
    sums(branches.filter_map(|((from, to, _), count)| Some((((*from)?, (*to)?), *count))))
}

fn sums(counts: impl Iterator<Item = ((Address, Address), u64)>) -> Counts {
    let mut sums = Counts::new();
    for (key, count) in counts {
        let sum = sums.entry(key).or_default();
        *sum = sum.saturating_add(count);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::ids::Isa;
    use tracewalk_analysis::counts::Range;
    use tracewalk_analysis::programs::ProgramId;

    fn written(write: fn(&mut dyn Write, &CountsReport<'_>) -> io::Result<()>) -> String {
        let at = |address: u32| Address::from(address);
        let range = |first: u32, last: u32, isa, count| {
            (Range { first: at(first), last: at(last), isa, instructions: 2 }, count)
        };
        let found = CountedBinary {
            base: Some(at(0x8000)),
            ranges: [
                range(0x8100, 0x8108, Isa::A32, 7),
                range(0x8100, 0x8108, Isa::T32, 1),
                range(0x810c, 0x8110, Isa::A32, u64::MAX),
            ]
            .into(),
            branches: [
                ((Some(at(0x8108)), Some(at(0x8100)), Way::Jump), 3),
                ((Some(at(0x8108)), Some(at(0x8100)), Way::Return), 1),
                ((Some(at(0x8108)), Some(at(0x810c)), Way::NotTaken), 4),
                ((Some(at(0x8110)), None, Way::Call), 5),
                ((None, Some(at(0x8100)), Way::Return), 6),
            ]
            .into(),
            ..CountedBinary::default()
        };
        let id = ProgramId::Builds([vec![0x0a, 0xbc]].into());
        let binary = ReportedBinary { id: &id, name: "fw.elf".to_owned(), found: &found };
        let mut out = Vec::new();
        write(&mut out, &CountsReport { binaries: vec![binary], complete: true }).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_tool_gets_its_form() {
        assert_eq!(
            written(write_profgen),
            "2\n8100-8108:8\n810c-8110:18446744073709551615\n1\n8108->8100:4\n"
        );
        assert_eq!(
            written(write_autofdo),
            "2\n100-108:8\n10c-110:18446744073709551615\n0\n1\n108->100:4\n// fw.elf\n// build_id: 0x0abc\n"
        );
        assert_eq!(
            written(write_bolt),
            "F 8100 8108 8\nF 810c 8110 18446744073709551615\nF 8108 810c 4\nB 8108 8100 4 0\n"
        );
    }
}
