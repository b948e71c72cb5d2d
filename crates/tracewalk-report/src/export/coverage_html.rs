//! Coverage as one HTML page: a tree of files, their sources with counts, instructions on demand.
//!
//! The page is self-contained: it holds the document of [`write_coverage_json`](super::write_coverage_json) with the texts of
//! source files and instructions, compressed, and an overview as plain HTML.

use std::io::{self, Write};

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::deflate::compress_to_vec;
use serde::Serialize;

use super::coverage_json::Document;
use super::coverage_text::{Note, notes};
use super::text::instruction_text;
use crate::words::{natural_order, percent_covered, why_stale};
use tracewalk_analysis::coverage::{
    Conditions, Difference, File, FileDifference, Metric, ProgramInput, Report, ReportedProgram, RunSummary,
    Tally,
};
use tracewalk_analysis::symbols::SourceFile;

/// Writes the page. The report was made from `inputs`; `source` finds source files by their names in the report.
pub fn write_coverage_html(
    report: &Report,
    inputs: &[ProgramInput<'_>],
    difference: Option<&Difference>,
    source: impl Fn(&str) -> Option<SourceFile>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let sources = report.files.iter().map(|file| source(&file.name)).collect::<Vec<_>>();
    let names = || report.files.iter().map(|file| file.name.as_str());
    let changes = difference.map(|difference| names().map(|name| Marks::of(difference, name)).collect());
    let data = Data {
        report: Document::of(report, difference),
        sources: sources.into_iter().map(|source| source.map(text_of)).collect(),
        changes,
        disassembly: disassembly(report, inputs),
    };
    let page = Page {
        title: title(report),
        style: include_str!("coverage_html/page.css"),
        script: include_str!("coverage_html/page.js"),
        version: env!("CARGO_PKG_VERSION"),
        meaning: MEANING,
        programs: report.programs.iter().map(ProgramHead::of).collect(),
        runs: {
            let mut runs = report.runs.clone();
            runs.sort_by(|one, other| natural_order(&one.name, &other.name));
            runs
        },
        cards: Metric::ALL.map(|metric| Card::of(metric, report.totals.of(metric))),
        notes: notes(report),
        files: report.files.iter().map(FileRow::of).collect(),
        difference: difference.map(|difference| difference_rows(report, difference)),
        changed: difference.and_then(|difference| difference.changed),
        data: STANDARD.encode(compress_to_vec(&serde_json::to_vec(&data)?, COMPRESSION)),
    };
    page.write_into(out).map_err(io::Error::other)
}

/// The meaning of object code's numbers for source code, in a sentence.
const MEANING: &str = "Lines and branches are those of the object code: a line counts as covered if one of its \
                       instructions took effect; a branch is a conditional instruction, and its two outcomes count \
                       separately.";

/// The level, of 10; higher ones take much longer for little gain.
const COMPRESSION: u8 = 6;

/// The most traces of a program that are listed openly; a longer list is collapsed.
const MOST_RUNS: usize = 10;

#[derive(Serialize)]
struct Data<'a> {
    report: Document<'a>,
    /// By file; null if it is not available.
    sources: Vec<Option<String>>,
    /// By file: the lines of the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<Option<Marks<'a>>>>,
    /// By function and instruction.
    disassembly: Vec<Vec<String>>,
}

/// The lines of a file that are marked.
#[derive(Serialize)]
struct Marks<'a> {
    lost: &'a [u32],
    lost_branches: &'a [u32],
    new_uncovered: &'a [u32],
}

impl<'a> Marks<'a> {
    fn of(difference: &'a Difference, name: &str) -> Option<Self> {
        let FileDifference { lost, lost_branches, new_uncovered, .. } = difference.files.get(name)?;
        Some(Self { lost, lost_branches, new_uncovered })
    }
}

#[derive(Template)]
#[template(path = "coverage_html/page.html")]
struct Page {
    title: String,
    style: &'static str,
    script: &'static str,
    version: &'static str,
    meaning: &'static str,
    programs: Vec<ProgramHead>,
    /// The lines of each run, if runs are kept apart.
    runs: Vec<RunSummary>,
    cards: [Card; Metric::ALL.len()],
    notes: Vec<Note>,
    files: Vec<FileRow>,
    difference: Option<Vec<DifferenceRow>>,
    changed: Option<Tally>,
    data: String,
}

struct ProgramHead {
    images: String,
    id: String,
    sources: Vec<SourceRow>,
}

struct SourceRow {
    capture: String,
    trace: String,
    bytes: u64,
    instructions: u64,
    conditions: &'static str,
}

/// A tally for people.
struct Card {
    name: &'static str,
    grade: &'static str,
    percent: String,
    /// The bar's width, in percent.
    width: String,
    covered: u64,
    found: u64,
    unrecorded: u64,
}

struct FileRow {
    name: String,
    /// The name as a part of an address.
    link: String,
    /// Why the source is not, or may not be, the one that was compiled.
    stale: Option<&'static str>,
    cells: [Cell; 3],
}

/// The changes of a file against the base.
struct DifferenceRow {
    name: String,
    /// The name as a part of an address; `None` for a file that is not in the report.
    link: Option<String>,
    lost: Vec<u32>,
    lost_branches: Vec<u32>,
    lost_functions: String,
    gained: usize,
    new_covered: u64,
    new: u64,
    new_uncovered: Vec<u32>,
    new_code_covered: u64,
    new_code: u64,
    unjudged: Vec<u32>,
    deleted: u64,
    renamed_from: Option<String>,
}

struct Cell {
    grade: &'static str,
    percent: String,
    width: String,
    counts: String,
    /// The key for sorting.
    value: i64,
}

/// The files of a difference, with a link for each that the report has.
fn difference_rows(report: &Report, difference: &Difference) -> Vec<DifferenceRow> {
    let link = |name: &String| {
        let is_there = report.files.iter().any(|file| file.name == *name);
        is_there.then(|| percent_encoded(name))
    };
    let rows = difference.files.iter().map(|(name, change)| DifferenceRow {
        name: name.clone(),
        link: link(name),
        renamed_from: change.renamed_from.clone(),
        new_uncovered: change.new_uncovered.clone(),
        new_code_covered: change.new_code_covered,
        new_code: change.new_code_covered.saturating_add(change.new_code_uncovered.len() as u64),
        unjudged: change.unjudged.clone(),
        deleted: change.deleted,
        lost: change.lost.clone(),
        lost_branches: change.lost_branches.clone(),
        lost_functions: change.lost_functions.join(", "),
        gained: change.gained.len(),
        new_covered: change.new_covered,
        new: change.new_lines(),
    });
    rows.collect()
}

fn title(report: &Report) -> String {
    let images = report.programs.iter().flat_map(|program| &program.images).map(String::as_str);
    images.collect::<Vec<_>>().join(", ")
}

/// Source text for the page: bytes that are not UTF-8 show as replacement characters.
fn text_of(source: SourceFile) -> String {
    String::from_utf8(source.text)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The text of every instruction, by function.
fn disassembly(report: &Report, inputs: &[ProgramInput<'_>]) -> Vec<Vec<String>> {
    let functions = report.functions.iter().map(|function| {
        let Some(input) = inputs.get(function.program) else { return Vec::new() };
        let counted = function.instructions.iter().filter_map(|&index| report.instructions.get(index));
        counted.map(|counted| instruction_text(input.code, counted.instruction.at)).collect()
    });
    functions.collect()
}

impl ProgramHead {
    fn collapsed(&self) -> bool {
        self.sources.len() > MOST_RUNS
    }

    fn of(program: &ReportedProgram) -> Self {
        let sources = program.sources.iter().map(|source| SourceRow {
            capture: source.capture.clone(),
            trace: match source.source.as_str() {
                "-" => source.protocol.clone(),
                id => format!("{} {id}", source.protocol),
            },
            bytes: source.bytes,
            instructions: source.instructions,
            conditions: match source.conditions {
                Conditions::OfEvery => "of every instruction",
                Conditions::OfBranches => "of branches only",
            },
        });
        let mut sources = sources.collect::<Vec<_>>();
        sources.sort_by(|a, b| natural_order(&a.capture, &b.capture));
        Self {
            images: program.images.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
            id: program.id.to_string(),
            sources,
        }
    }
}

impl Card {
    fn of(metric: Metric, tally: Tally) -> Self {
        Self {
            name: metric.name(),
            grade: grade(tally),
            percent: percent(tally),
            width: width(tally),
            covered: tally.covered,
            found: tally.found,
            unrecorded: tally.unrecorded,
        }
    }
}

impl FileRow {
    fn of(file: &File) -> Self {
        let cell = |metric| {
            let tally = file.totals.of(metric);
            Cell {
                grade: grade(tally),
                percent: percent(tally),
                width: width(tally),
                counts: if tally.found > 0 {
                    format!("{}/{}", tally.covered, tally.found)
                } else {
                    String::new()
                },
                value: tally.permille().and_then(|permille| i64::try_from(permille).ok()).unwrap_or(-1),
            }
        };
        Self {
            name: file.name.clone(),
            link: percent_encoded(&file.name),
            stale: file.stale.map(why_stale),
            cells: [Metric::Lines, Metric::Branches, Metric::Functions].map(cell),
        }
    }
}

fn grade(tally: Tally) -> &'static str {
    match tally.permille() {
        None => "none",
        Some(900..) => "good",
        Some(500..) => "middling",
        Some(_) => "bad",
    }
}

fn percent(tally: Tally) -> String {
    percent_covered(tally).unwrap_or_else(|| "–".to_owned())
}

fn width(tally: Tally) -> String {
    let permille = tally.permille().unwrap_or(0);
    format!("{}.{}", permille / 10, permille % 10)
}

/// As `encodeURIComponent` does it (ECMA-262, 19.2.6.4).
fn percent_encoded(text: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte);
    let encoded = text.bytes().map(|byte| match byte {
        byte if kept(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    encoded.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use tracewalk_analysis::coverage::{Losses, SourceSummary, Totals};
    use tracewalk_analysis::programs::ProgramId;

    #[test]
    fn names_of_files_are_parts_of_addresses() {
        assert_eq!(percent_encoded("src/a b&c.c"), "src%2Fa%20b%26c.c");
    }

    #[test]
    fn a_difference_is_of_the_file_of_its_name_and_not_of_one_whose_name_ends_alike() {
        let file = |name: &str| File {
            name: name.to_owned(),
            lines: Vec::new(),
            functions: Vec::new(),
            totals: Totals::default(),
            checksums: BTreeSet::new(),
            stale: None,
        };
        let report = Report { files: vec![file("domain.c"), file("main.c")], ..Report::default() };
        let change = FileDifference { lost: vec![7], ..FileDifference::default() };
        let links = |of: &str| {
            let files = [(of.to_owned(), change.clone())].into_iter().collect();
            let difference = Difference { files, ..Difference::default() };
            let rows = difference_rows(&report, &difference);
            rows.into_iter().map(|row| row.link).collect::<Vec<_>>()
        };
        assert_eq!(links("main.c"), [Some("main.c".to_owned())]);
        assert_eq!(links("/src/domain.c"), [None]);
    }

    #[test]
    fn totals_stand_before_the_runs() {
        let mut out = Vec::new();
        write_coverage_html(&Report::default(), &[], None, |_| None, &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("{what}"));
        assert!(at("class=\"cards\"") < at("id=\"files\"") && at("id=\"files\"") < at("<h2>Runs</h2>"));
    }

    #[test]
    fn a_list_of_more_than_ten_runs_is_closed_at_first() {
        let folded = |runs: usize| {
            let source = |run| SourceSummary {
                capture: format!("run-{run}.bin"),
                source: "0x10".to_owned(),
                protocol: "etmv3".to_owned(),
                conditions: Conditions::OfEvery,
                bytes: 1,
                instructions: 1,
                losses: Losses::default(),
            };
            let program = ReportedProgram {
                id: ProgramId::Code([0; 32]),
                images: std::iter::once("firmware.elf".to_owned()).collect(),
                sources: (0..runs).map(source).collect(),
                losses: Losses::default(),
                conditions_recorded: true,
            };
            let report = Report { programs: vec![program], ..Report::default() };
            let mut out = Vec::new();
            write_coverage_html(&report, &[], None, |_| None, &mut out).unwrap();
            let page = String::from_utf8(out).unwrap();
            let rows = (0..runs).filter(|run| page.contains(&format!("<td>run-{run}.bin</td>"))).count();
            assert_eq!(rows, runs);
            (page.matches("<details").count(), page.matches("</details>").count())
        };
        assert_eq!((folded(10), folded(11)), ((0, 0), (1, 1)));
    }

    #[test]
    fn the_page_asks_for_nothing_from_elsewhere() {
        let mut out = Vec::new();
        write_coverage_html(&Report::default(), &[], None, |_| None, &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        // The name of a format, which is never fetched.
        let page = page.replace("http://www.w3.org/2000/svg", "");
        for outside in ["http:", "https:", "//cdn", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
