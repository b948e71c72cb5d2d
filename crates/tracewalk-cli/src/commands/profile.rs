//! `profile`: the cost of functions.
use std::sync::Arc;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use tracewalk::plain::Plain;
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::profile::{Profile, Profiling, ProgramProfiles};
use tracewalk_analysis::programs::SourceId;
use tracewalk_analysis::{Code, Section, Window};
use tracewalk_report::export::{ProfileReport, ProfileTable, ProfileTextOptions, best_unit};
use tracewalk_report::formats::{self, Format, WriteProfile};
use tracewalk_sentences::NO_PROGRAM;

use super::gathered::Gathered;
use super::window::{self, View};
use super::{follow, no_measure, print_statistics, refuse_frequency};
use crate::args::{self, CostChoice, FollowArgs, ProfileRows};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};

impl Task for args::Profile {
    fn reads(&self) -> Reads<'_> {
        Reads { more: &self.more, takes_saved: true, ..Reads::followed(&self.follow) }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        Destination::output_and_save(self.output.as_deref(), self.save.as_deref(), self.format.is_some())
    }

    fn is_for_people(&self) -> bool {
        self.format.is_none_or(|format| format.name == "text")
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        run(self, messages)
    }
}

/// Records the cost of functions, writes and saves it.
fn run(args: &args::Profile, messages: &Messages) -> Result<(), Failure> {
    let start = Instant::now();
    let parts = (args.window.window()?, args.work.threads);
    let gathered = gather(&args.follow, &args.more, parts, messages)?;
    if let Some(file) = &args.save {
        gathered.save(file, messages)?;
    }
    if let Some(format) = args.format.or_else(|| formats::PROFILE.first().filter(|_| args.save.is_none())) {
        report(args, format, &gathered)?;
    }
    if args.work.stats {
        print_statistics(&gathered.statistics, start.elapsed(), args.work.threads, messages);
    }
    Ok(())
}

fn report(
    args: &args::Profile,
    format: &Format<WriteProfile>,
    gathered: &Gathered<'_, ProgramProfiles>,
) -> Result<(), Failure> {
    let sources = sources(gathered, Profile::in_order)?;
    let unit = unit(args.cost, &sources)?;
    refuse_frequency(unit, args.frequency)?;
    let report = ProfileReport {
        unit,
        sources,
        programs: programs(gathered),
        name: name(args),
        frequency: args.frequency,
        inlined: !args.no_inlined,
        complete: gathered.found.complete,
    };
    let table = match args.by {
        ProfileRows::Functions => ProfileTable::Functions,
        ProfileRows::Lines => ProfileTable::Lines,
        ProfileRows::Calls => ProfileTable::Calls,
        ProfileRows::Binaries => ProfileTable::Binaries,
    };
    let look = look_for(args.output.as_deref());
    let options = ProfileTextOptions { look, table, rows: args.rows };
    write_to(args.output.as_deref(), |out| (format.make)(out, &report, &options))
}

/// The common name of the captures.
fn name(args: &args::Profile) -> String {
    let first = Plain(args.follow.capture.capture.display());
    match args.more.len() {
        0 => first.to_string(),
        more => format!("{first} and {more} more"),
    }
}

/// Follows the captures, and reads the saved files in their place.
pub(super) fn gather<'a>(
    follow: &'a FollowArgs,
    more: &'a [PathBuf],
    (window, threads): (Window, u16),
    messages: &Messages,
) -> Result<Gathered<'a, ProgramProfiles>, Failure> {
    let mut gathered = Gathered::<ProgramProfiles>::open(follow, more, messages)?;
    gathered.refuse_window(&window)?;
    let (how, view) = (follow::how(follow, threads), View::new(window.clone(), None));
    for capture in gathered.captures() {
        let mut session = open::live(&capture, messages)?;
        gathered.opened(&capture, &session, messages);
        view.check(&mut session, &how, messages)?;
        session.each_source(messages, |session, source| {
            let outcome =
                window::run(session, source, (&how, &view), Profiling::new(window.clone()), messages)?;
            gathered.statistics.add(&outcome.statistics);
            let sources = BTreeMap::from([(session.source_id(source), outcome.found)]);
            gathered.add(session.followed(source, &outcome.code)?, ProgramProfiles { sources });
            Ok::<(), Failure>(())
        })?;
    }
    view.finish()?;
    gathered.finish(messages)
}

/// The sources with their profiles and their programs.
pub(super) fn sources(
    gathered: &Gathered<'_, ProgramProfiles>,
    order: impl Fn(&Profile) -> Profile,
) -> Result<Vec<(Section, Profile)>, Failure> {
    let mut sources = Vec::new();
    for (id, program) in &gathered.found.programs {
        let code = gathered.code(id).ok_or_else(|| {
            Failure::input("no_program", "a profile needs a program, but none is known", NO_PROGRAM)
        })?;
        sources.extend(program.found.sources.iter().map(|(source, profile)| {
            let SourceId { id, protocol, number } = *source;
            let section = Section { id, protocol, number, code: Arc::clone(code) };
            (section, order(profile))
        }));
    }
    sources.sort_by_key(|(section, _): &(Section, Profile)| section.id);
    Ok(sources)
}

/// The names of the programs.
fn programs(gathered: &Gathered<'_, ProgramProfiles>) -> Vec<(Arc<Code>, String)> {
    let programs = gathered.found.programs.iter();
    let named = programs.filter_map(|(id, program)| Some((Arc::clone(gathered.code(id)?), program.name())));
    named.filter(|(_, name)| !name.is_empty()).collect()
}

/// The unit of cost, if all sources have it.
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
    let timestamps = profiles().map(|profile| profile.measures.timestamps).fold(0, u64::saturating_add);
    if unit == Unit::Time && timestamps > 0 {
        return Err(Failure::input(
            "not_measured",
            format!(
                "no instruction lies between two of the {timestamps} timestamps without a gap, so that none has a time"
            ),
            "leave out --unit, or capture with timestamps closer together",
        ));
    }
    Err(no_measure(unit, "--unit"))
}
