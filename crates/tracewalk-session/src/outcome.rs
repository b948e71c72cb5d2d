//! What came of work on a source, whatever the work was.

use std::path::PathBuf;
use std::sync::Arc;

use tracewalk_analysis::itm::ItmCounts;
use tracewalk_analysis::{Code, Contexts, Doubtful, Doubts, Gaps, InDoubt, Statistics};

use crate::model::Itm;
use crate::notice::Notice;
use crate::places::LostPlaces;

/// How a source is followed.
#[derive(Clone, Debug)]
pub struct Follow {
    /// What is believed.
    pub trust: Trust,
    /// On how many threads, at most.
    pub threads: u16,
    /// Names and lines of the program are read, and source files are looked for in these folders as well as beside the images;
    /// `None`: for work that needs neither.
    pub names: Option<Vec<PathBuf>>,
    /// Whether every place is listed where something was lost. It makes an analysis run in the order of the trace.
    pub places: bool,
}

/// What is believed of image and trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Whether the image is followed even if the trace contradicts it all the time.
    pub image: bool,
    /// What becomes of what is in doubt.
    pub doubtful: Doubtful,
}

impl Default for Follow {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().ok();
        let threads = threads.and_then(|count| u16::try_from(count.get()).ok()).unwrap_or(1);
        Self { trust: Trust::default(), threads, names: Some(Vec::new()), places: false }
    }
}

/// What came of following a source.
#[derive(Debug)]
pub struct Outcome<T> {
    /// The answer.
    pub found: T,
    /// How much there was.
    pub statistics: Statistics,
    /// What could not be decoded or followed.
    pub losses: Losses,
    /// The program that was followed: an empty one if the image is not what was traced.
    pub code: Arc<Code>,
    /// What was counted of the ITMs beside the source, if they were decoded with it.
    pub itms: Vec<(Itm, ItmCounts)>,
    /// What is worth knowing of it, unless an observer was given it.
    pub notices: Vec<Notice>,
    /// After which byte of the capture memory or an observer ended the work; `None` if it came to its end.
    pub ended_at: Option<u64>,
    /// Whether all of the source was decoded that there is: not if the work was ended, or the capture stopped arriving.
    pub complete: bool,
}

impl<T> Outcome<T> {
    /// The same with another answer, that is made of the answer and the program.
    pub(crate) fn map<U>(self, make: impl FnOnce(T, &Code) -> U) -> Outcome<U> {
        let Self { found, statistics, losses, code, itms, notices, ended_at, complete } = self;
        let found = make(found, &code);
        Outcome { found, statistics, losses, code, itms, notices, ended_at, complete }
    }
}

/// What of a source could not be decoded or followed.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Where and why execution could not be followed.
    pub gaps: Gaps,
    /// The contexts in which code ran, or was missing.
    pub contexts: Contexts,
    /// Which stretches of trace are in doubt.
    pub doubts: Doubts,
    /// What became of the instructions in them; `None` if nobody counted them.
    pub in_doubt: Option<InDoubt>,
    /// Where something was lost, if that was asked for.
    pub places: Option<LostPlaces>,
}
