//! Which tasks a source ran, by all evidence: call stacks, reports of a DWT, and values that the path proves.

use std::path::Path;

use tracewalk::source::Instrumentation;
use tracewalk_analysis::tasks::{Stacks, Tasking, Tasks};
use tracewalk_analysis::values::Proving;

use crate::error::RunError;
use crate::model::Source;
use crate::observer::Observer;
use crate::outcome::{Follow, Outcome};
use crate::session::Session;

impl Session {
    /// The tasks of a source. Values are proven if call stacks do not identify each task, or if the operating system has names in its
    /// memory; that costs far more than call stacks do. `dump` is as for [`Session::snapshot`].
    ///
    /// # Errors
    ///
    /// As for [`Session::run_observed`] and [`Session::value_setup`].
    pub fn tasks(
        &mut self,
        source: &Source,
        how: &Follow,
        dump: Option<&Path>,
        observer: &dyn Observer,
    ) -> Result<Outcome<Tasks>, RunError> {
        let code = self.code(source, how.names.as_deref(), observer)?;
        let variable = code.symbols.current_task();
        let itms = self.itms_beside(source);
        let itm = itms.iter().find(|itm| itm.protocol() == Instrumentation::Itm);
        let watched = itm.map(|itm| self.watched(itm, &code));
        let tasking = || Tasking::default().reported(variable, watched.clone());
        let outcome = self.run_in(source, how, &code, tasking(), observer)?;
        if outcome.found.certain && variable.is_none_or(|variable| variable.name.is_none()) {
            return Ok(outcome);
        }
        let setup = self.value_setup(source, &outcome.code, dump)?;
        let mut stacks = Stacks::new(&setup, variable);
        self.run(source, how, &mut Proving::new(setup, &mut stacks))?;
        Ok(Outcome { found: self.run(source, how, tasking().with(stacks))?.found, ..outcome })
    }
}
