//! `profile`: the cost of functions.

use tracewalk::plain::Plain;
use tracewalk_analysis::Section;
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::profile::{Profile, ProgramProfiles};
use tracewalk_report::export::{ProfileReport, ProfileTable, ProfileTextOptions, best_unit};
use tracewalk_report::formats::{self, Format, WriteProfile};
use tracewalk_session::{Gathered, OfProfile, View};

use super::gather::Front;
use super::{no_measure, refuse_frequency};
use crate::args::{self, CostChoice, PlacesArgs, ProfileRows};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};

impl Task for args::Profile {
    fn reads(&self) -> Reads<'_> {
        Reads::places(&self.places)
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        let output = (self.output.as_deref(), self.format.is_some());
        Destination::of_places(&self.places, output, self.save.as_deref())
    }

    fn is_for_people(&self) -> bool {
        self.format.is_none_or(|format| format.name == "text")
    }

    /// Records the cost of functions, writes and saves it.
    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        messages.measure(self.work);
        let window = self.window.window()?;
        let results = [self.save.as_deref(), self.output.as_deref()];
        let front = Front::new(&self.places, messages);
        let gather = front.request(results, format!("{window:?}"), self.work.threads)?;
        let places = gather.find(&front)?;
        places.refuse_window(&window)?;
        let question = OfProfile { view: View::new(window, None) };
        let gathered = front.ask(places, &question, false, |_, _| {})?;
        question.view.finish()?;
        front.save(&gathered, self.save.as_ref())?;
        if let Some(format) = self.format.or_else(|| formats::PROFILE.first().filter(|_| self.save.is_none()))
        {
            report(self, format, &gathered)?;
        }
        Ok(())
    }
}

fn report(
    args: &args::Profile,
    format: &Format<WriteProfile>,
    gathered: &Gathered<ProgramProfiles>,
) -> Result<(), Failure> {
    let sources = gathered.answered.sections(|program| &program.sources, Profile::in_order)?;
    let unit = unit(args.cost, &sources)?;
    refuse_frequency(unit, args.frequency)?;
    let report = ProfileReport {
        unit,
        sources,
        programs: gathered.answered.names(),
        name: name(&args.places),
        frequency: args.frequency,
        inlined: !args.no_inlined,
        complete: gathered.answered.programs.complete,
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
fn name(places: &PlacesArgs) -> String {
    let first = Plain(places.follow.capture.capture.display());
    match places.more.len() {
        0 => first.to_string(),
        more => format!("{first} and {more} more"),
    }
}

/// The unit of cost, if all sources have it.
fn unit(choice: CostChoice, sources: &[(Section, Profile)]) -> Result<Unit, Failure> {
    let profiles = || sources.iter().map(|(_, profile)| profile);
    let unit = match choice {
        CostChoice::Best if is_of_itm(sources) => Unit::Samples,
        CostChoice::Best => best_unit(profiles()),
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
    Err(no_measure(unit))
}

/// Whether all sources are ITMs, which may have sent no samples.
fn is_of_itm(sources: &[(Section, Profile)]) -> bool {
    !sources.is_empty() && sources.iter().all(|(section, _)| section.protocol == "itm")
}
