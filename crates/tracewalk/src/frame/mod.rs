//! The CoreSight formatter: frames of 16 bytes ↔ the bytes of each trace ID.
