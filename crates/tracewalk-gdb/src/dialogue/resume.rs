//! Going on and back: steps, searches for breakpoints, and the reasons for stops.

use std::ops::Range;

use super::running::{Running, What};
use super::{Dialogue, REFUSED, Thread, UNKNOWN, split};
use crate::core::{Access, Core, Who};
use crate::transfers::Watch;
use crate::walk::{Direction, Search};
use tracewalk_target::packet::{hex, number};

/// The message at an end if the trace does not show accesses to watched memory.
const NO_ACCESSES: &str =
    "The trace has no loads and stores: only accesses at addresses that the path proves were watched.\n";
const NOT_KEPT: &str =
    "Only the newest loads and stores on this side are kept: delete the watchpoint to go on.\n";

/// The most steps in a range before other requests are served.
const SLICE: u32 = 1 << 12;

impl<'i> Dialogue<'_, 'i> {
    /// `s`, `c`, `S`, `C`, `bs` and `bc`. The answers, unless they come later.
    pub(super) fn resume(&mut self, contents: &[u8]) -> Option<Vec<String>> {
        let thread = self.moving.unwrap_or(self.general);
        match contents {
            b"bs" => Some(self.single(thread, Direction::Backward)),
            b"bc" => self.begin(thread, Direction::Backward),
            [b's' | b'S', ..] => Some(self.single(thread, Direction::Forward)),
            [b'c' | b'C', ..] => self.begin(thread, Direction::Forward),
            _ => Some(vec![UNKNOWN.to_owned()]),
        }
    }

    /// Packets that begin with `v`.
    pub(super) fn verbose(&mut self, contents: &[u8]) -> Option<Vec<String>> {
        if contents == b"vCont?" {
            return Some(vec!["vCont;c;C;s;S;r".to_owned()]);
        }
        if contents.starts_with(b"vKill") {
            self.is_over = true;
            return Some(vec!["OK".to_owned()]);
        }
        let Some(actions) = contents.strip_prefix(b"vCont;") else { return Some(vec![UNKNOWN.to_owned()]) };
        // The action that names a thread is the user's; the others are for threads that may run along.
        let parsed = actions.split(|byte| *byte == b';').map(|action| match split(action, b':') {
            Some((action, thread)) => (action, self.thread(thread)),
            None => (action, None),
        });
        let named = parsed.clone().find(|(_, thread)| thread.is_some());
        let Some((action, thread)) = named.or_else(|| parsed.clone().next()) else {
            return Some(vec![REFUSED.to_owned()]);
        };
        let thread = thread.or(self.moving).unwrap_or(self.general);
        match action {
            [b's' | b'S', ..] => Some(self.single(thread, Direction::Forward)),
            [b'c' | b'C', ..] => self.begin(thread, Direction::Forward),
            [b'r', range @ ..] => {
                let Some((start, end)) = split(range, b',') else { return Some(vec![REFUSED.to_owned()]) };
                let (Some(start), Some(end)) = (number(start), number(end)) else {
                    return Some(vec![REFUSED.to_owned()]);
                };
                // Accesses to watched memory are searched for at each step.
                if !self.watchpoints.is_empty() {
                    return Some(self.single(thread, Direction::Forward));
                }
                self.running = Some(Running { thread, what: What::Range { start, end } });
                None
            }
            _ => Some(vec![REFUSED.to_owned()]),
        }
    }

    /// A step of a recording, or of one of its contexts.
    fn single(&mut self, thread: usize, direction: Direction) -> Vec<String> {
        self.general = thread;
        let access = self.access(thread, direction);
        let place = self.recording(thread).map(|recording| recording.step_number());
        let moved = self.step(thread, direction);
        let access = access.or_else(|| self.proven_access(thread, place?, direction));
        if let Some(access) = access
            && let Some(recording) = self.recording(thread)
            && recording.is_beyond(access, direction)
            && let Some(place) = place
        {
            recording.seek_step(place);
            return self.at_access(access);
        }
        vec![if moved { self.stopped() } else { self.at_end(direction) }]
    }

    fn recording(&mut self, thread: usize) -> Option<&mut Core<'i>> {
        let core = self.threads.get(thread)?.core;
        self.cores.get_mut(core)
    }

    /// The next access of watched memory in a thread's recording.
    fn access(&mut self, thread: usize, direction: Direction) -> Option<Access> {
        let watched = std::mem::take(&mut self.watchpoints);
        let found = self.recording(thread).and_then(|recording| recording.access(&watched, direction));
        self.watchpoints = watched;
        found
    }

    /// Whether memory is watched in a recording without data trace.
    fn watches_by_values(&mut self, thread: usize) -> bool {
        !self.watchpoints.is_empty()
            && self.recording(thread).is_some_and(|recording| recording.has_no_accesses())
    }

    /// The first access of watched memory between a place and that of a thread's recording, by the path alone.
    fn proven_access(&mut self, thread: usize, from: u64, direction: Direction) -> Option<Access> {
        if !self.watches_by_values(thread) {
            return None;
        }
        let watched = std::mem::take(&mut self.watchpoints);
        let found =
            self.recording(thread).and_then(|recording| recording.proven_access(&watched, from, direction));
        self.watchpoints = watched;
        found
    }

    fn step(&mut self, thread: usize, direction: Direction) -> bool {
        let Some(Thread { core, who }) = self.threads.get(thread).copied() else { return false };
        self.cores.get_mut(core).is_some_and(|core| match who {
            Who::Running => core.step(direction),
            Who::Context(context) => core.step_context(context, direction),
        })
    }

    fn begin(&mut self, thread: usize, direction: Direction) -> Option<Vec<String>> {
        let access = self.access(thread, direction);
        let addresses = self.breakpoints.keys().copied().collect();
        self.running = Some(Running { thread, what: What::Continue(direction, addresses, access) });
        None
    }

    /// Continues the running thread; the answers when it stops.
    pub(super) fn go_on(&mut self) -> Option<Vec<String>> {
        let Running { thread, what } = self.running.clone()?;
        let answers = match what {
            What::Continue(direction, addresses, access) => {
                let recording = self.recording(thread)?;
                let from = recording.step_number();
                let found = recording.search(&addresses, direction);
                let access =
                    access.filter(|access| found == Search::End || recording.is_beyond(*access, direction));
                let access = access.or_else(|| self.proven_access(thread, from, direction));
                let recording = self.recording(thread)?;
                if let Some(access) = access {
                    recording.go_next_to(access, direction);
                } else if found == Search::Unfinished {
                    return None;
                }
                self.general = self.stops_in(thread);
                match (access, found) {
                    (Some(access), _) => self.at_access(access),
                    (None, Search::Found) => vec![self.at_breakpoint()],
                    (None, Search::Entered) => vec![self.stopped()],
                    (None, Search::End | Search::Unfinished) => {
                        let end = self.at_end(direction);
                        if self.watches_by_values(thread) { vec![said(NO_ACCESSES), end] } else { vec![end] }
                    }
                }
            }
            What::Range { start, end } => {
                let stopped = self.steps_in(thread, start..end)?;
                self.general = thread;
                vec![if stopped { self.stopped() } else { self.at_end(Direction::Forward) }]
            }
        };
        self.running = None;
        Some(answers)
    }

    /// Steps until the address leaves the range or has a breakpoint. `None` if that takes longer, `false` at the end.
    fn steps_in(&mut self, thread: usize, range: Range<u64>) -> Option<bool> {
        for _ in 0..SLICE {
            if !self.step(thread, Direction::Forward) {
                return Some(false);
            }
            let core = self.threads.get(thread).and_then(|thread| self.cores.get(thread.core));
            let at = core.and_then(Core::location).map(|at| at.address);
            let is_inside = at.is_some_and(|at| range.contains(&at.get()));
            if !is_inside || at.is_some_and(|at| self.breakpoints.contains_key(&at)) {
                return Some(true);
            }
        }
        None
    }

    /// The thread in which a stop is reported after this one continued: itself if it is a recording's, else that of the
    /// running context.
    fn stops_in(&self, thread: usize) -> usize {
        let Some(Thread { core, who: Who::Context(_) }) = self.threads.get(thread).copied() else {
            return thread;
        };
        let runs = |other: &Thread| match (other.who, self.cores.get(core)) {
            (Who::Context(context), Some(recording)) => other.core == core && recording.is_running(context),
            _ => false,
        };
        self.threads.iter().position(runs).unwrap_or(core)
    }

    /// Ctrl-C: stops the running thread where it is.
    pub(super) fn interrupt(&mut self) -> Option<String> {
        let Running { thread, .. } = self.running.take()?;
        self.general = self.stops_in(thread);
        Some(format!("T02thread:{:x};", self.general + 1))
    }

    /// The stop after a step.
    pub(super) fn stopped(&self) -> String {
        format!("T05thread:{:x};", self.general + 1)
    }

    fn at_breakpoint(&self) -> String {
        format!("T05thread:{:x};swbreak:;", self.general + 1)
    }

    /// The stop at an access to watched memory, or at a place where accesses are unknown.
    fn at_access(&self, access: Access) -> Vec<String> {
        let Some((watch, at)) = access.of else { return vec![said(NOT_KEPT), self.stopped()] };
        let name = match watch {
            Watch::Store => "watch",
            Watch::Load => "rwatch",
            Watch::Any => "awatch",
        };
        vec![format!("T05thread:{:x};{name}:{at:x};", self.general + 1)]
    }

    fn at_end(&self, direction: Direction) -> String {
        let end = match direction {
            Direction::Forward => "end",
            Direction::Backward => "begin",
        };
        format!("T05thread:{:x};replaylog:{end};", self.general + 1)
    }
}

/// The packet that makes GDB print a text before the stop.
fn said(text: &str) -> String {
    format!("O{}", hex(text.as_bytes()))
}
