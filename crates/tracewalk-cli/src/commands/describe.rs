//! `describe`: writes everything known of a capture, so that further commands need no options.

use std::path::{Path, PathBuf};

use tracewalk_input::capture::{DescribeError, Written};
use tracewalk_input::{Origin, Setting, Stated};

use super::snapshot;
use crate::args::{CaptureArgs, Describe, DescribeFormat};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{self, Destination, write_to};
use crate::task::{Reads, Task};
use tracewalk_sentences::quoted;

impl Task for Describe {
    fn reads(&self) -> Reads<'_> {
        Reads { beside: self.dump.iter().map(PathBuf::as_path).collect(), ..Reads::one(&self.capture) }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        let output = self.output.as_deref();
        vec![match (self.format, output) {
            (DescribeFormat::Ds5, Some(folder)) => Destination::new_folder(folder),
            _ => Destination::output(output),
        }]
    }

    fn is_for_people(&self) -> bool {
        false
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        match (self.format, self.output.as_deref()) {
            (DescribeFormat::Ds5, Some(folder)) => snapshot::run(&self.capture, folder, messages),
            _ => run(self, messages),
        }
    }
}

/// Writes a `capture.toml`.
fn run(args: &Describe, messages: &Messages) -> Result<(), Failure> {
    let session = open::whole(&args.capture, messages)?;
    let output = output::file(args.output.as_deref());
    let capture = args.capture.capture.as_path();
    let directory = match output {
        None if capture.is_dir() => capture,
        output => output.unwrap_or(capture).parent().unwrap_or(Path::new("")),
    };
    let mut described = session.describe();
    if let Some(dump) = &args.dump {
        // Refuses a file that `crash` could not read.
        session.snapshot(Some(dump))?;
        described.dump = Some(Stated::new(dump.clone(), Origin::Stated(Setting::Snapshot)));
    }
    let Written { text, roots } = described.to_toml(directory).map_err(|error| {
        let hint = match error {
            DescribeError::NotAFile { .. } => "save its bytes to a file",
            DescribeError::Recorded => "open the file itself",
            DescribeError::SameName { .. } => "give each buffer its own name",
            DescribeError::Name { .. } => "rename it",
            _ => "give the files with options instead",
        };
        Failure::input("not_described", error.to_string(), hint)
    })?;
    for option in left_out(&args.capture) {
        messages.warning(
            "option_not_described",
            format_args!("a capture.toml cannot state {option}; give it with each command"),
        );
    }
    write_to(output, |out| out.write_all(text.as_bytes()))?;
    if !roots.is_empty() {
        let options = roots.iter().map(|root| format!("--root {}", quoted(&root.to_string_lossy())));
        messages.warning(
            "files_elsewhere",
            format_args!(
                "the description names files outside its directory; open it with {}",
                options.collect::<Vec<_>>().join(" ")
            ),
        );
    }
    Ok(())
}

/// The options that a description cannot state.
fn left_out(args: &CaptureArgs) -> impl Iterator<Item = &'static str> {
    let stated = args.request().stated;
    let options = [
        ("--container address", stated.dump_address.is_some()),
        ("--vtor", args.vtor.is_some()),
        ("--svd", args.svd.is_some()),
        ("--source mtb,pc", stated.mtb.halted_at.is_some()),
    ];
    options.into_iter().filter(|(_, given)| *given).map(|(option, _)| option)
}
