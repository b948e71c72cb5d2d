//! Going on and back: steps, searches for breakpoints, and why they stopped.

use super::running::{Running, What};
use super::{Dialogue, REFUSED, UNKNOWN, split};
use crate::packet::number;
use crate::walk::{Direction, Search};

/// Steps in a range that are done before something else may be asked.
const SLICE: u32 = 1 << 12;

impl Dialogue<'_, '_> {
    /// `s`, `c`, `S`, `C`, `bs` and `bc`. The answer, unless it comes later.
    pub(super) fn resume(&mut self, contents: &[u8]) -> Option<String> {
        let core = self.moving.unwrap_or(self.general);
        match contents {
            b"bs" => Some(self.single(core, Direction::Backward)),
            b"bc" => self.begin(core, Direction::Backward),
            [b's' | b'S', ..] => Some(self.single(core, Direction::Forward)),
            [b'c' | b'C', ..] => self.begin(core, Direction::Forward),
            _ => Some(UNKNOWN.to_owned()),
        }
    }

    /// Packets that begin with `v`.
    pub(super) fn verbose(&mut self, contents: &[u8]) -> Option<String> {
        if contents == b"vCont?" {
            return Some("vCont;c;C;s;S;r".to_owned());
        }
        if contents.starts_with(b"vKill") {
            self.is_over = true;
            return Some("OK".to_owned());
        }
        let Some(actions) = contents.strip_prefix(b"vCont;") else { return Some(UNKNOWN.to_owned()) };
        // The action that names a thread is what the user asked for; the others are for those that may come along.
        let parsed = actions.split(|byte| *byte == b';').map(|action| match split(action, b':') {
            Some((action, thread)) => (action, self.thread(thread)),
            None => (action, None),
        });
        let named = parsed.clone().find(|(_, thread)| thread.is_some());
        let Some((action, thread)) = named.or_else(|| parsed.clone().next()) else {
            return Some(REFUSED.to_owned());
        };
        let core = thread.or(self.moving).unwrap_or(self.general);
        match action {
            [b's' | b'S', ..] => Some(self.single(core, Direction::Forward)),
            [b'c' | b'C', ..] => self.begin(core, Direction::Forward),
            [b'r', range @ ..] => {
                let Some((start, end)) = split(range, b',') else { return Some(REFUSED.to_owned()) };
                let (Some(start), Some(end)) = (number(start), number(end)) else {
                    return Some(REFUSED.to_owned());
                };
                self.running = Some(Running { core, what: What::Range { start, end } });
                None
            }
            _ => Some(REFUSED.to_owned()),
        }
    }

    fn single(&mut self, core: usize, direction: Direction) -> String {
        self.general = core;
        match self.cores.get_mut(core).is_some_and(|core| core.step(direction)) {
            true => self.stopped(),
            false => self.at_end(direction),
        }
    }

    fn begin(&mut self, core: usize, direction: Direction) -> Option<String> {
        let addresses = self.breakpoints.keys().copied().collect();
        self.running = Some(Running { core, what: What::Continue(direction, addresses) });
        None
    }

    /// Goes on with what runs; the answer when it stops.
    pub(super) fn go_on(&mut self) -> Option<String> {
        let Running { core: index, what } = self.running.clone()?;
        let core = self.cores.get_mut(index)?;
        let answer = match what {
            What::Continue(direction, addresses) => match core.search(&addresses, direction) {
                Search::Unfinished => return None,
                Search::Found => {
                    self.general = index;
                    self.at_breakpoint()
                }
                Search::End => {
                    self.general = index;
                    self.at_end(direction)
                }
            },
            What::Range { start, end } => {
                let mut stopped = None;
                for _ in 0..SLICE {
                    if !core.step(Direction::Forward) {
                        stopped = Some(false);
                        break;
                    }
                    let at = core.location().map(|at| at.address);
                    let is_inside = at.is_some_and(|at| (start..end).contains(&at.get()));
                    if !is_inside || at.is_some_and(|at| self.breakpoints.contains_key(&at)) {
                        stopped = Some(true);
                        break;
                    }
                }
                self.general = index;
                match stopped {
                    None => return None,
                    Some(true) => self.stopped(),
                    Some(false) => self.at_end(Direction::Forward),
                }
            }
        };
        self.running = None;
        Some(answer)
    }

    /// Ctrl-C: what runs stops where it is.
    pub(super) fn interrupt(&mut self) -> Option<String> {
        let Running { core, .. } = self.running.take()?;
        self.general = core;
        Some(format!("T02thread:{:x};", core + 1))
    }

    /// Why the recording stands: after a step.
    pub(super) fn stopped(&self) -> String {
        format!("T05thread:{:x};", self.general + 1)
    }

    fn at_breakpoint(&self) -> String {
        format!("T05thread:{:x};swbreak:;", self.general + 1)
    }

    fn at_end(&self, direction: Direction) -> String {
        let end = match direction {
            Direction::Forward => "end",
            Direction::Backward => "begin",
        };
        format!("T05thread:{:x};replaylog:{end};", self.general + 1)
    }
}
