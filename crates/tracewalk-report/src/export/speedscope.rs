//! `profile --format speedscope`: JSON for <https://www.speedscope.app>.
//!
//! The schema is <https://www.speedscope.app/file-format-schema.json>. Each source is a profile of its own; each chain of calls
//! is one sample with its own cost as weight. Samples are in the order of the chains, not of time.

use std::io::{self, Write};

use serde::Serialize;

use super::profile::ProfileReport;
use tracewalk_analysis::Section;
use tracewalk_analysis::profile::{Profile, Tree};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'a str,
    exporter: String,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: Shared<'a>,
    profiles: Vec<Sampled>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
struct Sampled {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    #[serde(rename = "startValue")]
    start: u64,
    #[serde(rename = "endValue")]
    end: u64,
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// Writes all sources' chains of calls.
pub fn write_speedscope(out: &mut dyn Write, report: &ProfileReport) -> io::Result<()> {
    let trees = report.sources.iter().map(|source| report.tree(source, false)).collect::<Vec<_>>();
    let mut frames = Vec::new();
    let mut profiles = Vec::new();
    for (tree, source) in trees.iter().zip(&report.sources) {
        profiles.push(sampled(report, source, tree, frames.len()));
        frames.extend(tree.labels.iter().map(|label| Frame {
            name: label.text(),
            file: label.place.as_ref().map(|place| &*place.file),
            line: label.place.as_ref().map(|place| place.line),
        }));
    }
    let file = File {
        schema: SCHEMA,
        name: &report.title(),
        exporter: format!("tracewalk {}", env!("CARGO_PKG_VERSION")),
        active: 0,
        shared: Shared { frames },
        profiles,
    };
    serde_json::to_writer(&mut *out, &file)?;
    writeln!(out)
}

fn sampled(
    report: &ProfileReport,
    (section, _): &(Section, Profile),
    tree: &Tree,
    first_frame: usize,
) -> Sampled {
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    tree.stacks(|path, node| {
        let weight = report.in_nanoseconds(report.value(&node.own));
        if weight > 0 {
            let frame = |index: &usize| first_frame + tree.nodes[*index].label.index();
            samples.push(path.iter().map(frame).collect());
            weights.push(weight);
        }
    });
    Sampled {
        kind: "sampled",
        name: format!("{}: {}", report.name_of(section), report.measure()),
        unit: if report.seconds(1).is_some() { "nanoseconds" } else { "none" },
        start: 0,
        end: weights.iter().copied().fold(0, u64::saturating_add),
        samples,
        weights,
    }
}
