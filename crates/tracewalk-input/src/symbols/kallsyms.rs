//! The kernel's own list of its symbols, `/proc/kallsyms`: an address, a kind and a name in each line, and the module in brackets
//! if the symbol is of one. It has no sizes, and no code.

use std::borrow::Cow;

use tracewalk::plain::plain;

use super::table::{Binding, Kind, Symbol, Table};
use crate::image::Width;

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) address: u64,
    /// A letter, as `nm` prints it.
    pub(crate) kind: u8,
    pub(crate) name: &'a str,
    /// The module that it is of.
    pub(crate) module: Option<&'a str>,
}

impl Line<'_> {
    /// Whether it is a function, as far as a letter says it.
    pub(crate) const fn is_code(&self) -> bool {
        self.kind.eq_ignore_ascii_case(&b't') || self.kind.eq_ignore_ascii_case(&b'w')
    }

    /// The line as the kernel writes it, where it is this far away.
    pub(crate) fn moved(&self, by: u64) -> String {
        let module = self.module.map_or_else(String::new, |module| format!("\t[{module}]"));
        let address = self.address.wrapping_add(by);
        format!("{address:016x} {} {}{module}\n", char::from(self.kind), self.name)
    }
}

/// The lines; what is no line of such a list is left out.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let &[kind] = words.next()?.as_bytes() else { return None };
        let name = words.next()?;
        let module = words.next().and_then(|module| module.strip_prefix('[')?.strip_suffix(']'));
        Some(Line { address, kind, name, module })
    })
}

/// The functions of a list, as far as their names are wanted and fit, or why there are none.
pub(super) fn table(bytes: &[u8], most: u64, is_wanted: impl Fn(&[u8]) -> bool) -> Result<Table<'_>, String> {
    let (mut symbols, mut highest, mut count) = (Vec::new(), 0, 0);
    for line in lines(bytes) {
        highest = highest.max(line.address);
        count += 1;
        if count > most {
            return Err(format!("found more symbols than the expected {most}"));
        }
        // Mapping symbols are in lists of some kernels.
        if !line.is_code() || line.name.starts_with('$') || !is_wanted(line.name.as_bytes()) {
            continue;
        }
        symbols.push(Symbol {
            name: plain(Cow::Borrowed(line.name)),
            value: line.address,
            size: 0,
            kind: Kind::Function,
            binding: match line.kind {
                b'T' => Binding::Global,
                b'W' | b'w' => Binding::Weak,
                _ => Binding::Local,
            },
            section: None,
        });
    }
    match (count, highest) {
        (0, _) => Err("found no line `ADDRESS KIND NAME`, as /proc/kallsyms has them".to_owned()),
        (_, 0) => {
            Err("all its addresses are 0: the kernel hid them (kernel.kptr_restrict) from who copied it"
                .to_owned())
        }
        _ => {
            let width = if u32::try_from(highest).is_ok() { Width::Bits32 } else { Width::Bits64 };
            Ok(Table { width, symbols, sections: Vec::new() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = b"ffffffc008000000 T _text\nffffffc008000040 t local\nffffffc008000080 D data\n\
        ffffffc008000048 t $x\nffffffb000000000 t helper\t[some_module]\nno line at all\n";

    #[test]
    fn functions_are_those_of_the_kernel_and_of_modules() {
        let found = lines(LIST).map(|line| (line.name, line.module)).collect::<Vec<_>>();
        let expected =
            [("_text", None), ("local", None), ("data", None), ("$x", None), ("helper", Some("some_module"))];
        assert_eq!(found, expected);
        let table = table(LIST, 100, |_| true).unwrap();
        let names = table.symbols.iter().map(|symbol| (&*symbol.name, symbol.value)).collect::<Vec<_>>();
        let [text, local, helper] = [0xffff_ffc0_0800_0000, 0xffff_ffc0_0800_0040, 0xffff_ffb0_0000_0000];
        assert_eq!(names, [("_text", text), ("local", local), ("helper", helper)]);
    }

    #[test]
    fn lists_without_addresses_or_of_other_text_say_why_they_have_no_names() {
        for list in
            [&b"0000000000000000 T _text\n0000000000000000 t local\n"[..], b"", b"\x7fELF", b"hello world\n"]
        {
            assert!(table(list, 100, |_| true).is_err());
        }
        assert!(table(LIST, 2, |_| true).is_err());
    }

    #[test]
    fn a_moved_line_is_the_same_line_elsewhere() {
        for line in lines(LIST) {
            let moved = line.moved(0x1000);
            let again = lines(moved.as_bytes()).next().unwrap();
            assert_eq!(again, Line { address: line.address + 0x1000, ..line });
        }
    }
}
