//! Parses the names of wires and roles, and assigns the channels of a recording to the roles.

use std::fmt;
use std::str::FromStr;

use super::error::RecordingProblem;
use super::role::{MOST_PINS, Role, Wire};
use crate::capture::error::CaptureErrorKind;
use crate::excerpt::excerpt;
use crate::nearest::nearest;

/// Why a word names no wire or role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseWireError(CaptureErrorKind);

impl fmt::Display for ParseWireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ParseWireError {}

impl From<ParseWireError> for CaptureErrorKind {
    fn from(error: ParseWireError) -> Self {
        error.0
    }
}

/// Reads the form's name, as in [`Wire::name`].
impl FromStr for Wire {
    type Err = ParseWireError;

    fn from_str(word: &str) -> Result<Self, ParseWireError> {
        Self::ALL.into_iter().find(|wire| wire.name() == word).ok_or_else(|| {
            ParseWireError(CaptureErrorKind::UnknownValue {
                key: "wire".to_owned(),
                found: excerpt(word),
                nearest: nearest(word, Self::ALL.map(Self::name)).unwrap_or(""),
            })
        })
    }
}

/// Reads `swo`, `clk` or `d0` to `d15`.
impl FromStr for Role {
    type Err = ParseWireError;

    fn from_str(word: &str) -> Result<Self, ParseWireError> {
        let pin = |word: &str| word.strip_prefix('d')?.parse().ok().filter(|pin| *pin < MOST_PINS);
        match word.to_ascii_lowercase().as_str() {
            "swo" => Ok(Self::Swo),
            "clk" => Ok(Self::Clock),
            lower => pin(lower).map(Self::Data).ok_or_else(|| {
                ParseWireError(CaptureErrorKind::Type {
                    key: "channel".to_owned(),
                    expected: "swo, clk or d0 to d15",
                    found: format!("`{}`", excerpt(word)),
                })
            }),
        }
    }
}

/// The channels that are read, by their indices in the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wiring {
    /// One of these is SWO.
    Swo(Vec<usize>),
    /// A trace port: the clock, and the data pins from 0 on.
    Port { clock: usize, data: Vec<usize> },
}

/// Finds the channels by the options and by their names.
pub(super) fn wiring(
    channels: &[String],
    wire: Option<Wire>,
    said: &[(String, Role)],
) -> Result<Wiring, RecordingProblem> {
    let mut roles = Vec::<(Role, usize)>::new();
    for (name, role) in said {
        let index = index_of(channels, name)?;
        if roles.iter().any(|(other, _)| other == role) {
            return Err(RecordingProblem::RoleTwice { role: *role });
        }
        roles.push((*role, index));
    }
    let is_data = |role: &Role| matches!(role, Role::Data(_));
    let data_are_said = said.iter().any(|(_, role)| is_data(role));
    let said_indices = roles.iter().map(|(_, index)| *index).collect::<Vec<_>>();
    for (index, name) in channels.iter().enumerate().filter(|(index, _)| !said_indices.contains(index)) {
        // If an option states one data pin, options have to state all of them.
        if let Some(role) = Role::of_name(name).filter(|role| !(data_are_said && is_data(role)))
            && !roles.iter().any(|(other, _)| *other == role)
        {
            roles.push((role, index));
        }
    }
    let find = |wanted: Role| roles.iter().find(|(role, _)| *role == wanted).map(|(_, index)| *index);
    let has_said = |wanted: fn(&Role) -> bool| said.iter().any(|(_, role)| wanted(role));
    let wants_swo =
        has_said(|role| *role == Role::Swo) || matches!(wire, Some(Wire::Uart | Wire::Manchester));
    let wants_port = has_said(|role| *role != Role::Swo) || wire == Some(Wire::Port);
    if wants_swo && wants_port {
        return Err(RecordingProblem::BothWires);
    }
    let port = || {
        let clock = find(Role::Clock).ok_or_else(|| missing(Role::Clock, channels))?;
        let data = (0..MOST_PINS).map_while(|pin| find(Role::Data(pin))).collect::<Vec<_>>();
        // A port has a power of two of pins: of three named pins, two are in use.
        let pins = if data.is_empty() { 0 } else { 1 << data.len().ilog2() };
        match data.get(..pins) {
            Some(data @ [_, ..]) => Ok(Wiring::Port { clock, data: data.to_vec() }),
            _ => Err(missing(Role::Data(0), channels)),
        }
    };
    match find(Role::Swo) {
        _ if wants_port => port(),
        Some(swo) => Ok(Wiring::Swo(vec![swo])),
        None if wants_swo => Ok(Wiring::Swo((0..channels.len()).collect())),
        None => Ok(port().unwrap_or_else(|_| Wiring::Swo((0..channels.len()).collect()))),
    }
}

fn index_of(channels: &[String], name: &str) -> Result<usize, RecordingProblem> {
    let exact = channels.iter().position(|channel| channel == name);
    let in_any_case = || channels.iter().position(|channel| channel.eq_ignore_ascii_case(name));
    exact.or_else(in_any_case).ok_or_else(|| RecordingProblem::UnknownChannel {
        name: excerpt(name),
        nearest: nearest(name, channels.iter().map(String::as_str)).map(excerpt),
        channels: first_of(channels),
    })
}

fn missing(role: Role, channels: &[String]) -> RecordingProblem {
    RecordingProblem::NoChannel { role, channels: first_of(channels) }
}

/// The first few channels, for a sentence.
fn first_of(channels: &[String]) -> Vec<String> {
    const SHOWN: usize = 8;
    channels.iter().take(SHOWN).map(|name| excerpt(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn said(roles: &[(&str, Role)]) -> Vec<(String, Role)> {
        roles.iter().map(|&(name, role)| (name.to_owned(), role)).collect()
    }

    #[test]
    fn usual_names_say_which_channel_is_which() {
        for name in ["SWO", "TRACESWO", "TraceSWO", "TDO/SWO", "JTDO-TRACESWO"] {
            assert_eq!(Role::of_name(name), Some(Role::Swo), "{name}");
        }
        for name in ["TRACECLK", "TRACE_CLK", "CLK", "TCLK", "traceclk"] {
            assert_eq!(Role::of_name(name), Some(Role::Clock), "{name}");
        }
        for name in ["TRACED3", "TRACEDATA[3]", "TRACE_D3", "D3", "DATA3", "Trace Data 3"] {
            assert_eq!(Role::of_name(name), Some(Role::Data(3)), "{name}");
        }
        for name in ["", "D", "D16", "PC8", "CLKOUT", "SWDIO", "TRACECTL"] {
            assert_eq!(Role::of_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_clock_and_numbered_data_are_a_port_and_swo_is_not() {
        let port = names(&["TRACED1", "TRACECLK", "TRACED0", "TRACED2"]);
        assert_eq!(wiring(&port, None, &[]), Ok(Wiring::Port { clock: 1, data: vec![2, 0] }));
        let swo = names(&["D0", "D1", "SWO", "CLK"]);
        assert_eq!(wiring(&swo, None, &[]), Ok(Wiring::Swo(vec![2])));
        assert_eq!(wiring(&swo, Some(Wire::Port), &[]), Ok(Wiring::Port { clock: 3, data: vec![0, 1] }));
        // Sigrok's default names do not identify a role: each channel may be SWO.
        assert_eq!(wiring(&names(&["D0", "D1"]), None, &[]), Ok(Wiring::Swo(vec![0, 1])));
    }

    #[test]
    fn what_is_said_stands_above_the_names() {
        let channels = names(&["D0", "D1", "D2", "D3", "D4"]);
        let roles = [("D0", Role::Clock), ("d4", Role::Data(0)), ("D3", Role::Data(1))];
        let found = wiring(&channels, None, &said(&roles));
        assert_eq!(found, Ok(Wiring::Port { clock: 0, data: vec![4, 3] }));
        let found = wiring(&channels, None, &said(&[("D2", Role::Swo)]));
        assert_eq!(found, Ok(Wiring::Swo(vec![2])));
    }

    #[test]
    fn mistakes_name_the_channels_that_there_are() {
        let channels = names(&["SWO", "PC9"]);
        let sentence = |wire, roles: &[_]| wiring(&channels, wire, &said(roles)).unwrap_err().to_string();
        assert_eq!(
            sentence(None, &[("SW0", Role::Swo)]),
            "there is no channel `SW0`, the nearest name is `SWO` among SWO, PC9"
        );
        assert_eq!(
            sentence(Some(Wire::Port), &[]),
            "the channel for clk is unknown, expected one of SWO, PC9"
        );
        assert_eq!(
            sentence(None, &[("SWO", Role::Swo), ("PC9", Role::Swo)]),
            "two channels have the role swo"
        );
        assert_eq!(
            sentence(Some(Wire::Port), &[("SWO", Role::Swo)]),
            "the options select both SWO and a trace port, expected one of them"
        );
        let unknown = "uard".parse::<Wire>().unwrap_err();
        assert_eq!(unknown.to_string(), "unknown wire `uard`, the nearest known one is `uart`");
        let unknown = "d16".parse::<Role>().unwrap_err();
        assert_eq!(unknown.to_string(), "expected swo, clk or d0 to d15 for `channel`, found `d16`");
        for word in ["swo", "clk", "d0", "d15"] {
            assert_eq!(word.parse::<Role>().unwrap().to_string(), word);
        }
    }
}
