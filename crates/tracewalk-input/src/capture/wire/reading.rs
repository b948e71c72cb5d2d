//! Infers how a recording is to be read, and reads it.

use super::changes::{Change, Changes, Line, Tick};
use super::error::RecordingProblem as Problem;
use super::manchester::Manchester;
use super::port::{self, Port};
use super::recording::Recording;
use super::role::{Role, Wire};
use super::roles::{Wiring, wiring};
use super::seen::{ChannelSeen, Listed};
use super::survey::survey;
use super::times::ByteTimes;
use super::uart::Uart;
use super::ways::{HEAD, Score, Until, Way, best_way, lines};
use super::{Receiver, WireOptions};
use crate::capture::error::CaptureError;

/// The result of reading a recording, except its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The form in which bytes were sent over the wires.
    pub wire: Wire,
    /// The options that were given, without inferred values.
    pub said: WireOptions,
    /// The channels that were read.
    pub channels: Vec<(Role, String)>,
    /// Whether the levels were read inverted.
    pub inverted: bool,
    /// The length of a bit of SWO, in ticks.
    pub ticks_per_bit: Option<f64>,
    /// The number of ticks in a second, if the recording states it.
    pub ticks_per_second: Option<f64>,
    /// The moment at which each byte began.
    pub times: ByteTimes,
    /// The end of the recording.
    pub end: Tick,
    /// The number of errors on the wires.
    pub errors: u64,
    /// The first error.
    pub first_error: Option<WireError>,
    /// Whether the start of a trace port's bytes is known; only synchronisation shows it.
    pub is_aligned: bool,
    /// The problem that ended reading before the end of the recording.
    pub problem: Option<CaptureError>,
    /// The activity of all channels, if the channels that were read look like the wrong ones.
    pub seen: Vec<ChannelSeen>,
}

/// An error on the wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireError {
    /// The number of bytes before the error.
    pub byte: usize,
    /// The moment of the error.
    pub at: Tick,
}

impl Reading {
    /// The bit rate of SWO, in bits a second.
    #[must_use]
    pub fn bits_per_second(&self) -> Option<f64> {
        Some(self.ticks_per_second? / self.ticks_per_bit?)
    }

    /// Whether the result suggests that other channels are meant.
    fn is_doubtful(&self) -> bool {
        let score = Score { bytes: self.times.len() as u64, errors: self.errors };
        !self.is_aligned || !score.is_good()
    }

    /// The activity of all channels, as a phrase; `None` if nothing is in doubt.
    #[must_use]
    pub fn seen(&self) -> Option<String> {
        (!self.seen.is_empty()).then(|| Listed(&self.seen).to_string())
    }

    /// The inferred channels: those whose role is neither given by an option nor shown by their name.
    pub fn found_channels(&self) -> impl Iterator<Item = &(Role, String)> {
        let is_said = |name: &str| self.said.channels.iter().any(|(said, _)| said.eq_ignore_ascii_case(name));
        self.channels.iter().filter(move |(role, name)| !is_said(name) && Role::of_name(name) != Some(*role))
    }

    /// The time from the recording's start to a moment, in seconds.
    #[must_use]
    pub fn seconds(&self, at: Tick) -> Option<f64> {
        Some(Tick(0).until(at) / self.ticks_per_second?)
    }
}

/// Reads the bytes of a recording, and describes how they were read.
///
/// # Errors
///
/// If the options do not fit the recording, or its file is malformed.
pub fn read(recording: &Recording, options: &WireOptions) -> Result<(Vec<u8>, Reading), CaptureError> {
    let error = |problem| recording.error(problem);
    let wiring = wiring(recording.channels(), options.wire, &options.channels).map_err(error)?;
    if matches!(wiring, Wiring::Port { .. }) && options.baud.is_some() {
        return Err(error(Problem::RateOfPort));
    }
    let decoder = match &wiring {
        Wiring::Port { clock, data } => port(recording, *clock, data, options)?,
        Wiring::Swo(channels) => swo(recording, channels, options)?,
    };
    let (bytes, mut reading) = decoder.read_all(recording)?;
    if reading.is_doubtful() {
        reading.seen = survey(recording);
    }
    Ok((bytes, Reading { said: options.clone(), ..reading }))
}

/// The way to read a recording.
#[derive(Clone, Debug)]
struct Decoder {
    /// The channels, in the order of the request.
    channels: Vec<(Role, usize)>,
    way: Way,
    /// Whether the levels are inverted.
    inverted: bool,
}

/// A trace port on these channels.
fn port(
    recording: &Recording,
    clock: usize,
    data: &[usize],
    options: &WireOptions,
) -> Result<Decoder, CaptureError> {
    let inverted = options.inverted.unwrap_or(false);
    let pins = (0..).map(Role::Data).zip(data.iter().copied());
    let channels = std::iter::once((Role::Clock, clock)).chain(pins).collect::<Vec<_>>();
    let indices = channels.iter().map(|(_, index)| *index).collect::<Vec<_>>();
    let mut changes = Until::new(recording.changes(&indices)?, inverted);
    let head = changes.by_ref().take(HEAD).collect::<Vec<_>>();
    let setup = port::measure(&head, u8::try_from(data.len()).unwrap_or(u8::MAX));
    let setup = setup.ok_or_else(|| {
        let channel = recording.channels().get(clock).cloned();
        let seen = || survey(recording);
        changes.problem.unwrap_or_else(|| recording.error(Problem::NoSignal { channel, seen: seen() }))
    })?;
    Ok(Decoder { channels, way: Way::Port(setup), inverted })
}

/// SWO on one of these channels.
fn swo(recording: &Recording, channels: &[usize], options: &WireOptions) -> Result<Decoder, CaptureError> {
    let (lines, problem) = lines(recording, channels)?;
    // A named channel is read even if it gives errors; otherwise only channels that give readable bytes are
    // candidates.
    let is_named = channels.len() == 1;
    let mut found = Vec::new();
    for (&channel, line) in channels.iter().zip(&lines) {
        if !line.edges.is_empty() && (is_named || !line.is_clock()) {
            let best = best_polarity(line, options, recording.ticks_per_second());
            let best = best.map_err(|problem| recording.error(problem))?;
            found.extend(best.map(|(way, score, inverted)| (channel, way, score, inverted)));
        }
    }
    let name = |channel: usize| recording.channels().get(channel).cloned().unwrap_or_default();
    let error = |kind| problem.unwrap_or_else(|| recording.error(kind));
    if lines.iter().all(|line| line.edges.is_empty()) {
        let channel = if let [only] = channels { Some(name(*only)) } else { None };
        return Err(error(Problem::NoSignal { channel, seen: survey(recording) }));
    }
    found.retain(|(_, _, score, _)| is_named || score.is_good());
    // The inverse of a line carries the same bytes.
    if options.inverted.is_none() && found.iter().any(|(.., inverted)| !inverted) {
        found.retain(|(.., inverted)| !inverted);
    }
    match found.as_slice() {
        [] => Err(error(Problem::Unreadable { seen: survey(recording) })),
        [(channel, way, _, inverted)] => {
            Ok(Decoder { channels: vec![(Role::Swo, *channel)], way: *way, inverted: *inverted })
        }
        several => {
            let channels = several.iter().map(|(channel, ..)| name(*channel)).collect();
            Err(recording.error(Problem::Ambiguous { channels }))
        }
    }
}

/// The way that gives the fewest errors, and whether it inverts the levels. If no option states the polarity,
/// the line is read inverted only if it is unreadable as it is and many bytes are free of errors when
/// inverted.
fn best_polarity(
    line: &Line,
    options: &WireOptions,
    ticks_per_second: Option<f64>,
) -> Result<Option<(Way, Score, bool)>, Problem> {
    /// This many bytes are not free of errors by chance.
    const MANY: u64 = 64;
    let read = |inverted: bool| {
        let line = if inverted { &line.inverted() } else { line };
        let best = best_way(line, options, ticks_per_second)?;
        Ok::<_, Problem>(best.map(|(way, score)| (way, score, inverted)))
    };
    let said = read(options.inverted.unwrap_or(false))?;
    if options.inverted.is_some() || said.is_some_and(|(_, score, _)| score.is_good()) {
        return Ok(said);
    }
    let other = read(true)?.filter(|(_, score, _)| score.errors == 0 && score.bytes >= MANY);
    Ok(other.or(said))
}

/// The bytes received.
#[derive(Debug, Default)]
struct Received {
    bytes: Vec<u8>,
    times: ByteTimes,
    errors: u64,
    first_error: Option<WireError>,
}

impl Receiver for Received {
    fn byte(&mut self, byte: u8, at: Tick) {
        self.bytes.push(byte);
        self.times.push(at);
    }

    fn error(&mut self, at: Tick) {
        self.errors += 1;
        self.first_error.get_or_insert(WireError { byte: self.bytes.len(), at });
    }
}

impl Decoder {
    /// Reads the recording from its beginning to its end.
    fn read_all(&self, recording: &Recording) -> Result<(Vec<u8>, Reading), CaptureError> {
        let indices = self.channels.iter().map(|(_, index)| *index).collect::<Vec<_>>();
        let mut changes = Until::new(recording.changes(&indices)?, self.inverted);
        let mut received = Received::default();
        self.receive(&mut changes, &mut received);
        let Until { end, problem, .. } = changes;
        if received.bytes.is_empty() {
            return Err(
                problem.unwrap_or_else(|| recording.error(Problem::Unreadable { seen: survey(recording) }))
            );
        }
        let names = self
            .channels
            .iter()
            .map(|(role, index)| (*role, recording.channels().get(*index).cloned().unwrap_or_default()));
        let Received { bytes, times, errors, first_error } = received;
        let reading = Reading {
            wire: self.way.wire(),
            said: WireOptions::default(),
            channels: names.collect(),
            inverted: self.inverted,
            ticks_per_bit: self.way.ticks_per_bit(),
            ticks_per_second: recording.ticks_per_second(),
            times,
            end,
            errors,
            first_error,
            is_aligned: match self.way {
                Way::Port(setup) => setup.is_aligned,
                Way::Uart(_) | Way::Manchester(_) => true,
            },
            problem,
            seen: Vec::new(),
        };
        Ok((bytes, reading))
    }

    fn receive(&self, changes: &mut Until<impl Changes>, received: &mut Received) {
        let Some(first) = changes.next() else { return };
        let high = first.levels.is_high(0);
        match self.way {
            Way::Uart(bit) => {
                let mut uart = Uart::new(bit, first.at, high);
                each_edge(changes, high, |at| uart.edge(at, received));
                uart.finish(changes.end, received);
            }
            Way::Manchester(half) => {
                let mut manchester = Manchester::new(half, first.at, high);
                each_edge(changes, high, |at| manchester.edge(at, received));
                manchester.finish(changes.end, received);
            }
            Way::Port(setup) => {
                let mut port = Port::new(setup, first.levels);
                changes.by_ref().for_each(|change| port.change(change, received));
                port.finish(changes.end, received);
            }
        }
    }
}

/// The first channel's edges.
fn each_edge(changes: &mut impl Iterator<Item = Change>, starts_high: bool, mut edge: impl FnMut(Tick)) {
    let mut high = starts_high;
    for change in changes {
        if change.levels.is_high(0) != high {
            high = !high;
            edge(change.at);
        }
    }
}
