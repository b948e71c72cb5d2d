//! The arguments of one command, which are made only if it is called: those of all commands would be most of the time at the start.

use std::ops::Deref;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use super::help::arranged;

/// The arguments of a called command.
#[derive(Debug)]
pub(crate) struct Called<T>(Box<T>);

impl<T> Deref for Called<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for Called<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(arranged::<T>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for Called<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(|arguments| Self(Box::new(arguments)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
