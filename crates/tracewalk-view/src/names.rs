//! The names and the instruction at an address, looked up once.

use std::collections::HashMap;
use std::rc::Rc;

use tracewalk::ids::{Address, Location};
use tracewalk::program::ViewId;
use tracewalk_analysis::Code;
use tracewalk_report::disassembly::Disassembler;

/// An address in the page's format.
pub(crate) fn hex(address: Address) -> String {
    address.to_string()
}

/// The address in a text from the page.
pub(crate) fn address(text: &str) -> Option<Address> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    u64::from_str_radix(digits, 16).ok().map(Address::new)
}

/// An instruction with its names, to be shown.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) function: Option<Rc<str>>,
    /// The distance from the function's start.
    pub(crate) offset: u64,
    pub(crate) file: Option<Rc<str>>,
    pub(crate) line: Option<u32>,
    /// The innermost function that is inlined there.
    pub(crate) inlined: Option<Rc<str>>,
    pub(crate) mnemonic: String,
    pub(crate) operands: String,
}

/// A cache of instructions.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<(ViewId, Location), Rc<Named>>,
}

/// The most instructions in the cache.
const MOST_KNOWN: usize = 1 << 17;

impl Names {
    pub(crate) fn at(&mut self, view: ViewId, at: Location, code: &Code) -> Rc<Named> {
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        Rc::clone(self.known.entry((view, at)).or_insert_with(|| Rc::new(named(at, code))))
    }
}

fn named(at: Location, code: &Code) -> Named {
    let frames = code.symbols.frames(at.address);
    let innermost = frames.first();
    let function = code.symbols.function(at.address);
    let inlined = innermost.filter(|_| frames.len() > 1).and_then(|frame| frame.function.as_deref());
    let (mnemonic, operands) = text(at, code).unwrap_or_default();
    Named {
        function: function.map(|function| function.name.into()),
        offset: function.map_or(0, |function| at.address.get().saturating_sub(function.start.get())),
        file: innermost.and_then(|frame| frame.file.as_deref()).map(Into::into),
        line: innermost.and_then(|frame| frame.line),
        inlined: inlined.map(Into::into),
        mnemonic,
        operands,
    }
}

/// Mnemonic and operands, with the name of the branch's target.
pub(crate) fn text(at: Location, code: &Code) -> Option<(String, String)> {
    let found = Disassembler::new(code.profile).disassemble(&code.program, at)?;
    let target = found.target.and_then(|target| Some((target, code.symbols.function(target)?)));
    let operands = match target {
        Some((target, function)) => {
            let offset = target.get().saturating_sub(function.start.get());
            let name = function.name;
            match offset {
                0 => format!("{} <{name}>", found.operands),
                _ => format!("{} <{name}+{offset:#x}>", found.operands),
            }
        }
        None => found.operands,
    };
    Some((found.mnemonic, operands))
}
