//! The colours of text for people.

use anstyle::{AnsiColor, Style};

/// A style for each kind of thing that the text formats print.
///
/// The caller chooses colours; [`Palette::PLAIN`] prints no escape sequences.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    /// The head of a source's section.
    pub head: Style,
    /// Names of functions.
    pub function: Style,
    /// Mnemonics and packet names.
    pub name: Style,
    /// Offsets, addresses, code bytes, places in source files: for reference.
    pub quiet: Style,
    /// Lines of source text.
    pub source: Style,
    /// Exceptions, and returns from them.
    pub exception: Style,
    /// Instructions and branches that did not take effect.
    pub skipped: Style,
    /// Malformed trace, gaps, contradictions.
    pub problem: Style,
}

impl Palette {
    /// No colours.
    pub const PLAIN: Self = Self {
        head: Style::new(),
        function: Style::new(),
        name: Style::new(),
        quiet: Style::new(),
        source: Style::new(),
        exception: Style::new(),
        skipped: Style::new(),
        problem: Style::new(),
    };

    /// Colours of the sixteen that every terminal has, so that they follow the user's theme.
    pub const COLOUR: Self = Self {
        head: Style::new().bold().underline(),
        function: AnsiColor::Green.on_default().bold(),
        name: Style::new().bold(),
        quiet: Style::new().dimmed(),
        source: AnsiColor::Cyan.on_default(),
        exception: AnsiColor::Magenta.on_default().bold(),
        skipped: AnsiColor::Yellow.on_default(),
        problem: AnsiColor::Red.on_default().bold(),
    };
}
