//! The JSON document (docs/timelines.md).

use std::io::{self, Write};
use std::sync::Arc;

use serde::Serialize;
use tracewalk::ids::{Exception, TraceId};

use super::super::json::{InDoubtJson, is_true};
use super::{InterruptReport, Row, rows};
use tracewalk_analysis::call_stack::FunctionId;
use tracewalk_analysis::interrupts::{Activity, Lengths};

/// The version of the document's shape. A new field does not change it.
const VERSION: u32 = 1;

/// Writes the document.
pub fn write_interrupts_json(out: &mut dyn Write, report: &InterruptReport) -> io::Result<()> {
    let sources = report.sources.iter().map(|(section, activities)| SourceJson {
        id: section.id.map(TraceId::get),
        protocol: section.protocol,
        number: section.number,
        program: report
            .programs
            .iter()
            .find(|(code, _)| Arc::ptr_eq(code, &section.code))
            .map(|(_, name)| &**name),
        in_doubt: activities.in_doubt.into(),
        exceptions: rows(&section.code, activities)
            .filter(|row| row.function.is_none())
            .map(|row| ExceptionJson {
                number: row.exception.map(Exception::number),
                profile: row.exception.map(|exception| exception.profile().name()),
                tail_chained: row.activity.tail_chained,
                preempting: row.activity.preempting,
                activity: ActivityJson::of(row),
            })
            .collect(),
        functions: rows(&section.code, activities)
            .filter(|row| row.function.is_some())
            .map(|row| FunctionJson {
                address: row.function.and_then(FunctionId::address).map(|at| at.to_string()),
                activity: ActivityJson::of(row),
            })
            .collect(),
    });
    let document = Document {
        format: "tracewalk interrupts",
        version: VERSION,
        complete: report.complete,
        axis: AxisJson {
            unit: report.scale.unit.name(),
            title: report.title(),
            frequency: report.scale.frequency,
        },
        sources: sources.collect(),
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
    axis: AxisJson,
    sources: Vec<SourceJson<'a>>,
}

#[derive(Serialize)]
struct AxisJson {
    unit: &'static str,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency: Option<f64>,
}

#[derive(Serialize)]
struct SourceJson<'a> {
    id: Option<u8>,
    protocol: &'static str,
    number: u16,
    program: Option<&'a str>,
    in_doubt: InDoubtJson,
    exceptions: Vec<ExceptionJson>,
    functions: Vec<FunctionJson>,
}

#[derive(Serialize)]
struct ExceptionJson {
    number: Option<u16>,
    profile: Option<&'static str>,
    tail_chained: u64,
    preempting: u64,
    #[serde(flatten)]
    activity: ActivityJson,
}

#[derive(Serialize)]
struct FunctionJson {
    address: Option<String>,
    #[serde(flatten)]
    activity: ActivityJson,
}

#[derive(Serialize)]
struct ActivityJson {
    name: String,
    count: u64,
    cut: u64,
    with_preemption: LengthsJson,
    without_preemption: LengthsJson,
    inter_arrival: LengthsJson,
}

#[derive(Serialize)]
struct LengthsJson {
    count: u64,
    /// Null if no length is known.
    sum: Option<u128>,
    min: Option<u64>,
    mean: Option<f64>,
    p99: Option<u64>,
    max: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    p99_rounded: bool,
}

impl ActivityJson {
    fn of(row: Row<'_>) -> Self {
        let Activity { count, cut, with_preemption, without_preemption, inter_arrival, .. } = row.activity;
        Self {
            name: row.name,
            count: *count,
            cut: *cut,
            with_preemption: with_preemption.into(),
            without_preemption: without_preemption.into(),
            inter_arrival: inter_arrival.into(),
        }
    }
}

impl From<&Lengths> for LengthsJson {
    fn from(lengths: &Lengths) -> Self {
        Self {
            count: lengths.count(),
            sum: (lengths.count() > 0).then(|| lengths.sum()),
            min: lengths.min(),
            mean: lengths.mean(),
            p99: lengths.percentile(99),
            max: lengths.max(),
            p99_rounded: lengths.is_rounded(),
        }
    }
}
