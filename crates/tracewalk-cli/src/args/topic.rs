//! `help`: commands, and the pages of the documentation.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

/// The pages, each with its name and text.
pub(crate) const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

#[derive(Args, Debug)]
pub(crate) struct Help {
    /// A command or a page; README lists the pages by question. A page with a command's name follows the command's help.
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: Option<String>,
}

/// The names of these commands and of the pages, which have their titles.
pub(super) fn topics<'a>(commands: impl Iterator<Item = &'a str>) -> PossibleValuesParser {
    let title = |text: &'static str| text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
    let pages = PAGES.iter().map(|(name, text)| PossibleValue::new(*name).help(title(text)));
    let is_page = |name: &str| PAGES.iter().any(|(page, _)| *page == name);
    let commands = commands.filter(|name| !is_page(name)).map(|name| PossibleValue::new(name.to_owned()));
    PossibleValuesParser::new(pages.chain(commands.collect::<Vec<_>>()).collect::<Vec<_>>())
}
