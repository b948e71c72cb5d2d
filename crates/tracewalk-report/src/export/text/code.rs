//! Instructions as rows of a listing. Each row is built once, however often the instruction was executed.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use tracewalk::ids::{Address, Location};
use tracewalk::program::ViewId;

use super::place_name;
use crate::Palette;
use crate::disassembly::Disassembler;
use tracewalk_analysis::quick::QuickMap;
use tracewalk_analysis::{Code, CodeInContext};

/// One instruction, ready to be printed.
#[derive(Debug)]
pub(super) struct Row {
    /// The address after the instruction.
    pub(super) next: Address,
    /// The address and the code, like `0800 f7ff ffd5`, padded.
    pub(super) head: String,
    /// Mnemonic, operands and their targets, with colours.
    pub(super) text: String,
    /// The columns of `text`.
    pub(super) width: usize,
    /// The place in the source.
    pub(super) place: Rc<Place>,
    /// The heading above it if execution jumps to it.
    heading: String,
    /// The columns of `heading`.
    heading_width: usize,
    address: Address,
}

impl Row {
    /// The heading above it if execution jumps to it; a heading that is too wide leaves out inlined functions.
    pub(super) fn heading_within(&self, columns: Option<usize>, palette: &Palette) -> Cow<'_, str> {
        let Some(columns) = columns.filter(|columns| *columns < self.heading_width) else {
            return self.heading.as_str().into();
        };
        for shown in (0..self.place.inlined.len()).rev() {
            let (heading, width) = heading(&self.place, self.address, shown, palette);
            if width <= columns || shown == 0 {
                return heading.into();
            }
        }
        self.heading.as_str().into()
    }
}

/// An instruction's place in the program's source.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The function by its symbol, and its start.
    pub(super) function: Option<(Arc<str>, Address)>,
    /// The functions inlined there, outermost first.
    pub(super) inlined: Vec<Arc<str>>,
    /// The source file, as the debug information names it.
    pub(super) file: Option<Arc<str>>,
    /// The line in the file.
    pub(super) line: Option<u32>,
    /// `sort.c:12`: the file without its folders.
    pub(super) file_and_line: Option<String>,
}

impl Place {
    /// Whether both places are in the same function, inlined ones included.
    pub(super) fn same_scope(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || (self.function == other.function && self.inlined == other.inlined)
    }

    /// Whether both places are in the same line.
    pub(super) fn same_line(&self, other: &Self) -> bool {
        self.line == other.line && self.file == other.file
    }
}

/// `sort.c:12`
fn file_and_line(file: &str, line: Option<u32>) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    match line {
        Some(line) => format!("{name}:{line}"),
        None => name.to_owned(),
    }
}

/// The rows of one source's code.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: QuickMap<(ViewId, Location), Rc<Row>>,
}

/// Mnemonics are padded to this width.
const MNEMONIC_WIDTH: usize = 7;

impl Rows {
    /// The row of the instruction at `at`; `None` if there is no code.
    pub(super) fn row(&mut self, code: &CodeInContext, palette: &Palette, at: Location) -> Option<Rc<Row>> {
        if let Some(row) = self.rows.get(&(code.view(), at)) {
            return Some(Rc::clone(row));
        }
        let row = Rc::new(row(code, palette, at)?);
        self.rows.insert((code.view(), at), Rc::clone(&row));
        Some(row)
    }
}

fn row(code: &Code, palette: &Palette, at: Location) -> Option<Row> {
    let Written { text, width, bytes } = written(code, palette, at)?;
    let next = at.after(bytes.into()).address;
    let bytes = code.program.code(at.address)?.get(..bytes.into())?;
    let place = place(code, at.address);
    let Palette { quiet, .. } = *palette;
    let (heading, heading_width) = heading(&place, at.address, place.inlined.len(), palette);
    let head = format!("{quiet}{:08x}  {:9}{quiet:#} ", at.address, halfwords(bytes, at));
    Some(Row { next, head, text, width, place: Rc::new(place), heading, heading_width, address: at.address })
}

/// An instruction's text.
pub(super) struct Written {
    /// Mnemonic, operands and their targets, with colours.
    pub(super) text: String,
    /// The columns of `text`.
    width: usize,
    /// The instruction's bytes.
    bytes: u8,
}

/// The text of the instruction at `at`; `None` if there is no code.
pub(super) fn written(code: &Code, palette: &Palette, at: Location) -> Option<Written> {
    let instruction = Disassembler::new(code.profile).disassemble(&code.program, at)?;
    let padding = if instruction.operands.is_empty() { 0 } else { MNEMONIC_WIDTH };
    let mut text = format!("{}{:padding$}{:#}", palette.name, instruction.mnemonic, palette.name);
    let mut width = padding.max(instruction.mnemonic.len());
    let mut push = |style: anstyle::Style, part: &str| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{style}{part}{style:#}");
        width += part.chars().count();
    };
    if !instruction.operands.is_empty() {
        push(anstyle::Style::new(), &format!(" {}", instruction.operands));
    }
    if let Some(target) = instruction.target.filter(|target| code.symbols.function(*target).is_some()) {
        push(palette.function, &format!(" <{}>", place_name(&*code.symbols, target)));
    }
    if let Some(value) = instruction.literal.and_then(|literal| code.program.word(literal)) {
        push(palette.quiet, &format!(" = 0x{value:x}"));
    }
    Some(Written { text, width, bytes: instruction.bytes })
}

/// The instruction at `at` with its operands and their targets; empty if there is no code.
pub(in crate::export) fn instruction_text(code: &Code, at: Location) -> String {
    written(code, &Palette::PLAIN, at).map_or_else(String::new, |written| written.text)
}

/// Code in the units of its instruction set: halfwords for Thumb, words for ARM.
fn halfwords(bytes: &[u8], at: Location) -> String {
    let unit = usize::try_from(at.isa.alignment()).unwrap_or(1);
    let hex = |unit: &[u8]| unit.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(unit).map(hex).collect::<Vec<_>>().join(" ")
}

fn place(code: &Code, address: Address) -> Place {
    let frames = code.symbols.frames(address);
    let (file, line) = frames.first().map_or((None, None), |frame| (frame.file.clone(), frame.line));
    // The last frame is the function itself, which the symbol names.
    let mut inlined = frames.iter().filter_map(|frame| frame.function.clone()).collect::<Vec<_>>();
    let outer = inlined.pop();
    inlined.reverse();
    let function = match code.symbols.function(address) {
        Some(function) => Some((function.name.into(), function.start)),
        None => outer.map(|name| (name, address)),
    };
    let file_and_line = file.as_deref().map(|file| file_and_line(file, line));
    Place { function, inlined, file, line, file_and_line }
}

/// `outer+0x12 › inlined  file.c:12` for the instruction at `address`, with the last `inlined` of the inlined functions, and its columns.
fn heading(place: &Place, address: Address, inlined: usize, palette: &Palette) -> (String, usize) {
    let quiet = palette.quiet;
    let in_style = |palette: &Palette| scope_name(place, address, inlined, palette);
    let mut width = in_style(&Palette::PLAIN).chars().count();
    let mut heading = in_style(palette);
    if let Some(position) = &place.file_and_line {
        // Writing to a string cannot fail.
        let _ = write!(heading, "  {quiet}{position}{quiet:#}");
        width += 2 + position.chars().count();
    }
    (heading, width)
}

/// `outer+0x12 › inlined`, for the instruction at `address`.
fn scope_name(place: &Place, address: Address, inlined: usize, palette: &Palette) -> String {
    let style = palette.function;
    let mut text = match &place.function {
        Some((name, start)) => match address.offset_from(*start) {
            Some(0) => format!("{style}{name}{style:#}"),
            Some(offset) => format!("{style}{name}{style:#}+0x{offset:x}"),
            None => format!("{style}{address}{style:#}"),
        },
        None => format!("{style}{address}{style:#}"),
    };
    let left_out = place.inlined.len().saturating_sub(inlined);
    if left_out > 0 {
        text.push_str(" › …");
    }
    for inlined in place.inlined.iter().skip(left_out) {
        let _ = write!(text, " › {style}{inlined}{style:#}");
    }
    text
}

/// This number of blanks, up to a limit.
pub(super) fn blanks(columns: usize) -> &'static str {
    const BLANKS: &str = match str::from_utf8(&[b' '; 128]) {
        Ok(blanks) => blanks,
        Err(_) => "",
    };
    BLANKS.get(..columns).unwrap_or(BLANKS)
}

/// The width of an instruction's address and code.
pub(super) const MARGIN: usize = 20;
