//! Compares the example that lists a snapshot in OpenCSD's words with OpenCSD: every line must be the same,
//! apart from the differences below.
//!
//! The packets and the elements of each source are compared separately. OpenCSD prints an element after the
//! packet that made it certain, and interleaves sources as their bytes arrive. The example prints an element
//! after the packet that it comes from, and one source after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::library::Library;
use super::programs::{MEMORY, valgrind};
use super::{Linking, compile, package};
use crate::process::output;
use crate::{target_folder, workspace};

/// Examples of `testdata` that both list. OpenCSD gives up on `m33-etmv4`, because it takes 0xfffffffe for an
/// address (the deviation `no-return-address`). It spreads the cycles of `a7-etmv3` over instructions, and
/// does not read an MTB's packets.
const EXAMPLES: &[&str] = &["a15-pft", "a53-etmv4", "a57-etmv4", "m3-etmv3"];

/// Snapshots of the corpus, which is not part of the project; they are listed if they exist.
const CORPUS: &[&str] = &[
    "synthetic/mix-m3-etmv3",
    "synthetic/mix-m3-etmv3-broadcast",
    "real/tc2-ptm-rstk-t32",
    "etm4/synthetic/mix-a57-etmv4",
    "etm4/synthetic/mix-a57-etmv4-speculative",
    "etm4/trace_file_cid_vmid",
];

/// A known difference.
struct Known {
    example: &'static str,
    /// The name of OpenCSD's deviation in `tracewalk-conformance`, or what the example omits.
    why: &'static str,
    /// OpenCSD's line.
    theirs: &'static str,
    /// The example's line instead; `None` if the example prints no line.
    ours: Option<&'static str>,
    lines: usize,
}

const KNOWN: &[Known] = &[
    Known {
        example: "a15-pft",
        why: "undefined-return",
        theirs: "; excep num (0x09)",
        ours: Some("; excep num (0x09)"),
        lines: 4,
    },
    Known {
        example: "m3-etmv3",
        why: "cancelled-instruction",
        theirs: "INSTR_RANGE(exec range=0x1c0:[0x1c2]",
        ours: None,
        lines: 9,
    },
    Known { example: "m3-etmv3", why: "cancelled-return", theirs: "EXCEPTION_RET(", ours: None, lines: 3 },
    Known {
        example: "m3-etmv3",
        why: "m-exception-codes",
        theirs: "EXCEPTION(excep num (0x0",
        ours: Some("EXCEPTION(excep num (0x1"),
        lines: 6,
    },
    Known {
        example: "etm4/trace_file_cid_vmid",
        why: "TSTATE, which OpenCSD prints for ETE",
        theirs: "I_TRACE_INFO : Trace Info.; INFO=0x0 { CC.0, TSTATE.0 }",
        ours: Some("I_TRACE_INFO : Trace Info.; INFO=0x0 { CC.0 }"),
        lines: 1,
    },
];

/// Lists each snapshot with both, and compares the lines.
pub(super) fn run(library: &Library, folder: &Path) -> Result<String, String> {
    if let Err(error) = Command::new("trc_pkt_lister").arg("-h").output() {
        return Err(format!("trc_pkt_lister: {error}: it is in Debian's libopencsd-bin"));
    }
    let lister = folder.join("shared/lister");
    compile(library, &package().join("examples/lister.c"), &lister, Linking::Shared)?;
    let mut snapshots = Vec::new();
    for example in EXAMPLES {
        snapshots.push((*example, snapshot(example, folder)?));
    }
    let corpus = workspace().join("../shared/corpus");
    if std::env::var_os("CI").is_some() && !corpus.is_dir() {
        return Err(format!("found no captures in {}", corpus.display()));
    }
    snapshots.extend(CORPUS.iter().map(|name| (*name, corpus.join(name))).filter(|(_, path)| path.is_dir()));
    let (mut lines, mut known) = (0, 0);
    for (name, snapshot) in &snapshots {
        let theirs = Command::new("trc_pkt_lister")
            .arg("-ss_dir")
            .arg(snapshot)
            .arg("-decode")
            // OpenCSD writes a log into its working directory.
            .current_dir(folder)
            .output()
            .map_err(|error| format!("trc_pkt_lister: {error}"))?;
        let theirs = String::from_utf8_lossy(&theirs.stdout);
        // Only the shortest example runs under valgrind.
        let mut list = if *name == "a15-pft" { valgrind(MEMORY, &lister) } else { Command::new(&lister) };
        let ours = output(list.arg("-ss_dir").arg(snapshot).arg("-decode"))?;
        let compared = compare(name, &by_source(&theirs), &by_source(&ours))?;
        lines += compared.0;
        known += compared.1;
    }
    Ok(format!(
        "lister prints the same lines as trc_pkt_lister: {} snapshots, {lines} lines, {known} of them with a known difference",
        snapshots.len()
    ))
}

/// A snapshot of an example.
fn snapshot(example: &str, folder: &Path) -> Result<PathBuf, String> {
    let command = target_folder().join("debug/tracewalk");
    let command = if command.is_file() { command } else { target_folder().join("release/tracewalk") };
    let snapshot = folder.join("snapshots").join(example);
    let _ = fs::remove_dir_all(&snapshot);
    let capture = workspace().join("testdata/examples").join(example).join("capture.toml");
    let mut write = Command::new(&command);
    write.args(["describe", "--format", "ds5"]).arg(capture).arg("-o").arg(&snapshot);
    output(&mut write)
        .map_err(|error| format!("{error}\nbuild the command first: cargo build -p tracewalk-cli"))?;
    Ok(snapshot)
}

/// The lines of each source's packets and elements. OpenCSD's error messages precede the line that they
/// appear on.
fn by_source(text: &str) -> BTreeMap<(bool, &str), Vec<&str>> {
    let mut sources = BTreeMap::<_, Vec<_>>::new();
    for line in text.lines() {
        let Some(line) = line.find("Idx:").map(|at| &line[at..]) else { continue };
        let Some(id) = line.split(';').nth(1) else { continue };
        let is_element = line.contains("OCSD_GEN_TRC_ELEM_");
        sources.entry((is_element, id.trim())).or_default().push(line.trim_end());
    }
    sources
}

/// Compares the lines. Returns the number of lines, and of those with a known difference.
fn compare(
    name: &str,
    theirs: &BTreeMap<(bool, &str), Vec<&str>>,
    ours: &BTreeMap<(bool, &str), Vec<&str>>,
) -> Result<(usize, usize), String> {
    let known = KNOWN.iter().filter(|known| known.example == name).collect::<Vec<_>>();
    let mut found = vec![0; known.len()];
    let none = Vec::new();
    let mut lines = 0;
    for part in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
        let id = part.1;
        let theirs = theirs.get(part).unwrap_or(&none);
        let mut ours = ours.get(part).unwrap_or(&none).iter().peekable();
        lines += theirs.len();
        for their in theirs {
            let our = ours.peek().copied().copied();
            if our == Some(*their) {
                ours.next();
                continue;
            }
            let explains = |known: &&Known| {
                their.contains(known.theirs)
                    && known.ours.is_none_or(|words| our.is_some_and(|our| our.contains(words)))
            };
            let Some(index) = known.iter().position(explains) else {
                let our = our.unwrap_or("no more");
                return Err(format!("{name}, {id}: the lines differ\nOpenCSD    {their}\ntracewalk  {our}"));
            };
            found[index] += 1;
            if known[index].ours.is_some() {
                ours.next();
            }
        }
        if let Some(our) = ours.next() {
            return Err(format!("{name}, {id}: found a line that OpenCSD does not print\n{our}"));
        }
    }
    if lines == 0 {
        return Err(format!("{name}: found no lines of OpenCSD's"));
    }
    for (known, found) in known.iter().zip(&found) {
        if known.lines != *found {
            return Err(format!(
                "{name}: found {found} lines that differ by {}, expected {}",
                known.why, known.lines
            ));
        }
    }
    Ok((lines, found.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_differences_pass() {
        let same = by_source("header\nIdx:0; ID:13; A( )\ncomplaint.Idx:6; ID:13; B( )\n");
        assert_eq!(same[&(false, "ID:13")], ["Idx:0; ID:13; A( )", "Idx:6; ID:13; B( )"]);
        assert_eq!(compare("other", &same, &same), Ok((2, 0)));
        let fewer = by_source("Idx:0; ID:13; A( )");
        assert!(compare("other", &same, &fewer).is_err() && compare("other", &fewer, &same).is_err());
        let exception = |address| {
            format!("Idx:0; ID:13; EXCEPTION(pref ret addr:{address}; excep num (0x09) )\n").repeat(4)
        };
        let (theirs, ours) = (exception("0x12"), exception("0x10"));
        let (theirs, ours) = (by_source(&theirs), by_source(&ours));
        assert_eq!(compare("a15-pft", &theirs, &ours), Ok((4, 4)));
        assert!(compare("a15-pft", &ours, &ours).is_err() && compare("other", &theirs, &ours).is_err());
    }
}
