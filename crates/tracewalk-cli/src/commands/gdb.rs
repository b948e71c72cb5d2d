//! `gdb`: lets a debugger walk through a recording.

use crate::args::Gdb;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::Destination;
use crate::task::{Reads, Task};

impl Task for Gdb {
    fn reads(&self) -> Reads<'_> {
        Reads { beside: self.dump.iter().map(|file| &**file).collect(), ..Reads::one(&self.capture) }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        Vec::new()
    }

    fn is_for_people(&self) -> bool {
        false
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        run(self, messages)
    }
}

#[cfg(not(feature = "gdb"))]
fn run(_: &Gdb, _: &Messages) -> Result<(), Failure> {
    Err(Failure::input(
        "not_built_in",
        "this tracewalk was built without the debug server",
        "build it with --features full",
    ))
}

/// Serves debuggers.
#[cfg(feature = "gdb")]
fn run(args: &Gdb, messages: &Messages) -> Result<(), Failure> {
    use tracewalk_gdb::{Listen, Options, serve};
    use tracewalk_session::Keep;

    use crate::cache::Cache;

    let listen = if args.listen == "-" { Ok(Listen::Streams) } else { Listen::tcp(&args.listen) };
    let listen = listen.map_err(|error| {
        let problem = format!("--listen {}: {error}", args.listen);
        Failure::input("no_address", problem, "give an address and a port, such as 127.0.0.1:1234")
    })?;
    let cache = Cache::of(&args.cache, messages);
    let keep = cache.as_ref().map(|cache| cache as &dyn Keep);
    let mut session = crate::open::whole_trace_kept(&args.capture, keep, messages)?;
    let options = Options { at: args.at, trust_image: args.trust_image, dump: args.dump.clone(), keep };
    serve(&mut session, &options, listen, messages, &mut |event| {
        let (kind, text) = served::sentence(event);
        messages.note(kind, text);
    })
    .map_err(served::failure)
}

/// Messages about debuggers.
#[cfg(feature = "gdb")]
mod served {
    use tracewalk_gdb::{Event, GdbError};

    use crate::failure::Failure;

    /// The kind of an event, and its sentence.
    pub(super) fn sentence(event: &Event) -> (&'static str, String) {
        match event {
            Event::Listening(address) => {
                ("listening", format!("waiting for a debugger: target remote {address}"))
            }
            Event::Connected(peer) => ("connected", format!("a debugger has connected from {peer}")),
            Event::Refused(peer) => {
                ("refused", format!("refused a debugger from {peer}: another one is connected"))
            }
            Event::Left(peer) => {
                ("left", format!("the debugger from {peer} has disconnected; the next one can connect"))
            }
            Event::Vanished(peer) => (
                "vanished",
                format!("the debugger from {peer} disconnected without detaching; the next one can connect"),
            ),
            _ => ("debugger", format!("{event:?}")),
        }
    }

    pub(super) fn failure(error: GdbError) -> Failure {
        let (kind, hint) = match &error {
            GdbError::Nothing => ("nothing_executed", "`tracewalk info` shows what is in the capture"),
            GdbError::NoStep { .. } => ("no_step", "give --at a smaller number, or first or last"),
            GdbError::Ended { .. } => ("ended_early", "raise --memory, or leave it out"),
            GdbError::Listen { .. } => {
                ("listen", "end the program that listens there, or choose another port with --listen")
            }
            GdbError::Differs { .. } => (
                "passes_differ",
                "if no program writes to the capture, this is a defect of tracewalk: please report it",
            ),
            _ => ("streams", "let GDB start it: target remote | tracewalk gdb … --listen -"),
        };
        match error {
            GdbError::Open(error) => error.into(),
            GdbError::Image(error) => error.into(),
            GdbError::Run(error) => error.into(),
            error => Failure::input(kind, error.to_string(), hint),
        }
    }
}
