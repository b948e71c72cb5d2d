//! Ctrl-C and SIGTERM: a stream ends with what has come, everything else ends without leaving half an output behind.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use tracewalk_input::capture::stream::Stop;

/// The status of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// What a signal finds.
static STATE: Mutex<State> = Mutex::new(State { stream: None, leftovers: Vec::new(), next: 0, last: None });

struct State {
    /// Ends the stream that was opened last.
    stream: Option<Stop>,
    /// What may not outlive the program, by number.
    leftovers: Vec<(u64, Leftover)>,
    next: u64,
    /// What is waited for before the program ends.
    last: Option<fn()>,
}

/// What an unfinished output has in the file system.
#[derive(Clone, Debug)]
pub(crate) enum Leftover {
    File(PathBuf),
    /// A folder with its files, and the folders that were made for it, the innermost first.
    Folder(PathBuf, Vec<PathBuf>),
}

impl Leftover {
    /// Removes it. What cannot be removed stays: there is nobody to tell.
    pub(crate) fn remove(&self) {
        match self {
            Self::File(file) => drop(fs::remove_file(file)),
            Self::Folder(folder, made) => {
                let _ = fs::remove_dir_all(folder);
                // Where something else was written to it, it is not empty and stays.
                made.iter().for_each(|folder| drop(fs::remove_dir(folder)));
            }
        }
    }
}

/// Lets the first signal end the stream; the second one ends the program.
pub(crate) fn end_stream(stop: Stop) {
    // Whoever sees that signals are listened to may send one.
    state().stream = Some(stop);
    listen();
}

/// Has a signal call this before it ends the program.
pub(crate) fn before_ending(last: fn()) {
    listen();
    state().last = Some(last);
}

/// Makes an unfinished output, which a signal removes before it ends the program, as long as the answer lives. No signal comes
/// between what `make` makes and its answer what that is.
pub(crate) fn unfinished<T>(make: impl FnOnce() -> io::Result<(T, Leftover)>) -> io::Result<(T, Unfinished)> {
    listen();
    let mut state = state();
    let (made, leftover) = make()?;
    let number = state.next;
    state.next += 1;
    state.leftovers.push((number, leftover));
    Ok((made, Unfinished(number)))
}

/// An output that a signal removes.
#[derive(Debug)]
pub(crate) struct Unfinished(u64);

impl Drop for Unfinished {
    fn drop(&mut self) {
        state().leftovers.retain(|(number, _)| *number != self.0);
    }
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the handler, of which a program has one.
fn listen() {
    static SET: Once = Once::new();
    // Where it cannot be set there is nothing to do.
    SET.call_once(|| drop(ctrlc::set_handler(signalled)));
}

/// Runs on a thread of its own.
fn signalled() {
    let state = state();
    match &state.stream {
        Some(stop) if !stop.is_requested() => stop.request(),
        _ => {
            state.leftovers.iter().for_each(|(_, leftover)| leftover.remove());
            if let Some(last) = state.last {
                last();
            }
            // Nobody can register anything any more.
            std::process::exit(INTERRUPTED);
        }
    }
}
