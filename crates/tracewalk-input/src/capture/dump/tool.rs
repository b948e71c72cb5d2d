//! The tools that print memory.

use std::fmt;

/// The tool whose format a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// GDB's `x` command with the formats `x`, `d`, `u` and `t`, of any size.
    Gdb,
    /// OpenOCD's `mdb`, `mdh`, `mdw` and `mdd`.
    OpenOcd,
    /// J-Link Commander's `mem8`, `mem16` and `mem32`.
    JLink,
    /// pyOCD's `read8`, `read16`, `read32` and `read64`.
    PyOcd,
    /// `probe-rs read`.
    ProbeRs,
    /// `xxd`, also with `-e`, `-g` and `-c`.
    Xxd,
    /// `hexdump -C`.
    Hexdump,
    /// `od -A x -t x1` and its relatives, and `hexdump`.
    Od,
}

impl Tool {
    /// An example line of the tool.
    pub(super) const fn example(self) -> &'static str {
        match self {
            Self::Gdb => "`0x20000000:` and values like `0x0000010c`",
            Self::OpenOcd => "`0x20000000: 0000010c …`",
            Self::JLink => "`20000000 = 0000010C …`",
            Self::PyOcd => "`20000000:  0000010c …   |…|`",
            Self::ProbeRs => "`20000000: 0000010c …`",
            Self::Xxd => "`00000000: 0c01 0000 …  ....`",
            Self::Hexdump => "`00000000  0c 01 00 00 …  |....|`",
            Self::Od => "`000000 0000010c …`",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gdb => "GDB",
            Self::OpenOcd => "OpenOCD",
            Self::JLink => "J-Link Commander",
            Self::PyOcd => "pyOCD",
            Self::ProbeRs => "probe-rs",
            Self::Xxd => "xxd",
            Self::Hexdump => "hexdump",
            Self::Od => "od",
        })
    }
}
