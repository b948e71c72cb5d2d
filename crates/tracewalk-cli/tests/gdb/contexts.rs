//! Contexts of a core as threads.
