//! Program images: files → the bytes at each address.
//!
//! An [`ImageRequest`] names a file and its kind: a file with addresses (ELF, Intel HEX, S-records), or raw
//! bytes at an address. An [`ImageLoader`] reads every file once, and combines the images of a core as its
//! [`Memory`]. Images may overlap if they agree; otherwise an error names both.
//!
//! ELF segments are placed at their virtual addresses (`p_vaddr`), because code runs at these addresses and
//! trace reports them. The physical address, at which a loader first put the bytes, is ignored. Only segments
//! that can hold code or constants are loaded: those that are executable, or that cannot be written. Initial
//! values of variables are left out, because memory held other values when the program ran.
//!
//! For symbols and source lines, see [`symbols`](crate::symbols).
//!
//! ```no_run
//! use tracewalk_input::image::ImageLoader;
//!
//! let requests = ["app.elf".parse()?, "0x1fff0000:bootrom.bin".parse()?];
//! let memory = ImageLoader::new().memory(&requests)?;
//! assert!(!memory.program.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attributes;
mod contents;
pub(crate) mod elf;
mod error;
mod loaded;
pub(crate) mod module;
mod records;
mod relocation;
mod request;
mod shared;
mod symbol;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracewalk::ids::{Address, Isa};
use tracewalk::plain::Plain;
use tracewalk::program::{AddRegionError, Program, Scope, ViewId};

use crate::bytes::Bytes;
use crate::file;
use crate::limit::MemoryLimit;

pub use attributes::Attributes;
pub(crate) use contents::Width;
pub use contents::{Image, ImageForm, Segment};
pub use elf::{build_id_of, build_id_of_file};
pub use error::{ImageError, ImageErrorKind, Looks};
pub use loaded::LoadedSegment;
pub use request::{ImageKind, ImageRequest, ParseImageError};
pub use shared::SharedImages;
use shared::Stamp;
pub use symbol::symbol;

/// The memory of a core: the combination of its images.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The bytes by address, for following execution.
    pub program: Program,
    /// The images that the bytes come from.
    pub images: Vec<VisibleImage>,
    /// The memory limit for the images' symbols and lines.
    pub limit: MemoryLimit,
}

/// An image, and the contexts in which it is visible.
#[derive(Clone, Debug)]
pub struct VisibleImage {
    /// The image.
    pub image: Arc<Image>,
    /// The contexts in which it is part of memory.
    pub scope: Scope,
}

/// Reads images, each file once.
#[derive(Debug, Default)]
pub struct ImageLoader {
    limit: MemoryLimit,
    files: BTreeMap<PathBuf, Bytes>,
    images: BTreeMap<(PathBuf, ImageKind), Arc<Image>>,
    shared: Option<SharedImages>,
    /// The memories that were combined. Those of cores with the same images share their bytes.
    memories: Vec<Memory>,
}

/// The most memories that a loader keeps, the newest ones.
const MOST_MEMORIES: usize = 16;

impl Image {
    /// Reads an image from a file's bytes. `file` is used in messages.
    ///
    /// # Errors
    ///
    /// If the bytes are empty, malformed, or not for an Arm processor, or do not fit `kind`.
    pub fn from_bytes(file: &Path, kind: &ImageKind, bytes: impl Into<Bytes>) -> Result<Self, ImageError> {
        let bytes = bytes.into();
        let error = |kind| ImageError { file: file.to_owned(), kind, named_by: None };
        if bytes.is_empty() {
            return Err(error(ImageErrorKind::File(file::FileProblem::Empty)));
        }
        match kind {
            ImageKind::Addressed | ImageKind::Placed { .. } => match records::form(&bytes) {
                Some(form) => records::read(file, form, &bytes).map_err(error),
                None => elf::read(file, &bytes).map_err(error),
            },
            ImageKind::Raw { address, offset, length, .. } => {
                // Raw bytes could be loaded from the text of records, but nobody wants its characters as
                // memory.
                if let Some(form) = records::form(&bytes).filter(|form| records::is_sound(*form, &bytes)) {
                    return Err(error(ImageErrorKind::HasAddresses(form)));
                }
                let range = raw_range(&bytes, *address, *offset, *length).map_err(error)?;
                let segment =
                    Segment { name: "the file".to_owned(), address: *address, executable: true, range };
                Ok(Self {
                    file: file.to_owned(),
                    segments: vec![segment],
                    build_id: None,
                    attributes: Attributes::default(),
                    entry: None,
                    bytes,
                    moved: 0,
                    form: ImageForm::Raw,
                })
            }
        }
    }

    /// The addresses of the program's variables, from an ELF file's sections. Segments only have their
    /// initial values.
    #[must_use]
    pub fn variables(&self) -> Vec<Range<u64>> {
        self.elf_file().map_or_else(Vec::new, |(width, bytes)| elf::variables(width, bytes))
    }

    /// The address of an ELF file's first segment with its headers: other tools count addresses from there.
    /// An image's segments begin after the headers.
    #[must_use]
    pub fn load_address(&self) -> Option<Address> {
        elf::first_loaded(&self.bytes).map(Address::new)
    }

    /// The ELF file at its linked addresses, if this image is a part of the file that a system mapped into
    /// memory; or at address 0, if a kernel placed the file.
    #[must_use]
    pub fn linked(&self) -> Option<Self> {
        if self.moved > 0 {
            let segments = self.segments.iter().map(|segment| Segment {
                address: Address::new(segment.address.get().wrapping_sub(self.moved)),
                ..segment.clone()
            });
            return Some(Self { segments: segments.collect(), moved: 0, ..self.clone() });
        }
        let is_mapped = self.form == ImageForm::Raw;
        is_mapped.then(|| elf::read(&self.file, &self.bytes).ok()).flatten()
    }
}

impl ImageLoader {
    /// A loader that has read nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A loader whose files may together have as many bytes as their share of the limit.
    #[must_use]
    pub fn within(limit: MemoryLimit) -> Self {
        Self { limit, ..Self::default() }
    }

    /// The same loader, which reuses images that other loaders with `shared` have read.
    #[must_use]
    pub fn sharing(self, shared: SharedImages) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// Uses `bytes` as the content of a file, which is then not read.
    pub fn give(&mut self, file: PathBuf, bytes: Bytes) {
        self.files.insert(file, bytes);
    }

    /// Uses `image` as the result of [`ImageLoader::load`] for its file and `kind`.
    pub fn give_image(&mut self, kind: ImageKind, image: Image) {
        self.images.insert((image.file.clone(), kind), Arc::new(image));
    }

    /// The content of a file that was read or given.
    #[must_use]
    pub fn content(&self, file: &Path) -> Option<&[u8]> {
        self.files.get(file).map(|bytes| &**bytes)
    }

    /// The greatest length of the next file.
    fn room(&self) -> u64 {
        let read = self.files.values().map(|bytes| bytes.len() as u64).sum();
        self.limit.share().map_or(file::LONGEST_IMAGE, |share| share.saturating_sub(read))
    }

    /// The image that `request` names. Each file is read only once.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or as [`Image::from_bytes`].
    pub fn load(&mut self, request: &ImageRequest) -> Result<Arc<Image>, ImageError> {
        let key = (request.file.clone(), request.kind.clone());
        if let Some(image) = self.images.get(&key) {
            return Ok(Arc::clone(image));
        }
        let shared = self.shared.clone().filter(|_| !self.files.contains_key(&request.file));
        let shared = shared.and_then(|shared| Some((shared, Stamp::of(&request.file)?)));
        if let Some(image) = shared.as_ref().and_then(|(shared, stamp)| shared.get(request, *stamp))
            && image.bytes.len() as u64 <= self.room()
        {
            self.files.insert(request.file.clone(), image.bytes.clone());
            self.images.insert(key, Arc::clone(&image));
            return Ok(image);
        }
        let bytes = match self.files.get(&request.file) {
            Some(bytes) => bytes.clone(),
            None => file::read(&request.file, self.room()).map_err(|problem| {
                let kind = ImageErrorKind::File(problem);
                ImageError { file: request.file.clone(), kind, named_by: None }.of(request)
            })?,
        };
        self.files.insert(request.file.clone(), bytes.clone());
        let image = Image::from_bytes(&request.file, &request.kind, bytes);
        let image = Arc::new(image.map_err(|error| error.of(request))?);
        if let Some((shared, stamp)) = shared {
            shared.keep(request, stamp, &image);
        }
        self.images.insert(key, Arc::clone(&image));
        Ok(image)
    }

    /// The memory of the images that the requests name.
    ///
    /// # Errors
    ///
    /// As [`ImageLoader::load`] and [`Memory::add_in`].
    pub fn memory<'a>(
        &mut self,
        requests: impl IntoIterator<Item = &'a ImageRequest>,
    ) -> Result<Memory, ImageError> {
        let requests = requests.into_iter().collect::<Vec<_>>();
        let images = requests.iter().map(|request| Some((self.load(request).ok()?, request.scope)));
        let images = images.collect::<Option<Vec<_>>>();
        if let Some(known) = images.and_then(|images| self.memories.iter().find(|known| known.is_of(&images)))
        {
            return Ok(known.clone());
        }
        let mut memory = Memory { limit: self.limit, ..Memory::default() };
        for request in requests {
            memory.add_in(self.load(request)?, request.scope).map_err(|error| error.of(request))?;
        }
        if self.memories.len() >= MOST_MEMORIES {
            self.memories.remove(0);
        }
        self.memories.push(memory.clone());
        Ok(memory)
    }
}

impl VisibleImage {
    fn is(&self, image: &Arc<Image>, scope: Scope) -> bool {
        Arc::ptr_eq(&self.image, image) && self.scope == scope
    }
}

impl Memory {
    /// Adds an image that is visible in all contexts. Overlapping images must agree.
    ///
    /// # Errors
    ///
    /// As [`Memory::add_in`].
    pub fn add(&mut self, image: Arc<Image>) -> Result<(), ImageError> {
        self.add_in(image, Scope::EVERYWHERE)
    }

    /// Adds an image that is visible in the contexts of `scope`. Overlapping images of the same scope must
    /// agree; an image of a narrower scope covers the others.
    ///
    /// # Errors
    ///
    /// If images of one scope have different bytes at an address, or as [`Program::add_in`]. The memory is unchanged.
    pub fn add_in(&mut self, image: Arc<Image>, scope: Scope) -> Result<(), ImageError> {
        if self.images.iter().any(|known| known.is(&image, scope)) {
            return Ok(());
        }
        let mut program = self.program.clone().into_builder();
        for (index, segment) in image.segments.iter().enumerate() {
            let bytes = image.segment_bytes(segment);
            program.add_in(scope, segment.address, bytes).map_err(|error| {
                let earlier = image.segments.get(..index).unwrap_or_default();
                let kind = self.explain(error, (&image, scope), segment, earlier);
                ImageError { file: image.file.clone(), kind, named_by: None }
            })?;
        }
        self.program = program.build();
        self.images.push(VisibleImage { image, scope });
        Ok(())
    }

    /// Whether this is the memory of these images, added one after the other.
    fn is_of(&self, images: &[(Arc<Image>, Scope)]) -> bool {
        let is = |known: &VisibleImage, (image, scope): &(Arc<Image>, Scope)| known.is(image, *scope);
        // An image that is named twice was added once.
        let mut added = 0;
        let all = images.iter().all(|image| {
            let is_next = self.images.get(added).is_some_and(|known| is(known, image));
            added += usize::from(is_next);
            is_next || self.images.iter().take(added).any(|known| is(known, image))
        });
        all && added == self.images.len()
    }

    /// The image and segment of a scope that have the byte at `address`; the first one, if there are several.
    #[must_use]
    pub fn given_by(&self, address: Address, scope: Scope) -> Option<(&Image, &Segment)> {
        let mut images = self.images.iter().filter(|visible| visible.scope == scope);
        images.find_map(|visible| Some((visible.image.as_ref(), visible.image.segment_at(address)?)))
    }

    /// The memory that is visible in one context. Images that cover others come first.
    #[must_use]
    pub fn seen_in(&self, view: ViewId, context: Scope) -> Self {
        let is_visible = |visible: &&VisibleImage| visible.scope.includes(context.context_id, context.vmid);
        let mut images = self.images.iter().filter(is_visible).cloned().collect::<Vec<_>>();
        let order = |one: &VisibleImage, other: &VisibleImage| {
            other.scope.covers(one.scope).cmp(&one.scope.covers(other.scope))
        };
        images.sort_by(order);
        let limit = self.limit.shared_by(self.program.views().count());
        Self { program: self.program.view(view).clone(), images, limit }
    }

    /// Only the memory that one scope adds.
    #[must_use]
    pub fn of_scope(&self, scope: Scope) -> Self {
        let limit = self.limit.shared_by(self.program.scopes().count());
        let mut memory = Self { limit, ..Self::default() };
        for visible in self.images.iter().filter(|visible| visible.scope == scope) {
            // Cannot fail: the same images were added together before.
            let _ = memory.add(Arc::clone(&visible.image));
        }
        memory
    }

    /// Converts an error, and names the other image in a conflict.
    fn explain(
        &self,
        error: AddRegionError,
        (image, scope): (&Image, Scope),
        segment: &Segment,
        earlier: &[Segment],
    ) -> ImageErrorKind {
        match error {
            AddRegionError::PastEndOfMemory { start, bytes } => {
                ImageErrorKind::PastEndOfMemory { start, bytes: bytes as u64 }
            }
            AddRegionError::Conflict { at } => {
                let own = earlier.iter().find(|segment| segment.contains(at)).map(|segment| (image, segment));
                let other = own.or_else(|| self.given_by(at, scope));
                let other = other
                    .map(|(image, segment)| format!("{} of {}", segment.name, Plain(image.file.display())));
                let other = other.unwrap_or_else(|| "another image".to_owned());
                ImageErrorKind::Conflict { other, part: segment.name.clone(), at }
            }
            AddRegionError::TooManyViews => ImageErrorKind::TooManyContexts,
        }
    }
}

/// The part of a file of raw bytes that goes to `address`.
fn raw_range(
    bytes: &[u8],
    address: Address,
    offset: u64,
    length: Option<u64>,
) -> Result<Range<usize>, ImageErrorKind> {
    let all = bytes.len() as u64;
    let length = length.unwrap_or(all.saturating_sub(offset));
    let end = offset.checked_add(length).filter(|&end| end <= all && length > 0);
    let (Some(end), Ok(start)) = (end.and_then(|end| usize::try_from(end).ok()), usize::try_from(offset))
    else {
        return Err(ImageErrorKind::OutsideFile { offset, length: length.max(1), bytes: all });
    };
    // Bytes that begin in the memory of 32-bit processors must end there.
    let is_32_bit = address <= Isa::A32.last_address();
    let last = if is_32_bit { Isa::A32.last_address() } else { Isa::A64.last_address() };
    if address.checked_add(length - 1).is_none_or(|end| end > last) {
        return Err(ImageErrorKind::PastEndOfMemory { start: address, bytes: length });
    }
    Ok(start..end)
}

#[cfg(test)]
mod tests;
