//! From a session to the data that answers are made from.
//!
//! ```text
//! each source ─▶ index                        then the page is shown
//!             ─▶ overview, costs, coverage    while the page is used
//! ```
//!
//! If there is a store, it keeps all of this, and nothing is decoded when the same capture is opened again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracewalk_analysis::Code;
use tracewalk_session::{Covered, Key, Observer, RunError, Session, Source};

use crate::coming::{Coming, Quiet, Watching};
use crate::error::ViewError;
use crate::figures::{Figures, KeptFigures};
use crate::options::Options;
use crate::overview::{Growing, Overseeing, Overview};
use crate::prepared::PreparedSource;

/// The data that answers are made from, except indexes and figures.
pub(crate) struct Prepared {
    pub(crate) sources: Vec<PreparedSource>,
    /// The empty coverage of each source, to be counted.
    covered: Vec<Option<Covered>>,
    /// The kept figures.
    figures: Option<KeptFigures>,
    /// The key under which everything is kept.
    key: Option<Key>,
}

/// The data for counting the figures.
pub(crate) struct Uncounted {
    covered: Vec<Option<Covered>>,
    figures: Option<KeptFigures>,
    key: Option<Key>,
}

/// The data that is kept for a capture, besides the indexes.
#[derive(Deserialize)]
struct Kept {
    overviews: Vec<Overview>,
    figures: KeptFigures,
}

/// The same data, to be written.
#[derive(Serialize)]
struct Keeping<'a> {
    overviews: Vec<Arc<Overview>>,
    figures: &'a KeptFigures,
}

/// Follows each source, unless its results were kept.
pub(crate) fn prepare(
    session: &mut Session,
    options: &Options<'_>,
    coming: &Coming,
    observer: &dyn Observer,
) -> Result<Prepared, ViewError> {
    // A pass for the indexes. A capture that is still arriving can be read only once, so that its overviews are made,
    // too.
    let passes = 1 + u64::from(session.is_live());
    coming.expect(
        passes
            * session.sources().iter().map(|source| session.buffer(source).bytes.len() as u64).sum::<u64>(),
    );
    let watching = Watching { observer, coming };
    let capture = options.keep.and_then(|keep| session.capture_key(keep));
    let (key, kept) = kept(session, options, capture.as_ref(), observer)?;
    if let Some(Kept { overviews, figures }) = kept {
        return from_kept(session, options, capture.as_ref(), (overviews, figures), observer);
    }
    let (mut sources, mut covered) = (Vec::new(), Vec::new());
    session.each_source(observer, |session, source| {
        sources.push(follow(session, source, options, capture.as_ref(), &watching)?);
        covered.push(covered_by(session, source, options, observer)?);
        Ok::<(), ViewError>(())
    })?;
    // If an image does not fit, nothing is kept, so that this is reported each time.
    let key = key.filter(|_| sources.iter().all(|source| Arc::ptr_eq(&source.code, &source.whole)));
    Ok(Prepared { sources, covered, figures: None, key })
}

/// The key of a whole capture on the page, and the data kept under it. No key if nothing is kept.
fn kept(
    session: &mut Session,
    options: &Options<'_>,
    capture: Option<&Key>,
    observer: &dyn Observer,
) -> Result<(Option<Key>, Option<Kept>), ViewError> {
    let Some((keep, capture)) = options.keep.zip(capture) else { return Ok((None, None)) };
    let mut keys = Vec::new();
    for source in session.sources().to_vec() {
        let code = code(session, &source, options, observer)?;
        keys.push(session.source_key(capture, &source, &code).map_err(RunError::from)?);
    }
    let key = Key::of(&format!("page {:?}", options.trust), &keys);
    let kept = keep.get(&key).and_then(|bytes| postcard::from_bytes::<Kept>(&bytes).ok());
    Ok((Some(key), kept.filter(|kept| kept.overviews.len() == keys.len())))
}

fn code(
    session: &mut Session,
    source: &Source,
    options: &Options<'_>,
    observer: &dyn Observer,
) -> Result<Arc<Code>, RunError> {
    Ok(session.code(source, Some(&options.source_dirs), observer)?)
}

/// The empty coverage of a source's programs; `None` if there is no program.
fn covered_by(
    session: &mut Session,
    source: &Source,
    options: &Options<'_>,
    observer: &dyn Observer,
) -> Result<Option<Covered>, RunError> {
    let covered = Covered::of(session, source, &options.counted(), &options.name, observer)?;
    let has_programs = covered.programs().next().is_some();
    Ok(has_programs.then_some(covered))
}

fn from_kept(
    session: &mut Session,
    options: &Options<'_>,
    capture: Option<&Key>,
    (overviews, figures): (Vec<Overview>, KeptFigures),
    observer: &dyn Observer,
) -> Result<Prepared, ViewError> {
    let (mut sources, mut covered) = (Vec::new(), Vec::new());
    for (source, overview) in session.sources().to_vec().into_iter().zip(overviews) {
        let code = code(session, &source, options, observer)?;
        let overview = Growing::new(overview);
        sources.push(prepared(session, &source, capture, (Arc::clone(&code), code), overview)?);
        covered.push(covered_by(session, &source, options, observer)?);
    }
    Ok(Prepared { sources, covered, figures: Some(figures), key: None })
}

fn follow(
    session: &mut Session,
    source: &Source,
    options: &Options<'_>,
    capture: Option<&Key>,
    observer: &dyn Observer,
) -> Result<PreparedSource, ViewError> {
    let whole = code(session, source, options, observer)?;
    if !session.is_live() {
        let code = session.code_that_fits(source, &whole, options.trust)?;
        return Ok(prepared(session, source, capture, (code, whole), Growing::default())?);
    }
    let mut nobody = |_: &Overview| ();
    let mut overseeing = Overseeing::new(Arc::clone(&whole), &mut nobody);
    let analysis = &mut overseeing;
    let outcome = session.run_in(source, &options.shown(), &whole, analysis, observer)?;
    let overview = Growing::new(overseeing.finish());
    Ok(prepared(session, source, capture, (outcome.code, whole), overview)?)
}

fn prepared(
    session: &mut Session,
    source: &Source,
    capture: Option<&Key>,
    (code, whole): (Arc<Code>, Arc<Code>),
    overview: Growing,
) -> Result<PreparedSource, RunError> {
    let key = capture.map(|capture| session.source_key(capture, source, &code)).transpose()?;
    let cpu = source.description.cpu.as_ref().map(|cpu| cpu.value.as_str());
    let core = source.description.core.as_deref();
    let section = session.section(source, Arc::clone(&code)).to_string();
    let name = core.into_iter().chain(cpu).map(str::to_owned).chain([section]).collect::<Vec<_>>().join(", ");
    let values = session.value_setup(source, &code, None)?;
    Ok(PreparedSource { source: source.clone(), name, code, whole, overview, values, key })
}

impl Prepared {
    /// Takes the data for counting the figures, which are counted while the page is used.
    pub(crate) fn take_uncounted(&mut self) -> Uncounted {
        Uncounted { covered: std::mem::take(&mut self.covered), figures: self.figures.take(), key: self.key }
    }

    /// Makes the overviews, which can be read while they grow, and the figures, unless they were kept. Keeps them.
    pub(crate) fn finish(
        &self,
        uncounted: Uncounted,
        session: &Session,
        options: &Options<'_>,
        watching: &Watching<'_>,
    ) -> Result<Figures, RunError> {
        let coming = watching.coming;
        let bytes = self.sources.iter().map(|source| {
            let passes = 2 + u64::from(!source.overview.now().is_whole);
            passes * source.bytes(session)
        });
        coming.expect(bytes.sum());
        for source in self.sources.iter().filter(|source| !source.overview.now().is_whole) {
            let mut show = |overview: &Overview| {
                source.overview.show(overview.clone());
                coming.grew();
            };
            let mut overseeing = Overseeing::new(Arc::clone(&source.whole), &mut show);
            let analysis = &mut overseeing;
            session.run_in(&source.source, &options.shown(), &source.whole, analysis, watching)?;
            let overview = overseeing.finish();
            source.overview.show(overview);
            coming.grew();
        }
        let Uncounted { covered, figures, key } = uncounted;
        if let Some(figures) = figures.and_then(|kept| Figures::of_kept(kept, &covered)) {
            return Ok(figures);
        }
        // The first pass has reported the notices of a source.
        let quiet = Quiet(coming);
        let (figures, kept) = Figures::of(session, &self.sources, covered, &options.counted(), &quiet)?;
        let overviews = self.sources.iter().map(|source| source.overview.now()).collect();
        if let (Some((key, keep)), Some(figures)) = (key.zip(options.keep), &kept)
            && let Ok(bytes) = postcard::to_allocvec(&Keeping { overviews, figures })
        {
            keep.put(&key, &bytes);
        }
        Ok(figures)
    }
}
