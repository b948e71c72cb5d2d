//! Names and source lines of a program, as a trait: [`Symbols`]. `tracewalk-session` implements it for images.
//!
//! ```
//! use tracewalk::ids::Address;
//! use tracewalk_analysis::symbols::{NoSymbols, Symbols};
//!
//! assert_eq!(NoSymbols.function(Address::new(0x100)), None);
//! assert!(NoSymbols.frames(Address::new(0x100)).is_empty());
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use md5::{Digest, Md5};
use tracewalk::ids::{Address, Isa};

/// Names and source lines by address. Every method has an empty answer for unknown addresses.
pub trait Symbols: Send + Sync {
    /// The function whose code holds `address`.
    fn function(&self, address: Address) -> Option<Function<'_>>;

    /// The functions that the instruction at `address` belongs to: those inlined there, innermost first, then the
    /// function itself. Empty if there is no debug information. Consecutive instructions mostly share one list.
    fn frames(&self, address: Address) -> Arc<[Frame]>;

    /// The innermost of these functions.
    fn innermost(&self, address: Address) -> Option<Frame> {
        self.frames(address).first().cloned()
    }

    /// Whether any instruction may have a place in the source.
    fn has_lines(&self) -> bool {
        false
    }

    /// A line of a source file, if the file can be read.
    fn source_line(&self, file: &str, line: u32) -> Option<String>;

    /// All functions, in the order of their addresses.
    fn functions(&self) -> Vec<Extent> {
        Vec::new()
    }

    /// The functions of this name, as the program spells it or as the linker knows it.
    fn functions_named(&self, name: &str) -> Vec<Extent> {
        self.functions()
            .into_iter()
            .filter(|function| function.name == name || function.symbol == name)
            .collect()
    }

    /// The stretches of code that come from lines for which `_is_wanted` returns true, by file and line.
    fn line_extents(&self, _is_wanted: &mut dyn FnMut(&str, u32) -> bool) -> Vec<LineExtent> {
        Vec::new()
    }

    /// The stretches of code and data that the program marks, in the order of the addresses.
    fn stretches(&self) -> Vec<Stretch> {
        Vec::new()
    }

    /// The data object that holds `address`, by the program's symbols; the smallest one, if objects are nested.
    fn object(&self, _address: Address) -> Option<Object> {
        None
    }

    /// All data objects, in the order of their addresses.
    fn objects(&self) -> Vec<Object> {
        Vec::new()
    }

    /// Where an operating system notes the running task.
    fn current_task(&self) -> Option<CurrentTask> {
        None
    }

    /// The address of variables with these low 16 bits; `None` if there is none, or more than one.
    fn data_with_low_half(&self, _low_half: u16) -> Option<Address> {
        None
    }

    /// The file of the code at `address`, without its folders.
    fn binary(&self, _address: Address) -> Option<&str> {
        None
    }

    /// The file of the code at `address`, and the address in it, if a system loaded the file somewhere else.
    fn in_moved_file(&self, _address: Address) -> Option<(&str, Address)> {
        None
    }

    /// The source files that were compiled, with the checksums of the debug information.
    fn source_checksums(&self) -> Vec<SourceChecksum> {
        Vec::new()
    }

    /// A whole source file, if it can be read.
    fn source_file(&self, _file: &str) -> Option<SourceFile> {
        None
    }
}

/// A function by the program's symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// The name, readable (not mangled).
    pub name: &'a str,
    /// The first instruction.
    pub start: Address,
}

/// The variable in which an operating system notes the control block of the running task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentTask {
    /// The operating system.
    pub system: &'static str,
    /// The address of the variable: a pointer to a control block.
    pub pointer: Address,
    /// The task's name in the control block; `None` if the program was built without.
    pub name: Option<TaskName>,
}

/// A task's name in its control block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskName {
    /// The offset in the control block.
    pub offset: u64,
    /// The most characters; `None` if a pointer to them is there.
    pub characters: Option<u64>,
}

/// A function and its extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The name, readable (not mangled).
    pub name: String,
    /// The linker's name.
    pub symbol: String,
    /// The first instruction.
    pub start: Address,
    /// The address after it, as a number that may be 2^32.
    pub end: u64,
    /// The instruction set that it starts in, if that is known.
    pub isa: Option<Isa>,
}

/// A data object by the program's symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The linker's name.
    pub name: String,
    /// The first address.
    pub start: Address,
    /// The address after it, as a number that may be 2^32.
    pub end: u64,
}

/// A stretch of code that comes from one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineExtent {
    /// The first address.
    pub start: Address,
    /// The address after it, as a number that may be 2^32.
    pub end: u64,
}

/// A stretch of memory with the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first address.
    pub start: Address,
    /// The address after it, as a number that may be 2^32.
    pub end: u64,
    /// The instruction set of the code; `None` for data.
    pub isa: Option<Isa>,
}

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The file's path.
    pub path: String,
    /// The content, in any encoding.
    pub text: Vec<u8>,
}

impl SourceFile {
    /// Whether all of these are the text's MD5 hash, with line endings of this or another system.
    #[must_use]
    pub fn is_text_of(&self, checksums: &BTreeSet<[u8; 16]>) -> bool {
        let ended = |end: &[u8]| {
            let mut hash = Md5::new();
            for line in self.text.split_inclusive(|byte| *byte == b'\n') {
                match line.strip_suffix(b"\n") {
                    Some(line) => {
                        hash.update(line.strip_suffix(b"\r").unwrap_or(line));
                        hash.update(end);
                    }
                    None => hash.update(line),
                }
            }
            <[u8; 16]>::from(hash.finalize())
        };
        let own = <[u8; 16]>::from(Md5::digest(&self.text));
        let is = |text: [u8; 16]| checksums.iter().all(|checksum| *checksum == text);
        is(own) || is(ended(b"\n")) || is(ended(b"\r\n"))
    }
}

/// The checksum of a source file as a unit was compiled from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceChecksum {
    /// The file, as the debug information names it.
    pub file: String,
    /// The MD5 of its bytes (DWARF 5, 6.2.4.1, `DW_LNCT_MD5`).
    pub md5: [u8; 16],
}

/// One of the functions that an instruction belongs to, by the debug information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The name, readable (not mangled).
    pub function: Option<Arc<str>>,
    /// The source file, as the debug information names it.
    pub file: Option<Arc<str>>,
    /// The line in it: of the instruction in the innermost frame, of the inlined call in the others.
    pub line: Option<u32>,
}

/// Has no names and no lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSymbols;

impl Symbols for NoSymbols {
    fn function(&self, _address: Address) -> Option<Function<'_>> {
        None
    }

    fn frames(&self, _address: Address) -> Arc<[Frame]> {
        Arc::default()
    }

    fn source_line(&self, _file: &str, _line: u32) -> Option<String> {
        None
    }
}
