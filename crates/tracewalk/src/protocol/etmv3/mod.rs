//! ETMv3.
