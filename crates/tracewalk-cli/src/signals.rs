//! Ctrl-C and SIGTERM: a stream ends with the bytes that have arrived; everything else ends and removes its
//! unfinished outputs.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use tracewalk_input::capture::stream::Stop;

/// The status of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// The state that a signal acts on.
static STATE: Mutex<State> =
    Mutex::new(State { stream: None, spare: 0, leftovers: Vec::new(), next: 0, last: None });

struct State {
    /// Ends the stream that was opened last.
    stream: Option<Stop>,
    /// The signals that change nothing after the one that ended the stream.
    spare: u8,
    /// Unfinished outputs, by number.
    leftovers: Vec<(u64, Leftover)>,
    next: u64,
    /// A function to call before the program ends.
    last: Option<fn()>,
}

/// The files of an unfinished output.
#[derive(Clone, Debug)]
pub(crate) enum Leftover {
    File(PathBuf),
    /// A folder with its files, and the folders that were made for it, the innermost first.
    Folder(PathBuf, Vec<PathBuf>),
}

impl Leftover {
    /// Removes the files. Errors are ignored: they cannot be reported any more.
    pub(crate) fn remove(&self) {
        match self {
            Self::File(file) => drop(fs::remove_file(file)),
            Self::Folder(folder, made) => {
                let _ = fs::remove_dir_all(folder);
                // A folder that is not empty stays: another program wrote to it.
                made.iter().for_each(|folder| drop(fs::remove_dir(folder)));
            }
        }
    }
}

/// Lets the first signal end the stream; the second one ends the program.
pub(crate) fn end_stream(stop: Stop) {
    // The stream is set before the handler: a signal may come at once.
    state().stream = Some(stop);
    listen();
}

/// Lets the first signal end a recording, and the third one end the program: in between, a target is left as it was found.
pub(crate) fn end_recording(stop: Stop) {
    end_stream(stop);
    state().spare = 1;
}

/// Has a signal call this before it ends the program.
#[cfg(unix)]
pub(crate) fn before_ending(last: fn()) {
    listen();
    state().last = Some(last);
}

/// Creates an unfinished output, which a signal removes before it ends the program, as long as the result lives. No signal is
/// handled between the creation in `make` and its return.
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

/// Sets the program's only handler.
fn listen() {
    static SET: Once = Once::new();
    // If the handler cannot be set, signals end the program as usual.
    SET.call_once(|| drop(ctrlc::set_handler(signalled)));
}

/// Runs on a thread of its own.
fn signalled() {
    let mut state = state();
    match &state.stream {
        Some(stop) if !stop.is_requested() => stop.request(),
        Some(_) if state.spare > 0 => state.spare -= 1,
        _ => {
            state.leftovers.iter().for_each(|(_, leftover)| leftover.remove());
            if let Some(last) = state.last {
                last();
            }
            // The lock is held, so that nothing can be registered any more.
            std::process::exit(INTERRUPTED);
        }
    }
}
