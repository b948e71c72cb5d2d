//! Automation: `cargo xtask help` lists the tasks.
#![forbid(unsafe_code)]

mod bench;
mod c;
mod check_isa;
mod circles;
mod disassembly;
mod dist;
mod documents;
mod heavy;
mod matrix;
mod no_std;
mod packages;
mod portable;
mod process;
mod python;
mod rooms;
mod sentences;
mod sources;
mod test_files;
mod unchanged;
mod whole;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How a task ended without failing.
#[derive(Debug)]
enum Outcome {
    /// The check's summary.
    Done(String),
    /// The reason why nothing was checked.
    Skipped(String),
}

/// A task's result. The error describes one finding a line.
type Answer = Result<Outcome, String>;

struct Task {
    name: &'static str,
    about: &'static str,
    run: fn() -> Answer,
}

const TASKS: &[Task] = &[
    Task {
        name: "bare",
        about: "read the corpus' ETMv4 captures without their registers, also the largest",
        run: whole::bare,
    },
    Task {
        name: "bench",
        about: "compare speed and memory with OpenCSD on the same bytes (--short, --record, --document, --built, --size=MiB, --rounds=N)",
        run: bench::run,
    },
    Task {
        name: "c",
        about: "build the C library and test it: header, symbols, programs under valgrind, OpenCSD's listing (--write, --release, --prefix DIR)",
        run: c::run,
    },
    Task {
        name: "check-isa",
        about: "compare the classification of instructions with arm-none-eabi-objdump's reading of library code",
        run: check_isa::run,
    },
    Task {
        name: "circles",
        about: "print the files of a crate that use one another in a circle, and what each uses of which (--methods, FILTER)",
        run: circles::run,
    },
    Task {
        name: "damage",
        about: "damage generated traces and print what the decoder makes of them (--times N, --case CASE, --kind 0-5)",
        run: matrix::damage,
    },
    Task {
        name: "dist",
        about: "pack the release: the command with its pages and licences, and a wheel; test both in an empty root (--built)",
        run: dist::run,
    },
    Task {
        name: "documents",
        about: "check that the documents exist and that their links are valid",
        run: documents::run,
    },
    Task {
        name: "dumps",
        about: "test dumps of each kind with each line left out in turn",
        run: whole::dumps,
    },
    Task {
        name: "heavy",
        about: "run all slow checks in full: python, spark, c, page, dumps, bare, portable, opencsd, seek, check-isa, dist",
        run: heavy::run,
    },
    Task {
        name: "matrix",
        about: "check traces of the example firmware on every kind of trace unit in every mode (--all, --every N, --from N, CASE)",
        run: matrix::run,
    },
    Task {
        name: "opencsd",
        about: "compare with OpenCSD on generated traces, intact and damaged (--every N, --damage N, CASE)",
        run: matrix::opencsd,
    },
    Task { name: "packages", about: "check that each crate builds from its package", run: packages::run },
    Task {
        name: "page",
        about: "test the page of `tracewalk view` in Chromium, also on a capture of 100 MB",
        run: whole::page,
    },
    Task {
        name: "portable",
        about: "run the core's tests for a 32-bit and a big-endian processor (TARGET)",
        run: portable::run,
    },
    Task {
        name: "python",
        about: "build the Python package, install it in a clean environment, and test it there (--release)",
        run: python::run,
    },
    Task {
        name: "rooms",
        about: "check that modules use only what the table in ARCHITECTURE.md allows, and that all test files are run",
        run: rooms::run,
    },
    Task {
        name: "seek",
        about: "place a cursor at random in a large capture, and compare with flow (--megabytes N, --seeks N, --example FOLDER)",
        run: matrix::seek,
    },
    Task {
        name: "no-std",
        about: "check that the core builds, links and runs without std",
        run: no_std::run,
    },
    Task {
        name: "words",
        about: "check the reading ease of the users' pages, and that they avoid words that read as if translated",
        run: words::run,
    },
    Task {
        name: "sentences",
        about: "check that tests compare kinds and numbers, and count the sentences that they still compare (--list)",
        run: sentences::run,
    },
    Task {
        name: "spark",
        about: "test the Python package on a cluster of two executors; one is killed (--release)",
        run: python::spark,
    },
    Task {
        name: "unchanged",
        about: "report whether the inputs of a slow check are unchanged since it last passed (CHECK, --record)",
        run: unchanged::run,
    },
];

/// The folder of the workspace.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The folder that cargo builds into.
fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace().join("target"), |folder| workspace().join(folder))
}

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        return help(&name);
    };
    match (task.run)() {
        Ok(Outcome::Done(message)) => {
            println!("{name}: {message}");
            ExitCode::SUCCESS
        }
        // A check that cannot run is a failure where it must run.
        Ok(Outcome::Skipped(message)) if std::env::var_os("CI").is_some() => {
            eprintln!("{name}: not run: {message}");
            ExitCode::FAILURE
        }
        Ok(Outcome::Skipped(message)) => {
            println!("{name}: skipped: {message}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            eprintln!("{name}: failed");
            ExitCode::FAILURE
        }
    }
}

fn help(name: &str) -> ExitCode {
    println!("usage: cargo xtask TASK");
    for task in TASKS {
        println!("  {:12}{}", task.name, task.about);
    }
    match name {
        "" | "help" | "--help" | "-h" => ExitCode::SUCCESS,
        _ => {
            eprintln!("found task {name:?}, expected one of these");
            ExitCode::from(2)
        }
    }
}
