//! Profiles of hand-made stories.
