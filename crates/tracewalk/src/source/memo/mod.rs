//! The memo around the plain chain: what bytes meant the last time.
//!
//! ```text
//! situation: what the next repeatable packets depend on, without what they leave alone: the decoder's base for addresses,
//!            what the lowering holds back, the place in the graph; spans in it are relative to the next byte. Numbered.
//! window:    the next bytes up to and including the next address, at most eight, or nine of one packet
//! (situation, window) → the elements that came, the next situation, and what was done to the stacks of return addresses
//! ```
//!
//! A window whose pair is known costs one look-up, however many packets and blocks it holds (`replay`). One that is not is
//! decoded packet by packet, and remembered if all of its packets were repeatable (`learn`): then the same situation and
//! bytes always give the same again, because nothing else went into it. What is done to the stacks is no part of the
//! situation, or a handler would be known only for each place that it was entered from: an entry says which places it takes
//! from the top, and counts only if they lie there.
//!
//! A window that came after another one comes after it again, more often than not. So an entry names the one that followed
//! it the last time, which is tried before it is known where the window ends: the right one has the situation and the bytes.
//!
//! W atoms with no instruction are no part of a window: no two waits are alike. Their cycles are added to the first event of
//! cycles that the window after them reports.
//!
//! Memory is bounded: a memo that is full starts anew. A protocol takes part by implementing
//! [`MemoDecode`](crate::protocol::memoised::MemoDecode) and [`MemoLower`](crate::protocol::memoised::MemoLower); one that
//! does not has the plain chain.

mod chain;
mod intern;
mod learn;
mod patience;
mod replay;
mod situation;
pub(super) mod table;

pub(super) use chain::MemoChain;
