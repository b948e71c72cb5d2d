//! What is known of the program beside its code.

use tracewalk::ids::Address;

/// Names and source lines by address. Where nothing is known, nothing is returned: every method has an empty answer.
pub trait Symbols {
    /// The function whose code holds `address`.
    fn function(&self, address: Address) -> Option<Function<'_>>;

    /// The functions that the instruction at `address` belongs to: those inlined there, innermost first, then the
    /// function itself. Empty where there is no debug information.
    fn frames(&self, address: Address) -> Vec<Frame>;

    /// A line of a source file, where the file is at hand.
    fn source_line(&self, file: &str, line: u32) -> Option<String>;
}

/// A function by the program's symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// Its name, readable (not mangled).
    pub name: &'a str,
    /// Its first instruction.
    pub start: Address,
}

/// One of the functions that an instruction belongs to, by the debug information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its name, readable (not mangled).
    pub function: Option<String>,
    /// The source file, as the debug information names it.
    pub file: Option<String>,
    /// The line in it: of the instruction in the innermost frame, of the inlined call in the others.
    pub line: Option<u32>,
}

/// Knows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSymbols;

impl Symbols for NoSymbols {
    fn function(&self, _address: Address) -> Option<Function<'_>> {
        None
    }

    fn frames(&self, _address: Address) -> Vec<Frame> {
        Vec::new()
    }

    fn source_line(&self, _file: &str, _line: u32) -> Option<String> {
        None
    }
}
