//! Two readings → their differences.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use super::listing_etmv4::{ar_type_name, m_type_name};
use super::model::{Packet, Reading, Step, Value, What};

/// A place where two readings differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The same packet is read differently.
    Packet {
        /// Ours.
        ours: Packet,
        /// OpenCSD's.
        theirs: Packet,
    },
    /// The bytes are divided into different packets.
    Cut {
        /// Ours.
        ours: Vec<Packet>,
        /// OpenCSD's.
        theirs: Vec<Packet>,
        /// The place of the next packet that both readings have.
        until: u64,
    },
    /// The executed steps differ.
    Flow {
        /// Ours.
        ours: Vec<Step>,
        /// OpenCSD's.
        theirs: Vec<Step>,
        /// The places of the last and the next step that both readings have.
        between: (u64, u64),
    },
}

impl Difference {
    /// The first and last place in the trace that the difference concerns.
    #[must_use]
    pub fn places(&self) -> (u64, u64) {
        match self {
            Self::Packet { ours, .. } => (ours.at, ours.at),
            Self::Cut { ours, theirs, until } => {
                let at = ours.first().into_iter().chain(theirs.first()).map(|packet| packet.at).min();
                let at = at.unwrap_or(*until);
                (at, until.saturating_sub(1).max(at))
            }
            Self::Flow { between, .. } => *between,
        }
    }
}

impl Difference {
    /// Splits a difference that has several steps into single steps, and a cut at each place where both
    /// readings begin a packet, because more than one deviation may be involved.
    #[must_use]
    pub fn parts(&self) -> Option<Vec<Self>> {
        let (ours, theirs, between) = match self {
            Self::Flow { ours, theirs, between } => (ours, theirs, between),
            Self::Cut { ours, theirs, until } => return cut_parts(ours, theirs, *until),
            Self::Packet { .. } => return None,
        };
        let part = |ours: &[Step], theirs: &[Step]| Self::Flow {
            ours: ours.to_vec(),
            theirs: theirs.to_vec(),
            between: *between,
        };
        let (mut parts, mut done) = (Vec::new(), 0);
        for their in theirs {
            let rest = ours.get(done..).unwrap_or_default();
            match rest.iter().position(|our| is_alike(our, their) && is_same(&our.what, &their.what)) {
                Some(before) => {
                    parts.extend(rest.iter().take(before).map(|step| part(std::slice::from_ref(step), &[])));
                    done += before + 1;
                }
                None => parts.push(part(&[], std::slice::from_ref(their))),
            }
        }
        let rest = ours.get(done..).unwrap_or_default();
        parts.extend(rest.iter().map(|step| part(std::slice::from_ref(step), &[])));
        (ours.len() + theirs.len() > 1).then_some(parts)
    }
}

/// Splits a stretch that is divided into different packets at each place where both readings begin a packet.
fn cut_parts(ours: &[Packet], theirs: &[Packet], until: u64) -> Option<Vec<Difference>> {
    let both = |at: &u64| theirs.iter().any(|packet| packet.at == *at);
    let cuts = ours.iter().map(|packet| packet.at).filter(both).collect::<Vec<_>>();
    let ends = cuts.iter().copied().skip(1).chain([until]);
    let part = |packets: &[Packet], from: u64, end: u64| {
        packets.iter().filter(|packet| packet.at >= from && packet.at < end).cloned().collect::<Vec<_>>()
    };
    let first = cuts.first().copied().unwrap_or(until);
    let parts = std::iter::once((0, first)).chain(cuts.iter().copied().zip(ends));
    let parts = parts.map(|(from, end)| Difference::Cut {
        ours: part(ours, from, end),
        theirs: part(theirs, from, end),
        until: end,
    });
    let is_reported = |part: &Difference| !matches!(part, Difference::Cut { ours, theirs, .. } if ours.is_empty() && theirs.is_empty());
    let parts = parts.filter(is_reported).collect::<Vec<_>>();
    (parts.len() > 1).then_some(parts)
}

impl Display for Difference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet { ours, theirs } => write!(f, "found {ours}, OpenCSD {theirs}"),
            Self::Cut { ours, theirs, until } => {
                write!(f, "before {until}: found [{}], OpenCSD [{}]", some(ours), some(theirs))
            }
            Self::Flow { ours, theirs, between: (from, until) } => {
                write!(f, "between {from} and {until}: found [{}], OpenCSD [{}]", some(ours), some(theirs))
            }
        }
    }
}

/// The first few of `all`.
fn some(all: &[impl Display]) -> String {
    const SHOWN: usize = 12;
    let shown = all.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join("; ");
    if all.len() > SHOWN { format!("{shown} ... {} in all", all.len()) } else { shown }
}

/// The differences in the packets: places where the same packet is read differently, and stretches that are
/// divided differently.
#[must_use]
pub fn packets(ours: &Reading, theirs: &Reading) -> Vec<Difference> {
    let mut places = BTreeMap::<u64, (Option<&Packet>, Option<&Packet>)>::new();
    for packet in joined(&ours.packets) {
        places.entry(packet.at).or_default().0 = Some(packet);
    }
    for packet in joined(&theirs.packets) {
        places.entry(packet.at).or_default().1 = Some(packet);
    }
    let mut differences = Vec::new();
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for (at, pair) in places.into_iter().map(|(at, pair)| (at, Some(pair))).chain([(u64::MAX, None)]) {
        let together = match pair {
            Some((Some(ours), Some(theirs))) => {
                ours.kind == theirs.kind || is_unread(ours) && is_unread(theirs)
            }
            Some(_) => false,
            None => true,
        };
        if let (false, Some((ours, theirs))) = (together, pair) {
            one.extend(ours.cloned());
            other.extend(theirs.cloned());
            continue;
        }
        if !one.is_empty() || !other.is_empty() {
            differences.push(Difference::Cut {
                ours: std::mem::take(&mut one),
                theirs: std::mem::take(&mut other),
                until: at,
            });
        }
        if let Some((Some(ours), Some(theirs))) = pair
            && !same(ours, theirs)
        {
            differences.push(Difference::Packet { ours: ours.clone(), theirs: theirs.clone() });
        }
    }
    differences
}

/// Whether the reading found no packet in these bytes.
fn is_unread(packet: &Packet) -> bool {
    !packet.is_packet()
}

/// Drops the second of two consecutive unreadable pieces, because the decoders divide such bytes as they
/// please.
fn joined(packets: &[Packet]) -> impl Iterator<Item = &Packet> {
    let mut before = true;
    packets.iter().filter(move |packet| {
        let keep = before || packet.is_packet();
        before = packet.is_packet();
        keep
    })
}

/// Whether two packets at the same place are the same, as far as both have the same fields.
fn same(ours: &Packet, theirs: &Packet) -> bool {
    if is_unread(ours) && is_unread(theirs) {
        return true;
    }
    let of_both = ours.fields.iter().filter_map(|(name, ours)| Some((ours, theirs.fields.get(name)?)));
    // OpenCSD prints only the fields that are set.
    let set = |name: &str| ours.number(name).unwrap_or(0) == theirs.number(name).unwrap_or(0);
    of_both.clone().all(|(ours, theirs)| ours == theirs)
        && ["cancel", "hyp", "resume"].into_iter().all(set)
        && same_exception(ours, theirs)
}

/// Compares exceptions by name, because OpenCSD names those of ETMv3.
fn same_exception(ours: &Packet, theirs: &Packet) -> bool {
    match theirs.fields.get("exception_name") {
        Some(Value::Text(name)) => ours.number("exception").or(ours.number("eee")).is_some_and(|code| {
            let names = match ours.kind {
                // ETMv4's packet.
                "exception" => [ar_type_name(code), m_type_name(code)],
                _ => [ar_name(code), m_name(code)],
            };
            names.iter().any(|known| known.eq_ignore_ascii_case(name))
        }),
        _ => ours.number("exception").unwrap_or(0) == theirs.number("exception").unwrap_or(0),
    }
}

/// OpenCSD's names of A- and R-profile exceptions, by the code in the packet.
pub(super) fn ar_name(code: u64) -> String {
    const NAMES: [&str; 16] = [
        "No Exception",
        "Debug Halt",
        "SMC",
        "Hyp",
        "Async Data Abort",
        "Jazelle",
        "Reserved",
        "Reserved",
        "PE Reset",
        "Undefined Instr",
        "SVC",
        "Prefetch Abort",
        "Data Fault",
        "Generic",
        "IRQ",
        "FIQ",
    ];
    usize::try_from(code).ok().and_then(|code| NAMES.get(code)).copied().unwrap_or("unknown").to_owned()
}

/// OpenCSD's names of M-profile exceptions, by the code in the packet.
fn m_name(code: u64) -> String {
    match code {
        0 => "No Exception".to_owned(),
        1..=7 => format!("IRQ{code}"),
        8 => "IRQ0".to_owned(),
        9 => "Usage Fault".to_owned(),
        10 => "NMI".to_owned(),
        11 => "SVC".to_owned(),
        12 => "DebugMonitor".to_owned(),
        13 => "Mem Manage".to_owned(),
        14 => "PendSV".to_owned(),
        15 => "SysTick".to_owned(),
        0x11 => "PE Reset".to_owned(),
        0x13 => "HardFault".to_owned(),
        0x15 => "BusFault".to_owned(),
        0x10..=0x17 => "Reserved".to_owned(),
        _ => format!("IRQ{}", code - 0x10),
    }
}

/// The differences in the executed steps: steps that only one reading has, and steps of both that differ.
#[must_use]
pub fn flow(ours: &Reading, theirs: &Reading) -> Vec<Difference> {
    let is_reported = |step: &&Step| !matches!(step.what, What::Unknown | What::Lost);
    let ours = ours.steps.iter().filter(is_reported).collect::<Vec<_>>();
    let theirs = theirs.steps.iter().filter(is_reported).collect::<Vec<_>>();
    let mut differences = Vec::new();
    // The number of finished steps of each reading, and the place of the last one.
    let (mut done, mut place) = ((0, 0), 0);
    let end =
        [&ours, &theirs].iter().filter_map(|steps| steps.last()).map(|step| step.until).max().unwrap_or(0);
    for (one, other) in pairs(&ours, &theirs).into_iter().chain([(ours.len(), theirs.len())]) {
        let until = ours.get(one).map_or(end, |step| step.until);
        let mut differ = |ours: &[&Step], theirs: &[&Step], from: u64| {
            let own = |steps: &[&Step]| steps.iter().map(|&step| step.clone()).collect();
            differences.push(Difference::Flow {
                ours: own(ours),
                theirs: own(theirs),
                between: (from, until.max(from)),
            });
        };
        if (one, other) != done {
            let part = |steps, done, until| <[&Step]>::get(steps, done..until).unwrap_or_default();
            differ(part(&ours, done.0, one), part(&theirs, done.1, other), place);
        }
        if let (Some(ours), Some(theirs)) = (ours.get(one), theirs.get(other)) {
            place = theirs.from;
            if !is_same(&ours.what, &theirs.what) {
                differ(&[ours], &[theirs], place);
            }
        }
        done = (one + 1, other + 1);
    }
    differences
}

/// Whether two steps describe the same event, at the same place of the trace.
fn is_alike(ours: &Step, theirs: &Step) -> bool {
    if theirs.from > ours.until || ours.from > theirs.from {
        return false;
    }
    match (&ours.what, &theirs.what) {
        (What::Exception { .. }, What::Exception { .. }) => ours.from == theirs.from,
        (What::Instruction { at, .. }, What::Instruction { at: their_at, .. }) => at == their_at,
        (one, other) => one == other && ours.from == theirs.from,
    }
}

/// Whether two steps that describe the same event are equal.
fn is_same(ours: &What, theirs: &What) -> bool {
    match (ours, theirs) {
        // OpenCSD knows the return address only for PFT.
        (
            What::Exception { number, preferred_return },
            What::Exception { number: their_number, preferred_return: their_return },
        ) => number == their_number && (their_return.is_none() || preferred_return == their_return),
        _ => ours == theirs,
    }
}

/// The number of equal steps after which the readings count as aligned again.
const TOGETHER: usize = 2;

/// If the readings differ for more steps than this, both taken together, they are not aligned again.
const MOST_APART: usize = 3000;

/// The pairs of steps that are alike, as indices into both readings, in order.
fn pairs(ours: &[&Step], theirs: &[&Step]) -> Vec<(usize, usize)> {
    let same = |one: usize, other: usize| match (ours.get(one), theirs.get(other)) {
        (Some(ours), Some(theirs)) => is_alike(ours, theirs),
        (None, None) => true,
        _ => false,
    };
    let together = |one: usize, other: usize| (0..TOGETHER).all(|more| same(one + more, other + more));
    let mut pairs = Vec::new();
    let (mut one, mut other) = (0, 0);
    while one < ours.len() && other < theirs.len() {
        if same(one, other) {
            pairs.push((one, other));
            (one, other) = (one + 1, other + 1);
            continue;
        }
        let skipped = (1..=MOST_APART).find_map(|apart| {
            (0..=apart).map(|skip| (skip, apart - skip)).find(|skip| together(one + skip.0, other + skip.1))
        });
        let Some(skip) = skipped else { break };
        (one, other) = (one + skip.0, other + skip.1);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use tracewalk::ids::{Address, Isa, Location};

    use super::*;

    fn reading(addresses: &[u32]) -> Reading {
        let step = |(from, &address): (u64, &u32)| Step {
            from,
            until: from,
            what: What::Instruction { at: Location::new(Address::from(address), Isa::T32), passed: true },
        };
        Reading { steps: (0..).zip(addresses).map(step).collect(), ..Reading::default() }
    }

    #[test]
    fn what_one_reading_lacks_is_one_difference_and_the_rest_is_none() {
        let ours = reading(&[2, 4, 6, 8, 10, 12]);
        let mut theirs = ours.clone();
        theirs.steps.drain(2..4);
        let found = flow(&ours, &theirs);
        assert!(
            matches!(&found[..], [Difference::Flow { ours, theirs, .. }] if ours.len() == 2 && theirs.is_empty()),
            "{found:?}"
        );
        assert_eq!(flow(&ours, &ours), []);
    }

    #[test]
    fn a_stretch_that_is_cut_otherwise_has_parts_where_both_cut() {
        let packets = |packets: &[(u64, &'static str)]| {
            let packet = |&(at, kind): &(u64, &'static str)| Packet { at, kind, fields: BTreeMap::new() };
            packets.iter().map(packet).collect::<Vec<_>>()
        };
        let ours = packets(&[(0, "a_sync"), (10, "malformed")]);
        let theirs = packets(&[(0, "malformed"), (4, "a_sync"), (10, "i_sync"), (16, "trigger")]);
        let whole = Difference::Cut { ours, theirs, until: 17 };
        let long_a_sync = Difference::Cut {
            ours: packets(&[(0, "a_sync")]),
            theirs: packets(&[(0, "malformed"), (4, "a_sync")]),
            until: 10,
        };
        let rest = Difference::Cut {
            ours: packets(&[(10, "malformed")]),
            theirs: packets(&[(10, "i_sync"), (16, "trigger")]),
            until: 17,
        };
        assert_eq!(whole.parts(), Some(vec![long_a_sync.clone(), rest]));
        assert_eq!(long_a_sync.parts(), None);
    }

    #[test]
    fn packets_that_are_cut_otherwise_are_one_difference_up_to_the_next_that_is_the_same() {
        let packet = |at, kind| Packet { at, kind, fields: BTreeMap::new() };
        let of = |packets| Reading { packets, ..Reading::default() };
        let ours =
            of(vec![packet(0, "a_sync"), packet(6, "ignore"), packet(7, "ignore"), packet(8, "trigger")]);
        let theirs = of(vec![packet(0, "a_sync"), packet(6, "branch"), packet(8, "trigger")]);
        let found = packets(&ours, &theirs);
        assert!(
            matches!(&found[..], [Difference::Cut { ours, theirs, until: 8 }] if ours.len() == 2 && theirs.len() == 1),
            "{found:?}"
        );
    }
}
