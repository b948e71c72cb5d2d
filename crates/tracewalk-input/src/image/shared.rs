//! Images that several loaders need, read once.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::{Image, ImageKind, ImageRequest};

/// Images that several loaders read once. Clones share them.
///
/// A file that has another length or time of change than before is read again.
#[derive(Clone, Debug, Default)]
pub struct SharedImages(Arc<Mutex<Known>>);

/// By file and kind: which version of the file it is of, and the image.
type Known = BTreeMap<(PathBuf, ImageKind), (Stamp, Arc<Image>)>;

/// Identifies a version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

/// The most images kept. They are a cache: an image that does not fit is read again.
const MOST: usize = 256;

impl Stamp {
    /// That of the file at `path`; `None` if it is no regular file, which may have something else each time.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
        Some(Self { bytes: found.len(), modified: found.modified().ok() })
    }
}

impl SharedImages {
    /// The image that `request` names, if it was read from the file as it is now.
    pub(super) fn get(&self, request: &ImageRequest, stamp: Stamp) -> Option<Arc<Image>> {
        let images = self.images();
        let (known, image) = images.get(&(request.file.clone(), request.kind.clone()))?;
        (*known == stamp).then(|| Arc::clone(image))
    }

    /// Keeps an image for others.
    pub(super) fn keep(&self, request: &ImageRequest, stamp: Stamp, image: &Arc<Image>) {
        let mut images = self.images();
        if images.len() >= MOST {
            images.clear();
        }
        images.insert((request.file.clone(), request.kind.clone()), (stamp, Arc::clone(image)));
    }

    fn images(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
