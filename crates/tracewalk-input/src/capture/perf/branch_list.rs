//! Branch lists: simpleperf reduces ETM trace to them while it records (`record --decode-etm`), or afterwards
//! (`inject --output branch-list`).
//!
//! A branch list is made from packets alone. It holds counts of branch directions and no trace. A perf.data
//! file may have one as a feature, which [`super::header`] finds; this module detects files that hold nothing
//! else.

/// The name at the beginning of a branch list file, or of the message in it (simpleperf's
/// `branch_list.proto`).
const NAME: &[u8] = b"simpleperf:EtmBranchList";

/// The bytes before the name if the whole file is one message: the header of its first field, a string of 24
/// bytes.
const FIELD: [u8; 2] = [0x0a, 24];

/// Whether a file with this beginning is a branch list.
pub(super) fn is_one(head: &[u8]) -> bool {
    head.strip_prefix(&FIELD).unwrap_or(head).starts_with(NAME)
}
