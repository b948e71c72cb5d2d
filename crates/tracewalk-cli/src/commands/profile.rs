//! `profile`: what functions cost.

use std::io;
use std::rc::Rc;
use std::time::Instant;

use tracewalk::ids::Address;
use tracewalk::program::Scope;
use tracewalk_report::Section;
use tracewalk_report::analysis::clock::Unit;
use tracewalk_report::analysis::profile::{Profile, Profiler};
use tracewalk_report::analysis::{Statistics, Window};
use tracewalk_report::export::{
    Export, FlowRecord, ProfileReport, ProfileTable, ProfileTextOptions, best_unit, write_callgrind,
    write_firefox, write_flamegraph, write_folded, write_pprof, write_profile_text, write_speedscope,
};

use super::{follow, no_measure, print_statistics};
use crate::args::{self, CostChoice, FollowArgs, ProfileFormat, ProfileRows};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{palette_for, write_to};
use crate::work::Work;

/// Records what functions cost, and writes it.
pub(crate) fn run(args: &args::Profile, messages: &Messages) -> Result<(), Failure> {
    let start = Instant::now();
    let (mut sources, mut total) = record(&args.follow, args.window.window(), messages)?;
    for more in &args.more {
        let mut follow = args.follow.clone();
        follow.capture.capture.clone_from(more);
        let (others, statistics) = record(&follow, args.window.window(), messages)?;
        others.into_iter().for_each(|other| join(&mut sources, other));
        total.add(&statistics);
    }
    let unit = unit(args.cost, &sources)?;
    let report = ProfileReport {
        sources,
        name: name(args),
        unit,
        frequency: args.frequency,
        inlined: !args.no_inlined,
    };
    write_to(args.output.as_deref(), |out| match args.format {
        ProfileFormat::Text => {
            let table = match args.by {
                ProfileRows::Functions => ProfileTable::Functions,
                ProfileRows::Lines => ProfileTable::Lines,
                ProfileRows::Calls => ProfileTable::Calls,
            };
            let palette = palette_for(args.output.as_deref());
            write_profile_text(out, &report, &ProfileTextOptions { palette, table, rows: args.rows })
        }
        ProfileFormat::Flamegraph => write_flamegraph(out, &report),
        ProfileFormat::Folded => write_folded(out, &report),
        ProfileFormat::Callgrind => write_callgrind(out, &report),
        ProfileFormat::Pprof => write_pprof(out, &report),
        ProfileFormat::Firefox => write_firefox(out, &report),
        ProfileFormat::Speedscope => write_speedscope(out, &report),
    })?;
    if args.work.stats {
        print_statistics(&total, start.elapsed(), args.work.threads);
    }
    Ok(())
}

/// What the captures are called together.
fn name(args: &args::Profile) -> String {
    let first = args.follow.capture.capture.display();
    match args.more.len() {
        0 => first.to_string(),
        more => format!("{first} and {more} more"),
    }
}

/// Adds a profile to that of the same source of the same program, if there is one.
fn join(sources: &mut Vec<(Section, Profile)>, (section, profile): (Section, Profile)) {
    let same = |other: &&mut (Section, Profile)| {
        (other.0.id, other.0.protocol) == (section.id, section.protocol)
            && regions(&other.0).eq(regions(&section))
    };
    match sources.iter_mut().find(same) {
        Some((_, together)) => together.merge(&profile),
        None => sources.push((section, profile)),
    }
}

/// The code that a source's program holds.
fn regions(section: &Section) -> impl Iterator<Item = (Scope, Address, &[u8])> {
    let regions = section.code.program.regions_in_scopes();
    regions.map(|(scope, region)| (scope, region.start(), region.bytes()))
}

/// Follows each source and records its profile.
pub(super) fn record(
    follow: &FollowArgs,
    window: Window,
    messages: &Messages,
) -> Result<(Vec<(Section, Profile)>, Statistics), Failure> {
    let mut work = Work::open(&follow.capture, messages)?;
    let mut recording = Recording { window, sources: Vec::new(), running: None };
    let mut total = Statistics::default();
    for job in work.jobs.clone() {
        let code = work.code(&job, Some(&follow.source_dirs), messages)?;
        total.add(&follow::source(&work, &job, code, follow.trust_image, &mut recording, messages)?);
    }
    Ok((recording.sources, total))
}

/// Records each source's profile.
#[derive(Debug)]
struct Recording {
    window: Window,
    sources: Vec<(Section, Profile)>,
    running: Option<(Section, Profiler)>,
}

impl Export<FlowRecord> for Recording {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.running = Some((section.clone(), Profiler::new(Rc::clone(&section.code), self.window)));
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        if let Some((_, profiler)) = &mut self.running {
            profiler.element(&record.element, record.at);
        }
        Ok(())
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.sources.extend(self.running.take().map(|(section, profiler)| (section, profiler.finish())));
        Ok(())
    }
}

/// What cost is measured in, if all sources have it.
fn unit(choice: CostChoice, sources: &[(Section, Profile)]) -> Result<Unit, Failure> {
    let profiles = || sources.iter().map(|(_, profile)| profile);
    let unit = match choice {
        CostChoice::Best => return Ok(best_unit(profiles())),
        CostChoice::Instructions => Unit::Instructions,
        CostChoice::Cycles => Unit::Cycles,
        CostChoice::Time => Unit::Time,
    };
    let ran = |profile: &&Profile| profile.total().instructions > 0;
    if profiles().filter(ran).all(|profile| profile.measures.has(unit)) {
        return Ok(unit);
    }
    Err(no_measure(unit, "--cost"))
}
