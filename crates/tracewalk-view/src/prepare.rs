//! From a session to what answers are made from.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use tracewalk_analysis::Code;
use tracewalk_analysis::analysis::InOrder;
use tracewalk_analysis::drive::Progress;
use tracewalk_session::{Follow, Late, Notice, Observer, Session, Source, Trust};

use crate::error::ViewError;
use crate::figures::{Costs, Counting, Counts};
use crate::overview::{Overseeing, Overview};

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What the capture is called.
    pub name: String,
    /// What is believed where things are counted. The listing shows everything, what is in doubt too.
    pub trust: Trust,
    /// Where else source files are looked for.
    pub source_dirs: Vec<PathBuf>,
    /// On how many threads, at most.
    pub threads: u16,
}

/// How far the work has come that comes before the first answer.
#[derive(Debug, Default)]
pub(crate) struct Coming {
    /// Bytes of all passes over the capture.
    all: AtomicU64,
    /// Those of the passes that are done.
    before: AtomicU64,
    done: AtomicU64,
    now: AtomicU64,
}

/// The same as numbers.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Come {
    pub(crate) done: u64,
    pub(crate) all: u64,
}

/// How often a source's bytes are read before the first answer: for the overview, costs, coverage and the index.
const PASSES: u64 = 4;

impl Coming {
    pub(crate) fn expect(&self, bytes: u64) {
        self.all.store(bytes.saturating_mul(PASSES), Ordering::Relaxed);
    }

    /// A pass over so many bytes begins.
    pub(crate) fn begin(&self, bytes: u64) {
        self.before.fetch_add(self.now.swap(bytes, Ordering::Relaxed), Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    pub(crate) fn come(&self) -> Come {
        let all = self.all.load(Ordering::Relaxed);
        let done = self.before.load(Ordering::Relaxed).saturating_add(self.done.load(Ordering::Relaxed));
        Come { done: done.min(all), all }
    }
}

impl Progress for Coming {
    fn done(&self, bytes: u64) -> bool {
        self.done.store(bytes, Ordering::Relaxed);
        true
    }
}

/// Passes notices on, and shows the page how far work has come.
struct Watching<'a> {
    observer: &'a dyn Observer,
    coming: &'a Coming,
}

#[derive(Debug)]
struct Watched<'a> {
    progress: Box<dyn Progress + 'a>,
    coming: &'a Coming,
}

impl Observer for Watching<'_> {
    fn notice(&self, notice: Notice) {
        self.observer.notice(notice);
    }

    fn work(&self, bytes: u64) -> Box<dyn Progress + '_> {
        self.coming.begin(bytes);
        Box::new(Watched { progress: self.observer.work(bytes), coming: self.coming })
    }

    fn late(&self) -> Late {
        self.observer.late()
    }
}

impl Progress for Watched<'_> {
    fn done(&self, bytes: u64) -> bool {
        self.coming.done(bytes) && self.progress.done(bytes)
    }
}

/// What answers of a capture are made from, but for the indexes.
pub(crate) struct Prepared {
    pub(crate) sources: Vec<PreparedSource>,
    /// What ran of the programs.
    pub(crate) counts: Counts,
}

/// A source that was followed.
pub(crate) struct PreparedSource {
    pub(crate) source: Source,
    pub(crate) name: String,
    pub(crate) code: Arc<Code>,
    pub(crate) overview: Overview,
    pub(crate) costs: Costs,
}

/// Follows each source.
pub(crate) fn prepare(
    session: &mut Session,
    options: &Options,
    coming: &Coming,
    observer: &dyn Observer,
) -> Result<Prepared, ViewError> {
    let bytes = session.sources().iter().map(|source| session.buffer(source).bytes.len() as u64).sum();
    coming.expect(bytes);
    let watching = Watching { observer, coming };
    let (mut sources, mut counting) = (Vec::new(), Counting::default());
    session.each_source(observer, |session, source| {
        sources.push(follow(session, source, options, &mut counting, &watching)?);
        Ok::<(), ViewError>(())
    })?;
    if sources.iter().all(|source| source.overview.steps == 0) {
        return Err(ViewError::Nothing);
    }
    Ok(Prepared { sources, counts: counting.finish() })
}

fn follow(
    session: &mut Session,
    source: &Source,
    options: &Options,
    counting: &mut Counting,
    observer: &Watching<'_>,
) -> Result<PreparedSource, ViewError> {
    let names = Some(options.source_dirs.clone());
    let counted = Follow { trust: options.trust, threads: options.threads, names, ..Follow::default() };
    let trust = Trust { image: options.trust.image, ..Trust::default() };
    let trust = Trust { doubtful: tracewalk_analysis::Doubtful::Keep, ..trust };
    let shown = Follow { trust, ..counted.clone() };
    let code =
        session.code(source, shown.names.as_deref(), observer).map_err(tracewalk_session::RunError::from)?;
    let mut overseeing = Overseeing::new(Arc::clone(&code));
    let outcome = session.run_observed(source, &shown, InOrder(&mut overseeing), observer)?;
    let overview = overseeing.finish();
    let code = outcome.code;
    // What was said of the source in the first pass is not said again.
    let quiet = Quiet(observer.coming);
    let costs = Costs::of(session, source, &counted, &quiet)?;
    counting.add(session, source, &counted, &options.name, &quiet)?;
    let cpu = source.description.cpu.as_ref().map(|cpu| cpu.value.as_str());
    let core = source.description.core.as_deref();
    let section = session.section(source, Arc::clone(&code)).to_string();
    let name = core.into_iter().chain(cpu).map(str::to_owned).chain([section]).collect::<Vec<_>>().join(", ");
    Ok(PreparedSource { source: source.clone(), name, code, overview, costs })
}

/// Says nothing.
struct Quiet<'a>(&'a Coming);

impl Observer for Quiet<'_> {
    fn notice(&self, _: Notice) {}

    fn work(&self, bytes: u64) -> Box<dyn Progress + '_> {
        self.0.begin(bytes);
        Box::new(Forwarding(self.0))
    }
}

#[derive(Debug)]
struct Forwarding<'a>(&'a Coming);

impl Progress for Forwarding<'_> {
    fn done(&self, bytes: u64) -> bool {
        self.0.done(bytes)
    }
}
