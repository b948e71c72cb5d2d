//! The progress of work that answers wait for.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use tracewalk_analysis::drive::Progress;
use tracewalk_session::{Late, Notice, Observer};

/// The progress of the current work.
#[derive(Debug, Default)]
pub(crate) struct Coming {
    /// The bytes of all passes over the capture.
    all: AtomicU64,
    /// The bytes of the passes that are done.
    before: AtomicU64,
    done: AtomicU64,
    now: AtomicU64,
    /// The bytes decoded since the start.
    decoded: AtomicU64,
    /// How often the overview has grown.
    grown: AtomicU64,
}

/// The progress as plain numbers.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Come {
    pub(crate) done: u64,
    pub(crate) all: u64,
    pub(crate) decoded: u64,
    pub(crate) grown: u64,
}

impl Coming {
    /// Work begins whose passes have this number of bytes in all.
    pub(crate) fn expect(&self, bytes: u64) {
        for number in [&self.before, &self.done, &self.now] {
            number.store(0, Ordering::Relaxed);
        }
        self.all.store(bytes, Ordering::Relaxed);
    }

    /// A pass over this number of bytes begins.
    pub(crate) fn begin(&self, bytes: u64) {
        self.before.fetch_add(self.now.swap(bytes, Ordering::Relaxed), Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    /// The overview has grown.
    pub(crate) fn grew(&self) {
        self.grown.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn come(&self) -> Come {
        let all = self.all.load(Ordering::Relaxed);
        let done = self.before.load(Ordering::Relaxed).saturating_add(self.done.load(Ordering::Relaxed));
        let [decoded, grown] = [&self.decoded, &self.grown].map(|number| number.load(Ordering::Relaxed));
        Come { done: done.min(all), all, decoded, grown }
    }
}

impl Progress for Coming {
    fn done(&self, bytes: u64) -> bool {
        let before = self.done.swap(bytes, Ordering::Relaxed);
        self.decoded.fetch_add(bytes.saturating_sub(before), Ordering::Relaxed);
        true
    }
}

/// Passes notices on, and reports progress to the page.
pub(crate) struct Watching<'a> {
    pub(crate) observer: &'a dyn Observer,
    pub(crate) coming: &'a Coming,
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

/// Reports progress to the page, and passes nothing on.
pub(crate) struct Quiet<'a>(pub(crate) &'a Coming);

#[derive(Debug)]
struct Forwarding<'a>(&'a Coming);

impl Observer for Quiet<'_> {
    fn notice(&self, _: Notice) {}

    fn work(&self, bytes: u64) -> Box<dyn Progress + '_> {
        self.0.begin(bytes);
        Box::new(Forwarding(self.0))
    }
}

impl Progress for Forwarding<'_> {
    fn done(&self, bytes: u64) -> bool {
        self.0.done(bytes)
    }
}
