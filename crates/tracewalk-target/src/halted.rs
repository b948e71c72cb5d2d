//! What a debugger can read of a halted processor, without changing it.
