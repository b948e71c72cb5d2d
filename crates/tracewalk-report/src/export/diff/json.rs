//! The JSON document (docs/comparing-captures.md).

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use tracewalk::ids::{Exception, TraceId};
use tracewalk::program::Scope;

use super::super::json::is_true;
use super::text::{line, next_text};
use super::{DiffReport, FunctionDiff, SourceDiff};
use tracewalk_analysis::clock::Cost;
use tracewalk_analysis::diff::{Aftermath, Next};
use tracewalk_analysis::{Code, CodePlace};

/// The version of the document's shape. A new field does not change it.
const VERSION: u32 = 1;

/// Writes the document.
pub fn write_diff_json(out: &mut dyn Write, report: &DiffReport) -> io::Result<()> {
    let document = Document {
        format: "tracewalk diff",
        version: VERSION,
        complete: report.complete,
        a: &report.names[0],
        b: &report.names[1],
        same: report.is_same(),
        sources: report.sources.iter().map(SourceJson::of).collect(),
    };
    serde_json::to_writer(&mut *out, &document)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    #[serde(skip_serializing_if = "is_true")]
    complete: bool,
    a: &'a str,
    b: &'a str,
    same: bool,
    sources: Vec<SourceJson<'a>>,
}

#[derive(Serialize)]
struct SourceJson<'a> {
    ids: [Option<u8>; 2],
    same: bool,
    instructions: [u64; 2],
    /// The point at which the paths part; null if they are the same.
    divergence: Option<DivergenceJson>,
    functions: Vec<FunctionJson<'a>>,
    /// Null without a program.
    coverage: Option<CoverageJson<'a>>,
}

#[derive(Serialize)]
struct DivergenceJson {
    /// The number of instructions that both have in common.
    common: u64,
    /// The last instruction that both have in common.
    last: Option<PlaceJson>,
    a: SideJson,
    b: SideJson,
}

#[derive(Serialize)]
struct SideJson {
    /// Innermost first.
    stack: Vec<FrameJson>,
    next: Vec<NextJson>,
    /// Whether this trace merely ends here.
    ends: bool,
}

#[derive(Serialize)]
struct FrameJson {
    function: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    called_at: Option<PlaceJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handles: Option<u16>,
}

#[derive(Serialize)]
struct NextJson {
    what: &'static str,
    #[serde(flatten)]
    place: Option<PlaceJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exception: Option<u16>,
    text: String,
}

#[derive(Serialize)]
struct PlaceJson {
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
struct FunctionJson<'a> {
    name: &'a str,
    address: Option<String>,
    calls: [u64; 2],
    own: [CostJson; 2],
    total: [CostJson; 2],
}

#[derive(Serialize)]
struct CostJson {
    instructions: u64,
    cycles: u64,
    ticks: u64,
}

#[derive(Serialize)]
struct CoverageJson<'a> {
    /// Lines and functions that only A runs.
    lost: Vec<FileJson<'a>>,
    /// Lines and functions that only B runs.
    gained: Vec<FileJson<'a>>,
}

#[derive(Serialize)]
struct FileJson<'a> {
    file: &'a str,
    lines: &'a [u32],
    functions: &'a [String],
}

impl<'a> SourceJson<'a> {
    fn of(source: &'a SourceDiff) -> Self {
        let divergence = source.parting.as_ref().map(|[a, b]| DivergenceJson {
            common: a.common,
            last: a.last.map(|last| PlaceJson::of(&source.code[0], last)),
            a: SideJson::of(a, &source.code[0]),
            b: SideJson::of(b, &source.code[1]),
        });
        Self {
            ids: source.ids.map(|id| id.map(TraceId::get)),
            same: source.is_same(),
            instructions: source.instructions,
            divergence,
            functions: source.functions.iter().map(FunctionJson::of).collect(),
            coverage: source.coverage.as_ref().map(|(difference, gained)| {
                let lost = difference.files.iter().map(|(name, file)| FileJson {
                    file: name,
                    lines: &file.lost,
                    functions: &file.lost_functions,
                });
                CoverageJson { lost: named(lost), gained: gained_files(source, gained) }
            }),
        }
    }
}

fn gained_files<'a>(source: &'a SourceDiff, gained: &'a BTreeMap<String, Vec<String>>) -> Vec<FileJson<'a>> {
    let files = source.coverage.iter().flat_map(|(difference, _)| &difference.files);
    let with_lines = files.map(|(name, file)| FileJson {
        file: name,
        lines: &file.gained,
        functions: gained.get(name).map(Vec::as_slice).unwrap_or_default(),
    });
    named(with_lines)
}

/// The files with a difference.
fn named<'a>(files: impl Iterator<Item = FileJson<'a>>) -> Vec<FileJson<'a>> {
    files.filter(|file| !file.lines.is_empty() || !file.functions.is_empty()).collect()
}

impl SideJson {
    fn of(side: &Aftermath, code: &Code) -> Self {
        let frames = side.stack.iter().rev().map(|called| FrameJson {
            function: called.function.name(code),
            called_at: called.site.map(|site| PlaceJson::of(code, site)),
            handles: called.handles.flatten().map(Exception::number),
        });
        let next = side.next.iter().map(|next| {
            let (what, place, instructions, exception) = match *next {
                Next::Ran { start, instructions } => ("run", Some(start), Some(instructions), None),
                Next::Exception(exception) => ("exception", None, None, exception),
                Next::Lost => ("lost", None, None, None),
                Next::Missing(address) => {
                    ("no_code", Some(CodePlace { address, scope: Scope::EVERYWHERE }), None, None)
                }
                Next::End => ("end", None, None, None),
            };
            NextJson {
                what,
                place: place.map(|place| PlaceJson::of(code, place)),
                instructions,
                exception: exception.map(Exception::number),
                text: next_text(code, next),
            }
        });
        Self { stack: frames.collect(), next: next.collect(), ends: side.ends() }
    }
}

impl PlaceJson {
    fn of(code: &Code, place: CodePlace) -> Self {
        let (file, line) = line(code, place).unzip();
        let function = code.in_scope(place.scope).symbols.function(place.address);
        let function = function.map(|function| function.name.to_owned());
        let file = file.as_deref().map(str::to_owned);
        Self { address: place.address.to_string(), function, file, line }
    }
}

impl<'a> FunctionJson<'a> {
    fn of(function: &'a FunctionDiff) -> Self {
        let costs = |costs: [Cost; 2]| {
            costs.map(|cost| CostJson {
                instructions: cost.instructions,
                cycles: cost.cycles,
                ticks: cost.time,
            })
        };
        Self {
            name: &function.name,
            address: function.address.map(|address| address.to_string()),
            calls: function.calls,
            own: costs(function.own),
            total: costs(function.total),
        }
    }
}
