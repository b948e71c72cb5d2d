//! What functions cost, and how often lines and instructions ran: the figures of `profile` and `coverage`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use tracewalk::ids::Address;
use tracewalk::program::Scope;
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::coverage::{Every, Function, LineState, ProgramCoverage, ProgramInput, Report};
use tracewalk_analysis::profile::{Profiling, Tree, TreeOptions};
use tracewalk_analysis::programs::{Merge as _, ProgramId};
use tracewalk_analysis::{Code, Window};
use tracewalk_session::{Follow, FollowedProgram, Observer, RunError, Session, Source};

use crate::names::hex;

/// What functions cost in one source.
#[derive(Debug, Serialize)]
pub(crate) struct Costs {
    /// What cost is measured in.
    unit: &'static str,
    /// All that was followed.
    total: u64,
    /// The most expensive first.
    functions: Vec<Cost>,
}

#[derive(Debug, Serialize)]
struct Cost {
    name: String,
    address: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    calls: u64,
    #[serde(rename = "self")]
    own: u64,
    total: u64,
    instructions: u64,
}

/// A table with more rows is cut.
const MOST_ROWS: usize = 4096;

impl Costs {
    /// What `profile` reports.
    pub(crate) fn of(
        session: &mut Session,
        source: &Source,
        how: &Follow,
        observer: &dyn Observer,
    ) -> Result<Self, RunError> {
        let outcome = session.run_observed(source, how, Profiling::new(Window::default()), observer)?;
        let profile = outcome.found;
        let unit = profile.measures.best();
        let options = TreeOptions { inlined: true, sites: false };
        let tree = Tree::of(&profile, &outcome.code, options);
        let functions = tree.functions(|cost| cost.in_unit(unit));
        let rows = functions.into_iter().take(MOST_ROWS).filter_map(|function| {
            let label = tree.labels.get(function.function.index())?;
            Some(Cost {
                name: label.name.clone(),
                address: label.address.filter(|_| label.scope == Scope::EVERYWHERE).map(hex),
                file: label.place.as_ref().map(|place| place.file.to_string()),
                line: label.place.as_ref().map(|place| place.line),
                calls: function.calls,
                own: function.own.in_unit(unit),
                total: function.total.in_unit(unit),
                instructions: function.own.instructions,
            })
        });
        let unit_name = match unit {
            Unit::Instructions => "instructions",
            Unit::Cycles => "cycles",
            Unit::Time => "ticks",
        };
        Ok(Self { unit: unit_name, total: profile.total().in_unit(unit), functions: rows.collect() })
    }
}

/// Adds up what ran of programs.
#[derive(Default)]
pub(crate) struct Counting(BTreeMap<ProgramId, Program>);

struct Program {
    images: BTreeSet<String>,
    code: Arc<Code>,
    coverage: ProgramCoverage,
}

/// What ran of programs.
pub(crate) struct Counts {
    pub(crate) report: Report,
    codes: Vec<Arc<Code>>,
}

impl Counting {
    /// Adds what `coverage` finds in a source; nothing if there is no program.
    pub(crate) fn add(
        &mut self,
        session: &mut Session,
        source: &Source,
        how: &Follow,
        name: &str,
        observer: &dyn Observer,
    ) -> Result<(), RunError> {
        let found = match session.coverage(source, how, name, observer) {
            Ok(outcome) => outcome.found,
            Err(RunError::NoProgram) => return Ok(()),
            Err(error) => return Err(error),
        };
        for (FollowedProgram { id, code, images, .. }, coverage) in found {
            match self.0.entry(id) {
                std::collections::btree_map::Entry::Occupied(known) => {
                    let known = known.into_mut();
                    known.coverage.merge(coverage);
                    known.images.extend(images);
                }
                std::collections::btree_map::Entry::Vacant(new) => {
                    new.insert(Program { images, code, coverage });
                }
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Counts {
        let inputs = self.0.iter().map(|(id, program)| ProgramInput {
            id,
            images: &program.images,
            coverage: &program.coverage,
            code: &program.code,
        });
        let report = Report::of(&inputs.collect::<Vec<_>>(), &Every);
        let codes = self.0.values().map(|program| Arc::clone(&program.code)).collect();
        Counts { report, codes }
    }
}

impl Counts {
    /// The function that holds an address of the program as `seen` sees it, and its program.
    pub(crate) fn function(&self, address: Address, seen: &Code) -> Option<(&Function, &Code)> {
        let bytes = seen.program.code(address).and_then(|code| code.get(..2));
        let holds = |function: &&Function| function.start <= address && address.get() < function.end;
        let with_code = |function| Some((function, &**self.code(function)?));
        let mut found = self.report.functions.iter().filter(holds).filter_map(with_code);
        found.find(|(_, code)| code.program.code(address).and_then(|code| code.get(..2)) == bytes)
    }

    fn code(&self, function: &Function) -> Option<&Arc<Code>> {
        self.codes.get(function.program)
    }

    /// The text of a file, as one of the programs finds it.
    pub(crate) fn text(&self, file: &str) -> Option<Vec<u8>> {
        self.codes.iter().find_map(|code| code.symbols.source_file(file)).map(|found| found.text)
    }
}

/// The short name of what is known of a line.
pub(crate) const fn state(state: LineState) -> &'static str {
    match state {
        LineState::Covered => "covered",
        LineState::Partly => "partly",
        LineState::Skipped => "skipped",
        LineState::Unreached => "unreached",
        LineState::Untold => "untold",
    }
}
