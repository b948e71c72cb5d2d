//! Builds a report.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tracewalk::ids::Address;

use super::super::blocks::Conditions;
use super::super::collected::ProgramCoverage;
use super::super::instructions::{self, Instruction};
use super::super::runs::RunSet;
use super::super::tally::{Totals, Verdict};
use super::files::Files;
use super::model::{
    Branch, Copy, Counted, File, Function, InlinedCall, Line, LineCopy, LineState, OutcomeCount, Report,
    ReportedProgram, RunSummary,
};
use super::placed::Placed;
use crate::Code;
use crate::programs::ProgramId;
use crate::symbols::{Extent, Frame, SourceChecksum};

/// A program with its coverage and code.
#[derive(Clone, Copy, Debug)]
pub struct ProgramInput<'a> {
    /// The program's identity.
    pub id: &'a ProgramId,
    /// The file names of its images.
    pub images: &'a BTreeSet<String>,
    /// The program's coverage.
    pub coverage: &'a ProgramCoverage,
    /// The program's code, with symbols.
    pub code: &'a Code,
}

/// Selects the instructions of a report.
pub trait Filter {
    /// Whether to keep an instruction that comes from `file` and belongs to these functions: the innermost inlined one first, the
    /// linked one last.
    fn keeps(&self, file: Option<&str>, functions: &[&str]) -> bool;
}

/// Keeps every instruction.
#[derive(Clone, Copy, Debug)]
pub struct Every;

impl Filter for Every {
    fn keeps(&self, _: Option<&str>, _: &[&str]) -> bool {
        true
    }
}

impl Report {
    /// The report of the instructions of these programs that the filter keeps. [`Report::complete`] is `true`: set the field
    /// to `false` if a source was not decoded to its end.
    #[must_use]
    pub fn of(programs: &[ProgramInput<'_>], filter: &dyn Filter) -> Self {
        let runs = programs.iter().flat_map(|program| program.coverage.runs.names()).cloned();
        // In order, and each once.
        let runs = runs.collect::<BTreeSet<_>>().into_iter().collect();
        let mut builder = Builder { runs, ..Builder::default() };
        for program in programs {
            builder.program(program, filter);
        }
        Self { complete: true, ..builder.finish() }
    }
}

#[derive(Default)]
struct Builder {
    report: Report,
    copies: HashMap<CopyKey, usize>,
    /// By program and first address; `None` for code in no function.
    functions: BTreeMap<(usize, Option<Address>), usize>,
    files: Files,
    /// The instructions that have a file.
    placed: Vec<Placed>,
    /// The checksums of the files' texts, by name.
    checksums: BTreeMap<String, BTreeSet<[u8; 16]>>,
    /// The file of each function that has one.
    function_files: HashMap<usize, usize>,
    /// The names of all runs, in order.
    runs: Vec<String>,
    /// The runs in which an instruction took effect, if known, by its index.
    took_effect_in: HashMap<usize, RunSet>,
}

/// A copy's function, and the function, the file's number and the line of each inlined call.
type CopyKey = (usize, Vec<(Option<Arc<str>>, Option<usize>, Option<u32>)>);

/// What consecutive instructions of one line have in common.
struct Same<'a> {
    frames: Arc<[Frame]>,
    /// The start of the function by the symbols.
    start: Option<Address>,
    extent: Option<&'a Extent>,
    /// `None` if the filter leaves the instructions out.
    kept: Option<Kept>,
}

/// Where the report has an instruction.
#[derive(Clone, Copy)]
struct Kept {
    place: Place,
    function: usize,
    copy: usize,
}

impl Same<'_> {
    fn has(&self, frames: &Arc<[Frame]>) -> bool {
        Arc::ptr_eq(&self.frames, frames) || self.frames == *frames
    }
}

impl Builder {
    fn program(&mut self, input: &ProgramInput<'_>, filter: &dyn Filter) {
        let ProgramInput { id, images, coverage, code } = input;
        let conditions_recorded =
            coverage.sources.iter().any(|source| source.conditions == Conditions::OfEvery);
        let program = self.report.programs.len();
        self.report.programs.push(ReportedProgram {
            id: (*id).clone(),
            images: (*images).clone(),
            sources: coverage.sources.clone(),
            losses: coverage.losses(),
            conditions_recorded,
        });
        let symbols = &*code.symbols;
        for SourceChecksum { file, md5 } in symbols.source_checksums() {
            self.checksums.entry(file).or_default().insert(md5);
        }
        let extents = symbols.functions();
        let mut in_runs = self.in_runs(input, &extents).into_iter().flatten().peekable();
        let mut same = None::<Same<'_>>;
        for instruction in instructions::count(code, &extents, &coverage.blocks) {
            let address = instruction.at.address;
            let frames = symbols.frames(address);
            let start = symbols.function(address).map(|function| function.start);
            let known = same.take().filter(|same| same.start == start && same.has(&frames));
            let known = known.unwrap_or_else(|| {
                let extent = start.and_then(|start| extent_at(&extents, start));
                let kept = self.kept((program, extent), &frames, &instruction, filter);
                Same { frames, start, extent, kept }
            });
            let Same { frames, extent, kept, .. } = same.insert(known);
            let Some(Kept { place, function, copy }) = *kept else { continue };
            if extent.is_some_and(|extent| extent.start == address) {
                self.enter(function, &instruction, frames);
            }
            let (from, end) = extent.map_or((0, 0), |extent| (extent.start.get(), extent.end));
            let effects = instruction.effects(from..end);
            let branch = branch(&instruction, conditions_recorded);
            while in_runs.next_if(|passed| passed.at < instruction.at).is_some() {}
            if let Some(passed) = in_runs.next_if(|passed| passed.at == instruction.at) {
                let runs = passed.runs(&(from..end));
                if !runs.is_empty() {
                    self.took_effect_in.insert(self.report.instructions.len(), runs);
                }
            }
            self.add(Counted { instruction, effects, copy, branch }, function, place);
        }
    }

    /// Where the report has the instructions with these frames in a function of a program, if the filter keeps them. `first` is
    /// one of the instructions.
    fn kept(
        &mut self,
        (program, extent): (usize, Option<&Extent>),
        frames: &[Frame],
        first: &Instruction,
        filter: &dyn Filter,
    ) -> Option<Kept> {
        let place = Place::of(frames, &mut self.files);
        let file = place.file.map(|file| self.files.name(file));
        let linked = extent.map_or("", |extent| extent.name.as_str());
        if !filter.keeps(file, &function_names(frames, linked)) {
            return None;
        }
        let function = self.function(program, extent, first);
        let copy = self.copy(function, frames);
        Some(Kept { place, function, copy })
    }

    /// The instructions with the runs in which they ran, in order; `None` if that is not known.
    fn in_runs<'a>(
        &self,
        input: &ProgramInput<'a>,
        functions: &[Extent],
    ) -> Option<impl Iterator<Item = Instruction<RunSet>> + use<'a>> {
        let runs = &input.coverage.runs;
        let is_known = !runs.names().is_empty();
        is_known.then(|| instructions::count(input.code, functions, &runs.numbered_by(&self.runs)))
    }

    /// The index of the linked function that an instruction belongs to.
    fn function(&mut self, program: usize, extent: Option<&Extent>, first: &Instruction) -> usize {
        let functions = &mut self.report.functions;
        *self.functions.entry((program, extent.map(|extent| extent.start))).or_insert_with(|| {
            let (start, end) = extent.map_or((first.at.address, 0), |extent| (extent.start, extent.end));
            functions.push(Function {
                program,
                name: extent.map(|extent| extent.name.clone()),
                symbol: extent.map_or_else(String::new, |extent| extent.symbol.clone()),
                start,
                end,
                file: None,
                line: None,
                entered: 0,
                instructions: Vec::new(),
                totals: Totals::default(),
            });
            functions.len() - 1
        })
    }

    /// Records a function's file and line from its first instruction.
    fn enter(&mut self, index: usize, first: &Instruction, frames: &[Frame]) {
        let Some(function) = self.report.functions.get_mut(index) else { return };
        function.entered = first.passes.total();
        // If the first instruction is of an inlined function, the linked function's line is that of the call.
        if let Some(frame) = frames.last() {
            function.line = frame.line;
            if let Some(file) = &frame.file {
                let file = self.files.number(file);
                self.function_files.insert(index, file);
            }
        }
    }

    /// The index of the copy that an instruction in these frames belongs to.
    fn copy(&mut self, function: usize, frames: &[Frame]) -> usize {
        let calls = frames.windows(2).rev();
        let files = &mut self.files;
        let inlined = calls.filter_map(|pair| {
            let [inner, outer] = pair else { return None };
            let file = outer.file.as_ref().map(|file| files.number(file));
            Some((inner.function.clone(), file, outer.line))
        });
        let key = (function, inlined.collect());
        let copies = &mut self.report.copies;
        *self.copies.entry(key).or_insert_with_key(|(function, inlined)| {
            let call = |(function, file, line): &(Option<Arc<str>>, Option<usize>, _)| InlinedCall {
                function: function.as_deref().map(str::to_owned),
                file: file.map(|file| files.name(file).to_owned()),
                line: *line,
            };
            copies.push(Copy { function: *function, inlined: inlined.iter().map(call).collect() });
            copies.len() - 1
        })
    }

    fn add(&mut self, counted: Counted, function: usize, place: Place) {
        let index = self.report.instructions.len();
        self.report.instructions.push(counted);
        if let Some(function) = self.report.functions.get_mut(function) {
            function.instructions.push(index);
        }
        if let Place { file: Some(file), line } = place {
            Placed::add(&mut self.placed, (file, line, counted.copy), index);
        }
    }

    fn finish(mut self) -> Report {
        let report = &mut self.report;
        Placed::sort(&mut self.placed);
        let files = self.placed.chunk_by(|one, other| one.file == other.file);
        let named = files.filter_map(|placed| Some((self.files.name(placed.first()?.file), placed)));
        let mut files = named.collect::<Vec<_>>();
        files.sort_unstable_by_key(|(name, _)| *name);
        for (name, placed) in files {
            let lines = placed.chunk_by(|one, other| one.line == other.line).filter_map(|placed| {
                let number = placed.first()?.line?;
                let mut runs = RunSet::default();
                let instructions = placed.iter().flat_map(|placed| placed.instructions.clone());
                let passed = instructions.filter_map(|index| self.took_effect_in.get(&index));
                passed.for_each(|passed| runs.add(passed));
                Some(Line { runs, ..line(report, number, placed) })
            });
            let lines = lines.collect();
            report.files.push(File {
                name: name.to_owned(),
                lines,
                functions: Vec::new(),
                totals: Totals::default(),
                checksums: self.checksums.remove(name).unwrap_or_default(),
                stale: None,
            });
        }
        for (&function, &file) in &self.function_files {
            // The filter may leave out the lines of a function's file.
            let name = self.files.name(file);
            let file = report.files.binary_search_by(|file| file.name.as_str().cmp(name)).ok();
            if let Some(function) = report.functions.get_mut(function) {
                function.file = file;
            }
        }
        add_up_functions(report);
        add_up_files(report);
        report.runs = summaries(self.runs, &report.files);
        self.report
    }
}

/// The lines of each run.
fn summaries(names: Vec<String>, files: &[File]) -> Vec<RunSummary> {
    let mut runs =
        names.into_iter().map(|name| RunSummary { name, ..RunSummary::default() }).collect::<Vec<_>>();
    for line in files.iter().flat_map(|file| &file.lines) {
        let alone = u64::from(line.runs.len() == 1);
        for run in line.runs.iter() {
            if let Some(run) = runs.get_mut(run) {
                run.lines += 1;
                run.alone += alone;
            }
        }
    }
    runs
}

/// The copies of a line, and the line.
fn line(report: &Report, number: u32, placed: &[Placed]) -> Line {
    let copies = placed.chunk_by(|one, other| one.copy == other.copy).filter_map(|placed| {
        let instructions = placed.iter().flat_map(|placed| placed.instructions.clone()).collect();
        Some(line_copy(report, placed.first()?.copy, instructions))
    });
    let copies = copies.collect::<Vec<_>>();
    let any = |state| copies.iter().any(|copy| copy.state == state);
    let states = [LineState::Covered, LineState::Partly, LineState::Unrecorded, LineState::Skipped];
    Line {
        number,
        count: copies.iter().fold(0, |sum: u64, copy| sum.saturating_add(copy.count)),
        state: states.into_iter().find(|&state| any(state)).unwrap_or(LineState::Unreached),
        runs: RunSet::default(),
        copies,
    }
}

fn line_copy(report: &Report, copy: usize, instructions: Vec<usize>) -> LineCopy {
    let counted = || instructions.iter().filter_map(|&index| report.instructions.get(index));
    let count = counted().map(|counted| counted.effects).max().unwrap_or(0);
    // An unrecorded condition does not count against a line that ran.
    let complete = counted().all(|counted| instruction_verdict(counted) != Verdict::Uncovered);
    let unrecorded = counted().any(|counted| instruction_verdict(counted) == Verdict::Unrecorded);
    let passed = counted().any(|counted| counted.instruction.passes.total() > 0);
    let state = match () {
        () if count > 0 && complete => LineState::Covered,
        () if count > 0 => LineState::Partly,
        () if unrecorded => LineState::Unrecorded,
        () if passed => LineState::Skipped,
        () => LineState::Unreached,
    };
    LineCopy { copy, count, state, instructions }
}

fn add_up_functions(report: &mut Report) {
    let Report { functions, instructions, copies, files, totals, .. } = report;
    for (index, function) in functions.iter_mut().enumerate() {
        let mut reached = false;
        for counted in function.instructions.iter().filter_map(|&index| instructions.get(index)) {
            reached |= counted.instruction.passes.total() > 0;
            add_instruction(&mut function.totals, counted);
        }
        // Code outside of functions is not counted as a function.
        if function.name.is_some() {
            function.totals.functions.count(if reached { Verdict::Covered } else { Verdict::Uncovered });
        }
        totals.functions += function.totals.functions;
        totals.instructions += function.totals.instructions;
        totals.branches += function.totals.branches;
        if let Some(file) = function.file.and_then(|file| files.get_mut(file)) {
            file.functions.push(index);
            file.totals.functions += function.totals.functions;
        }
    }
    let mut verdicts = Vec::<(usize, Verdict)>::new();
    for line in files.iter().flat_map(|file| &file.lines) {
        let verdict = |copy: &LineCopy| Some((copies.get(copy.copy)?.function, line_verdict(copy.state)));
        verdicts.clear();
        verdicts.extend(line.copies.iter().filter_map(verdict));
        verdicts.sort_unstable();
        // The greatest verdict of a function is its last one.
        for (function, verdict) in verdicts.chunk_by(|one, other| one.0 == other.0).filter_map(<[_]>::last) {
            if let Some(function) = functions.get_mut(*function) {
                function.totals.lines.count(*verdict);
            }
        }
    }
}

fn add_up_files(report: &mut Report) {
    let Report { instructions, files, totals, .. } = report;
    for file in files {
        for line in &file.lines {
            file.totals.lines.count(line_verdict(line.state));
            let all = line.copies.iter().flat_map(|copy| &copy.instructions);
            for counted in all.filter_map(|&index| instructions.get(index)) {
                add_instruction(&mut file.totals, counted);
            }
        }
        totals.lines += file.totals.lines;
    }
}

fn add_instruction(totals: &mut Totals, counted: &Counted) {
    totals.instructions.count(instruction_verdict(counted));
    for outcome in counted.branch.iter().flat_map(Branch::outcomes) {
        totals.branches.count(match outcome {
            OutcomeCount::Seen(_) => Verdict::Covered,
            OutcomeCount::Never => Verdict::Uncovered,
            OutcomeCount::Unrecorded => Verdict::Unrecorded,
        });
    }
}

const fn instruction_verdict(counted: &Counted) -> Verdict {
    match (counted.effects, counted.instruction.passes.unrecorded) {
        (0, 0) => Verdict::Uncovered,
        (0, _) => Verdict::Unrecorded,
        _ => Verdict::Covered,
    }
}

const fn line_verdict(state: LineState) -> Verdict {
    match state {
        LineState::Covered | LineState::Partly => Verdict::Covered,
        LineState::Skipped | LineState::Unreached => Verdict::Uncovered,
        LineState::Unrecorded => Verdict::Unrecorded,
    }
}

/// The outcomes of an instruction, if it has a condition.
fn branch(instruction: &Instruction, conditions_recorded: bool) -> Option<Branch> {
    let passes = instruction.passes;
    let outcome = |count| match count {
        1.. => OutcomeCount::Seen(count),
        0 if passes.unrecorded > 0 => OutcomeCount::Unrecorded,
        // Execution may have passed the instruction without these traces reporting it.
        0 if !conditions_recorded && !instruction.is_branch() => OutcomeCount::Unrecorded,
        0 => OutcomeCount::Never,
    };
    instruction
        .conditional
        .then(|| Branch { taken: outcome(passes.executed), not_taken: outcome(passes.skipped) })
}

/// The source place of an instruction.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The file's number.
    file: Option<usize>,
    line: Option<u32>,
}

impl Place {
    fn of(frames: &[Frame], files: &mut Files) -> Self {
        let innermost = frames.first();
        Self {
            file: innermost.and_then(|frame| frame.file.as_ref()).map(|file| files.number(file)),
            line: innermost.and_then(|frame| frame.line),
        }
    }
}

/// The names of the functions that an instruction belongs to, the linked one by its symbol as well.
fn function_names<'a>(frames: &'a [Frame], linked: &'a str) -> Vec<&'a str> {
    let mut names = frames.iter().filter_map(|frame| frame.function.as_deref()).collect::<Vec<_>>();
    if names.last() != Some(&linked) {
        names.push(linked);
    }
    names
}

fn extent_at(extents: &[Extent], start: Address) -> Option<&Extent> {
    let index = extents.binary_search_by_key(&start, |extent| extent.start).ok()?;
    extents.get(index)
}
