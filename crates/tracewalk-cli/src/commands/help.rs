//! `help`: the help of a command, and pages of the documentation.

use tracewalk_sentences::page;

use crate::args::{self, Cli, Help};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{Destination, write_to};
use crate::task::{Reads, Task};

impl Task for Help {
    fn reads(&self) -> Reads<'_> {
        Reads::default()
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::output(None)]
    }

    fn is_for_people(&self) -> bool {
        true
    }

    fn run(&self, _: &Messages) -> Result<(), Failure> {
        let mut whole = Cli::arranged();
        whole.build();
        let Some(topic) = &self.topic else { return Ok(whole.print_long_help()?) };
        if let Some(command) = whole.find_subcommand_mut(topic) {
            command.print_long_help()?;
        }
        match args::page(topic) {
            Some(text) => write_to(None, |out| out.write_all(shown(topic, &text).as_bytes())),
            None => Ok(()),
        }
    }
}

/// A page whose links lead somewhere outside of a checkout.
fn shown(name: &str, text: &str) -> String {
    let folder = page!("");
    let root = folder.trim_end_matches("docs/");
    let text =
        text.replace("](../", &format!("]({root}")).replace("](pictures/", &format!("]({folder}pictures/"));
    format!("{folder}{name}.md; `tracewalk help NAME` shows a page NAME.md that is named below.\n\n{text}")
}
