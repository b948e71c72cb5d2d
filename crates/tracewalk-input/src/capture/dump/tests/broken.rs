//! What debuggers print, with a line that is missing, cut, repeated or out of place: no byte is ever another one, and exactly what
//! is missing is missing.

use std::ops::Range;

use super::print::{OPENOCD, PRINTS, WRITTEN};
use super::{dump, file, read, trace};
use crate::capture::dump::MemoryDump;

const BUFFER: u32 = 0x2000_1000;
const END: u32 = BUFFER + 0x400;

/// The registers of the Micro Trace Buffer, and their address.
const DEVICE: u32 = 0xf000_0000;
const REGISTERS: [u32; 4] = [0x34, 0x8000_0006, 0, BUFFER];

/// The buffer in one form.
struct Form {
    name: String,
    lines: Vec<String>,
}

impl Form {
    /// All forms that have addresses. A log of a debugger may hold the registers, too.
    fn all() -> Vec<Self> {
        let form = |name: &str, text: &str| Self {
            name: name.to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
        };
        let registers = REGISTERS.map(u32::to_le_bytes).concat();
        let printed = PRINTS.iter().flat_map(|(name, columns)| {
            let buffer = columns.print(BUFFER, &trace());
            let log = buffer.clone() + &columns.print(DEVICE, &registers);
            [form(name, &buffer), form(&format!("{name}, with registers"), &log)]
        });
        let text = |name: &&str| String::from_utf8(file(&format!("dumps/{name}"))).unwrap();
        printed.chain(WRITTEN.iter().map(|name| form(name, &text(name)))).collect()
    }

    /// Lines of debuggers, each with all that it needs. Rows of a listing depend on each other, and records on their address:
    /// what a session makes of broken ones is tested in `tracewalk-session`.
    fn printed() -> impl Iterator<Item = Self> {
        let others = ["xxd", "hexdump", "od-", "gdb.hex", "gdb.srec"];
        Self::all().into_iter().filter(move |form| !others.iter().any(|other| form.name.starts_with(other)))
    }

    /// The first bytes of the buffer, for tests that read the text very often.
    fn shortened(mut self) -> Self {
        self.lines.truncate(12);
        self
    }

    /// The width of decimal numbers follows from the next line.
    fn is_decimal(&self) -> bool {
        ["gdb-xd", "gdb-xu"].iter().any(|start| self.name.starts_with(start))
    }

    /// The address of a line's first byte; `None` for a line without bytes of the buffer.
    fn start(&self, line: &str) -> Option<u32> {
        let line = line.trim_start_matches("0x");
        let digits = line.split(|c: char| !c.is_ascii_hexdigit()).next()?;
        let address = u32::from_str_radix(digits, 16).expect("each line of a print has an address");
        (BUFFER..END).contains(&address).then_some(address)
    }

    /// The bytes that a line states.
    fn says(&self, line: usize) -> Option<Range<u32>> {
        let start = self.start(&self.lines[line])?;
        let next = self.lines[line + 1..].iter().find_map(|line| self.start(line));
        Some(start..next.unwrap_or(END))
    }

    /// The bytes that the dump may lack if a line is damaged.
    fn may_lose(&self, line: usize) -> Range<u32> {
        let neighbour = usize::from(self.is_decimal());
        let lines = line.saturating_sub(neighbour)..(line + neighbour + 1).min(self.lines.len());
        let said = lines.filter_map(|line| self.says(line)).reduce(|all, said| all.start..said.end);
        said.unwrap_or(BUFFER..BUFFER)
    }

    fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// The bytes of the buffer that a text lacks; `None` if it is refused, or no dump. No byte may be another one.
fn lacks(text: &str, about: &dyn Fn() -> String) -> Option<Vec<Range<u32>>> {
    let dump = read(text).ok().flatten()?;
    Some(missing(&dump, about))
}

/// The bytes of the buffer that a dump lacks. No byte may be another one.
fn missing(dump: &MemoryDump, about: &dyn Fn() -> String) -> Vec<Range<u32>> {
    let (trace, registers) = (trace(), REGISTERS.map(u32::to_le_bytes).concat());
    let (mut end, mut missing) = (BUFFER, Vec::new());
    for piece in &dump.pieces {
        let start = piece.address.expect("each form has addresses").low_word();
        let start = if dump.is_file { start + BUFFER } else { start };
        let is_device = start >= DEVICE;
        for (address, byte) in (start..).zip(&piece.bytes[..]) {
            let (truth, from) = if is_device { (&registers, DEVICE) } else { (&trace, BUFFER) };
            let place = address.checked_sub(from).and_then(|place| usize::try_from(place).ok());
            let expected = place.and_then(|place| truth.get(place));
            assert_eq!(Some(byte), expected, "{address:#x}: {}", about());
        }
        if !is_device {
            missing.extend((end < start).then_some(end..start));
            end = start + u32::try_from(piece.bytes.len()).unwrap();
        }
    }
    missing.extend((end < END).then_some(end..END));
    missing
}

/// The bytes after the last line of a shortened form.
fn rest(form: &Form) -> Range<u32> {
    let mut ends = (0..form.lines.len()).filter_map(|line| form.says(line));
    let last = ends.next_back().expect("a line of the buffer").start;
    let about = || form.name.clone();
    let missing = lacks(&form.text(), &about).expect("a dump");
    let rest = missing.last().expect("a shortened form").clone();
    assert!(missing.len() == 1 && rest.start > last, "{missing:x?}");
    rest
}

#[test]
fn a_whole_buffer_lacks_nothing_in_any_form() {
    for form in Form::all() {
        assert_eq!(lacks(&form.text(), &|| form.name.clone()), Some(Vec::new()), "{}", form.name);
    }
}

#[test]
fn a_line_may_be_missing_at_each_place_of_every_print() {
    for form in Form::printed() {
        for left_out in 0..form.lines.len() {
            let mut lines = form.lines.clone();
            let line = lines.remove(left_out);
            let about = || format!("{}, line {left_out}: {line}", form.name);
            let dump = read(&*Form { name: String::new(), lines }.text()).expect("what is left is sound");
            let dump = dump.expect("a dump");
            let missing = missing(&dump, &about);
            match form.says(left_out) {
                Some(said) if form.is_decimal() => {
                    let may_lose = form.may_lose(left_out);
                    let [missing] = &missing[..] else { panic!("{missing:x?}: {}", about()) };
                    assert!(missing.start <= said.start && said.end <= missing.end, "{}", about());
                    assert!(may_lose.start <= missing.start && missing.end <= may_lose.end, "{}", about());
                }
                said => assert_eq!(missing, Vec::from_iter(said), "{}", about()),
            }
        }
    }
}

#[test]
fn a_line_may_stand_twice_at_each_place_of_every_form() {
    for form in Form::all() {
        for twice in 0..form.lines.len() {
            let mut lines = form.lines.clone();
            lines.insert(twice, lines[twice].clone());
            let about = || format!("{}, line {twice}", form.name);
            let text = Form { name: String::new(), lines }.text();
            assert_eq!(lacks(&text, &about), Some(Vec::new()), "{}", about());
        }
    }
}

#[test]
fn two_lines_may_have_changed_places_in_every_print() {
    // The next line gives the width of decimal numbers.
    for form in Form::printed().filter(|form| !form.is_decimal()) {
        for first in 0..form.lines.len() - 1 {
            let about = || format!("{}, line {first}", form.name);
            let mut lines = form.lines.clone();
            lines.swap(first, first + 1);
            let text = Form { name: String::new(), lines }.text();
            assert_eq!(lacks(&text, &about), Some(Vec::new()), "{}", about());
        }
    }
}

#[test]
fn a_line_may_be_cut_at_each_place_of_every_print() {
    for form in Form::printed().map(Form::shortened) {
        let rest = rest(&form);
        // Nothing shows the usual length of the last line of decimal numbers.
        for short in 0..form.lines.len() - usize::from(form.is_decimal()) {
            let line = &form.lines[short];
            // A decimal number without its last digits is still a number.
            let length = line.rfind('\t').filter(|_| form.is_decimal()).unwrap_or(line.len());
            let may_lose = form.may_lose(short);
            for cut in 1..length {
                let about = || format!("{}: {}", form.name, &line[..cut]);
                let mut lines = form.lines.clone();
                lines[short].truncate(cut);
                // A text that begins with a damaged line may be refused.
                let text = Form { name: String::new(), lines }.text();
                let Some(missing) = lacks(&text, &about) else { continue };
                for missing in missing.iter().filter(|missing| **missing != rest) {
                    let is_expected = may_lose.start <= missing.start && missing.end <= may_lose.end;
                    assert!(is_expected || missing.end == END, "{missing:x?}: {}", about());
                }
            }
        }
    }
}

#[test]
fn a_text_may_be_cut_off_anywhere_in_every_print() {
    for form in Form::printed().map(Form::shortened) {
        let (text, rest) = (form.text(), rest(&form));
        let last = form.lines.last().expect("a line").len() + 1;
        // Nothing shows the usual width in the first line.
        for cut in form.lines[0].len()..text.len() {
            let about = || format!("{}: …{:?}", form.name, &text[cut.saturating_sub(60)..cut]);
            let Some(missing) = lacks(&text[..cut], &about) else { continue };
            let [missing] = &missing[..] else { panic!("{missing:x?}: {}", about()) };
            let is_last = text.len() - cut < last;
            assert!(missing.start < rest.start || is_last && missing.start == rest.start, "{}", about());
        }
    }
}

#[test]
fn what_is_printed_of_a_part_is_that_part() {
    for part in [0..512, 512..1024, 256..768, 8..1016_usize] {
        let [start, end] = [part.start, part.end].map(|place| BUFFER + u32::try_from(place).unwrap());
        let dump = dump(OPENOCD.print(start, &trace()[part]));
        let expected = [BUFFER..start, end..END].into_iter().filter(|range| !range.is_empty());
        assert_eq!(missing(&dump, &String::new), Vec::from_iter(expected));
    }
}
