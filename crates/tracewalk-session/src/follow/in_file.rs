//! Translates the places of elements in a buffer to places in the file, for analyses that work in parts.

use tracewalk::flow::{Element, Passage};
use tracewalk::span::{CaptureOffset, StreamOffset};
use tracewalk_analysis::Doubt;
use tracewalk_analysis::sink::Part;
use tracewalk_input::capture::Buffer;

/// A part that receives the places of elements in the file.
#[derive(Clone)]
pub(crate) struct InFile<'a, P> {
    pub(crate) part: P,
    pub(crate) buffer: &'a Buffer,
}

impl<P: Part> Part for InFile<'_, P> {
    fn with_tables(&mut self) -> Self {
        Self { part: self.part.with_tables(), buffer: self.buffer }
    }

    fn take_tables(&mut self, from: &mut Self) {
        self.part.take_tables(&mut from.part);
    }

    fn begin(&mut self, doubt: Doubt) {
        self.part.begin(doubt.placed(|at| CaptureOffset(self.buffer.file_offset(at))));
    }

    #[inline]
    fn element(&mut self, element: &Element, at: impl FnOnce() -> CaptureOffset) {
        self.part.element(element, || CaptureOffset(self.buffer.file_offset(at())));
    }

    #[inline]
    fn passage(&mut self, passage: &Passage<'_>, mut at: impl FnMut(StreamOffset) -> CaptureOffset) {
        self.part.passage(passage, |start| CaptureOffset(self.buffer.file_offset(at(start))));
    }
}
