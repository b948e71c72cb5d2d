//! Coverage of a program: the totals of `tracewalk coverage CAPTURE`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use tracewalk_analysis::coverage::{Every, Metric, ProgramInput, Report, Tally};
use tracewalk_analysis::programs::{OfProgram, Programs};
use tracewalk_session::{Follow, Notices, Request, RunError, Session};

/// The total of each metric.
pub(crate) fn totals(capture: &Path) -> Result<Vec<(Metric, Tally)>, Box<dyn Error>> {
    let notices = Notices::default();
    let mut session = Session::open_observed(Request::new(capture), &notices)?;
    let (mut found, mut code) = (Programs::default(), BTreeMap::new());
    session.each_source(&notices, |session, source| {
        let outcome = session.coverage(source, &Follow::default(), "capture", &notices)?;
        found.complete &= outcome.complete;
        for (program, covered) in outcome.found {
            found.add(program.id.clone(), program.images, covered);
            code.insert(program.id, program.code);
        }
        Ok::<(), RunError>(())
    })?;
    for notice in notices.into_vec() {
        eprintln!("{:?}: {}", notice.severity(), notice.kind);
    }
    let programs = found.programs.iter().map(|(id, OfProgram { images, found })| ProgramInput {
        id,
        images,
        coverage: found,
        code: &code[id],
    });
    let report = Report { complete: found.complete, ..Report::of(&programs.collect::<Vec<_>>(), &Every) };
    if !report.complete {
        eprintln!("the capture was not decoded to its end");
    }
    Ok(Metric::ALL.into_iter().map(|metric| (metric, report.totals.of(metric))).collect())
}

#[allow(dead_code, reason = "a test calls what is above")]
fn main() -> Result<(), Box<dyn Error>> {
    let capture = std::env::args_os().nth(1).ok_or("expected the name of a capture")?;
    for (metric, Tally { found, covered, .. }) in totals(Path::new(&capture))? {
        println!("{}: {covered} of {found}", metric.name());
    }
    Ok(())
}
