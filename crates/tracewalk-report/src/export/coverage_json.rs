//! Coverage as one JSON document (docs/coverage.md, docs/coverage-1.schema.json).
//!
//! The complete report: no other format has more.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;
use tracewalk::ids::Address;

use super::json::{InDoubtJson, is_true};
use tracewalk_analysis::coverage::{
    Copy, Counted, Difference, FileDifference, Line, LineCopy, Losses, Lost, Report, ReportedProgram, RunSet,
    RunSummary, SourceSummary, Stale, Tally, Totals,
};

/// The version of the document's shape. A new field does not change it.
const VERSION: u32 = 1;

/// Writes the document.
pub fn write_coverage_json(
    report: &Report,
    difference: Option<&Difference>,
    out: &mut dyn Write,
) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Document::of(report, difference))?;
    out.write_all(b"\n")
}

/// The whole document.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    format: &'static str,
    version: u32,
    #[serde(skip_serializing_if = "is_true")]
    complete: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stale: Vec<&'a str>,
    totals: TotalsJson,
    programs: Vec<ProgramJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runs: Vec<RunJson<'a>>,
    /// Each set of runs in which a line ran, once: indices into `runs`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    run_sets: Vec<Vec<usize>>,
    files: Vec<FileJson<'a>>,
    functions: Vec<FunctionJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<DifferenceJson<'a>>,
}

#[derive(Serialize)]
struct RunJson<'a> {
    name: &'a str,
    lines: u64,
    lines_alone: u64,
}

#[derive(Serialize)]
struct TotalsJson {
    lines: TallyJson,
    branches: TallyJson,
    functions: TallyJson,
    instructions: TallyJson,
}

#[derive(Serialize)]
struct TallyJson {
    found: u64,
    covered: u64,
    unrecorded: u64,
}

#[derive(Serialize)]
struct ProgramJson<'a> {
    id: String,
    images: Vec<&'a str>,
    conditions_told: bool,
    sources: Vec<SourceJson<'a>>,
}

#[derive(Serialize)]
struct SourceJson<'a> {
    capture: &'a str,
    source: &'a str,
    protocol: &'a str,
    conditions: &'static str,
    bytes: u64,
    instructions: u64,
    losses: LossesJson,
}

#[derive(Serialize)]
struct LossesJson {
    begins: u64,
    overflows: u64,
    trace_lost: LostJson,
    address_unknown: LostJson,
    contradictions: LostJson,
    undecodable: LostJson,
    in_doubt: InDoubtJson,
    no_image: Vec<RegionJson>,
    #[serde(skip_serializing_if = "is_zero")]
    cut_frame_bytes: u64,
    #[serde(skip_serializing_if = "is_zero")]
    uncommitted: u64,
}

#[derive(Serialize)]
struct LostJson {
    stretches: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct RegionJson {
    start: String,
    end: String,
    times: u64,
}

#[derive(Serialize)]
struct FileJson<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<&'static str>,
    totals: TotalsJson,
    functions: &'a [usize],
    lines: Vec<LineJson<'a>>,
}

/// The word for a reason.
const fn stale_word(reason: Stale) -> &'static str {
    match reason {
        Stale::Checksum => "checksum",
        Stale::Shorter => "shorter",
        Stale::Newer => "newer",
    }
}

#[derive(Serialize)]
struct LineJson<'a> {
    line: u32,
    count: u64,
    state: &'static str,
    /// An index into `run_sets`.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    branches: Vec<BranchJson>,
    copies: Vec<CopyJson<'a>>,
}

#[derive(Serialize)]
struct BranchJson {
    address: String,
    jump: bool,
    taken: Option<u64>,
    not_taken: Option<u64>,
}

#[derive(Serialize)]
struct CopyJson<'a> {
    function: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inlined: Vec<InlinedJson<'a>>,
    count: u64,
    state: &'static str,
    instructions: Vec<String>,
}

#[derive(Serialize)]
struct InlinedJson<'a> {
    function: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
}

#[derive(Serialize)]
struct FunctionJson<'a> {
    program: usize,
    name: Option<&'a str>,
    symbol: &'a str,
    start: String,
    end: String,
    file: Option<usize>,
    line: Option<u32>,
    entered: u64,
    totals: TotalsJson,
    instructions: Vec<InstructionJson>,
}

#[derive(Serialize)]
struct InstructionJson {
    address: String,
    isa: &'static str,
    bytes: u8,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    conditional: bool,
    executed: u64,
    #[serde(skip_serializing_if = "is_zero")]
    skipped: u64,
    #[serde(skip_serializing_if = "is_zero")]
    unrecorded: u64,
}

#[derive(Serialize)]
struct DifferenceJson<'a> {
    files: Vec<FileDifferenceJson<'a>>,
    gone: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<TallyJson>,
}

#[derive(Serialize)]
struct FileDifferenceJson<'a> {
    name: &'a str,
    lost: &'a [u32],
    lost_branches: &'a [u32],
    gained: &'a [u32],
    new_uncovered: &'a [u32],
    new_covered: u64,
    lost_functions: &'a [String],
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    revisions: Option<RevisionsJson<'a>>,
}

/// The values of a file that exist only if the lines of two revisions are mapped.
#[derive(Serialize)]
struct RevisionsJson<'a> {
    new_code_uncovered: &'a [u32],
    new_code_covered: u64,
    unjudged: &'a [u32],
    deleted: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_from: Option<&'a str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn address(address: Address) -> String {
    hex(address.get())
}

fn hex(number: u64) -> String {
    format!("0x{number:08x}")
}

impl<'a> Document<'a> {
    pub(super) fn of(report: &'a Report, difference: Option<&'a Difference>) -> Self {
        let runs = report.runs.iter().map(|RunSummary { name, lines, alone }| RunJson {
            name,
            lines: *lines,
            lines_alone: *alone,
        });
        let mut sets = RunSets::default();
        let files = (report.files.iter())
            .map(|file| FileJson {
                name: &file.name,
                stale: file.stale.map(stale_word),
                totals: file.totals.into(),
                functions: &file.functions,
                lines: file.lines.iter().map(|line| LineJson::of(report, line, &mut sets)).collect(),
            })
            .collect();
        Self {
            format: "tracewalk-coverage",
            version: VERSION,
            complete: report.complete,
            stale: report.stale().map(|(file, _)| file.name.as_str()).collect(),
            totals: report.totals.into(),
            programs: report.programs.iter().map(ProgramJson::of).collect(),
            runs: runs.collect(),
            run_sets: sets.sets,
            files,
            functions: functions(report),
            difference: difference.map(|difference| DifferenceJson {
                files: (difference.files.iter())
                    .map(|(name, change)| FileDifferenceJson::of(name, change, difference.changed.is_some()))
                    .collect(),
                gone: &difference.gone,
                changed: difference.changed.map(TallyJson::from),
            }),
        }
    }
}

/// The sets of runs in which lines ran, by number. Empty without runs.
#[derive(Default)]
struct RunSets {
    sets: Vec<Vec<usize>>,
    numbers: HashMap<RunSet, usize>,
}

impl RunSets {
    fn number(&mut self, report: &Report, runs: &RunSet) -> Option<usize> {
        if report.runs.is_empty() {
            return None;
        }
        let next = self.sets.len();
        let number = *self.numbers.entry(runs.clone()).or_insert(next);
        if number == next {
            self.sets.push(runs.iter().collect());
        }
        Some(number)
    }
}

fn functions(report: &Report) -> Vec<FunctionJson<'_>> {
    let functions = report.functions.iter().map(|function| FunctionJson {
        program: function.program,
        name: function.name.as_deref(),
        symbol: &function.symbol,
        start: address(function.start),
        end: hex(function.end),
        file: function.file,
        line: function.line,
        entered: function.entered,
        totals: function.totals.into(),
        instructions: (function.instructions.iter())
            .filter_map(|&index| report.instructions.get(index))
            .map(InstructionJson::of)
            .collect(),
    });
    functions.collect()
}

impl<'a> ProgramJson<'a> {
    fn of(program: &'a ReportedProgram) -> Self {
        Self {
            id: program.id.to_string(),
            images: program.images.iter().map(String::as_str).collect(),
            conditions_told: program.conditions_recorded,
            sources: program.sources.iter().map(SourceJson::of).collect(),
        }
    }
}

impl<'a> SourceJson<'a> {
    fn of(summary: &'a SourceSummary) -> Self {
        let SourceSummary { capture, source, protocol, conditions, bytes, instructions, losses } = summary;
        Self {
            capture,
            source,
            protocol,
            conditions: conditions.name(),
            bytes: *bytes,
            instructions: *instructions,
            losses: losses.into(),
        }
    }
}

impl From<&Losses> for LossesJson {
    fn from(losses: &Losses) -> Self {
        let lost = |Lost { stretches, bytes }: Lost| LostJson { stretches, bytes };
        let regions = losses.regions_without_image();
        Self {
            begins: losses.begins,
            overflows: losses.overflows,
            trace_lost: lost(losses.trace_lost),
            address_unknown: lost(losses.address_unknown),
            contradictions: lost(losses.contradictions),
            undecodable: lost(losses.undecodable),
            in_doubt: losses.in_doubt.into(),
            no_image: regions
                .into_iter()
                .map(|(start, end, times)| RegionJson { start: address(start), end: hex(end), times })
                .collect(),
            cut_frame_bytes: losses.cut_frame_bytes,
            uncommitted: losses.uncommitted,
        }
    }
}

impl<'a> LineJson<'a> {
    fn of(report: &'a Report, line: &'a Line, sets: &mut RunSets) -> Self {
        let branches = report.branches(line).map(|(counted, branch)| BranchJson {
            address: address(counted.instruction.at.address),
            jump: counted.instruction.is_branch(),
            taken: branch.taken.seen(),
            not_taken: branch.not_taken.seen(),
        });
        Self {
            line: line.number,
            count: line.count,
            state: line.state.name(),
            runs: sets.number(report, &line.runs),
            branches: branches.collect(),
            copies: line.copies.iter().filter_map(|copy| CopyJson::of(report, copy)).collect(),
        }
    }
}

impl<'a> CopyJson<'a> {
    fn of(report: &'a Report, line: &'a LineCopy) -> Option<Self> {
        let Copy { function, inlined } = report.copies.get(line.copy)?;
        let inlined = inlined.iter().map(|call| InlinedJson {
            function: call.function.as_deref(),
            file: call.file.as_deref(),
            line: call.line,
        });
        let instructions = line.instructions.iter().filter_map(|&index| report.instructions.get(index));
        Some(Self {
            function: *function,
            inlined: inlined.collect(),
            count: line.count,
            state: line.state.name(),
            instructions: instructions.map(|counted| address(counted.instruction.at.address)).collect(),
        })
    }
}

impl InstructionJson {
    fn of(counted: &Counted) -> Self {
        let instruction = &counted.instruction;
        Self {
            address: address(instruction.at.address),
            isa: instruction.at.isa.name(),
            bytes: instruction.bytes,
            conditional: instruction.conditional,
            executed: instruction.passes.executed,
            skipped: instruction.passes.skipped,
            unrecorded: instruction.passes.unrecorded,
        }
    }
}

impl<'a> FileDifferenceJson<'a> {
    fn of(name: &'a str, change: &'a FileDifference, is_mapped: bool) -> Self {
        Self {
            name,
            lost: &change.lost,
            lost_branches: &change.lost_branches,
            gained: &change.gained,
            new_uncovered: &change.new_uncovered,
            new_covered: change.new_covered,
            lost_functions: &change.lost_functions,
            revisions: is_mapped.then(|| RevisionsJson {
                new_code_uncovered: &change.new_code_uncovered,
                new_code_covered: change.new_code_covered,
                unjudged: &change.unjudged,
                deleted: change.deleted,
                renamed_from: change.renamed_from.as_deref(),
            }),
        }
    }
}

impl From<Totals> for TotalsJson {
    fn from(totals: Totals) -> Self {
        let Totals { lines, branches, functions, instructions } = totals;
        Self {
            lines: lines.into(),
            branches: branches.into(),
            functions: functions.into(),
            instructions: instructions.into(),
        }
    }
}

impl From<Tally> for TallyJson {
    fn from(Tally { found, covered, unrecorded }: Tally) -> Self {
        Self { found, covered, unrecorded }
    }
}
