//! Names and lines of functions, looked up once for each.

use std::rc::Rc;

use tracewalk::ids::Address;
use tracewalk_analysis::CodeInContext;
use tracewalk_analysis::call_stack::FunctionId;
use tracewalk_analysis::quick::QuickMap;

/// A source file and a line of it.
type Line = (Rc<str>, u32);

/// Names and lines of one program's functions.
#[derive(Debug, Default)]
pub(super) struct FunctionNames {
    names: QuickMap<FunctionId, Rc<str>>,
    places: QuickMap<(FunctionId, Option<Address>), Option<Line>>,
}

/// The most functions, and the most places, that are kept.
const MOST: usize = 1 << 14;

impl FunctionNames {
    /// A function's name.
    pub(super) fn name(&mut self, code: &CodeInContext, function: FunctionId) -> Rc<str> {
        if self.names.len() >= MOST {
            self.names.clear();
        }
        let name = self.names.entry(function).or_insert_with(|| function.name(code.whole()).into());
        Rc::clone(name)
    }

    /// The source line of its entry.
    pub(super) fn place(
        &mut self,
        code: &CodeInContext,
        function: FunctionId,
        entry: Option<Address>,
    ) -> Option<(Rc<str>, u32)> {
        if self.places.len() >= MOST {
            self.places.clear();
        }
        let place = self.places.entry((function, entry)).or_insert_with(|| {
            let (file, line) = entry_place(code, function, entry)?;
            Some((file.into(), line))
        });
        place.clone()
    }
}

/// The source line of a function's entry.
pub(super) fn entry_place(
    code: &CodeInContext,
    function: FunctionId,
    entry: Option<Address>,
) -> Option<(String, u32)> {
    let symbols = &code.whole().in_scope(function.scope()).symbols;
    let frames = symbols.frames(entry.or(function.address())?);
    let frame = frames.first()?;
    Some((frame.file.as_deref()?.to_owned(), frame.line?))
}
