//! Memory as tools print it, for tests of several crates.

use std::fmt::Write;

/// Lines of numbers, as tools print them.
pub(crate) struct Columns {
    /// Bytes per line and bytes per number.
    pub(crate) line: usize,
    pub(crate) number: usize,
    /// The text before a line's numbers.
    pub(crate) start: fn(u32) -> String,
    /// How a number is written, and the text between two.
    pub(crate) digits: fn(&[u8]) -> String,
    pub(crate) between: &'static str,
    /// The text after a line's numbers.
    pub(crate) end: fn(&[u8]) -> String,
}

impl Columns {
    pub(crate) fn print(&self, address: u32, bytes: &[u8]) -> String {
        let mut text = String::new();
        for (at, line) in (address..).step_by(self.line).zip(bytes.chunks(self.line)) {
            let numbers = line.chunks(self.number).map(self.digits).collect::<Vec<_>>();
            writeln!(text, "{}{}{}", (self.start)(at), numbers.join(self.between), (self.end)(line)).unwrap();
        }
        text
    }
}

/// Each way in which a tool prints memory, with its name.
pub(crate) const PRINTS: [(&str, Columns); 13] = [
    ("GDB, x/wx", GDB),
    ("GDB, x/bx", Columns { line: 8, number: 1, ..GDB }),
    ("GDB, x/hx", Columns { number: 2, ..GDB }),
    ("GDB, x/gx", Columns { number: 8, ..GDB }),
    ("OpenOCD, mdw", OPENOCD),
    ("OpenOCD, mdh", Columns { number: 2, ..OPENOCD }),
    ("OpenOCD, mdb", Columns { number: 1, ..OPENOCD }),
    ("J-Link, mem32", J_LINK),
    ("J-Link, mem", J_LINK_BYTES),
    ("pyOCD, read32", PYOCD),
    ("pyOCD, read8", Columns { number: 1, ..PYOCD }),
    ("probe-rs, b32", PROBE_RS),
    ("probe-rs, b8", Columns { number: 1, line: 8, ..PROBE_RS }),
];

/// The files of `testdata/dumps` that hold the buffer with addresses: prints, listings and records.
pub(crate) const WRITTEN: [&str; 21] = [
    "gdb-xdw.txt",
    "gdb-xuh.txt",
    "gdb-xdb.txt",
    "gdb-xdg.txt",
    "gdb-xtw.txt",
    "gdb-xth.txt",
    "pyocd-read8.txt",
    "pyocd-read16.txt",
    "pyocd-read32.txt",
    "pyocd-read64.txt",
    "xxd.txt",
    "xxd-e.txt",
    "xxd-g1-c12.txt",
    "xxd-g4-o.txt",
    "hexdump-c.txt",
    "hexdump.txt",
    "od-x1.txt",
    "od-x4z.txt",
    "od-d-x8.txt",
    "gdb.hex",
    "gdb.srec",
];

/// A little-endian number in lower case, with all digits.
fn lower(number: &[u8]) -> String {
    number.iter().rev().map(|byte| format!("{byte:02x}")).collect()
}

fn upper(number: &[u8]) -> String {
    lower(number).to_uppercase()
}

/// `x/wx` of GDB 13.
pub(crate) const GDB: Columns = Columns {
    line: 16,
    number: 4,
    start: |at| format!("0x{at:x} <trace_buffer+{}>:\t", at % 0x1000),
    digits: |number| format!("0x{}", lower(number)),
    between: "\t",
    end: |_| String::new(),
};

/// `mdw` of OpenOCD 0.12 (src/target/target.c, target_handle_md_output).
pub(crate) const OPENOCD: Columns = Columns {
    line: 32,
    number: 4,
    start: |at| format!("0x{at:08x}: "),
    digits: lower,
    between: " ",
    end: |_| " ".to_owned(),
};

/// `mem32` of J-Link Commander, as published sessions show it.
pub(crate) const J_LINK: Columns = Columns {
    line: 16,
    number: 4,
    start: |at| format!("{at:08X} = "),
    digits: upper,
    between: " ",
    end: |_| " ".to_owned(),
};

/// `probe-rs read b32` (probe-rs-tools 0.32, src/bin/probe-rs/cmd/read.rs, write_hex_table).
pub(crate) const PROBE_RS: Columns = Columns {
    line: 32,
    number: 4,
    start: |at| format!("{at:08x}: "),
    digits: lower,
    between: " ",
    end: |_| String::new(),
};

/// `read32` of pyOCD 0.46 (pyocd/utility/hex.py, dump_hex_data).
pub(crate) const PYOCD: Columns = Columns {
    line: 16,
    number: 4,
    start: |at| format!("{at:08x}:  "),
    digits: lower,
    between: " ",
    end: |line| format!("    |{}|", characters(line)),
};

/// `mem` of J-Link Commander.
pub(crate) const J_LINK_BYTES: Columns =
    Columns { number: 1, end: |line| format!(" {}", characters(line)), ..J_LINK };

fn characters(bytes: &[u8]) -> String {
    let shown = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
    bytes.iter().map(shown).collect()
}
