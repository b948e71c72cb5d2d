//! Cases as text: parsing and display.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use super::{Beside, Case, Etmv4, Packing, PathFrom, Unit};
use tracewalk_generate::etmv3::Cancel;
use tracewalk_generate::etmv4::ContextPlace;

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program)?;
        if let PathFrom::Wander(seed) = self.path {
            write!(f, " wander={seed}")?;
        }
        match &self.unit {
            Unit::Etmv3 { cpu, etmcr, etmidr, cancel, tail_chaining_follows, deprecated_exceptions } => {
                write!(f, " etmv3,cpu={cpu},etmcr={etmcr:#x}")?;
                if let Some(etmidr) = etmidr {
                    write!(f, ",etmidr={etmidr:#x}")?;
                }
                let cancel =
                    CANCEL.iter().find(|(_, known)| known == cancel).map_or("never", |(name, _)| name);
                write!(f, " cancel={cancel}")?;
                write_flag(f, "tail-chaining-follows", *tail_chaining_follows)?;
                write_flag(f, "deprecated-exceptions", *deprecated_exceptions)?;
            }
            Unit::Pft { cpu, etmcr, depth } => write!(f, " pft,cpu={cpu},etmcr={etmcr:#x} depth={depth}")?,
            Unit::Etmv4(unit) => unit.fmt(f)?,
            Unit::Mtb { exponent, branches_to_next } => {
                write!(f, " mtb size={exponent}")?;
                write_flag(f, "branches-to-next", *branches_to_next)?;
            }
        }
        let Beside { synchronise_every, timestamp_every, trigger_every, pauses } = &self.beside;
        write_option(f, "synchronise", synchronise_every.as_ref())?;
        write_option(f, "timestamps", timestamp_every.as_ref())?;
        write_option(f, "triggers", trigger_every.as_ref())?;
        write_option(f, "pauses", pauses.as_ref())?;
        let packing =
            PACKING.iter().find(|(_, known)| *known == self.packing).map_or("raw", |(name, _)| name);
        write!(f, " container={packing}")
    }
}

impl Display for Etmv4 {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, " etmv4,cpu={},trcconfigr={:#x}", self.cpu, self.trcconfigr)?;
        if let Some(trcidr0) = self.trcidr0 {
            write!(f, ",trcidr0={trcidr0:#x}")?;
        }
        write!(f, ",trcidr8={:#x} depth={}", self.trcidr8, self.depth)?;
        let contexts = ContextPlace::ALL.iter().find(|(_, known)| *known == self.contexts);
        write_option(f, "contexts", contexts.map(|(name, _)| name))?;
        write_option(f, "wrong-paths", self.wrong_paths.as_ref())?;
        write_option(f, "q", self.q.as_ref())?;
        write_option(f, "source-addresses", self.source_addresses.as_ref())?;
        write_flag(f, "late-addresses", self.late_addresses)?;
        write_flag(f, "keeps-returns", self.keeps_returns)
    }
}

fn write_flag(f: &mut Formatter<'_>, name: &str, set: bool) -> fmt::Result {
    if set { write!(f, " {name}") } else { Ok(()) }
}

fn write_option(f: &mut Formatter<'_>, name: &str, value: Option<&impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {name}={value}"))
}

const CANCEL: [(&str, Cancel); 3] =
    [("never", Cancel::Never), ("multiple", Cancel::Multiple), ("always", Cancel::Always)];

const PACKING: [(&str, Packing); 3] =
    [("raw", Packing::Raw), ("frames", Packing::Frames), ("port", Packing::Port)];

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let program = words.next().ok_or("found no program")?.to_owned();
        let mut case = Self {
            program,
            path: PathFrom::Record,
            unit: Unit::Mtb { exponent: 12, branches_to_next: false },
            beside: Beside::default(),
            packing: Packing::Raw,
        };
        for word in words {
            case.take(word)?;
        }
        Ok(case)
    }
}

impl Case {
    fn take(&mut self, word: &str) -> Result<(), String> {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "wander" => self.path = PathFrom::Wander(number(word, value)?),
            "synchronise" => self.beside.synchronise_every = Some(number(word, value)?),
            "timestamps" => self.beside.timestamp_every = Some(number(word, value)?),
            "triggers" => self.beside.trigger_every = Some(number(word, value)?),
            "pauses" => self.beside.pauses = Some(value.parse()?),
            "container" => self.packing = named(&PACKING, word, value)?,
            "mtb" => {}
            _ if word.starts_with("etmv3,") => {
                let (cpu, etmcr, etmidr) = registers(word)?;
                self.unit = Unit::Etmv3 {
                    cpu,
                    etmcr,
                    etmidr,
                    cancel: Cancel::Never,
                    tail_chaining_follows: false,
                    deprecated_exceptions: false,
                };
            }
            _ if word.starts_with("etmv4,") => self.unit = Unit::Etmv4(etmv4(word)?),
            _ if word.starts_with("pft,") => {
                let (cpu, etmcr, _) = registers(word)?;
                self.unit = Unit::Pft { cpu, etmcr, depth: 1 };
            }
            _ => self.unit.take(name, word, value)?,
        }
        Ok(())
    }
}

impl Unit {
    fn take(&mut self, name: &str, word: &str, value: &str) -> Result<(), String> {
        match (self, name) {
            (Self::Etmv3 { cancel, .. }, "cancel") => *cancel = named(&CANCEL, word, value)?,
            (Self::Etmv3 { tail_chaining_follows, .. }, "tail-chaining-follows") => {
                *tail_chaining_follows = true;
            }
            (Self::Etmv3 { deprecated_exceptions, .. }, "deprecated-exceptions") => {
                *deprecated_exceptions = true;
            }
            (Self::Pft { depth, .. }, "depth") => *depth = number(word, value)?,
            (Self::Etmv4(unit), "depth") => unit.depth = number(word, value)?,
            (Self::Etmv4(unit), "contexts") => unit.contexts = named(&ContextPlace::ALL, word, value)?,
            (Self::Etmv4(unit), "wrong-paths") => unit.wrong_paths = Some(number(word, value)?),
            (Self::Etmv4(unit), "q") => unit.q = Some(number(word, value)?),
            (Self::Etmv4(unit), "source-addresses") => unit.source_addresses = Some(number(word, value)?),
            (Self::Etmv4(unit), "late-addresses") => unit.late_addresses = true,
            (Self::Etmv4(unit), "keeps-returns") => unit.keeps_returns = true,
            (Self::Mtb { exponent, .. }, "size") => *exponent = number(word, value)?,
            (Self::Mtb { branches_to_next, .. }, "branches-to-next") => *branches_to_next = true,
            _ => return Err(format!("\"{word}\" is not valid here")),
        }
        Ok(())
    }
}

/// Parses `cpu` and the registers of ETMv4.
fn etmv4(word: &str) -> Result<Etmv4, String> {
    let mut unit = Etmv4 { trcconfigr: 1, depth: 2, ..Etmv4::default() };
    for key in word.split(',').skip(1) {
        match key.split_once('=') {
            Some(("cpu", value)) => value.clone_into(&mut unit.cpu),
            Some(("trcconfigr", value)) => unit.trcconfigr = register(key, value)?,
            Some(("trcidr0", value)) => unit.trcidr0 = Some(register(key, value)?),
            Some(("trcidr8", value)) => unit.trcidr8 = register(key, value)?,
            _ => {
                return Err(format!(
                    "\"{key}\" is not a key; the keys are cpu, trcconfigr, trcidr0 and trcidr8"
                ));
            }
        }
    }
    if unit.cpu.is_empty() { Err(format!("\"{word}\" is not the name of a processor")) } else { Ok(unit) }
}

/// Parses `cpu`, `etmcr` and `etmidr` after a protocol's name.
fn registers(word: &str) -> Result<(String, u32, Option<u32>), String> {
    let (mut cpu, mut etmcr, mut etmidr) = (None, 0, None);
    for key in word.split(',').skip(1) {
        match key.split_once('=') {
            Some(("cpu", value)) => cpu = Some(value.to_owned()),
            Some(("etmcr", value)) => etmcr = register(key, value)?,
            Some(("etmidr", value)) => etmidr = Some(register(key, value)?),
            _ => return Err(format!("\"{key}\" is not a key; the keys are cpu, etmcr and etmidr")),
        }
    }
    Ok((cpu.ok_or_else(|| format!("\"{word}\" is not the name of a processor"))?, etmcr, etmidr))
}

fn register(key: &str, value: &str) -> Result<u32, String> {
    let digits = value.strip_prefix("0x");
    let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| format!("\"{key}\": expected a hexadecimal number after 0x"))
}

fn number<T: FromStr>(word: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("\"{word}\": expected a number"))
}

fn named<T: Copy>(names: &[(&str, T)], word: &str, value: &str) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| *name == value).map(|(_, known)| *known);
    found.ok_or_else(|| {
        let names = names.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        format!("\"{word}\": expected one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use crate::matrix::{Case, cases};

    #[test]
    fn every_case_is_read_as_it_is_written() {
        for case in cases().into_iter().step_by(7) {
            assert_eq!(case.to_string().parse::<Case>(), Ok(case));
        }
    }

    #[test]
    fn words_that_mean_nothing_are_refused() {
        let error = |text: &str| text.parse::<Case>().unwrap_err();
        assert_eq!(error("m3 mtb depth=4"), "\"depth=4\" is not valid here");
        assert_eq!(error("m3 pft,etmcr=0x1"), "\"pft,etmcr=0x1\" is not the name of a processor");
        assert_eq!(error("m3 container=box"), "\"container=box\": expected one of raw, frames, port");
    }
}
