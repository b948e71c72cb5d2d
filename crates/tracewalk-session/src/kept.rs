//! Values that take long to compute from a capture, and are kept: see [`Keep`].

use tracewalk_analysis::Code;
use tracewalk_analysis::drive::{Carrier, FlowIndex, Progress};
use tracewalk_input::image::ImageError;

use crate::keep::{Hashing, Keep, Key, bytes_key};
use crate::model::Source;
use crate::session::Session;

impl Session {
    /// The key of the capture's bytes, and of their inferred places in files. `None` while they are still arriving.
    #[must_use]
    pub fn capture_key(&self, keep: &dyn Keep) -> Option<Key> {
        if self.is_live() {
            return None;
        }
        let mut hash = Hashing::new("capture");
        for buffer in &self.capture.buffers {
            hash.bytes(bytes_key(&buffer.bytes, keep).bytes());
            hash.value(&(&buffer.parts, &buffer.arrangement));
        }
        for itm in &self.itms {
            hash.value(&(itm.buffer, itm.id));
        }
        Some(hash.key())
    }

    /// The key of a source and its program `code`: of everything that its flow and the names in it depend on.
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub fn source_key(&mut self, capture: &Key, source: &Source, code: &Code) -> Result<Key, ImageError> {
        let mut hash = Hashing::new("source");
        hash.bytes(capture.bytes());
        hash.value(&(source.buffer, source.id, &source.config));
        match &source.carrier {
            Carrier::Frames { framing, id } => hash.value(&(framing, id)),
            Carrier::Indexed { index, id } => hash.value(&(index.framing(), index.sections(), id)),
            Carrier::Stretches(stretches) => hash.value(stretches),
        }
        for (scope, region) in code.program.all_regions() {
            hash.value(&(scope, region.start()));
            hash.bytes(region.bytes());
        }
        hash.value(&(code.program.vector_table(), code.profile, &code.interrupts, &code.threads));
        // Names and lines are in the images, or beside them.
        for visible in self.images(source)? {
            hash.value(&(visible.scope, &visible.image.build_id));
            hash.bytes(visible.image.elf_bytes().map_or(&[], |bytes| bytes));
        }
        for function in code.symbols.functions() {
            hash.value(&(&function.name, function.start));
        }
        Ok(hash.key())
    }

    /// The index of a source's flow in its program: the one kept under the source's key, or else a new one, decoded by
    /// at most `threads` threads, and kept. The index does not depend on the number of threads.
    pub fn index_kept<'a>(
        &'a self,
        source: &Source,
        code: &'a Code,
        keep: Option<(&Key, &dyn Keep)>,
        progress: &'a dyn Progress,
        threads: u16,
    ) -> FlowIndex<'a> {
        let keep = keep.map(|(key, keep)| (Key::of("index", [key]), keep));
        let input = self.input(source, progress);
        let kept = keep.as_ref().and_then(|(key, keep)| keep.get(key));
        let kept = kept.and_then(|bytes| postcard::from_bytes(&bytes).ok());
        let of_kept = |kept| FlowIndex::of_kept(kept, &input, &source.config, &code.program);
        if let Some(index) = kept.and_then(of_kept) {
            if let Some((_, keep)) = keep {
                keep.used();
            }
            return index;
        }
        let threads = self.spread(threads, code).threads;
        let index = FlowIndex::by_threads(&input, &source.config, &code.program, threads);
        let bytes = keep.is_some().then(|| index.kept()).flatten();
        if let (Some((key, keep)), Some(bytes)) =
            (keep, bytes.and_then(|kept| postcard::to_allocvec(&kept).ok()))
        {
            keep.put(&key, &bytes);
        }
        index
    }
}
