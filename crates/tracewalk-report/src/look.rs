//! The look of text for people: colours and width.

use crate::Palette;

/// The look of text: colours and width.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The colours.
    pub palette: Palette,
    /// The columns of the terminal, which limit every line; `None` for lines of any length, if the text goes elsewhere.
    pub width: Option<usize>,
}

impl Look {
    /// No colours, and lines of any length.
    pub const PLAIN: Self = Self { palette: Palette::PLAIN, width: None };
}
