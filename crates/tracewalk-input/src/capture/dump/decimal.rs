//! GDB's output for the formats `d`, `u` and `t`: decimal and binary numbers.
//!
//! ```text
//! x/8dw   0x20001000 <buffer>:\t330\t322\t332\t424
//! x/8uh   0x20001000:\t330\t0\t322\t0\t332\t0\t424\t0
//! x/2tw   0x20001000:\t00000000000000000000000101001010\t00000000000000000000000101000010
//! ```
//!
//! Binary numbers have all their digits. Decimal numbers do not show their width. It follows from the address
//! of the next line, since GDB prints a fixed number of them in a line, or from the command, if the preceding
//! line has it. A line whose width neither gives is not read. A decimal number does not show truncation
//! either: in a line that is cut short, the last number is not read.

use std::collections::BTreeMap;

use super::lines::{after_symbol, readable, split_address, without_prompts};

/// The lines of decimal and binary numbers in a text.
#[derive(Debug, Default)]
pub(super) struct Decimals {
    /// The address and bytes of each line, by line number from 1.
    pub(super) rows: BTreeMap<u32, (u64, Vec<u8>)>,
    /// The lines that could be numbers of several widths.
    pub(super) unknown: Vec<u32>,
    /// The lines that were cut short.
    pub(super) cut: Vec<u32>,
}

/// A line of numbers.
struct Row<'a> {
    line: u32,
    address: u64,
    words: Vec<&'a str>,
    /// The width in the preceding command.
    commanded: Option<usize>,
    /// Whether the text ends in this line, without a line break.
    ends_early: bool,
}

impl Decimals {
    pub(super) fn read(text: &str) -> Self {
        let mut found = Self::default();
        let (mut rows, mut commanded) = (Vec::<Row<'_>>::new(), None);
        for (number, line) in (1..=u32::MAX).zip(text.lines()) {
            match numbers(line) {
                Some((address, words)) => {
                    rows.push(Row {
                        line: number,
                        address,
                        words,
                        commanded: commanded.take(),
                        ends_early: false,
                    });
                }
                None => {
                    found.take(&rows);
                    rows.clear();
                    commanded = command(line);
                }
            }
        }
        // The saved text may be truncated.
        if let Some(last) = rows.last_mut().filter(|_| !text.ends_with('\n')) {
            last.ends_early = true;
        }
        found.take(&rows);
        found
    }

    /// Takes consecutive lines.
    fn take(&mut self, rows: &[Row<'_>]) {
        // A repeated line adds nothing.
        let (mut each, mut twice) = (Vec::<&Row<'_>>::new(), Vec::new());
        for row in rows {
            if each.last().is_some_and(|last| last.is_same(row)) {
                twice.push(row.line);
            } else {
                each.push(row);
            }
        }
        self.take_each(&each);
        for line in twice {
            if let Some(row) = self.rows.get(&(line - 1)).cloned() {
                self.rows.insert(line, row);
            }
        }
    }

    fn take_each(&mut self, mut rows: &[&Row<'_>]) {
        let mut before = None;
        while let [first, others @ ..] = rows {
            let next = others.first();
            if let Some(width) = first.binary() {
                let is_cut = [before, next].into_iter().flatten().any(|other| first.is_cut_from(other));
                match first.bytes(width, true).filter(|_| !is_cut) {
                    Some(bytes) => drop(self.rows.insert(first.line, (first.address, bytes))),
                    None => self.cut.push(first.line),
                }
                (before, rows) = (Some(first), others);
                continue;
            }
            let shown = next.and_then(|next| first.width_before(next)).filter(|width| is_run(rows, *width));
            let shown = shown.or_else(|| first.commanded());
            let (taken, rest) = rows.split_at(shown.map_or(1, |width| run(rows, width)));
            for (index, row) in taken.iter().enumerate() {
                let after = (index + 1 == taken.len()).then(|| rest.first()).flatten();
                self.take_decimal(row, shown, after.copied());
            }
            (before, rows) = (None, rest);
        }
    }

    /// Takes a line of decimal numbers; `after` is the line that follows the last one of a run.
    fn take_decimal(&mut self, row: &Row<'_>, width: Option<usize>, after: Option<&Row<'_>>) {
        let Some((width, mut bytes)) = width.and_then(|width| Some((width, row.bytes(width, false)?))) else {
            self.unknown.push(row.line);
            return;
        };
        let whole = per_line(width) * width;
        let goes_on = after.is_some_and(|after| after.address.checked_sub(row.address) == Some(whole as u64));
        if row.ends_early || bytes.len() < whole && goes_on {
            bytes.truncate(bytes.len() - width);
            self.cut.push(row.line);
        }
        self.rows.insert(row.line, (row.address, bytes));
    }
}

/// The number of consecutive lines from the first one on, if numbers have this width.
fn run(rows: &[&Row<'_>], width: usize) -> usize {
    let goes_on = |pair: &[&Row<'_>]| match pair {
        [one, next] => {
            one.words.len() == per_line(width)
                && next.words.len() <= one.words.len()
                && next.binary().is_none()
                && next.address.checked_sub(one.address) == Some((one.words.len() * width) as u64)
        }
        _ => false,
    };
    1 + rows.windows(2).take_while(|pair| goes_on(pair)).count()
}

/// Whether several lines are consecutive with this width, and the next line does not start inside the last of
/// them.
fn is_run(rows: &[&Row<'_>], width: usize) -> bool {
    let (taken, rest) = rows.split_at(run(rows, width));
    let end = taken.last().map(|last| last.address.saturating_add((last.words.len() * width) as u64));
    let is_inside = |(next, end): (&&Row<'_>, u64)| {
        next.address < end && taken.iter().any(|row| row.address < next.address)
    };
    taken.len() > 1 && !rest.first().zip(end).is_some_and(is_inside)
}

/// The number of decimal numbers of a width that GDB prints in a line (gdb/printcmd.c, `do_examine`).
const fn per_line(width: usize) -> usize {
    match width {
        8 => 2,
        4 => 4,
        _ => 8,
    }
}

impl Row<'_> {
    /// Whether another line has the same address and numbers.
    fn is_same(&self, other: &Self) -> bool {
        (self.address, &self.words) == (other.address, &other.words)
    }

    /// Whether the line's only number is narrower than the other line's numbers, and so may be the beginning
    /// of such a number.
    fn is_cut_from(&self, other: &Self) -> bool {
        self.words.len() == 1 && other.binary().is_some_and(|width| Some(width) > self.binary())
    }

    /// The width of binary numbers; `None` for decimal ones, which have no leading zeros.
    fn binary(&self) -> Option<usize> {
        let length = self.words.first()?.len();
        let are_digits = self
            .words
            .iter()
            .all(|word| word.len() == length && word.bytes().all(|digit| matches!(digit, b'0' | b'1')));
        let has_leading_zeros = self.words.iter().any(|word| word.starts_with('0'));
        (matches!(length, 8 | 16 | 32 | 64) && are_digits && has_leading_zeros).then_some(length / 8)
    }

    /// The width with which the next line is consecutive to this one.
    fn width_before(&self, next: &Self) -> Option<usize> {
        let step = usize::try_from(next.address.checked_sub(self.address)?).ok()?;
        let is_step =
            |width: &usize| self.words.len() == per_line(*width) && step == per_line(*width) * width;
        [1, 2, 4, 8].into_iter().find(is_step)
    }

    /// The width in the command, if the command can print this line.
    fn commanded(&self) -> Option<usize> {
        self.commanded.filter(|width| self.words.len() <= per_line(*width))
    }

    /// The bytes of numbers of this width; `None` if a number does not fit.
    fn bytes(&self, width: usize, are_binary: bool) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.words.len() * width);
        let bits = u32::try_from(width * 8).ok()?;
        for word in &self.words {
            let number =
                if are_binary { i128::from_str_radix(word, 2).ok()? } else { word.parse::<i128>().ok()? };
            let is_inside = (-(1_i128 << (bits - 1))..1_i128 << bits).contains(&number);
            bytes.extend_from_slice(number.to_le_bytes().get(..width).filter(|_| is_inside)?);
        }
        Some(bytes)
    }
}

/// The address and the numbers of a line.
fn numbers(line: &str) -> Option<(u64, Vec<&str>)> {
    let (address, _, rest) =
        split_address(without_prompts(line).trim()).filter(|(_, prefixed, _)| *prefixed)?;
    let values = readable(after_symbol(rest).0.strip_prefix('\t')?);
    let words = values.trim_end().split('\t').collect::<Vec<_>>();
    let is_number = |word: &&str| {
        let digits = word.strip_prefix('-').unwrap_or(word);
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    words.iter().all(is_number).then_some((address, words))
}

/// The width that a command like `(gdb) x/8dw $sp` requests.
fn command(line: &str) -> Option<usize> {
    let options = without_prompts(line).trim().strip_prefix("x/")?.split_whitespace().next()?;
    let letters = options.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let width = |letter| match letter {
        'b' => Some(1),
        'h' => Some(2),
        'w' => Some(4),
        'g' => Some(8),
        _ => None,
    };
    letters.chars().find_map(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(u64, Vec<u8>)> {
        Decimals::read(text).rows.into_values().collect()
    }

    #[test]
    fn the_next_line_shows_the_width() {
        let words = "0x20000000 <a(b, c<d>)>:\t-1\t2\t3\t4\n0x20000010:\t4294967295\n";
        let first = [0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0].to_vec();
        assert_eq!(read(words), [(0x2000_0000, first), (0x2000_0010, vec![0xff; 4])]);
        let halfwords = "0x20000000:\t1\t2\t3\t4\t5\t6\t7\t8\n0x20000010:\t9\n";
        assert_eq!(read(halfwords)[1], (0x2000_0010, vec![9, 0]));
    }

    #[test]
    fn the_command_shows_it_too_and_without_either_nobody_knows() {
        assert_eq!(read("(gdb) x/2dh $sp\n0x20000000:\t-2\t3\n"), [(0x2000_0000, vec![0xfe, 0xff, 3, 0])]);
        for text in [
            "0x20000000:\t-2\t3\n",
            "(gdb) x/2d $sp\n0x20000000:\t-2\t3\n",
            "0x20000000:\t1\t2\t3\t4\n0x20000020:\t5\t6\t7\t8\n",
            "(gdb) x/2db $sp\n0x20000000:\t300\t3\n",
        ] {
            let found = Decimals::read(text);
            assert!(found.rows.is_empty() && !found.unknown.is_empty(), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_line_that_was_cut_short_loses_its_last_number_and_its_width_is_not_guessed() {
        let text =
            "0x20000000:\t10\t20\t30\t40\n0x20000010:\t50\t6\n0x20000020:\t90\t91\t92\t93\n0x20000030:\t1\n";
        let found = Decimals::read(text);
        assert_eq!(found.rows[&2], (0x2000_0010, vec![50, 0, 0, 0]));
        assert_eq!((found.rows.len(), found.cut, found.unknown), (4, vec![2], vec![]));
        // Half a line of eight halfwords is not a line of four words.
        let text = "0x20000000:\t1\t2\t3\t4\n0x20000010:\t1\t2\t3\t4\t5\t6\t7\t8\n0x20000020:\t9\n";
        let found = Decimals::read(text);
        assert_eq!((found.rows.len(), found.rows[&3].1.len(), found.unknown), (2, 2, vec![1]));
        // The text may be truncated.
        let found = Decimals::read("(gdb) x/2dw $sp\n0x20000000:\t1\t2");
        assert_eq!((&found.rows[&2].1, found.cut), (&vec![1, 0, 0, 0], vec![2]));
    }

    #[test]
    fn bytes_with_a_line_missing_are_no_halfwords() {
        let line = |at: u32| format!("0x{at:x}:\t1\t2\t3\t4\t5\t6\t7\t8\n");
        let found = Decimals::read(&[0x10, 0x20, 0x28, 0x30].map(line).concat());
        assert_eq!(found.unknown, [1]);
        assert_eq!(
            found.rows.values().map(|(at, bytes)| (*at, bytes.len())).collect::<Vec<_>>(),
            [(0x20, 8), (0x28, 8), (0x30, 8)]
        );
    }

    #[test]
    fn a_line_may_stand_there_twice() {
        let text = "0x20000000:\t1\t2\t3\t4\n0x20000000:\t1\t2\t3\t4\n0x20000010:\t5\n0x20000010:\t5\n";
        let found = Decimals::read(text);
        assert_eq!((found.rows.len(), found.rows[&2] == found.rows[&1]), (4, true));
        assert!(found.unknown.is_empty() && found.cut.is_empty());
    }

    #[test]
    fn binary_numbers_show_their_width_themselves() {
        assert_eq!(read("0x20000000:\t00000011\t10000000\n"), [(0x2000_0000, vec![3, 0x80])]);
        assert!(read("0x20000000:\t10000011\t10000000\n").is_empty());
        // The first half of a number is not a number.
        let text = "0x20000000:\t00000011\n0x20000010:\t0000001110000000\t0000001110000000\n";
        let found = Decimals::read(text);
        assert_eq!((found.rows.len(), found.cut), (1, vec![1]));
    }

    #[test]
    fn other_lines_are_no_numbers() {
        for line in [
            "0x154 <f>:\tpush\t{r4, lr}",
            "0x20000000:\t0x00000001",
            "0x20000000:\t1.5\t2",
            "0x20000000:\t74 'J'",
        ] {
            let found = Decimals::read(line);
            assert!(found.rows.is_empty() && found.unknown.is_empty(), "{line}");
        }
    }
}
