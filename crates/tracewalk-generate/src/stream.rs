//! An encoder that a path runs past piece by piece, so that neither the path nor its trace need fit into memory.

use std::fmt::{self, Debug, Formatter};

use crate::path::{Path, Step};
use crate::story::{AHEAD, Story};
use crate::trace::{EncodeError, Trace};

/// A trace unit, as far as [`Stream`] has to know it.
pub(crate) trait Unit<'a> {
    /// Where the path is that it encodes.
    fn story(&mut self) -> &mut Story<'a>;

    /// Whether the step is one that is not traced.
    fn is_paused(&mut self, index: usize, step: &Step) -> Result<bool, EncodeError>;

    /// Encodes a step; false where the path ends before its target is known.
    fn encode(&mut self, index: usize, step: &Step) -> Result<bool, EncodeError>;

    /// The cycles so far.
    fn now(&self) -> u64;

    /// The path has ended: sends what is due, and takes back what nothing proves.
    fn finish(&mut self) -> Result<(), EncodeError>;

    /// What became certain since the last time.
    fn take(&mut self) -> Trace;
}

/// Encodes a path that comes piece by piece.
///
/// [`add`](Self::add) a piece of some length, [`advance`](Self::advance), [`take`](Self::take) what came of it, and in the end
/// [`finish`](Self::finish) and take the rest. The pieces joined are what the whole path gives: what is looked at behind a step is seldom
/// far away, and 65,536 steps are kept. Only an instruction set that nothing but a later visit to an address shows depends on
/// their number, and M profile has only one.
pub struct Stream<'a> {
    unit: Box<dyn Unit<'a> + 'a>,
    /// The step that is encoded next.
    next: usize,
    /// The path ended before the target of an instruction was known.
    ended: bool,
    times: Vec<u64>,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(unit: impl Unit<'a> + 'a) -> Self {
        Self { unit: Box::new(unit), next: 0, ended: false, times: Vec::new() }
    }

    /// The next steps of the path.
    pub fn add(&mut self, steps: &[Step]) {
        if !self.ended {
            self.unit.story().add(steps);
        }
    }

    /// Encodes the steps behind which enough is known.
    pub fn advance(&mut self) -> Result<(), EncodeError> {
        let until = self.unit.story().len().saturating_sub(AHEAD);
        self.encode_until(until)?;
        self.unit.story().forget_before(self.next);
        Ok(())
    }

    /// Nothing comes behind what was added: encodes all of it.
    pub fn finish(&mut self) -> Result<(), EncodeError> {
        let until = self.unit.story().len();
        self.encode_until(until)?;
        self.unit.finish()
    }

    /// What was encoded since the last time, as far as it is certain. [`Trace::cycles`] is only known behind the last step.
    pub fn take(&mut self) -> Trace {
        Trace { times: std::mem::take(&mut self.times), ..self.unit.take() }
    }

    fn encode_until(&mut self, until: usize) -> Result<(), EncodeError> {
        while self.next < until && !self.ended {
            let Some(step) = self.unit.story().step(self.next).copied() else { break };
            if !self.unit.is_paused(self.next, &step)? && !self.unit.encode(self.next, &step)? {
                self.ended = true;
                break;
            }
            self.times.push(self.unit.now());
            self.next += 1;
        }
        Ok(())
    }
}

impl Debug for Stream<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "at step {}", self.next)
    }
}

impl Trace {
    /// Takes all but what is told from step `certain` on, and the cycles.
    pub(crate) fn take(&mut self, certain: usize) -> Self {
        let uncertain = self.told.steps.split_off(certain.min(self.told.steps.len()));
        let told = std::mem::replace(&mut self.told.steps, uncertain);
        Self {
            bytes: std::mem::take(&mut self.bytes),
            told: Path { steps: told },
            cycles: self.cycles,
            times: Vec::new(),
            starts: std::mem::take(&mut self.starts),
            triggers: std::mem::take(&mut self.triggers),
        }
    }
}
