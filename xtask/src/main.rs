//! Automation: `cargo xtask help` lists the tasks.
#![forbid(unsafe_code)]

mod c;
mod dist;
#[cfg(test)]
mod documents;
mod heavy;
mod no_std;
mod portable;
mod process;
mod python;
mod target;
mod weight;
mod windows;

use std::process::{Command, ExitCode};

use process::{target_folder, workspace};

/// A task's summary, or an error with one finding a line. A task without its programs fails.
type Answer = Result<String, String>;

struct Task {
    name: &'static str,
    about: &'static str,
    run: fn() -> Answer,
}

const TASKS: &[Task] = &[
    Task {
        name: "bench",
        about: "compare speed and memory with OpenCSD on the same bytes (--short, --record, --built, --size=MiB, --rounds=N)",
        run: || cargo_run(&["--package", "tracewalk-benches", "--bin", "tracewalk-bench", "--"]),
    },
    Task {
        name: "c",
        about: "build the C library and test it: header, symbols, programs under valgrind, OpenCSD's listing (--smoke, --write, --release, --prefix DIR)",
        run: c::run,
    },
    Task {
        name: "check-isa",
        about: "compare the classification of instructions with arm-none-eabi-objdump's reading of library code",
        run: || conformance("check-isa"),
    },
    Task {
        name: "damage",
        about: "damage generated traces and print what the decoder makes of them (--times N, --case CASE, --kind 0-5)",
        run: || conformance("damage"),
    },
    Task {
        name: "dist",
        about: "pack the release: archive, Debian package and wheel; install and try each (TARGET..., --built, --formula FOLDER)",
        run: dist::run,
    },
    Task { name: "heavy", about: "run the checks that the gate leaves out (CHECK...)", run: heavy::run },
    Task {
        name: "matrix",
        about: "check traces of the example firmware on every kind of trace unit in every mode (--all, --every N, --from N, CASE)",
        run: || conformance("matrix"),
    },
    Task {
        name: "no-std",
        about: "check that the core builds, links and runs without std",
        run: no_std::run,
    },
    Task {
        name: "opencsd",
        about: "compare with OpenCSD on generated traces, intact and damaged (--every N, --damage N, CASE)",
        run: || conformance("opencsd"),
    },
    Task {
        name: "portable",
        about: "check that everything compiles for Windows, macOS, Linux on Arm and WebAssembly (--full)",
        run: portable::run,
    },
    Task {
        name: "python",
        about: "build the Python package, install it in a clean environment, and test it there (--release)",
        run: python::run,
    },
    Task {
        name: "seek",
        about: "place a cursor at random in a large capture, and compare with flow (--megabytes N, --seeks N, --example FOLDER)",
        run: || conformance("seek"),
    },
    Task {
        name: "spark",
        about: "test the Python package on a cluster of two executors; one is killed (--smoke, --release)",
        run: python::spark,
    },
    Task { name: "weight", about: "print how large the project is, and check its limits", run: weight::run },
    Task {
        name: "windows",
        about: "run the command for Windows under wine, and compare what it writes with this system's (--built, COMMAND...)",
        run: windows::run,
    },
];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        return help(&name);
    };
    match (task.run)() {
        Ok(message) => {
            println!("{name}: {message}");
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

/// The options of the task.
fn words() -> Vec<String> {
    std::env::args().skip(2).collect()
}

/// Whether the task has this option.
fn flag(name: &str) -> bool {
    words().iter().any(|word| word == name)
}

/// Runs a check of `tracewalk-conformance`. The default checks are fast enough in the tests' build; larger ones get
/// an optimised build.
fn conformance(check: &str) -> Answer {
    let profile = if words().is_empty() { "test" } else { "release" };
    cargo_run(&["--profile", profile, "--package", "tracewalk-conformance", "--", check])
}

/// Runs another program of the workspace with the task's options.
fn cargo_run(arguments: &[&str]) -> Answer {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet"]).args(arguments).args(words()).current_dir(workspace());
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok("passed".to_owned()) } else { Err(status.to_string()) }
}
