//! OpenCSD's listing of a snapshot (Debian: libopencsd-bin).

use std::path::Path;
use std::process::Command;

/// The output of OpenCSD for a snapshot.
pub(crate) fn list(folder: &Path) -> String {
    // OpenCSD writes a log into its working directory, so it must not run in a folder of captures.
    let own = tempfile::tempdir().expect("room for a log");
    let folder = std::path::absolute(folder).expect("a folder");
    let output = Command::new("trc_pkt_lister")
        .arg("-ss_dir")
        .arg(folder)
        .arg("-decode")
        .current_dir(own.path())
        .output()
        .expect("trc_pkt_lister runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// OpenCSD's elements in the `runs` format, without preferred return addresses, which it prints for PFT only.
pub(crate) fn runs(listing: &str) -> String {
    let mut lines = Vec::new();
    let mut current = None::<(String, String, &str)>;
    for line in listing.lines() {
        if let Some((_, range)) = line.split_once("exec range=0x") {
            let (start, rest) = range.split_once(":[0x").unwrap();
            let (end, rest) = rest.split_once(']').unwrap();
            let isa = if rest.contains("(ISA=T32)") { "t32" } else { "a32" };
            match &mut current {
                Some(run) if run.1 == start && run.2 == isa => end.clone_into(&mut run.1),
                _ => {
                    lines.extend(current.replace((start.to_owned(), end.to_owned(), isa)));
                }
            }
        } else if let Some((_, number)) = line.split_once("excep num (0x") {
            lines.extend(current.take());
            let number = u32::from_str_radix(number.split(')').next().unwrap(), 16).unwrap();
            lines.push((format!("X {number}"), String::new(), ""));
        } else if line.contains("OCSD_GEN_TRC_ELEM_EXCEPTION_RET") {
            lines.extend(current.take());
            lines.push(("T".to_owned(), String::new(), ""));
        }
    }
    lines.extend(current);
    let line = |(start, end, isa): (String, String, &str)| match isa {
        "" => format!("{start}\n"),
        isa => format!("R {start} {end} {isa}\n"),
    };
    lines.into_iter().map(line).collect()
}
