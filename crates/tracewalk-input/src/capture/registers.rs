//! A trace unit's registers, by Arm's names.

use std::collections::BTreeMap;
use std::path::Path;

use tracewalk::protocol::mtb;

use super::error::{CaptureError, CaptureErrorKind};
use super::ini;
use super::prompts::{cleaned, without_prompts};
use crate::cpu::UsualRegisters;
use crate::excerpt::excerpt;
use crate::file;
use crate::nearest::nearest;
use crate::number;
use crate::origin::{Origin, Stated};

/// The registers that change how trace is read. Other registers are kept as well, but nothing depends on
/// their values.
pub(crate) const DECODING: [&str; 19] = [
    "ETMCR",
    "ETMIDR",
    "ETMCCER",
    "ETMTRACEIDR",
    "ITMTCR",
    "STMTCSR",
    "MTB_POSITION",
    "MTB_MASTER",
    "MTB_FLOW",
    "MTB_BASE",
    "TRCCONFIGR",
    "TRCTRACEIDR",
    "TRCDEVARCH",
    "TRCIDR0",
    "TRCIDR1",
    "TRCIDR2",
    "TRCIDR8",
    "TRCIDR12",
    "TRCIDR13",
];

/// The names in [`DECODING`], as options and descriptions write them.
pub(crate) const LOWER_CASE: [&str; 19] = [
    "etmcr",
    "etmidr",
    "etmccer",
    "etmtraceidr",
    "itmtcr",
    "stmtcsr",
    "mtb_position",
    "mtb_master",
    "mtb_flow",
    "mtb_base",
    "trcconfigr",
    "trctraceidr",
    "trcdevarch",
    "trcidr0",
    "trcidr1",
    "trcidr2",
    "trcidr8",
    "trcidr12",
    "trcidr13",
];

/// The registers of ETMv4 and ETE, in lower case.
pub(crate) const ETMV4_LOWER_CASE: &[&str] = LOWER_CASE.split_at(10).1;

/// The registers of an MTB, in lower case.
pub(crate) const MTB_LOWER_CASE: &[&str] = LOWER_CASE.split_at(10).0.split_at(6).1;

/// The registers that snapshots may identify by number (IHI 0014Q and IHI 0035B, "Register summary"; DDI
/// 0403E, C1.7: a quarter of the offset).
const NUMBERS: [(&str, u32); 6] = [
    ("ETMCR", 0x000),
    ("ETMIDR", 0x079),
    ("ETMCCER", 0x07a),
    ("ETMTRACEIDR", 0x080),
    ("ITMTCR", 0x3a0),
    ("STMTCSR", 0x3a0),
];

/// The number of the register with this name.
pub(super) fn number_of(name: &str) -> Option<u32> {
    NUMBERS.iter().find(|&&(known, _)| known == name).map(|&(_, number)| number)
}

/// The register that a key in a `[regs]` section names, in upper case, without the number, index or size that
/// may follow: `ETMCR(0x000)`, `ETMCR(id:0x0)`, `CNTPCT(size:64)`.
pub(super) fn named_by(key: &str) -> String {
    key.split('(').next().unwrap_or("").trim().to_ascii_uppercase()
}

/// The register that a key in the `[regs]` section of an ETMv3, PTM or ITM refers to: by its name, or, if a
/// tool uses other names, by the number after it, like `TRACEIDR(0x080)`.
pub(super) fn meant_by(key: &str) -> String {
    let name = named_by(key);
    if DECODING.contains(&name.as_str()) {
        return name;
    }
    let after = key.split_once('(').map_or("", |(_, after)| after);
    let number = after.split_once(')').and_then(|(number, _)| number::parse_u32(number.trim()));
    let numbered = NUMBERS.iter().find(|&&(_, known)| Some(known) == number);
    numbered.map_or(name, |&(known, _)| known.to_owned())
}

/// The registers of a Micro Trace Buffer, as `registers.txt` and the options name them.
pub(crate) const MTB: [&str; 4] = ["MTB_POSITION", "MTB_MASTER", "MTB_FLOW", "MTB_BASE"];

/// The beginning of the names in `MTB`.
const MTB_PREFIX: &str = "MTB_";

/// The known values of an MTB's registers, by the names in `MTB`.
pub fn mtb_values(registers: mtb::Registers) -> impl Iterator<Item = (&'static str, u32)> {
    let mtb::Registers { position, master, flow, base } = registers;
    let values = [Some(position), Some(master), flow, base];
    MTB.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?)))
}

/// Register values by Arm's names in upper case (`ETMCR`, `MTB_POSITION`), each with its origin.
///
/// A register that is not given is absent; an absent register is not the same as one with the value 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers(BTreeMap<String, Stated<u32>>);

impl Registers {
    /// No registers.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The registers of an MTB; `None` without the required ones.
    #[must_use]
    pub fn mtb(&self) -> Option<mtb::Registers> {
        let [position, master, flow, base] = MTB.map(|name| self.get(name));
        Some(mtb::Registers { position: position?, master: master?, flow, base })
    }

    /// The value of the register with this name, in any letter case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u32> {
        self.stated(name).map(|stated| stated.value)
    }

    /// The value of the register with this name, in any letter case, and its origin.
    #[must_use]
    pub fn stated(&self, name: &str) -> Option<&Stated<u32>> {
        self.0.get(&name.to_ascii_uppercase())
    }

    /// Sets a register, and replaces an earlier value.
    pub fn set(&mut self, name: &str, value: u32, origin: Origin) {
        self.0.insert(name.to_ascii_uppercase(), Stated::new(value, origin));
    }

    /// The registers by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Stated<u32>)> {
        self.0.iter().map(|(name, stated)| (name.as_str(), stated))
    }

    /// Whether no register is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the registers of `later`, which take precedence.
    pub fn extend(&mut self, later: Self) {
        self.0.extend(later.0);
    }

    /// Adds the usual values of the processor with this name for the registers in `those` that are not
    /// stated.
    pub(crate) fn add_usual(&mut self, cpu: &str, those: impl Fn(&str) -> bool) {
        let Some(usual) = UsualRegisters::of_cpu(cpu) else { return };
        // A stated TRCIDR1 of ETMv4 means that the unit is not an ETE, even if an ETE is usual for the
        // processor.
        let is_etmv4 = self.get("TRCIDR1").is_some_and(|trcidr1| trcidr1 >> 8 & 0b1111 == 4);
        let belongs = |name| those(name) && !(is_etmv4 && name == "TRCDEVARCH");
        for (name, value) in usual.iter().filter(|&(name, _)| belongs(name)) {
            self.0.entry(name.to_owned()).or_insert_with(|| Stated::new(value, usual.origin()));
        }
    }

    /// Reads the registers of a Micro Trace Buffer from a file with lines like `MTB_POSITION=0x1bc`. In a debugger's log, which has
    /// prompts, other lines are passed over; a file that somebody wrote has no other lines.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or a line is malformed, names an unknown register or repeats one.
    pub fn read_mtb(path: &Path) -> Result<Self, CaptureError> {
        let error = |line, kind| CaptureError { file: path.to_owned(), line, kind };
        let text = file::read_text(path, file::LONGEST_TEXT)
            .map_err(|problem| error(None, CaptureErrorKind::File(problem)))?;
        let text = cleaned(&text);
        let is_log = text.lines().any(|line| without_prompts(line) != line);
        let names_one = |line: &str| {
            line.get(..MTB_PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(MTB_PREFIX))
        };
        let mut registers = Self::new();
        for (line, text) in ini::lines(&text) {
            let at = |kind| error(Some(line), kind);
            let text = without_prompts(text).trim();
            if text.is_empty() {
                continue;
            }
            match ini::assignment(text) {
                Some((key, value)) if !is_log || names_one(key) => {
                    registers.add_mtb(path, line, key, value).map_err(at)?;
                }
                _ if is_log => {}
                _ => return Err(at(CaptureErrorKind::Line { found: excerpt(text) })),
            }
        }
        if is_log && registers.is_empty() {
            return Err(error(None, CaptureErrorKind::NoMtbRegisters));
        }
        Ok(registers)
    }

    /// Adds the register that a line of a file names.
    pub(crate) fn add_mtb(
        &mut self,
        path: &Path,
        line: u32,
        key: &str,
        value: &str,
    ) -> Result<(), CaptureErrorKind> {
        let name = known(key, &MTB).map_err(|nearest| CaptureErrorKind::UnknownKey {
            place: "registers".to_owned(),
            key: excerpt(key),
            nearest,
        })?;
        if self.stated(name).is_some() {
            return Err(CaptureErrorKind::Repeated { key: name.to_owned() });
        }
        self.set(name, parse_value(name, value)?, Origin::line(path, line));
        Ok(())
    }
}

/// The name among `names` that `key` spells, or the nearest one.
pub(crate) fn known(key: &str, names: &[&'static str]) -> Result<&'static str, &'static str> {
    match names.iter().find(|name| name.eq_ignore_ascii_case(key)) {
        Some(name) => Ok(name),
        None => Err(nearest(key, names.iter().copied()).unwrap_or("")),
    }
}

/// A register's value.
pub(crate) fn parse_value(key: &str, value: &str) -> Result<u32, CaptureErrorKind> {
    let number = number::parse(value).ok_or_else(|| CaptureErrorKind::Type {
        key: excerpt(key),
        expected: "a number",
        found: format!("`{}`", excerpt(value)),
    })?;
    u32::try_from(number).map_err(|_| CaptureErrorKind::TooLarge {
        key: excerpt(key),
        found: number,
        limit: u64::from(u32::MAX),
    })
}
