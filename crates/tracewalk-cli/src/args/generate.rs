//! `--generate`: the command line, described for shells and for `man`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

#[derive(Args, Debug)]
pub(crate) struct Generate {
    /// Write a completion script or the manual pages instead of running a command.
    #[arg(id = "generate", long = "generate", value_name = "KIND", value_enum, required = true)]
    pub(crate) kind: Option<Kind>,

    /// The file that --generate writes, or the directory for `man`; standard output if omitted.
    #[arg(id = "generated", short = 'o', long = "output", value_name = "PLACE", value_hint = ValueHint::AnyPath, requires = "generate", required_if_eq("generate", "man"))]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    CompleteBash,
    CompleteElvish,
    CompleteFish,
    CompletePowershell,
    CompleteZsh,
    Man,
}
