//! The stack of predicted returns.
