//! The order of options in help, and those that only `--help` shows.

use clap::{Arg, Args, Command, CommandFactory as _};

use super::Cli;

/// The headings, in the order of help: the command's own first. Headings that are not listed come between.
const FIRST: [&str; 1] = ["Program"];
const LAST: [&str; 4] = ["Output", "Cache", "Capture", "Recording"];

/// Options that `-h` leaves out: those for rare captures and occasions.
const RARE: [&str; 32] = [
    "registers",
    "wire",
    "by_run",
    "roots",
    "strict",
    "tasks",
    "memory",
    "idle",
    "channels",
    "symfs",
    "debug_dirs",
    "kallsyms",
    "svd",
    "vtor",
    "trust_image",
    "doubtful",
    "source_dirs",
    "resume",
    "captures",
    "color",
    "provenance",
    "no_pager",
    "messages",
    "stats",
    "threads",
    "cache",
    "include_function",
    "exclude_function",
    "base_src",
    "base_images",
    "path_maps",
    "no_inlined",
];

/// The help of a place whose answers add up.
const PLACE: &str = "A capture, a file written by --save, a directory to search, or @FILE: a list of these; @- is a list on standard input.";

const PLACES: &str = "\n\nIn directories, captures are recognised by their content: snapshots, descriptions (capture.toml), perf.data, and recordings of \
     logic analysers. Bare trace bytes cannot be recognised: select their files by name with --match. Saved files of the same answer \
     are added as well. A capture that cannot be read is named, and the others count.\n\n";

impl Cli {
    /// The command line with its help in order.
    pub(crate) fn arranged() -> Command {
        Self::command().mut_args(brief)
    }
}

/// Adds the arguments of a command in order, before those of all commands.
pub(super) fn arranged<T: Args>(mut command: Command) -> Command {
    let of_all = command.get_arguments().map(|argument| argument.get_id().clone()).collect::<Vec<_>>();
    let own = T::augment_args(Command::default());
    let mut arguments = own.get_arguments().cloned().collect::<Vec<_>>();
    // Sorting keeps the order of arguments with the same heading.
    arguments.sort_by_key(|argument| argument.get_help_heading().map_or(0, rank));
    let takes_places = arguments.iter().any(|argument| argument.get_id() == "more");
    command = command.groups(own.get_groups()).args(arguments.into_iter().map(|argument| {
        match argument.get_id().as_str() {
            "capture" if takes_places => {
                let long = argument.get_long_help().map(ToString::to_string).unwrap_or_default();
                argument
                    .value_name("PLACE")
                    .help(PLACE)
                    .long_help(format!("{PLACE}{PLACES}A capture is: {long}"))
            }
            _ => brief(argument),
        }
    }));
    // `mut_arg` moves an argument to the end.
    of_all.iter().fold(command, |command, name| command.mut_arg(name, |argument| argument))
}

fn rank(heading: &str) -> usize {
    if let Some(place) = FIRST.iter().position(|first| *first == heading) {
        return 1 + place;
    }
    let last = LAST.iter().position(|last| *last == heading);
    last.map_or(1 + FIRST.len(), |place| 2 + FIRST.len() + place)
}

/// Leaves a rare option out of `-h`.
fn brief(argument: Arg) -> Arg {
    let is_rare = RARE.contains(&argument.get_id().as_str());
    argument.hide_short_help(is_rare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_help_of_every_command_fits_a_screen() {
        let mut whole = Cli::arranged();
        whole.build();
        for command in whole.get_subcommands_mut() {
            let help = command.render_help().to_string();
            assert!(
                help.lines().count() <= 60,
                "{}: {} lines\n{help}",
                command.get_name(),
                help.lines().count()
            );
        }
    }

    #[test]
    fn options_that_are_left_out_exist_and_a_commands_own_come_before_those_of_captures() {
        let mut whole = Cli::arranged();
        whole.build();
        let all = whole.get_subcommands().flat_map(Command::get_arguments).chain(whole.get_arguments());
        let all = all.map(|argument| argument.get_id().as_str()).collect::<Vec<_>>();
        for rare in RARE {
            assert!(all.contains(&rare), "{rare}");
        }
        for command in whole.get_subcommands() {
            let own = command.get_arguments().filter(|argument| !argument.is_global_set());
            let headings = own.filter_map(Arg::get_help_heading).map(rank);
            assert!(headings.is_sorted(), "{}", command.get_name());
        }
    }
}
