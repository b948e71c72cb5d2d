//! `view`: shows a recording in the browser, or writes it as a page.

use crate::args::View;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::Destination;
use crate::task::{Reads, Task};

impl Task for View {
    fn reads(&self) -> Reads<'_> {
        Reads::followed(&self.follow)
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        self.output.iter().map(|file| Destination::output(Some(file))).collect()
    }

    fn is_for_people(&self) -> bool {
        false
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        run(self, messages)
    }
}

#[cfg(not(feature = "view"))]
fn run(_: &View, _: &Messages) -> Result<(), Failure> {
    Err(Failure::input(
        "not_built_in",
        "this tracewalk was built without the page for browsers",
        "build it with --features full",
    ))
}

/// Serves or writes the page.
#[cfg(feature = "view")]
fn run(args: &View, messages: &Messages) -> Result<(), Failure> {
    use std::io::Write as _;

    use tracewalk::plain::Plain;
    use tracewalk_session::{Follow, Keep};
    use tracewalk_view::{Excerpt, Options, Place, serve, write_page};

    use crate::cache::Cache;
    use crate::output::{standard_output, write_to};

    let cache = Cache::of(&args.cache, messages);
    let keep = cache.as_ref().map(|cache| cache as &dyn Keep);
    let mut session = crate::open::whole_trace_kept(&args.follow.capture, keep, messages)?;
    let options = Options {
        name: Plain(args.follow.capture.capture.display()).to_string(),
        trust: args.follow.trust(),
        source_dirs: args.follow.source_dirs.clone(),
        threads: Follow::default().threads,
        keep,
    };
    if let Some(file) = &args.output {
        let excerpt = Excerpt { at: args.at, steps: args.steps };
        return write_to(Some(file), |out| {
            write_page(&mut session, &options, excerpt, messages, out).map_err(shown::failure)
        });
    }
    let place = Place { port: args.port, at: args.at };
    serve(&mut session, &options, place, messages, &mut |address| {
        // The printed address shows that the server is ready, and contains the secret token.
        let mut out = standard_output();
        let _ = writeln!(out, "{address}").and_then(|()| out.flush());
        messages.note("listening", "the page is at this address until Ctrl-C ends the command");
        if !args.no_open && !shown::open(address) {
            messages.warning("no_browser", "no browser could be started; open the address in a browser");
        }
    })
    .map_err(shown::failure)
}

/// Messages about the page.
#[cfg(feature = "view")]
mod shown {
    use std::process::{Command, Stdio};

    use tracewalk_view::ViewError;

    use crate::failure::Failure;

    pub(super) fn failure(error: ViewError) -> Failure {
        let (kind, hint) = match &error {
            ViewError::Nothing => ("nothing_executed", "`tracewalk info` shows what is in the capture"),
            ViewError::Listen { .. } => {
                ("listen", "end the program that listens there, or leave out --port to take a free port")
            }
            _ => ("page", "use -o FILE.html, which needs no server"),
        };
        match error {
            ViewError::Open(error) => error.into(),
            ViewError::Run(error) => error.into(),
            ViewError::Io(error) => error.into(),
            error => Failure::input(kind, error.to_string(), hint),
        }
    }

    /// Opens a page in the user's browser; returns whether a program was started for it.
    pub(super) fn open(address: &str) -> bool {
        let (program, arguments): (_, &[&str]) = match std::env::consts::OS {
            "macos" => ("open", &[]),
            "windows" => ("explorer", &[]),
            _ => ("xdg-open", &[]),
        };
        let mut command = Command::new(program);
        command.args(arguments).arg(address);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    }
}
