//! From a session to recordings that can be walked through.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use tracewalk::program::Program;
use tracewalk_analysis::Code;
use tracewalk_analysis::analysis::InOrder;
use tracewalk_input::cpu::Profile;
use tracewalk_input::image::{ImageForm, VisibleImage};
use tracewalk_input::symbols::CallFrames;
use tracewalk_session::{At, Follow, Observer, Session, Source, Trust};

use crate::core::Halted;
use crate::error::GdbError;
use crate::registers::Architecture;
use crate::stacks::{Keeping, Kept, Limits};
use crate::unwind::Unwinder;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the debugger begins.
    pub at: At,
    /// Whether the image is followed even if the trace contradicts it all the time.
    pub trust_image: bool,
    /// A file that a debugger saved registers and memory in.
    pub dump: Option<PathBuf>,
}

/// A source that was followed once.
pub(crate) struct Prepared {
    pub(crate) source: Source,
    pub(crate) name: String,
    pub(crate) code: Arc<Code>,
    pub(crate) unwinder: Unwinder,
    pub(crate) kept: Kept,
    pub(crate) variables: Vec<Range<u64>>,
}

/// Follows each source once.
pub(crate) fn prepare(
    session: &mut Session,
    options: &Options,
    observer: &dyn Observer,
) -> Result<Vec<Prepared>, GdbError> {
    let mut prepared = Vec::new();
    session.each_source(observer, |session, source| {
        prepared.push(follow(session, source, options, observer)?);
        Ok::<(), GdbError>(())
    })?;
    Ok(prepared)
}

fn follow(
    session: &mut Session,
    source: &Source,
    options: &Options,
    observer: &dyn Observer,
) -> Result<Prepared, GdbError> {
    let images = session.images(source)?;
    let follow = Follow {
        trust: Trust { image: options.trust_image, ..Trust::default() },
        threads: 1,
        ..Follow::default()
    };
    let code = session.code(source, follow.names.as_deref(), observer)?;
    let architecture = architecture(source, &images);
    let frames = CallFrames::of(images.iter().map(|visible| &*visible.image));
    let unwinder = Unwinder::new(architecture, frames, anchor(architecture, &code.program));
    let mut keeping = Keeping::new(&unwinder, code, Limits::WHOLE);
    let outcome = session.run_observed(source, &follow, InOrder(&mut keeping), observer)?;
    let kept = keeping.finish();
    let cpu = source.description.cpu.as_ref().map(|cpu| cpu.value.as_str());
    let core = source.description.core.as_deref();
    let section = session.section(source, Arc::clone(&outcome.code)).to_string();
    let name = core.into_iter().chain(cpu).map(str::to_owned).chain([section]).collect::<Vec<_>>().join(", ");
    let variables = images.iter().flat_map(|visible| visible.image.variables()).collect();
    Ok(Prepared { source: source.clone(), name, code: outcome.code, unwinder, kept, variables })
}

fn architecture(source: &Source, images: &[VisibleImage]) -> Architecture {
    let is_64 = images.iter().any(|visible| visible.image.form == ImageForm::Elf64);
    let profile = source.profile();
    let profile = profile.or_else(|| images.iter().find_map(|visible| visible.image.attributes.profile));
    match profile {
        Some(Profile::M) => Architecture::M,
        _ if is_64 => Architecture::A64,
        _ => Architecture::A32,
    }
}

/// Where the made stack begins: where no image has anything.
fn anchor(architecture: Architecture, program: &Program) -> u64 {
    const ROOM: u64 = 16 << 20;
    let starts: &[u64] = match architecture {
        Architecture::A64 => &[0x0000_7ace_0000_0000, 0x0000_5ace_0000_0000, 0x0000_3ace_0000_0000],
        Architecture::M | Architecture::A32 => &[0xface_0000, 0xbace_0000, 0x7ace_0000, 0x3ace_0000],
    };
    let is_free = |start: &&u64| {
        program.regions_in_scopes().all(|(_, region)| {
            let from = region.start().get();
            let to = from.saturating_add(region.bytes().len() as u64);
            to <= start.saturating_sub(ROOM) || from >= start.saturating_add(ROOM)
        })
    };
    starts.iter().find(is_free).or(starts.first()).copied().unwrap_or_default()
}

/// What a debugger saved of the halted processor.
pub(crate) fn halted(session: &Session, options: &Options) -> Result<Halted, GdbError> {
    let snapshot = session.snapshot(options.dump.as_deref())?;
    let core = (0..).zip(snapshot.registers).filter_map(|(number, value)| Some((number, value?.into())));
    let status = snapshot.xpsr.map(|value| (Architecture::M.status(), value.into()));
    let memory = snapshot.memory.into_iter().map(|(start, bytes)| (start.into(), bytes));
    Ok(Halted { registers: core.chain(status).collect(), memory: memory.collect::<BTreeMap<_, _>>() })
}
