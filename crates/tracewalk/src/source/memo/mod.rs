//! The memo around the plain chain: a cache of the meaning of bytes.
//!
//! ```text
//! situation: the state that the next repeatable packets depend on, and no other: the decoder's base for addresses,
//!            directives that the lowering holds back, the place in the graph; spans are relative to the next byte.
//!            Situations are numbered.
//! window:    the next bytes up to and including the next address, at most eight, or nine of one packet
//! (situation, window) → the elements, the next situation, and the effects on the stacks of return addresses
//! ```
//!
//! A window whose pair is known costs one lookup, however many packets and blocks it holds (`replay`). An
//! unknown window is decoded packet by packet, and cached if all of its packets were repeatable (`learn`):
//! then its meaning depends on the situation and the bytes alone. The stacks are not part of the situation;
//! otherwise a handler would have to be learned for each place that it is entered from. Instead, an entry
//! lists the places that it pops, and applies only if they are on top.
//!
//! Windows usually recur in the same order. Each entry therefore names its last successor, which is tried
//! before the window's end is known: the successor applies if its situation and bytes match.
//!
//! W atoms with no instruction are not part of a window, because waits differ each time. The cycles of these
//! W atoms are added to the first event of cycles in the window after them.
//!
//! Memory is bounded: a full memo is emptied. A protocol takes part by implementing
//! [`MemoDecode`](crate::protocol::memoised::MemoDecode) and
//! [`MemoLower`](crate::protocol::memoised::MemoLower); other protocols use the plain chain.

mod chain;
mod intern;
mod learn;
mod patience;
mod replay;
mod situation;
pub(super) mod table;

pub(super) use chain::MemoChain;
