//! Requests for images: a file with addresses, or raw bytes at an address, and the cores and contexts that it
//! is for.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tracewalk::ids::{Address, ContextId, Vmid};
use tracewalk::program::Scope;

use crate::excerpt::excerpt;
use crate::number;
use crate::origin::{Naming, Origin, Setting};

/// An image to load, and its cores and contexts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRequest {
    /// The file.
    pub file: PathBuf,
    /// How the file is read.
    pub kind: ImageKind,
    /// The cores whose memory contains the image, by their names in the description. Empty: every core.
    pub cores: Vec<String>,
    /// The contexts in which the image is visible.
    pub scope: Scope,
    /// The origin of the request.
    pub origin: Origin,
    /// The entry of a description that names the file; `None` for an option.
    pub named_by: Option<Naming>,
}

/// How an image's file is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImageKind {
    /// As a file with addresses: ELF, Intel HEX or Motorola S-records, by its content.
    Addressed,
    /// As the bytes of memory.
    Raw {
        /// The address of the first byte.
        address: Address,
        /// The offset of the first byte in the file.
        offset: u64,
        /// The number of bytes; `None`: to the end of the file.
        length: Option<u64>,
        /// The address space, in a snapshot's words (`S`, `N`, `H`). The space is only shown; all spaces are
        /// one memory.
        space: Option<String>,
    },
    /// As loaded by a kernel, according to a recording of the system. The image is made from the recording,
    /// and passed to [`ImageLoader::give_image`](super::ImageLoader::give_image).
    Placed {
        /// The address at which the image begins.
        address: Address,
    },
}

impl ImageKind {
    /// All bytes of a file, at `address`.
    #[must_use]
    pub const fn raw(address: Address) -> Self {
        Self::Raw { address, offset: 0, length: None, space: None }
    }
}

impl ImageRequest {
    /// The file, for every core and context.
    #[must_use]
    pub fn new(file: impl Into<PathBuf>, kind: ImageKind, origin: Origin) -> Self {
        Self { file: file.into(), kind, cores: Vec::new(), scope: Scope::EVERYWHERE, origin, named_by: None }
    }

    /// Whether the image is part of the memory of the core with this name. `None` is a core without a name.
    #[must_use]
    pub fn is_for(&self, core: Option<&str>) -> bool {
        self.cores.is_empty() || core.is_some_and(|core| self.cores.iter().any(|name| name == core))
    }
}

/// A mistake in the text of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseImageError {
    /// There is no file name.
    NoFile,
    /// The text before the `:` starts like a number but is not an address.
    Address {
        /// The text before the `:`.
        found: String,
    },
    /// The text after the `@` is not a context.
    Context {
        /// The part of the text that is wrong.
        found: String,
    },
}

impl fmt::Display for ParseImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile => f.write_str("expected FILE or ADDRESS:FILE, found no file name"),
            Self::Address { found } => {
                write!(f, "expected an address before the `:`, found `{found}`")
            }
            Self::Context { found } => {
                write!(
                    f,
                    "expected context=NUMBER, vmid=NUMBER (0 to 255) or both, separated by `,`, after the `@`, found \
                     `{found}`"
                )
            }
        }
    }
}

impl std::error::Error for ParseImageError {}

/// Reads `FILE` or `ADDRESS:FILE`, with `@context=NUMBER`, `@vmid=NUMBER` or
/// `@context=NUMBER,vmid=NUMBER` after it for an image that is only visible in this context.
///
/// An address starts with a digit. Write a file whose own name looks like that as `./0x100:file`.
impl FromStr for ImageRequest {
    type Err = ParseImageError;

    fn from_str(argument: &str) -> Result<Self, ParseImageError> {
        let (argument, scope) = split_scope(argument)?;
        let (kind, file) = match argument.split_once(':') {
            Some((address, file)) if address.starts_with(|first: char| first.is_ascii_digit()) => {
                let number = number::parse(address)
                    .ok_or_else(|| ParseImageError::Address { found: excerpt(address) })?;
                (ImageKind::raw(Address::new(number)), file)
            }
            _ => (ImageKind::Addressed, argument),
        };
        if file.is_empty() {
            return Err(ParseImageError::NoFile);
        }
        Ok(Self { scope, ..Self::new(file, kind, Origin::Stated(Setting::Image)) })
    }
}

/// Splits an argument into the text before the contexts, and the contexts that it ends in. An `@` without a
/// `=` after it belongs to the file's name.
fn split_scope(argument: &str) -> Result<(&str, Scope), ParseImageError> {
    let Some((rest, found)) = argument.rsplit_once('@').filter(|(_, after)| after.contains('=')) else {
        return Ok((argument, Scope::EVERYWHERE));
    };
    let mut scope = Scope::EVERYWHERE;
    let mut set = |key: &str, value: &str| {
        let number = number::parse_u32(value)?;
        let is_first = match key {
            "context" => scope.context_id.replace(ContextId(number)).is_none(),
            "vmid" => scope.vmid.replace(Vmid(u8::try_from(number).ok()?.into())).is_none(),
            _ => false,
        };
        is_first.then_some(())
    };
    for part in found.split(',') {
        let said = part.split_once('=').and_then(|(key, value)| set(key, value));
        said.ok_or_else(|| ParseImageError::Context { found: excerpt(part) })?;
    }
    Ok((rest, scope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_option_is_a_file_or_an_address_and_a_file() {
        let request = |argument: &str| argument.parse::<ImageRequest>().map(|image| (image.kind, image.file));
        assert_eq!(request("app.elf"), Ok((ImageKind::Addressed, "app.elf".into())));
        assert_eq!(request("C:\\app.elf"), Ok((ImageKind::Addressed, "C:\\app.elf".into())));
        assert_eq!(request("./0:x"), Ok((ImageKind::Addressed, "./0:x".into())));
        assert_eq!(
            request("0x0800_0000:a:b.bin"),
            Ok((ImageKind::raw(Address::new(0x0800_0000)), "a:b.bin".into()))
        );
        assert_eq!(request(""), Err(ParseImageError::NoFile));
        assert_eq!(request("0x100:"), Err(ParseImageError::NoFile));
        assert_eq!(
            request("0xffff_8000_0000_0000:a"),
            Ok((ImageKind::raw(Address::new(0xffff_8000_0000_0000)), "a".into()))
        );
        assert_eq!(
            request("0x10000000000000000:a"),
            Err(ParseImageError::Address { found: "0x10000000000000000".to_owned() })
        );
    }

    #[test]
    fn an_image_option_may_end_in_the_context_that_it_is_for() {
        let scope = |argument: &str| {
            argument.parse::<ImageRequest>().map(|image| (image.file.display().to_string(), image.scope))
        };
        let init = |scope| Ok(("init".to_owned(), scope));
        assert_eq!(scope("init@context=0x42"), init(Scope::context(ContextId(0x42))));
        assert_eq!(scope("0x8000:init@vmid=3"), init(Scope::vmid(Vmid(3))));
        let both = Scope { context_id: Some(ContextId(7)), vmid: Some(Vmid(1)) };
        assert_eq!(scope("init@vmid=1,context=7"), init(both));
        assert_eq!(scope("me@home"), Ok(("me@home".to_owned(), Scope::EVERYWHERE)));
        for wrong in
            ["contxt=1", "context=", "context=1,context=2", "vmid=256", "context=1,", "vmid=0x100000000"]
        {
            let found = scope(&format!("init@{wrong}"));
            assert!(matches!(found, Err(ParseImageError::Context { .. })), "{wrong}: {found:?}");
        }
    }

    #[test]
    fn an_image_for_no_core_is_for_every_core() {
        let mut image: ImageRequest = "app.elf".parse().unwrap();
        assert!(image.is_for(None) && image.is_for(Some("cpu_0")));
        image.cores = vec!["cpu_1".to_owned()];
        assert!(!image.is_for(None) && !image.is_for(Some("cpu_0")) && image.is_for(Some("cpu_1")));
    }
}
