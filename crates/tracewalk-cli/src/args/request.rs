//! The options about a capture → a session's request.

use tracewalk::ids::Address;
use tracewalk_input::capture::perf::BinaryPlaces;
use tracewalk_session::{Policy, Request, Statements};

use super::capture::{CaptureArgs, MtbKey, Packing, StatedTask};

impl CaptureArgs {
    /// The request to open the capture.
    pub(crate) fn request(&self) -> Request {
        let mut stated = Statements {
            wires: self.recording.options(),
            binaries: BinaryPlaces {
                symfs: self.symfs.clone(),
                debug_dirs: self.debug_dirs.clone(),
                kallsyms: self.kallsyms.clone(),
            },
            svd: self.svd.clone(),
            vector_table: self.vtor.map(Address::from),
            ..Statements::default()
        };
        stated.mtb.registers.clone_from(&self.registers);
        for task in &self.tasks {
            match task {
                StatedTask::Proven => stated.proves_tasks = true,
                StatedTask::Name(id, name) => _ = stated.tasks.insert(*id, name.clone()),
            }
        }
        for packing in &self.container {
            match *packing {
                Packing::Auto => stated.container = None,
                Packing::Is(container) => stated.container = Some(container),
                Packing::SwapWords => stated.swap_words = true,
                Packing::ReadPointer(offset) => stated.read_pointer = Some(offset),
                Packing::FrameStart(start) => stated.frame_start = Some(start),
                Packing::Address(address) => stated.dump_address = Some(Address::from(address)),
            }
        }
        for source in &self.sources {
            stated.sources.extend(source.source.clone());
            for (key, value) in &source.mtb {
                match key {
                    MtbKey::Position => stated.mtb.position = Some(*value),
                    MtbKey::Master => stated.mtb.master = Some(*value),
                    MtbKey::Base => stated.mtb.base = Some(*value),
                    MtbKey::Pc => stated.mtb.halted_at = Some(Address::from(*value)),
                }
            }
        }
        Request {
            capture: self.capture.clone(),
            roots: self.roots.clone(),
            stated,
            images: self.images.clone(),
            ids: self.ids.clone(),
            policy: if self.strict { Policy::Strict } else { Policy::Infer },
            limit: self.memory.unwrap_or_default(),
            segment: self.segment.and_then(|bytes| usize::try_from(bytes).ok()),
            shared: None,
            may_lack_trace: false,
        }
    }
}
