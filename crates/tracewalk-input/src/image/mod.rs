//! Program images: files → the bytes at each address.
//!
//! An [`ImageRequest`] names a file and its kind: a file with addresses (ELF, Intel HEX, S-records), or
//! raw bytes at an address. An [`ImageLoader`]
//! reads every file once, and puts the images that belong to one core together as its [`Memory`]. Images may overlap as
//! long as they agree; an error names both if they do not.
//!
//! ELF segments are placed at their virtual addresses (`p_vaddr`), because that is where code runs and what trace
//! reports. The physical address, which says where a loader put the bytes first, is not looked at. Loaded is what can
//! hold code or constants: segments that are executable, or that cannot be written. Initial values of variables are left
//! out, since they are not what the memory held when the program ran.
//!
//! Symbols and source lines are the business of [`symbols`](crate::symbols).
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
pub(crate) mod module;
mod records;
mod relocation;
mod request;
mod shared;

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
pub use request::{ImageKind, ImageRequest, ParseImageError};
pub use shared::SharedImages;
use shared::Stamp;

/// The memory of a core: the images that belong to it, put together.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The bytes by address, for following execution.
    pub program: Program,
    /// The images that they came from.
    pub images: Vec<VisibleImage>,
    /// The memory limit for symbols and lines of the images.
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
}

impl Image {
    /// Reads an image from a file's bytes. `file` is used in messages.
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
                // Taken as bytes of memory, the text would be an image itself, which is never meant.
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

    /// Where the program has variables, as far as an ELF file's sections say it: what a segment has there is only what they begin with.
    #[must_use]
    pub fn variables(&self) -> Vec<Range<u64>> {
        self.elf_file().map_or_else(Vec::new, |(width, bytes)| elf::variables(width, bytes))
    }

    /// Where an ELF file's first segment is loaded by its own addresses: tools count addresses from there. Segments of an image begin
    /// after the headers.
    #[must_use]
    pub fn load_address(&self) -> Option<Address> {
        elf::first_loaded(&self.bytes).map(Address::new)
    }

    /// The ELF file as a linker made it, if these are its bytes as a system mapped them into memory; or as it would be at 0, if
    /// a kernel put it in a place.
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

    /// A loader for which files may have as many bytes together as their share of the limit is.
    #[must_use]
    pub fn within(limit: MemoryLimit) -> Self {
        Self { limit, ..Self::default() }
    }

    /// The same loader, which reads nothing that another one has read that shares with it.
    #[must_use]
    pub fn sharing(self, shared: SharedImages) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// Takes this for the content of a file, which is not read then.
    pub fn give(&mut self, file: PathBuf, bytes: Bytes) {
        self.files.insert(file, bytes);
    }

    /// Takes this for what [`ImageLoader::load`] makes of a file, of which it is the image.
    pub fn give_image(&mut self, kind: ImageKind, image: Image) {
        self.images.insert((image.file.clone(), kind), Arc::new(image));
    }

    /// The content of a file that was read, or given.
    #[must_use]
    pub fn content(&self, file: &Path) -> Option<&[u8]> {
        self.files.get(file).map(|bytes| &**bytes)
    }

    /// How long the next file may be.
    fn room(&self) -> u64 {
        let read = self.files.values().map(|bytes| bytes.len() as u64).sum();
        self.limit.share().map_or(file::LONGEST_IMAGE, |share| share.saturating_sub(read))
    }

    /// The image that `request` names. A file that was read before is not read again.
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
    pub fn memory<'a>(
        &mut self,
        requests: impl IntoIterator<Item = &'a ImageRequest>,
    ) -> Result<Memory, ImageError> {
        let mut memory = Memory { limit: self.limit, ..Memory::default() };
        for request in requests {
            memory.add_in(self.load(request)?, request.scope).map_err(|error| error.of(request))?;
        }
        Ok(memory)
    }
}

impl Memory {
    /// Puts an image to those that are there, visible in all contexts. Where images overlap they have to agree.
    pub fn add(&mut self, image: Arc<Image>) -> Result<(), ImageError> {
        self.add_in(image, Scope::EVERYWHERE)
    }

    /// Puts an image to those that are there, visible in the contexts of `scope`. Where images of one scope overlap they
    /// have to agree; one of a more particular scope covers the others. An error leaves the memory as it was.
    pub fn add_in(&mut self, image: Arc<Image>, scope: Scope) -> Result<(), ImageError> {
        if self.images.iter().any(|known| Arc::ptr_eq(&known.image, &image) && known.scope == scope) {
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

    /// The image and segment that gave the byte at `address` for a scope; the first one, if several did.
    #[must_use]
    pub fn given_by(&self, address: Address, scope: Scope) -> Option<(&Image, &Segment)> {
        let mut images = self.images.iter().filter(|visible| visible.scope == scope);
        images.find_map(|visible| Some((visible.image.as_ref(), visible.image.segment_at(address)?)))
    }

    /// The memory as it is seen in one context: the images visible there, those that cover others first.
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

    /// What one scope adds to the memory, alone.
    #[must_use]
    pub fn of_scope(&self, scope: Scope) -> Self {
        let limit = self.limit.shared_by(self.program.scopes().count());
        let mut memory = Self { limit, ..Self::default() };
        for visible in self.images.iter().filter(|visible| visible.scope == scope) {
            // They went together before.
            let _ = memory.add(Arc::clone(&visible.image));
        }
        memory
    }

    /// Says who else gave the bytes that differ.
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
    // Bytes that begin in the memory of 32-bit processors end there.
    let is_32_bit = address <= Isa::A32.last_address();
    let last = if is_32_bit { Isa::A32.last_address() } else { Isa::A64.last_address() };
    if address.checked_add(length - 1).is_none_or(|end| end > last) {
        return Err(ImageErrorKind::PastEndOfMemory { start: address, bytes: length });
    }
    Ok(start..end)
}

#[cfg(test)]
mod tests;
