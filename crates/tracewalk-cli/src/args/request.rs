//! The options about a capture → a session's request.

use tracewalk::ids::Address;
use tracewalk_input::capture::perf::BinaryPlaces;
use tracewalk_session::{MtbStatements, Policy, Request, Statements};

use super::capture::{CaptureArgs, ContainerChoice};

impl CaptureArgs {
    /// The request to open the capture.
    pub(crate) fn request(&self) -> Request {
        let container = match self.container {
            Some(ContainerChoice::Is(container)) => Some(container),
            Some(ContainerChoice::Auto) | None => None,
        };
        Request {
            capture: self.capture.clone(),
            roots: self.roots.clone(),
            stated: Statements {
                container,
                frame_start: self.frame_start,
                read_pointer: self.read_pointer,
                swap_words: self.swap_words,
                dump_address: self.dump_address.map(Address::from),
                wires: self.recording.options(),
                binaries: BinaryPlaces {
                    symfs: self.symfs.clone(),
                    debug_dirs: self.debug_dirs.clone(),
                    kallsyms: self.kallsyms.clone(),
                },
                sources: self.sources.clone(),
                mtb: MtbStatements {
                    position: self.mtb_position,
                    master: self.mtb_master,
                    base: self.mtb_base,
                    halted_at: self.mtb_pc.map(Address::from),
                    registers: self.registers.clone(),
                },
                svd: self.svd.clone(),
                vector_table: self.vtor.map(Address::from),
            },
            images: self.images.clone(),
            ids: self.ids.clone(),
            policy: if self.strict { Policy::Strict } else { Policy::Infer },
            limit: self.memory.unwrap_or_default(),
            segment: self.segment.and_then(|bytes| usize::try_from(bytes).ok()),
            shared: None,
        }
    }
}
