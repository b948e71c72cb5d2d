//! What the processor is, as far as it matters for exceptions.

use crate::image::Image;

/// The kinds of processors that differ in exceptions and registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// M profile: exceptions stack registers.
    M,
    /// A and R profile in A32 and T32.
    A32,
    /// A profile in A64.
    A64,
}

/// A processor with its program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processor {
    pub(crate) profile: Profile,
    /// No code of the program selects the process stack.
    pub(crate) has_one_stack: bool,
    /// Some code of the program changes between the secure and the non-secure state: each has its own stacks, and a return from one to the
    /// other has an address that only the processor knows.
    pub(crate) has_security: bool,
    /// No code of the program uses floating point, whose registers an exception would stack too.
    pub(crate) has_basic_frames: bool,
    /// The processor is an ARMv7-M.
    pub(crate) is_armv7m: bool,
}

impl Processor {
    /// The processor that runs a program.
    pub(crate) fn new(profile: Profile, image: &Image) -> Self {
        let mut found = Self {
            profile,
            has_one_stack: true,
            has_security: false,
            has_basic_frames: true,
            is_armv7m: false,
        };
        if profile == Profile::M {
            for pair in image.instructions() {
                match pair {
                    // MSR to PSP or CONTROL (DDI 0403E, B5.2.3).
                    (0xf380..=0xf39f, second)
                        if second & 0xff00 == 0x8800 && matches!(second & 0x7f, 9 | 20) =>
                    {
                        found.has_one_stack = false;
                    }
                    // SG; BXNS and BLXNS (DDI 0553B, C2.4).
                    (0xe97f, 0xe97f) => found.has_security = true,
                    (first, _) if first & 0xff07 == 0x4704 => found.has_security = true,
                    // Coprocessors 10 and 11.
                    (0xec00..=0xefff | 0xfc00..=0xffff, second) if matches!(second >> 8 & 0xf, 10 | 11) => {
                        found.has_basic_frames = false;
                    }
                    _ => {}
                }
            }
            found.has_one_stack &= !found.has_security;
            found.has_basic_frames &= !found.has_security;
        }
        found
    }
}
