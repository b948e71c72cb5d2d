//! `tasks`: which tasks of an operating system ran.

use std::sync::Arc;

use tracewalk_report::export::TaskReport;

use crate::args::Tasks;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};

impl Task for Tasks {
    fn reads(&self) -> Reads<'_> {
        Reads::followed(&self.follow)
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::output(self.output.as_deref())]
    }

    fn is_for_people(&self) -> bool {
        self.format.name == "text"
    }

    /// Follows each source's tasks.
    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        messages.measure(self.work);
        // The trace is followed more than once.
        let mut session = open::whole_trace(&self.follow.capture, messages)?;
        let how = self.follow.how(self.work.threads, messages);
        let mut sources = Vec::new();
        session.each_source(messages, |session, source| {
            let outcome = session.tasks(source, &how, self.dump.as_deref(), messages)?;
            sources.push((session.section(source, Arc::clone(&outcome.code)), outcome.found));
            Ok::<(), Failure>(())
        })?;
        let report = TaskReport { sources, complete: messages.complete() };
        let output = self.output.as_deref();
        write_to(output, |out| (self.format.make)(out, &report, look_for(output), self.table))
    }
}
