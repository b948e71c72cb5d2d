//! Images that several loaders use but only one reads.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::{Image, ImageKind, ImageRequest};

/// Images that several loaders share, so that each is read once. Clones share the same images.
///
/// A file is read again if its length or time of change differs.
#[derive(Clone, Debug, Default)]
pub struct SharedImages(Arc<Mutex<Known>>);

/// The images by file and kind, each with the version of its file.
type Known = BTreeMap<(PathBuf, ImageKind), (Stamp, Arc<Image>)>;

/// Identifies a version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

/// The most images kept. The images are a cache: when it is full, it is emptied.
const MOST: usize = 256;

impl Stamp {
    /// The stamp of the file at `path`; `None` if it is not a regular file, because its content may change
    /// each time.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
        Some(Self { bytes: found.len(), modified: found.modified().ok() })
    }
}

impl SharedImages {
    /// The image that `request` names, if it was read from this version of the file.
    pub(super) fn get(&self, request: &ImageRequest, stamp: Stamp) -> Option<Arc<Image>> {
        let images = self.images();
        let (known, image) = images.get(&(request.file.clone(), request.kind.clone()))?;
        (*known == stamp).then(|| Arc::clone(image))
    }

    /// Keeps an image for other loaders.
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
