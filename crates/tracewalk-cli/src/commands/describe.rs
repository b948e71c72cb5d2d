//! `describe`: all that is known of a capture, written down so that no option is needed any more.

use std::path::Path;

use tracewalk_input::capture::DescribeError;

use crate::args::{CaptureArgs, Describe};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{self, Destination, write_to};
use crate::task::{Reads, Task};

impl Task for Describe {
    fn reads(&self) -> Reads<'_> {
        Reads::one(&self.capture)
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::output(self.output.as_deref())]
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        run(self, messages)
    }
}

/// Writes a `capture.toml`.
fn run(args: &Describe, messages: &Messages) -> Result<(), Failure> {
    let session = open::whole(&args.capture, messages)?;
    let output = output::file(args.output.as_deref());
    let beside = output.unwrap_or(&args.capture.capture).parent();
    let directory = beside.filter(|beside| !beside.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let text = session.describe().to_toml(directory).map_err(|error| {
        let hint = match error {
            DescribeError::Outside { .. } => {
                "write the description beside the files, with -o, or copy them to it"
            }
            DescribeError::SameName { .. } => "give each buffer a name of its own",
            DescribeError::Name { .. } => "rename it",
            _ => "name the files with options instead",
        };
        Failure::input("not_described", error.to_string(), hint)
    })?;
    for option in left_out(&args.capture) {
        messages.warning(
            "option_not_described",
            format_args!("a capture.toml cannot say {option}; give it with each command"),
        );
    }
    write_to(output, |out| out.write_all(text.as_bytes()))
}

/// The options whose meaning a description has no words for.
fn left_out(args: &CaptureArgs) -> impl Iterator<Item = &'static str> {
    let options = [
        ("--dump-address", args.dump_address.is_some()),
        ("--vtor", args.vtor.is_some()),
        ("--svd", args.svd.is_some()),
        ("--mtb-pc", args.mtb_pc.is_some()),
    ];
    options.into_iter().filter(|(_, given)| *given).map(|(option, _)| option)
}
