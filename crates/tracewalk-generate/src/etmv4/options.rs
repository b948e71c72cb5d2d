//! The choices that the trace unit's architecture leaves to the implementation or to the user.

use tracewalk::ids::Vmid;

use crate::trace::Pauses;

/// The settings of tracing that the trace unit's configuration does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many bytes lie between two periodic synchronisations; `None` for only the one at the start.
    pub synchronise_every: Option<usize>,
    /// How many instructions lie between two timestamps; `None` for no timestamps.
    pub timestamp_every: Option<u64>,
    /// How many instructions lie between two events; `None` for none.
    pub event_every: Option<u64>,
    /// When tracing is switched off.
    pub pauses: Option<Pauses>,
    /// How many returns the return stack holds, if the configuration has one.
    pub return_stack_depth: usize,
    /// Every taken branch has its address (TRCCONFIGR.BB).
    pub branch_broadcast: bool,
    /// Context IDs are traced (TRCCONFIGR.CID), if the configuration has them.
    pub context_ids: bool,
    /// The VMID, which does not change (TRCCONFIGR.VMID), if the configuration has VMIDs.
    pub vmid: Option<Vmid>,
    /// The processor is in Non-secure state.
    pub non_secure: bool,
    /// The place of a changed context relative to its address.
    pub contexts: ContextPlace,
    /// Addresses that equal one of the last three are sent as exact matches.
    pub exact_matches: bool,
    /// CYCT: the lowest number of cycles that is reported.
    pub cycle_threshold: u64,
    /// How many P0 elements lie between two commit packets, if the unit speculates.
    pub commit_every: u64,
    /// How many conditional P0 instructions lie between two wrong paths, if the unit speculates; `None` for
    /// none.
    pub wrong_path_every: Option<u64>,
    /// How many branches lie between two that are sent as Q elements, if the unit has Q elements; `None` for
    /// none.
    pub q_every: Option<u64>,
    /// How many taken branches lie between two that are sent as source addresses, in ETE; `None` for none.
    pub source_address_every: Option<u64>,
    /// The address of a periodic synchronisation comes after the next atom.
    pub late_addresses: bool,
    /// The return stack keeps its entries across a periodic synchronisation.
    pub keeps_returns: bool,
    /// An exception at the target of an indirect branch supplies the branch's address.
    pub exceptions_answer: bool,
}

/// The place of a context relative to its address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContextPlace {
    /// In one packet with the address.
    #[default]
    With,
    /// In a packet before the address.
    Before,
    /// In a packet after the address.
    After,
}

impl ContextPlace {
    /// All places and their names.
    pub const ALL: [(&'static str, Self); 3] =
        [("with", Self::With), ("before", Self::Before), ("after", Self::After)];
}

impl Default for Options {
    fn default() -> Self {
        Self {
            synchronise_every: Some(1024),
            timestamp_every: None,
            event_every: None,
            pauses: None,
            return_stack_depth: 2,
            branch_broadcast: false,
            context_ids: false,
            vmid: None,
            non_secure: false,
            contexts: ContextPlace::With,
            exact_matches: true,
            cycle_threshold: 4,
            commit_every: 7,
            wrong_path_every: Some(5),
            q_every: None,
            source_address_every: None,
            late_addresses: false,
            keeps_returns: false,
            exceptions_answer: true,
        }
    }
}
