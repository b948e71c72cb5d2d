//! From a session to recordings that can be walked through.
//!
//! ```text
//! each source ─▶ calls, transfers, turns (`Kept`)     one pass, handed on in order
//!             ─▶ index                                one pass by all threads
//! ```
//!
//! If there is a store, it keeps both, and nothing is decoded when the same capture is opened again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use tracewalk::program::Program;
use tracewalk_analysis::drive::{FlowIndex, Progress};
use tracewalk_analysis::values::ValueSetup;
use tracewalk_analysis::{Code, Doubtful};
use tracewalk_input::cpu::Profile;
use tracewalk_input::image::{ImageForm, VisibleImage};
use tracewalk_input::symbols::CallFrames;
use tracewalk_session::{At, Follow, Keep, Key, Observer, Session, Source, Trust, Watch};

use crate::core::Halted;
use crate::error::GdbError;
use crate::registers::Architecture;
use crate::stacks::{Keeping, Kept, WHOLE};
use crate::unwind::Unwinder;

/// Options of the server.
#[derive(Clone, Debug)]
pub struct Options<'k> {
    /// The step at which the debugger starts.
    pub at: At,
    /// Whether to follow the image even if the trace contradicts it repeatedly.
    pub trust_image: bool,
    /// A file of registers and memory that a debugger saved.
    pub dump: Option<PathBuf>,
    /// A store for indexes and call stacks, used when the capture is opened again.
    pub keep: Option<&'k dyn Keep>,
}

/// A source that was followed once.
pub(crate) struct Prepared {
    pub(crate) source: Source,
    pub(crate) name: String,
    pub(crate) code: Arc<Code>,
    pub(crate) unwinder: Unwinder,
    pub(crate) kept: Kept,
    pub(crate) variables: Vec<Range<u64>>,
    pub(crate) values: ValueSetup,
    /// The key of the kept index.
    key: Option<Key>,
}

/// Watches the pass that makes an index, but no cursor: cursors count the same bytes again.
#[derive(Debug)]
pub(crate) struct Pass<'a>(RefCell<Option<Watch<'a>>>);

/// Follows each source once.
pub(crate) fn prepare(
    session: &mut Session,
    options: &Options<'_>,
    observer: &dyn Observer,
) -> Result<Vec<Prepared>, GdbError> {
    let capture = options.keep.and_then(|keep| session.capture_key(keep));
    let mut prepared = Vec::new();
    session.each_source(observer, |session, source| {
        prepared.push(follow(session, source, options, capture.as_ref(), observer)?);
        Ok::<(), GdbError>(())
    })?;
    Ok(prepared)
}

fn follow(
    session: &mut Session,
    source: &Source,
    options: &Options<'_>,
    capture: Option<&Key>,
    observer: &dyn Observer,
) -> Result<Prepared, GdbError> {
    let images = session.images(source)?;
    // A debugger also steps through execution in doubt: the index contains it, and both passes must have the same steps.
    let trust = Trust { image: options.trust_image, doubtful: Doubtful::Keep };
    let follow = Follow { trust, ..Follow::default() };
    let code = session.code(source, follow.names.as_deref(), observer)?;
    let architecture = architecture(source, &images);
    let frames = CallFrames::of(images.iter().map(|visible| &*visible.image));
    let unwinder = Unwinder::new(architecture, frames, anchor(architecture, &code.program));
    let key = capture.map(|capture| session.source_key(capture, source, &code)).transpose()?;
    let keep = key.zip(options.keep).map(|(key, keep)| {
        let kind = format!("gdb {trust:?} {architecture:?}");
        (Key::of(&kind, [&key]), keep)
    });
    let kept = keep.and_then(|(key, keep)| postcard::from_bytes::<Kept>(&keep.get(&key)?).ok());
    let (kept, code, key) = match kept {
        Some(kept) => (kept, code, key),
        None => {
            let (kept, followed) = follow_calls(session, source, &follow, (&unwinder, &code), observer)?;
            // If the program does not fit, nothing is kept, so that this is reported each time.
            let fits = Arc::ptr_eq(&code, &followed);
            if let Some((key, keep)) = keep.filter(|_| fits)
                && let Ok(bytes) = postcard::to_allocvec(&kept)
            {
                keep.put(&key, &bytes);
            }
            (kept, followed, key.filter(|_| fits))
        }
    };
    let cpu = source.description.cpu.as_ref().map(|cpu| cpu.value.as_str());
    let core = source.description.core.as_deref();
    let section = session.section(source, Arc::clone(&code)).to_string();
    let name = core.into_iter().chain(cpu).map(str::to_owned).chain([section]).collect::<Vec<_>>().join(", ");
    let variables = images.iter().flat_map(|visible| visible.image.variables()).collect();
    // A debugger's dump is of one core; with several cores, it is unknown which.
    let dump = options.dump.as_deref().filter(|_| session.sources().len() == 1);
    let values = session.value_setup(source, &code, dump)?;
    Ok(Prepared { source: source.clone(), name, code, unwinder, kept, variables, values, key })
}

/// Follows a source once. Returns the data to keep, and the program that was followed: an empty one if it is not the
/// traced one.
fn follow_calls(
    session: &Session,
    source: &Source,
    follow: &Follow,
    (unwinder, code): (&Unwinder, &Arc<Code>),
    observer: &dyn Observer,
) -> Result<(Kept, Arc<Code>), GdbError> {
    let mut keeping = Keeping::new(unwinder, Arc::clone(code), WHOLE);
    let outcome = session.run_in(source, follow, code, &mut keeping, observer)?;
    match outcome.ended_at {
        Some(byte) => Err(GdbError::Ended { byte }),
        None => Ok((keeping.finish(), outcome.code)),
    }
}

impl Prepared {
    /// The index of the source, watched by `pass` while it is made.
    ///
    /// # Errors
    ///
    /// If the index was not completed, or the other pass had a different number of steps.
    pub(crate) fn index<'a>(
        &'a self,
        session: &'a Session,
        pass: &'a Pass<'_>,
        options: &Options<'_>,
    ) -> Result<FlowIndex<'a>, GdbError> {
        let keep = self.key.as_ref().zip(options.keep);
        let index = session.index_kept(&self.source, &self.code, keep, pass, Follow::default().threads);
        if let Some(byte) = pass.end() {
            return Err(GdbError::Ended { byte });
        }
        let (followed, indexed) = (self.kept.steps, index.totals().steps);
        if followed != indexed {
            return Err(GdbError::Differs { followed, indexed });
        }
        Ok(index)
    }
}

impl<'a> Pass<'a> {
    pub(crate) fn of(session: &Session, source: &Source, observer: &'a dyn Observer) -> Self {
        Self(RefCell::new(Some(session.watch(source, observer))))
    }

    /// Ends the watch. Returns the byte after which the pass was ended, if it was.
    fn end(&self) -> Option<u64> {
        self.0.take().and_then(|watch| watch.ended_at())
    }
}

impl Progress for Pass<'_> {
    fn done(&self, bytes: u64) -> bool {
        self.0.borrow().as_ref().is_none_or(|watch| watch.done(bytes))
    }
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

/// The address of the artificial stack: far from all images.
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

/// The state of the halted processor that a debugger saved.
pub(crate) fn halted(session: &Session, options: &Options<'_>) -> Result<Halted, GdbError> {
    let snapshot = session.snapshot(options.dump.as_deref())?;
    let core = (0..).zip(snapshot.registers).filter_map(|(number, value)| Some((number, value?.into())));
    let status = snapshot.xpsr.map(|value| (Architecture::M.status(), value.into()));
    let memory = snapshot.memory.into_iter().map(|(start, bytes)| (start.into(), bytes));
    Ok(Halted { registers: core.chain(status).collect(), memory: memory.collect::<BTreeMap<_, _>>() })
}
