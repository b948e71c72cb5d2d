//! The kernel's own list of its symbols, `/proc/kallsyms`: each line has an address, a kind, a name and, for
//! a module's symbol, the module in brackets. The list has no sizes and no code.

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) address: u64,
    /// A letter, as `nm` prints it.
    pub(crate) kind: u8,
    pub(crate) name: &'a str,
    /// The symbol's module.
    pub(crate) module: Option<&'a str>,
}

impl Line<'_> {
    /// Whether the symbol is a function, as far as its kind shows.
    pub(crate) const fn is_code(&self) -> bool {
        self.kind.eq_ignore_ascii_case(&b't') || self.kind.eq_ignore_ascii_case(&b'w')
    }

    /// The line in the kernel's format, with its address displaced by `by`.
    pub(crate) fn moved(&self, by: u64) -> String {
        let module = self.module.map_or_else(String::new, |module| format!("\t[{module}]"));
        let address = self.address.wrapping_add(by);
        format!("{address:016x} {} {}{module}\n", char::from(self.kind), self.name)
    }
}

/// The lines of the list; malformed lines are left out.
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
