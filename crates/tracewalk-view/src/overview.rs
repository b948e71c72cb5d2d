//! A source in at most some ten thousand pieces, made in one pass: large windows are drawn from the pieces. Kept call
//! stacks allow calls to be followed from a step nearby.
//!
//! If there are too many pieces, every two become one and each is twice as long: memory is bounded.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use tracewalk::flow::{Element, EventKind};
use tracewalk_analysis::analysis::FlowSink;
use tracewalk_analysis::call_stack::{CallStack, CallStackLimits, CallStacks, Task, keep_every_other};
use tracewalk_analysis::drive::steps;
use tracewalk_analysis::itm::ItmEvent;
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, Section};

use crate::frames::{Began, Drawn, Functions, drawn};

/// A source in pieces.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Overview {
    /// The number of steps in a piece.
    pub(crate) distance: u64,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) functions: Functions,
    /// Call stacks by step.
    pub(crate) stacks: CallStacks<u64>,
    /// The steps of gaps.
    pub(crate) gaps: Vec<u64>,
    /// The number of gaps.
    pub(crate) gap_count: u64,
    /// The texts that ITMs sent, each with the step before which it arrived, and its port.
    pub(crate) texts: Vec<(u64, u8, String)>,
    /// The number of texts that are not listed.
    pub(crate) texts_left_out: u64,
    /// Tasks, and the step from which on each ran.
    pub(crate) tasks: Vec<(u64, Task)>,
    /// The number of steps that were followed.
    pub(crate) steps: u64,
    /// Whether all steps were followed.
    pub(crate) is_whole: bool,
}

/// The overview so far, which can be read while it grows.
#[derive(Debug, Default)]
pub(crate) struct Growing(RwLock<Arc<Overview>>);

impl Growing {
    pub(crate) fn new(overview: Overview) -> Self {
        Self(RwLock::new(Arc::new(overview)))
    }

    pub(crate) fn now(&self) -> Arc<Overview> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn show(&self, overview: Overview) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(overview);
    }
}

/// A piece of a source.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Piece {
    /// The functions that ran at the beginning of the piece, outermost first.
    pub(crate) frames: Box<[Drawn]>,
    pub(crate) exceptions: u32,
    pub(crate) gaps: u32,
}

const SHORTEST: u64 = 64;
const MOST_PIECES: usize = 1 << 15;
const KEPT: CallStackLimits = CallStackLimits { distance: 1 << 13, stacks: 1 << 13, frames: 1 << 20 };
/// The most gaps, texts and switches of tasks that are listed. Further ones are only counted.
const MOST_LISTED: usize = 1 << 17;

impl Default for Overview {
    fn default() -> Self {
        Self {
            distance: SHORTEST,
            pieces: Vec::new(),
            functions: Functions::default(),
            stacks: CallStacks::new(KEPT),
            gaps: Vec::new(),
            gap_count: 0,
            texts: Vec::new(),
            texts_left_out: 0,
            tasks: Vec::new(),
            steps: 0,
            is_whole: false,
        }
    }
}

impl Overview {
    /// Whether the calls at a step are known.
    pub(crate) const fn reaches(&self, step: u64) -> bool {
        self.is_whole || step < self.steps
    }

    /// Adds pieces up to and including the one with the step `last`.
    fn begin_pieces(&mut self, last: u64, frames: &[Drawn]) {
        while self.pieces.len() as u64 * self.distance <= last {
            self.pieces.push(Piece { frames: frames.into(), exceptions: 0, gaps: 0 });
            if self.pieces.len() > MOST_PIECES {
                self.join_pieces();
            }
        }
    }

    fn join_pieces(&mut self) {
        let second = self.pieces.iter().skip(1).step_by(2).map(|piece| (piece.exceptions, piece.gaps));
        let second = second.collect::<Vec<_>>();
        keep_every_other(&mut self.pieces);
        for (piece, (exceptions, gaps)) in self.pieces.iter_mut().zip(second) {
            piece.exceptions = piece.exceptions.saturating_add(exceptions);
            piece.gaps = piece.gaps.saturating_add(gaps);
        }
        self.distance = self.distance.saturating_mul(2);
    }
}

/// Makes an [`Overview`] from a source's elements.
pub(crate) struct Overseeing<'a> {
    calls: CallStack<u64>,
    frames: Vec<Drawn>,
    overview: Overview,
    /// Publishes the overview so far.
    show: &'a mut dyn FnMut(&Overview),
    /// The number of steps after which the overview is published next.
    next_show: u64,
}

/// The number of steps after which an overview is published for the first time. Later ones follow whenever it has grown
/// by a quarter, so that all copies together are only a few times as large as the whole.
const FIRST_SHOWN: u64 = 1 << 20;

impl<'a> Overseeing<'a> {
    pub(crate) fn new(code: Arc<Code>, show: &'a mut dyn FnMut(&Overview)) -> Self {
        let (calls, overview) = (CallStack::new(code), Overview::default());
        Self { calls, frames: Vec::new(), overview, show, next_show: FIRST_SHOWN }
    }

    pub(crate) fn finish(self) -> Overview {
        Overview { is_whole: true, ..self.overview }
    }

    fn element(&mut self, element: &Element) {
        let Self { calls, frames, overview, show, next_show } = self;
        let count = steps(element);
        if count > 0 {
            overview.stacks.keep(overview.steps, calls);
        }
        calls.element(element, &mut Began(overview.steps));
        if count == 0 {
            return;
        }
        let task = calls.task();
        if overview.tasks.last().is_none_or(|(_, last)| *last != task) && overview.tasks.len() < MOST_LISTED {
            overview.tasks.push((overview.steps, task));
        }
        if (overview.pieces.len() as u64) * overview.distance <= overview.steps + count {
            drawn(calls, &mut overview.functions, frames);
            overview.begin_pieces(overview.steps, frames);
        }
        let piece = overview.pieces.last_mut();
        match (element, piece) {
            (Element::Gap(_), Some(piece)) => {
                piece.gaps = piece.gaps.saturating_add(1);
                overview.gap_count += 1;
                if overview.gaps.len() < MOST_LISTED {
                    overview.gaps.push(overview.steps);
                }
            }
            (Element::Event(event), Some(piece)) if matches!(event.kind, EventKind::Exception { .. }) => {
                piece.exceptions = piece.exceptions.saturating_add(1);
            }
            _ => {}
        }
        overview.steps += count;
        // A long block may hold the beginnings of several pieces.
        overview.begin_pieces(overview.steps - 1, frames);
        if overview.steps >= *next_show {
            *next_show = overview.steps + overview.steps / 4;
            show(overview);
        }
    }
}

impl Sink<FlowRecord> for Overseeing<'_> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        // The code is empty if the image is not the traced program.
        self.calls = CallStack::new(Arc::clone(&section.code));
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.element(&record.element);
        Ok(())
    }

    fn shows_itm(&self) -> bool {
        true
    }

    fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
        if let ItmEvent::Text { port, bytes } = &record.event {
            let overview = &mut self.overview;
            if overview.texts.len() < MOST_LISTED {
                let text = String::from_utf8_lossy(bytes).trim_end().to_owned();
                overview.texts.push((overview.steps, *port, text));
            } else {
                overview.texts_left_out += 1;
            }
        }
        Ok(())
    }
}

impl FlowSink for Overseeing<'_> {
    fn needs_places(&self) -> bool {
        false
    }
}
