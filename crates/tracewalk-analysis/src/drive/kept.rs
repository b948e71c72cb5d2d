//! A saved index: any place of a source can be reached without decoding the source again.

use serde::{Deserialize, Serialize};
use tracewalk::program::Program;
use tracewalk::source::SourceConfig;
use tracewalk::span::StreamOffset;

use super::Input;
use super::index::{FlowIndex, Sizes, Totals, Waypoint, indexed};

/// The content of a [`FlowIndex`] without the capture and the program.
///
/// The index is valid only for the same bytes, configuration, program and version of this crate. The reader has to make sure that
/// the index is unchanged: its states are not verified.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct KeptIndex {
    sizes: Sizes,
    waypoints: Vec<Waypoint>,
    totals: Totals,
    end: StreamOffset,
}

impl FlowIndex<'_> {
    /// The data to restore the index without decoding. `None` if part of the source was not decoded, or if most waypoints cannot
    /// be saved because they lie in damage.
    #[must_use]
    pub fn kept(&self) -> Option<KeptIndex> {
        let can_be_kept = |waypoint: &&Waypoint| !waypoint.entry.state.is_in_gap();
        let waypoints = self.waypoints.iter().filter(can_be_kept).cloned().collect::<Vec<_>>();
        // Without the first waypoint, no place can be reached.
        let is_whole = self.complete && waypoints.first().is_some_and(|first| first.start.0 == 0);
        (is_whole && 2 * waypoints.len() >= self.waypoints.len()).then_some(KeptIndex {
            sizes: self.sizes,
            waypoints,
            totals: self.totals,
            end: self.end,
        })
    }
}

impl<'a> FlowIndex<'a> {
    /// Restores the index that [`FlowIndex::new`] makes of the same source, without decoding. `None` if it is of another protocol
    /// or of another source's bytes.
    #[must_use]
    pub fn of_kept(
        kept: KeptIndex,
        input: &Input<'a>,
        config: &SourceConfig,
        program: &'a Program,
    ) -> Option<Self> {
        let KeptIndex { sizes, waypoints, totals, end } = kept;
        let is_first = waypoints.first().is_some_and(|first| first.start.0 == 0);
        let ascends =
            waypoints.is_sorted_by(|one, next| one.start < next.start && one.reached <= next.reached);
        let fits = waypoints.iter().all(|waypoint| waypoint.entry.state.is_of(config));
        (is_first && ascends && fits).then(|| Self {
            capture: input.capture,
            carrier: indexed(input),
            config: config.clone(),
            program,
            sizes,
            waypoints,
            totals,
            end,
            complete: true,
        })
    }
}
