//! The command `opencsd`: compares OpenCSD's reading of generated and damaged traces with ours.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use tracewalk_conformance::damage::Kind;
use tracewalk_conformance::matrix::{Case, Programs, Unit, cases};
use tracewalk_conformance::opencsd::{Deviation, Found, Subject, Untrue, deviations, failed_blx};

use tracewalk_generate::arguments::Arguments;

/// One case in this number is compared by default; it shares no factor with the dimensions of the matrix.
const USUAL_STEP: u32 = 1511;

/// The default number of times that each case is damaged.
const USUAL_DAMAGES: u32 = 6;

/// The most failures that are printed.
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
    let folder = arguments.optional("--firmware")?.unwrap_or_else(|| "testdata/firmware".to_owned());
    let words = arguments.words();
    let samples = words.is_empty();
    let chosen = if samples {
        examples()?.into_iter().chain(sample(step, damages)).collect()
    } else {
        vec![named(&words)?]
    };
    let mut programs = Programs::new(Path::new(&folder), |file| std::fs::read(file));
    let lister = Lister::new(keep)?;
    let mut tally = Tally::default();
    if samples {
        let program = failed_blx::program().ok_or("a program of a few instructions")?;
        let subject = failed_blx::subject(&program).ok_or("a trace of a few bytes")?;
        tally.add(&"--every N, a BLX that fails", lister.compare(&subject)?, subject.untrue());
    }
    for chosen in &chosen {
        let compare = |subject: &Subject<'_>| (lister.compare(subject), subject.untrue());
        let (found, untrue) = programs.for_opencsd(&chosen.case, chosen.damage, compare)?;
        tally.add(chosen, found?, untrue);
        if tally.failures >= MOST_FAILURES {
            return Err(format!("stopped after {} differences", tally.failures).into());
        }
    }
    tally.report(samples)
}

/// The results so far.
#[derive(Default)]
struct Tally {
    compared: usize,
    failures: usize,
    /// How often each deviation occurred, and the first trace that showed it.
    explained: BTreeMap<&'static str, (usize, String)>,
}

impl Tally {
    /// Adds the result of one trace.
    fn add(&mut self, name: &impl std::fmt::Display, found: Vec<Found>, untrue: Option<Untrue>) {
        self.compared += 1;
        if let Some(untrue) = untrue {
            self.fail(name, &untrue);
        }
        for Found { difference, deviation } in found {
            match deviation {
                Some(deviation) => {
                    self.explained.entry(deviation.id).or_insert_with(|| (0, name.to_string())).0 += 1;
                }
                None => self.fail(name, &difference),
            }
        }
    }

    fn fail(&mut self, name: &impl std::fmt::Display, what: &impl std::fmt::Display) {
        println!("cargo xtask opencsd {name}\n    {what}");
        self.failures += 1;
    }

    /// Prints the results. If samples were compared, every deviation has to have occurred.
    fn report(&self, samples: bool) -> Result<(), Box<dyn Error>> {
        println!("{} traces, {} unexplained differences; explained:", self.compared, self.failures);
        let mut stale = Vec::new();
        for Deviation { id, .. } in deviations() {
            match self.explained.get(id) {
                Some((count, first)) => println!("    {count:8} {id}, first in {first}"),
                None => stale.push(*id),
            }
        }
        match (self.failures, samples && !stale.is_empty()) {
            (0, false) => Ok(()),
            (0, true) => Err(format!("deviations that did not occur: {}", stale.join(", ")).into()),
            _ => Err("OpenCSD differs in unexplained ways".into()),
        }
    }
}

/// One case in `step`, each sound and then damaged; the ways to damage them take turns.
fn sample(step: u32, damages: u32) -> Vec<Chosen> {
    let readable = cases().into_iter().filter(Case::is_for_opencsd);
    let mut kinds = Kind::ALL.into_iter().cycle().zip(1..);
    let mut all = Vec::new();
    for case in readable.step_by(step.max(1) as usize) {
        all.push(Chosen { case: case.clone(), damage: None });
        // OpenCSD's reading of damaged ETMv4 trace is not known yet.
        if matches!(case.unit, Unit::Etmv4(_)) {
            continue;
        }
        let damage = kinds.by_ref().take(damages as usize);
        all.extend(damage.map(|damage| Chosen { case: case.clone(), damage: Some(damage) }));
    }
    all
}

/// One case for each deviation, because few traces show most of them.
fn examples() -> Result<Vec<Chosen>, Box<dyn Error>> {
    let lines = include_str!("opencsd/examples.txt").lines().filter(|line| !line.starts_with('#'));
    let example = |line: &'static str| {
        let (_, case) = line.split_once(": ").ok_or("expected an example of the form DEVIATION: CASE")?;
        named(&case.split(' ').collect::<Vec<_>>())
    };
    lines.map(example).collect()
}

/// The case that these words of a failure name.
fn named(words: &[impl AsRef<str>]) -> Result<Chosen, Box<dyn Error>> {
    let words = words.iter().map(AsRef::as_ref);
    let (damage, case): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with("damage="));
    let case = case.join(" ").parse()?;
    let damage = damage.first().map(|word| {
        let (kind, seed) = word.strip_prefix("damage=")?.split_once(':')?;
        Some((*Kind::ALL.get(kind.parse::<usize>().ok()?)?, seed.parse().ok()?))
    });
    match damage {
        None => Ok(Chosen { case, damage: None }),
        Some(Some(damage)) => Ok(Chosen { case, damage: Some(damage) }),
        Some(None) => Err("expected damage=KIND:SEED with KIND from 0 to 5".into()),
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

/// Runs OpenCSD's program, and owns the folder of its input.
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
            // A folder that stays does no harm.
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}
