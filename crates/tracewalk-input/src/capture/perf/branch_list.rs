//! Lists of branches: what simpleperf makes of ETM trace while it records (`record --decode-etm`), or afterwards
//! (`inject --output branch-list`).
//!
//! They are made from packets alone, hold counts of branch directions, and no trace. A perf.data file may have one as a feature,
//! which [`super::header`] finds; here are the files that hold nothing else.

/// The name with which such a file, or the message in it, begins (simpleperf's `branch_list.proto`).
const NAME: &[u8] = b"simpleperf:EtmBranchList";

/// What is before the name where the whole file is one message: its first field, a string of this length.
const FIELD: [u8; 2] = [0x0a, 24];

/// Whether a file with this beginning is one.
pub(super) fn is_one(head: &[u8]) -> bool {
    head.strip_prefix(&FIELD).unwrap_or(head).starts_with(NAME)
}
