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
    /// No code of the program uses floating point, whose registers an exception would stack too.
    pub(crate) has_basic_frames: bool,
}

impl Processor {
    /// The processor that runs a program.
    pub(crate) fn new(profile: Profile, image: &Image) -> Self {
        let mut found = Self { profile, has_one_stack: true, has_basic_frames: true };
        if profile == Profile::M {
            for pair in image.halfwords() {
                match pair {
                    // MSR to PSP or CONTROL (DDI 0403E, B5.2.3).
                    (0xf380..=0xf39f, second)
                        if second & 0xff00 == 0x8800 && matches!(second & 0x7f, 9 | 20) =>
                    {
                        found.has_one_stack = false;
                    }
                    // Coprocessors 10 and 11.
                    (0xec00..=0xefff | 0xfc00..=0xffff, second) if matches!(second >> 8 & 0xf, 10 | 11) => {
                        found.has_basic_frames = false;
                    }
                    _ => {}
                }
            }
        }
        found
    }
}
