//! What may be wrong in a saved file.

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SavedErrorKind {
    /// The file does not begin as it should.
    NotSaved,
    /// Something else is saved in it.
    Other {
        /// What.
        found: String,
    },
    /// It is of another version.
    Version {
        /// Which.
        found: String,
    },
    /// The file stops in this line or behind it, without the line that ends it.
    CutOff,
    /// The line that ends the file counts others than those that stand before it.
    Lines {
        /// How many there are.
        found: u64,
        /// How many there were when it was written.
        expected: u64,
    },
    /// The file has ended before this line.
    BehindEnd,
    /// The line begins with something else than the letters that exist.
    UnknownItem {
        /// What it begins with.
        found: String,
    },
    /// The line says something of an item that has to stand before it, and none does.
    Misplaced,
    /// A field is missing, or holds something that it may not.
    Field {
        /// The field.
        field: &'static str,
        /// What it holds.
        found: String,
    },
}
