//! What GDB prints for the formats `d`, `u` and `t`: decimal and binary numbers.
//!
//! ```text
//! x/8dw   0x20001000 <buffer>:\t330\t322\t332\t424
//! x/8uh   0x20001000:\t330\t0\t322\t0\t332\t0\t424\t0
//! x/2tw   0x20001000:\t00000000000000000000000101001010\t00000000000000000000000101000010
//! ```
//!
//! Binary numbers have all their digits. How wide decimal numbers are does not show in them: it follows from where the next
//! line goes on, since GDB puts a fixed number of them into a line, or from the command, if the line before has it. A line
//! of which neither says it is not read.

use std::collections::BTreeMap;

use super::lines::{after_symbol, readable, split_address, without_prompts};

/// The lines of a text that are such numbers.
#[derive(Debug, Default)]
pub(super) struct Decimals {
    /// Address and bytes of each line, by its number from 1.
    pub(super) rows: BTreeMap<u32, (u64, Vec<u8>)>,
    /// The lines that could be numbers of several widths.
    pub(super) unknown: Vec<u32>,
}

/// A line of numbers.
struct Row<'a> {
    line: u32,
    address: u64,
    words: Vec<&'a str>,
    /// The width that the command before it says.
    commanded: Option<usize>,
}

impl Decimals {
    pub(super) fn read(text: &str) -> Self {
        let mut found = Self::default();
        let (mut rows, mut commanded) = (Vec::<Row<'_>>::new(), None);
        for (number, line) in (1..=u32::MAX).zip(text.lines()) {
            match numbers(line) {
                Some((address, words)) => {
                    rows.push(Row { line: number, address, words, commanded: commanded.take() });
                }
                None => {
                    found.take(&rows);
                    rows.clear();
                    commanded = command(line);
                }
            }
        }
        found.take(&rows);
        found
    }

    /// Takes lines that stand one after the other.
    fn take(&mut self, mut rows: &[Row<'_>]) {
        while let Some(first) = rows.first() {
            let binary = first.binary();
            let shown = binary.or_else(|| first.width_before(rows.get(1)?)).or_else(|| first.commanded());
            let (length, width) = match shown {
                Some(width) if binary.is_none() => (run(rows, width), Some(width)),
                shown => (1, shown),
            };
            let (taken, rest) = rows.split_at(length);
            for row in taken {
                match width.and_then(|width| row.bytes(width, binary.is_some())) {
                    Some(bytes) => {
                        self.rows.insert(row.line, (row.address, bytes));
                    }
                    None => self.unknown.push(row.line),
                }
            }
            rows = rest;
        }
    }
}

/// How many lines go on from the first of these, whose numbers have this width.
fn run(rows: &[Row<'_>], width: usize) -> usize {
    let goes_on = |pair: &[Row<'_>]| match pair {
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

/// How many decimal numbers of a width GDB puts into a line (gdb/printcmd.c, `do_examine`).
const fn per_line(width: usize) -> usize {
    match width {
        8 => 2,
        4 => 4,
        _ => 8,
    }
}

impl Row<'_> {
    /// The width of binary numbers; `None` for decimal ones, which have no zeros at their beginning.
    fn binary(&self) -> Option<usize> {
        let length = self.words.first()?.len();
        let are_digits = self
            .words
            .iter()
            .all(|word| word.len() == length && word.bytes().all(|digit| matches!(digit, b'0' | b'1')));
        let has_leading_zeros = self.words.iter().any(|word| word.starts_with('0'));
        (matches!(length, 8 | 16 | 32 | 64) && are_digits && has_leading_zeros).then_some(length / 8)
    }

    /// The width with which the next line goes on from this one.
    fn width_before(&self, next: &Self) -> Option<usize> {
        let step = usize::try_from(next.address.checked_sub(self.address)?).ok()?;
        let is_step =
            |width: &usize| self.words.len() == per_line(*width) && step == per_line(*width) * width;
        [1, 2, 4, 8].into_iter().find(is_step)
    }

    /// The width that the command says, if the line can be what it prints.
    fn commanded(&self) -> Option<usize> {
        self.commanded.filter(|width| self.words.len() <= per_line(*width))
    }

    /// The bytes of numbers of this width; `None` where one has more.
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

/// The width that a command like `(gdb) x/8dw $sp` asks for.
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
    fn binary_numbers_show_their_width_themselves() {
        assert_eq!(read("0x20000000:\t00000011\t10000000\n"), [(0x2000_0000, vec![3, 0x80])]);
        assert!(read("0x20000000:\t10000011\t10000000\n").is_empty());
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
