//! The command `opencsd`: OpenCSD's reading of generated and damaged traces beside ours.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use tracewalk_generate::damage::Kind;
use tracewalk_generate::matrix::{Case, Programs, cases};
use tracewalk_generate::opencsd::{DEVIATIONS, Found, Subject};

use crate::arguments::Arguments;

/// Every so many cases are compared where nothing else is said; it shares no factor with the dimensions of the matrix.
const USUAL_STEP: u32 = 1511;

/// Each case is damaged so often where nothing else is said.
const USUAL_DAMAGES: u32 = 6;

/// So many failures are enough to see what is wrong.
const MOST_FAILURES: usize = 20;

/// A case, and how it is damaged.
struct Chosen {
    case: Case,
    damage: Option<(Kind, u32)>,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let step = arguments.number("--every")?.unwrap_or(USUAL_STEP);
    let damages = arguments.number("--damage")?.unwrap_or(USUAL_DAMAGES);
    let keep = arguments.optional("--keep")?;
    let stale_fails = arguments.flag("--stale-fails");
    let folder = arguments.optional("--firmware")?.unwrap_or_else(|| "testdata/firmware".to_owned());
    let words = arguments.words();
    let chosen = if words.is_empty() { sample(step, damages) } else { vec![named(&words)?] };
    let mut programs = Programs::new(Path::new(&folder), |file| std::fs::read(file));
    let lister = Lister::new(keep)?;
    // How often each deviation was seen, and where first.
    let mut explained = BTreeMap::<&str, (usize, String)>::new();
    let (mut compared, mut failures) = (0, 0);
    for chosen in &chosen {
        let found = programs.for_opencsd(&chosen.case, chosen.damage, |subject| lister.compare(subject))?;
        for Found { difference, deviation } in found? {
            match deviation {
                Some(deviation) => {
                    explained.entry(deviation.id).or_insert_with(|| (0, chosen.to_string())).0 += 1;
                }
                None => {
                    println!("cargo xtask opencsd {chosen}\n    {difference}");
                    failures += 1;
                }
            }
            if failures >= MOST_FAILURES {
                return Err(format!("stopped after {failures} differences").into());
            }
        }
        compared += 1;
    }
    println!("{compared} traces, {failures} differences that nothing explains; explained:");
    for deviation in DEVIATIONS {
        match explained.get(deviation.id) {
            Some((count, first)) => println!("    {count:8} {}, first in {first}", deviation.id),
            None => println!("    {:8} {}", 0, deviation.id),
        }
    }
    let stale = DEVIATIONS.iter().filter(|deviation| !explained.contains_key(deviation.id));
    let stale = stale.map(|deviation| deviation.id).collect::<Vec<_>>().join(", ");
    match (failures, stale_fails && !stale.is_empty()) {
        (0, false) => Ok(()),
        (0, true) => Err(format!("deviations that were not seen: {stale}").into()),
        _ => Err("OpenCSD reads something else".into()),
    }
}

/// Every so many cases, each sound and then damaged, the ways to damage them taking turns.
fn sample(step: u32, damages: u32) -> Vec<Chosen> {
    let readable = cases().into_iter().filter(Case::is_for_opencsd);
    let mut kinds = Kind::ALL.into_iter().cycle().zip(1..);
    let mut all = Vec::new();
    for case in readable.step_by(step.max(1) as usize) {
        all.push(Chosen { case: case.clone(), damage: None });
        let damage = kinds.by_ref().take(damages as usize);
        all.extend(damage.map(|damage| Chosen { case: case.clone(), damage: Some(damage) }));
    }
    all
}

/// The case that a failure prints.
fn named(words: &[String]) -> Result<Chosen, Box<dyn Error>> {
    let (damage, case): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| word.starts_with("damage="));
    let case = case.into_iter().map(String::as_str).collect::<Vec<_>>().join(" ").parse()?;
    let damage = damage.first().map(|word| {
        let (kind, seed) = word.strip_prefix("damage=")?.split_once(':')?;
        Some((*Kind::ALL.get(kind.parse::<usize>().ok()?)?, seed.parse().ok()?))
    });
    match damage {
        None => Ok(Chosen { case, damage: None }),
        Some(Some(damage)) => Ok(Chosen { case, damage: Some(damage) }),
        Some(None) => Err("damage=: expected a number from 0 to 5, a colon and a seed".into()),
    }
}

impl std::fmt::Display for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.case)?;
        match self.damage {
            Some((kind, seed)) => {
                let number = Kind::ALL.iter().position(|known| *known == kind).unwrap_or_default();
                write!(f, " damage={number}:{seed}")
            }
            None => Ok(()),
        }
    }
}

/// OpenCSD's program, and a folder for what it reads.
struct Lister {
    folder: PathBuf,
    keeps: bool,
}

impl Lister {
    fn new(keep: Option<String>) -> Result<Self, Box<dyn Error>> {
        let keeps = keep.is_some();
        let own = || std::env::temp_dir().join(format!("tracewalk-opencsd-{}", std::process::id()));
        let folder = keep.map_or_else(own, PathBuf::from);
        std::fs::create_dir_all(&folder)?;
        Ok(Self { folder, keeps })
    }

    fn compare(&self, subject: &Subject<'_>) -> Result<Vec<Found>, Box<dyn Error>> {
        for file in subject.snapshot().map_err(|reason| reason.0)? {
            std::fs::write(self.folder.join(file.name), file.bytes)?;
        }
        let packets = self.list(&[])?;
        let decoding = if subject.has_flow() { self.list(&["-decode_only"])? } else { String::new() };
        Ok(subject.differences(&packets, &decoding))
    }

    fn list(&self, options: &[&str]) -> Result<String, Box<dyn Error>> {
        let mut command = Command::new("trc_pkt_lister");
        command.args(["-ss_dir", "."]).args(options).current_dir(&self.folder);
        let output = command.output().map_err(|error| format!("trc_pkt_lister: {error}"))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Lister {
    fn drop(&mut self) {
        if !self.keeps {
            // Nothing depends on it.
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}
