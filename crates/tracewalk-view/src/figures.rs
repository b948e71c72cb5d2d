//! The costs of functions, and the counts of lines and instructions, as in `profile` and `coverage`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracewalk::ids::Address;
use tracewalk::program::Scope;
use tracewalk_analysis::coverage::{Coverage, Every, Function, LineState, ProgramInput, Report};
use tracewalk_analysis::profile::{Profiling, Tree, TreeOptions};
use tracewalk_analysis::programs::{Merge as _, ProgramId};
use tracewalk_analysis::{Code, Window};
use tracewalk_session::{Covered, Follow, FollowedProgram, Observer, RunError, Session};

use crate::names::hex;
use crate::prepared::PreparedSource;

/// The figures of a capture, which take two passes over each source: one for costs, one for coverage.
pub(crate) struct Figures {
    /// The costs of functions, by source.
    pub(crate) costs: Vec<Costs>,
    /// The coverage of the programs.
    pub(crate) counts: Counts,
}

/// The figures in the form that is kept.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct KeptFigures {
    costs: Vec<Costs>,
    coverage: Vec<u8>,
}

/// The costs of functions in one source.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Costs {
    /// The unit of costs.
    unit: String,
    /// The cost of everything that was followed.
    total: u64,
    /// The functions, the most expensive first.
    functions: Vec<Cost>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
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

/// The most rows of a table.
const MOST_ROWS: usize = 4096;

impl Costs {
    /// The costs that `profile` reports.
    fn of(
        session: &Session,
        prepared: &PreparedSource,
        how: &Follow,
        observer: &dyn Observer,
    ) -> Result<Self, RunError> {
        let analysis = Profiling::new(Window::default());
        let outcome = session.run_in(&prepared.source, how, &prepared.whole, analysis, observer)?;
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
        Ok(Self {
            unit: unit.name().to_owned(),
            total: profile.total().in_unit(unit),
            functions: rows.collect(),
        })
    }
}

/// The coverage of programs.
pub(crate) struct Counts {
    pub(crate) report: Report,
    codes: Vec<Arc<Code>>,
}

impl Figures {
    /// The figures that `profile` and `coverage` report of sources. `covered` has the empty coverage of each.
    pub(crate) fn of(
        session: &Session,
        sources: &[PreparedSource],
        covered: Vec<Option<Covered>>,
        how: &Follow,
        observer: &dyn Observer,
    ) -> Result<(Self, Option<KeptFigures>), RunError> {
        let (mut costs, mut coverage, mut codes) = (Vec::new(), Coverage::default(), BTreeMap::new());
        for (prepared, covered) in sources.iter().zip(covered) {
            costs.push(Costs::of(session, prepared, how, observer)?);
            let Some(covered) = covered else { continue };
            let outcome = session.run_in(&prepared.source, how, &prepared.whole, covered, observer)?;
            for (FollowedProgram { id, code, images, .. }, found) in outcome.found {
                codes.entry(id.clone()).or_insert(code);
                let program = coverage.programs.entry(id).or_default();
                program.images.extend(images);
                program.found.merge(found);
            }
        }
        let mut saved = Vec::new();
        let is_saved = coverage.save(&mut saved).is_ok();
        let kept = is_saved.then(|| KeptFigures { costs: costs.clone(), coverage: saved });
        Ok((Self { costs, counts: Counts::of(&coverage, &codes) }, kept))
    }

    /// The kept figures of the same sources; `None` if they are of other programs.
    pub(crate) fn of_kept(kept: KeptFigures, covered: &[Option<Covered>]) -> Option<Self> {
        let KeptFigures { costs, coverage } = kept;
        let coverage = Coverage::read(&*coverage).ok()?;
        let programs = covered.iter().flatten().flat_map(Covered::programs);
        let codes = programs.map(|program| (program.id.clone(), Arc::clone(&program.code)));
        let codes = codes.collect::<BTreeMap<_, _>>();
        let is_known = |id| codes.contains_key(id);
        (costs.len() == covered.len() && coverage.programs.keys().all(is_known))
            .then(|| Self { costs, counts: Counts::of(&coverage, &codes) })
    }
}

impl Counts {
    fn of(coverage: &Coverage, codes: &BTreeMap<ProgramId, Arc<Code>>) -> Self {
        let programs =
            coverage.programs.iter().filter_map(|(id, program)| Some((id, program, codes.get(id)?)));
        let programs = programs.collect::<Vec<_>>();
        let inputs = programs.iter().map(|(id, program, code)| ProgramInput {
            id,
            images: &program.images,
            coverage: &program.found,
            code,
        });
        let report = Report::of(&inputs.collect::<Vec<_>>(), &Every);
        Self { report, codes: programs.into_iter().map(|(.., code)| Arc::clone(code)).collect() }
    }

    /// The function with an address in the program as `seen` sees it, and the function's program.
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

    /// The text of a source file, as one of the programs finds it.
    pub(crate) fn text(&self, file: &str) -> Option<Vec<u8>> {
        self.codes.iter().find_map(|code| code.symbols.source_file(file)).map(|found| found.text)
    }
}

/// The short name of a line's state.
pub(crate) const fn state(state: LineState) -> &'static str {
    match state {
        LineState::Covered => "covered",
        LineState::Partly => "partly",
        LineState::Skipped => "skipped",
        LineState::Unreached => "unreached",
        LineState::Unrecorded => "unrecorded",
    }
}
