//! The ways to read channels, and the choice of the one with the fewest errors.

use super::changes::{Change, Changes, Line, Tick};
use super::error::RecordingProblem as Problem;
use super::manchester::Manchester;
use super::port;
use super::recording::Recording;
use super::role::Wire;
use super::uart::Uart;
use super::{Receiver, WireOptions, unit};
use crate::capture::error::CaptureError;

/// A way to read channels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    /// SWO as UART, with the length of a bit in ticks.
    Uart(f64),
    /// SWO as Manchester, with the length of half a bit in ticks.
    Manchester(f64),
    Port(port::Setup),
}

impl Way {
    /// The length of a bit of SWO, in ticks.
    pub(super) const fn ticks_per_bit(self) -> Option<f64> {
        match self {
            Self::Uart(bit) => Some(bit),
            Self::Manchester(half) => Some(half * 2.0),
            Self::Port(_) => None,
        }
    }

    pub(super) const fn wire(self) -> Wire {
        match self {
            Self::Uart(_) => Wire::Uart,
            Self::Manchester(_) => Wire::Manchester,
            Self::Port(_) => Wire::Port,
        }
    }
}

/// The most changes that are examined to infer how a recording is read.
pub(super) const HEAD: usize = 200_000;

/// The changes of these channels at the beginning of the recording, and its problem, if any.
pub(super) fn lines(
    recording: &Recording,
    channels: &[usize],
) -> Result<(Vec<Line>, Option<CaptureError>), CaptureError> {
    let mut lines = vec![Line::default(); channels.len()];
    let mut changes = Until::new(recording.changes(channels)?, false);
    for (number, change) in changes.by_ref().take(HEAD).enumerate() {
        for (index, line) in lines.iter_mut().enumerate() {
            line.take(number == 0, change.at, change.levels.is_high(index));
        }
        if lines.iter().all(|line| line.edges.len() >= unit::EDGES) {
            break;
        }
    }
    for line in &mut lines {
        if let Some(&last) = line.edges.get(unit::EDGES) {
            line.edges.truncate(unit::EDGES);
            line.end = last;
        }
    }
    Ok((lines, changes.problem))
}

/// The result of reading a line in some way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Score {
    pub(super) bytes: u64,
    pub(super) errors: u64,
}

impl Score {
    /// The errors for each thousand bytes.
    const fn rank(self) -> u64 {
        match self.bytes {
            0 => u64::MAX,
            bytes => self.errors.saturating_mul(1000) / bytes,
        }
    }

    /// Whether the errors are few enough for this way to be the right one.
    pub(super) const fn is_good(self) -> bool {
        self.rank() <= 50
    }
}

impl Receiver for Score {
    fn byte(&mut self, _byte: u8, _at: Tick) {
        self.bytes += 1;
    }

    fn error(&mut self, _at: Tick) {
        self.errors += 1;
    }
}

/// The way that gives the fewest errors for each byte; `None` if no way gives bytes.
pub(super) fn best_way(
    line: &Line,
    options: &WireOptions,
    ticks_per_second: Option<f64>,
) -> Result<Option<(Way, Score)>, Problem> {
    let said = match options.baud {
        None => None,
        Some(baud) => Some(ticks_per_second.ok_or(Problem::NoRate)? / baud as f64),
    };
    if let Some(ticks) = said.filter(|ticks| *ticks < FEWEST_TICKS) {
        let tenths = (0..).take_while(|tenths| f64::from(*tenths) < ticks * 10.0 - 0.5).count() as u64;
        return Err(Problem::TooSlow { tenths });
    }
    let wants = |wire| options.wire.is_none_or(|wanted| wanted == wire);
    let units = if said.is_none() { unit::candidates(line) } else { Vec::new() };
    let mut ways = Vec::new();
    if wants(Wire::Uart) {
        let said = said.map(|bit| unit::refine(line, bit));
        ways.extend(said.into_iter().chain(units.iter().copied()).map(Way::Uart));
    }
    if wants(Wire::Manchester) {
        let said = said.map(|bit| unit::refine(line, bit / 2.0));
        ways.extend(said.into_iter().chain(units).map(Way::Manchester));
    }
    let scored = ways.into_iter().map(|way| (way, score(line, way))).filter(|(_, score)| score.bytes > 0);
    Ok(scored.min_by_key(|(_, score)| (score.rank(), u64::MAX - score.bytes)))
}

/// The fewest ticks in a bit.
const FEWEST_TICKS: f64 = 2.0;

fn score(line: &Line, way: Way) -> Score {
    let mut score = Score::default();
    match way {
        Way::Uart(bit) => {
            let mut uart = Uart::new(bit, line.start, line.starts_high);
            line.edges.iter().for_each(|edge| uart.edge(*edge, &mut score));
            uart.finish(line.end, &mut score);
        }
        Way::Manchester(half) => {
            let mut manchester = Manchester::new(half, line.start, line.starts_high);
            line.edges.iter().for_each(|edge| manchester.edge(*edge, &mut score));
            manchester.finish(line.end, &mut score);
        }
        Way::Port(_) => {}
    }
    score
}

/// The changes of a recording up to its end, or to its first problem.
pub(super) struct Until<C> {
    changes: C,
    pub(super) end: Tick,
    pub(super) problem: Option<CaptureError>,
    /// Whether the levels are inverted.
    inverted: bool,
}

impl<C: Changes> Until<C> {
    pub(super) const fn new(changes: C, inverted: bool) -> Self {
        Self { changes, end: Tick(0), problem: None, inverted }
    }
}

impl<C: Changes> Iterator for Until<C> {
    type Item = Change;

    fn next(&mut self) -> Option<Change> {
        match self.changes.next()? {
            Ok(change) => {
                self.end = change.at;
                Some(if self.inverted { change.inverted() } else { change })
            }
            Err(error) => {
                self.problem = Some(error);
                None
            }
        }
    }
}
