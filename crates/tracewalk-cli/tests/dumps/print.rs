//! Memory as tools print it.

use std::fmt::Write;

/// Lines of numbers, as tools print them.
pub(super) struct Columns {
    /// Bytes per line and bytes per number.
    pub(super) line: usize,
    pub(super) number: usize,
    /// The text before a line's numbers.
    pub(super) start: fn(u32) -> String,
    /// How a number is written, and the text between two.
    pub(super) digits: fn(&[u8]) -> String,
    pub(super) between: &'static str,
    /// The text after a line's numbers.
    pub(super) end: fn(&[u8]) -> String,
}

impl Columns {
    pub(super) fn print(&self, address: u32, bytes: &[u8]) -> String {
        let mut text = String::new();
        for (at, line) in (address..).step_by(self.line).zip(bytes.chunks(self.line)) {
            let numbers = line.chunks(self.number).map(self.digits).collect::<Vec<_>>();
            writeln!(text, "{}{}{}", (self.start)(at), numbers.join(self.between), (self.end)(line)).unwrap();
        }
        text
    }
}

/// A little-endian number in lower case, with all digits.
fn lower(number: &[u8]) -> String {
    number.iter().rev().map(|byte| format!("{byte:02x}")).collect()
}

fn upper(number: &[u8]) -> String {
    lower(number).to_uppercase()
}

/// `x/wx` of GDB 13.
pub(super) const GDB: Columns = Columns {
    line: 16,
    number: 4,
    start: |at| format!("0x{at:x} <trace_buffer+{}>:\t", at % 0x1000),
    digits: |number| format!("0x{}", lower(number)),
    between: "\t",
    end: |_| String::new(),
};

/// `mdw` of OpenOCD 0.12 (src/target/target.c, target_handle_md_output).
pub(super) const OPENOCD: Columns = Columns {
    line: 32,
    number: 4,
    start: |at| format!("0x{at:08x}: "),
    digits: lower,
    between: " ",
    end: |_| " ".to_owned(),
};

/// `mem32` of J-Link Commander, as published sessions show it.
pub(super) const J_LINK: Columns = Columns {
    line: 16,
    number: 4,
    start: |at| format!("{at:08X} = "),
    digits: upper,
    between: " ",
    end: |_| " ".to_owned(),
};

/// `probe-rs read b32` (probe-rs-tools 0.32, src/bin/probe-rs/cmd/read.rs, write_hex_table).
pub(super) const PROBE_RS: Columns = Columns {
    line: 32,
    number: 4,
    start: |at| format!("{at:08x}: "),
    digits: lower,
    between: " ",
    end: |_| String::new(),
};

/// `read32` of pyOCD 0.46 (pyocd/utility/hex.py, dump_hex_data).
pub(super) const PYOCD: Columns = Columns {
    line: 16,
    number: 4,
    start: |at| format!("{at:08x}:  "),
    digits: lower,
    between: " ",
    end: |line| format!("    |{}|", characters(line)),
};

/// `mem` of J-Link Commander.
pub(super) const J_LINK_BYTES: Columns =
    Columns { number: 1, end: |line| format!(" {}", characters(line)), ..J_LINK };

fn characters(bytes: &[u8]) -> String {
    let shown = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
    bytes.iter().map(shown).collect()
}
