//! `calls`: the functions that ran, as a tree of calls.

use tracewalk::plain::Plain;
use tracewalk_analysis::profile::Profile;
use tracewalk_report::export::{CallChainsOptions, CallTreeOptions, ProfileReport, best_unit};
use tracewalk_session::{OfProfile, View};

use crate::args::{Calls, Fold};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, Stream, look_for, write_to};
use crate::task::{Reads, Task};

impl Task for Calls {
    fn reads(&self) -> Reads<'_> {
        Reads::followed(&self.follow)
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::output(self.output.as_deref())]
    }

    fn is_for_people(&self) -> bool {
        self.format.name == "text"
    }

    /// Prints each source's calls.
    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        messages.measure(self.work);
        match self.fold {
            Fold::Chains => chains(self, messages),
            Fold::None | Fold::Repeats => tree(self, messages),
        }
    }
}

/// In the order in which they ran.
fn tree(args: &Calls, messages: &Messages) -> Result<(), Failure> {
    let window = args.window.window()?;
    let mut session = open::live(&args.follow.capture, messages)?;
    let how = args.follow.how(args.work.threads, messages);
    let view = View::new(window.clone(), None);
    view.check(&mut session, &how, messages)?;
    let output = args.output.as_deref();
    Stream::to(output, &session).write(|out| {
        let fold = args.fold != Fold::None;
        let options = CallTreeOptions { look: look_for(output), depth: args.depth, fold, window };
        let mut tree = (args.format.make.tree)(out, options);
        tree.begin()?;
        session.each_source(messages, |session, source| {
            view.run(session, source, &how, &mut *tree, messages)?;
            Ok::<(), Failure>(())
        })?;
        Ok(tree.finish(messages.complete())?)
    })?;
    Ok(view.finish()?)
}

/// Added up by chains of calls.
fn chains(args: &Calls, messages: &Messages) -> Result<(), Failure> {
    let mut session = open::live(&args.follow.capture, messages)?;
    let how = args.follow.how(args.work.threads, messages);
    let name = Plain(args.follow.capture.capture.display()).to_string();
    let question = OfProfile { view: View::new(args.window.window()?, None) };
    let answered = session.answer(&question, &how, &name, messages)?;
    question.view.finish()?;
    // The callees of a function are in the order of their first calls.
    let sources = answered.sections(|program| &program.sources, Profile::clone)?;
    let report = ProfileReport {
        unit: best_unit(sources.iter().map(|(_, profile)| profile)),
        sources,
        programs: Vec::new(),
        name,
        frequency: None,
        inlined: true,
        complete: messages.complete(),
    };
    let output = args.output.as_deref();
    let options = CallChainsOptions { look: look_for(output), depth: args.depth };
    write_to(output, |out| (args.format.make.chains)(out, &report, &options))
}
