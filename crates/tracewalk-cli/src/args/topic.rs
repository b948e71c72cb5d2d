//! `help`: commands, and the pages of the documentation.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Command, Subcommand as _};

/// The pages, each with its name, its title and its compressed text.
const PAGES: &[(&str, &str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The text of the page with this name.
pub(crate) fn page(name: &str) -> Option<String> {
    let (_, _, bytes) = PAGES.iter().find(|(page, ..)| *page == name)?;
    let text = miniz_oxide::inflate::decompress_to_vec(bytes).ok()?;
    String::from_utf8(text).ok()
}

#[derive(Args, Debug)]
pub(crate) struct Help {
    /// A command or a page; README lists the pages by question. A page with a command's name follows the command's help.
    #[arg(value_name = "TOPIC", value_parser = topics())]
    pub(crate) topic: Option<String>,
}

/// The names of the commands and of the pages, which have their titles.
fn topics() -> PossibleValuesParser {
    let pages = PAGES.iter().map(|(name, title, _)| PossibleValue::new(*name).help(*title));
    let is_page = |name: &str| PAGES.iter().any(|(page, ..)| *page == name);
    let whole = super::Command::augment_subcommands(Command::default());
    let commands = whole.get_subcommands().map(Command::get_name).filter(|name| !is_page(name));
    let commands = commands.map(|name| PossibleValue::new(name.to_owned()));
    PossibleValuesParser::new(pages.chain(commands).collect::<Vec<_>>())
}
