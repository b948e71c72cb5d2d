//! Repeats the calls that an observer received for repeated elements, without following the elements again.
//!
//! The calls that an observer receives depend on the state of the stack, as the elements' effect does. They are noted the first
//! time. From then on the observer receives the same calls for the current frames, with their marks.

use super::CallStack;
use super::frame::{Entry, Frame, FrameKind, FunctionId, Left};
use super::observer::{Observer, Piece};
use super::outline::Outlined;
use super::remembered::Remembered;
use crate::analysis::Repeated;

/// Takes repeated elements for an observer that depends only on the calls that it receives and on marks.
#[derive(Debug)]
pub struct Retold<M> {
    remembered: Remembered<M, Box<[Report]>>,
    /// The frames that are left and entered, and the one under them, during repetition.
    frames: Vec<Frame<M>>,
    /// Room for notes of one passage after the other.
    reports: Vec<Report>,
    /// The number of notes since everything was forgotten.
    noted: usize,
}

/// A call that an observer receives.
#[derive(Clone, Copy, Debug)]
enum Report {
    /// Instructions of the innermost frame ran. Pieces of one function that follow one another are one.
    Ran(Piece),
    Entered(FrameKind, FunctionId, Entry),
    Left(Left),
}

/// Notes the calls that an observer receives.
struct Noting<'a, O> {
    observer: &'a mut O,
    reports: &'a mut Vec<Report>,
}

/// The most notes that are kept: about 24 MiB.
const MOST_NOTED: usize = 1 << 18;

impl<M> Default for Retold<M> {
    fn default() -> Self {
        Self { remembered: Remembered::default(), frames: Vec::new(), reports: Vec::new(), noted: 0 }
    }
}

impl<M: Copy> Retold<M> {
    /// The stack changes by other means next, or a caller reads its next step.
    #[inline]
    pub fn disturb(&mut self, calls: &mut CallStack<M>) {
        self.remembered.disturb(calls);
    }

    /// Takes a single passage.
    pub fn passage<O: Observer<Mark = M>>(
        &mut self,
        repeated: &Repeated<'_>,
        calls: &mut CallStack<M>,
        observer: &mut O,
    ) {
        let key = (repeated.set(), repeated.number());
        let Some(known) = self.remembered.find(calls, key, |_| 0) else {
            let outlined = calls.outline(repeated, observer);
            return match outlined {
                Some(outlined) if !self.remembered.is_worth_learning(key) => {
                    self.remembered.disturb(calls);
                    calls.follow(repeated, outlined, observer);
                }
                outlined => self.learn(repeated, outlined, calls, observer),
            };
        };
        let reports = self.remembered.effect(known).map_or(&[][..], |reports| reports);
        if self.remembered.is_simple(known) {
            if let Some(top) = calls.stack.frames.back_mut() {
                reports.iter().for_each(|report| report.of_one(top, observer));
            }
            return self.remembered.go(known, calls);
        }
        let depth = calls.stack.frames.len();
        let under = depth.saturating_sub(self.remembered.left(known) + 1);
        let frames = &mut self.frames;
        frames.clear();
        frames.extend(calls.stack.frames.range(under..).copied());
        reports.iter().for_each(|report| report.again(frames, observer));
        self.remembered.go(known, calls);
        let now = calls.stack.frames.iter_mut().rev();
        now.zip(self.frames.iter().rev()).for_each(|(now, repeated)| now.mark = repeated.mark);
    }

    #[inline(never)]
    fn learn<O: Observer<Mark = M>>(
        &mut self,
        repeated: &Repeated<'_>,
        outlined: Option<Outlined>,
        calls: &mut CallStack<M>,
        observer: &mut O,
    ) {
        let (set, number) = (repeated.set(), repeated.number());
        if self.remembered.is_full(set) || self.noted >= MOST_NOTED {
            self.remembered.forget(set, calls);
            self.noted = 0;
        }
        let learning = self.remembered.begin_learning(calls, (set, number));
        let reports = &mut self.reports;
        reports.clear();
        let mut noting = Noting { observer, reports };
        match outlined {
            Some(outlined) => calls.follow(repeated, outlined, &mut noting),
            None => repeated.elements().for_each(|element| {
                let _ = calls.element(&element, &mut noting);
            }),
        }
        self.noted += reports.len();
        let runs_only = reports.iter().all(|report| matches!(report, Report::Ran(_)));
        let effect = (reports.as_slice().into(), runs_only);
        self.remembered.end_learning(calls, learning, Some(effect), |_| 0);
    }
}

impl Report {
    /// Repeats for the innermost frame, if no frame is entered or left.
    #[inline]
    fn of_one<O: Observer>(&self, top: &mut Frame<O::Mark>, observer: &mut O) {
        if let Self::Ran(piece) = self {
            observer.run(top, piece);
        }
    }

    /// Repeats for these frames, the innermost last.
    fn again<O: Observer>(&self, frames: &mut Vec<Frame<O::Mark>>, observer: &mut O) {
        match *self {
            Self::Ran(_) => {
                if let Some(top) = frames.last_mut() {
                    self.of_one(top, observer);
                }
            }
            Self::Entered(kind, function, entry) => {
                let mark = observer.enter(frames.last_mut(), kind, function, entry);
                frames.push(Frame::of(kind, function, mark));
            }
            Self::Left(how) => {
                if let Some(mut frame) = frames.pop() {
                    observer.leave(&mut frame, frames.last_mut(), how);
                }
            }
        }
    }
}

/// `regain` and `switch` need no note: elements that cause them are never cached.
impl<O: Observer> Observer for Noting<'_, O> {
    type Mark = O::Mark;

    fn enter(
        &mut self,
        below: Option<&mut Frame<O::Mark>>,
        kind: FrameKind,
        function: FunctionId,
        entry: Entry,
    ) -> O::Mark {
        self.reports.push(Report::Entered(kind, function, entry));
        self.observer.enter(below, kind, function, entry)
    }

    fn regain(&mut self, below: Option<&mut Frame<O::Mark>>, frame: &mut Frame<O::Mark>) {
        self.observer.regain(below, frame);
    }

    fn run(&mut self, top: &mut Frame<O::Mark>, piece: &Piece) {
        match self.reports.last_mut() {
            Some(Report::Ran(before)) => {
                before.end = piece.end;
                before.instructions = before.instructions.saturating_add(piece.instructions);
            }
            _ => self.reports.push(Report::Ran(*piece)),
        }
        self.observer.run(top, piece);
    }

    fn leave(&mut self, frame: &mut Frame<O::Mark>, below: Option<&mut Frame<O::Mark>>, how: Left) {
        self.reports.push(Report::Left(how));
        self.observer.leave(frame, below, how);
    }

    fn suspend(&mut self, top: &mut Frame<O::Mark>) {
        self.observer.suspend(top);
    }

    fn switch(&mut self, from: super::Task, to: super::Task, evidence: super::Evidence) {
        self.observer.switch(from, to, evidence);
    }
}
