//! Helpers that recognise differences as known deviations.

use tracewalk::ids::Profile;
use tracewalk::source::SourceConfig;

use super::compare::Difference;
use super::model::{Packet, Step, Value, WHY};
use super::place::Place;

/// The step of each reading, if the difference has one of each.
pub(super) fn one_each(difference: &Difference) -> Option<(&Step, &Step)> {
    match difference {
        Difference::Flow { ours, theirs, .. } => match (&ours[..], &theirs[..]) {
            ([ours], [theirs]) => Some((ours, theirs)),
            _ => None,
        },
        _ => None,
    }
}

/// The steps, if only OpenCSD has steps.
pub(super) fn only_theirs(difference: &Difference) -> Option<&[Step]> {
    match difference {
        Difference::Flow { ours, theirs, .. } if ours.is_empty() => Some(theirs),
        _ => None,
    }
}

/// Whether the next exception cancels a step.
pub(super) fn is_cancelled(step: &Step, place: &Place<'_>) -> bool {
    is_etmv3(place.config)
        && place.next_exception(step.from).is_some_and(|branch| branch.number("cancel") == Some(1))
}

/// The fields that both packets have with different values.
pub(super) fn differs_in(ours: &Packet, theirs: &Packet) -> Vec<&'static str> {
    let differ = |name: &&&'static str| {
        theirs.fields.get(**name).is_some_and(|value| Some(value) != ours.fields.get(**name))
    };
    ours.fields.keys().filter(differ).copied().collect()
}

/// The number that a Gray code represents.
pub(super) fn resolve_gray(mut code: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        code ^= code >> shift;
    }
    code
}

pub(super) fn is_data_with_address(packet: &Packet) -> bool {
    ["normal_data", "ooo_placeholder", "value_not_traced"].contains(&packet.kind)
}

pub(super) const fn is_etmv3(config: &SourceConfig) -> bool {
    matches!(config, SourceConfig::Etmv3(_))
}

pub(super) const fn is_m_profile(config: &SourceConfig) -> bool {
    matches!(config, SourceConfig::Etmv3(config) if matches!(config.profile(), Profile::M))
}

pub(super) const fn is_etmv4_of_m_profile(config: &SourceConfig) -> bool {
    matches!(config, SourceConfig::Etmv4(config) if matches!(config.profile(), Profile::M))
}

pub(super) const fn traces_data_addresses(config: &SourceConfig) -> bool {
    matches!(config, SourceConfig::Etmv3(config) if config.data().addresses)
}

/// Whether our reading has bytes that are malformed for this reason where the packets begin to differ.
pub(super) fn begins_malformed(difference: &Difference, why: &str) -> bool {
    match difference {
        Difference::Cut { ours, .. } => ours.first().is_some_and(|first| is_malformed(first, why)),
        _ => false,
    }
}

/// Whether these bytes are malformed for this reason.
pub(super) fn is_malformed(item: &Packet, why: &str) -> bool {
    !item.is_packet() && item.fields.get(WHY) == Some(&Value::Text(why.to_owned()))
}
