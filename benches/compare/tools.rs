//! The programs that are measured.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Options;
use crate::process::{output, target_folder, workspace};

/// The paths of the programs.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) folder: PathBuf,
    pub(super) tracewalk: PathBuf,
    /// Makes traces of the paths that an emulator recorded.
    pub(super) generator: PathBuf,
    /// `benches/opencsd/harness.c`.
    pub(super) harness: PathBuf,
    /// The example that deframes and copies.
    pub(super) deframe_speed: PathBuf,
    pub(super) trc_pkt_lister: PathBuf,
    pub(super) addr2line: PathBuf,
}

impl Tools {
    /// Builds our programs, unless `built` is set, and finds the others.
    pub(super) fn build(folder: &Path, options: Options) -> Result<Self, String> {
        let root = workspace();
        // If no time is measured, the tests' build is good enough.
        let (profile, built_in) = if options.short { ("test", "debug") } else { ("release", "release") };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let build = |arguments: &[&str]| {
            output(
                Command::new(&cargo)
                    .current_dir(&root)
                    .args(["build", "--quiet", "--features", "full", "--profile", profile])
                    .args(arguments),
            )
        };
        if !options.built {
            build(&["--package", "tracewalk-cli", "--package", "tracewalk-generate"])?;
            build(&["--package", "tracewalk", "--package", "tracewalk-cli", "--example", "deframe_speed"])?;
        }
        let harness = folder.join("harness");
        output(
            Command::new("cc")
                .args(["-O2", "-o"])
                .arg(&harness)
                .arg(root.join("benches/opencsd/harness.c"))
                .args(["-lopencsd_c_api", "-lopencsd"]),
        )
        .map_err(|error| format!("{error}\nDebian's libopencsd-dev has what it needs"))?;
        let built = target_folder().join(built_in);
        Ok(Self {
            folder: folder.to_owned(),
            tracewalk: built.join("tracewalk"),
            generator: built.join("tracewalk-generate"),
            harness,
            deframe_speed: built.join("examples/deframe_speed"),
            trc_pkt_lister: "trc_pkt_lister".into(),
            addr2line: "arm-none-eabi-addr2line".into(),
        })
    }
}
