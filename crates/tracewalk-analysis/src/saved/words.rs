//! The form of other crates' types in files: addresses, IDs and hashes in hexadecimal, the others by name.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};
use tracewalk::ids::{Address, ContextId, Exception, Isa, TraceId, Vmid};
use tracewalk::source::SourceConfig;

/// The name of a protocol. The alias hides the reference from serde, which would require the text to outlive the input.
pub(crate) type ProtocolName = &'static str;

/// Whether a number says nothing, so that it is not saved.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(crate) const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// An address in hexadecimal.
pub(crate) fn address(word: &str) -> Option<Address> {
    u64::from_str_radix(word, 16).ok().map(Address::new)
}

pub(crate) fn context_id(word: &str) -> Option<ContextId> {
    u32::from_str_radix(word, 16).ok().map(ContextId)
}

pub(crate) fn vmid(word: &str) -> Option<Vmid> {
    u32::from_str_radix(word, 16).ok().map(Vmid)
}

/// `0x10`
pub(crate) fn trace_id(word: &str) -> Option<TraceId> {
    u8::from_str_radix(word.strip_prefix("0x")?, 16).ok().and_then(TraceId::new)
}

/// The protocol of a source, or of an ITM that reports exceptions.
pub(crate) fn protocol(word: &str) -> Option<ProtocolName> {
    SourceConfig::PROTOCOLS.iter().copied().chain(["itm"]).find(|name| *name == word)
}

/// Bytes, two digits each.
pub(crate) fn bytes(word: &str) -> Option<Vec<u8>> {
    let digits = word.bytes().map(|digit| char::from(digit).to_digit(16)).collect::<Option<Vec<_>>>()?;
    let bytes = digits.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(high << 4 | low).ok(),
        _ => None,
    });
    bytes.collect()
}

/// A type that is a text in files.
pub(crate) trait Word: Sized {
    /// The expected text, for messages.
    const WHAT: &'static str;

    /// Writes the value.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Reads a value.
    fn read(word: &str) -> Option<Self>;
}

macro_rules! words {
    ($($type:ty: $what:literal, $read:expr, |$value:ident, $f:ident| $write:expr;)+) => {$(
        impl Word for $type {
            const WHAT: &'static str = $what;

            fn write(&self, $f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $value = self;
                $write
            }

            fn read(word: &str) -> Option<Self> {
                $read(word)
            }
        }
    )+};
}

words! {
    Address: "an address in hexadecimal", address, |address, f| write!(f, "{address:x}");
    ContextId: "a context ID in hexadecimal", context_id, |id, f| write!(f, "{:x}", id.0);
    Isa: "an instruction set", Isa::of_word, |isa, f| f.write_str(isa.word());
    TraceId: "a trace ID such as 0x10", trace_id, |id, f| write!(f, "{id}");
    Vmid: "a VMID in hexadecimal", vmid, |vmid, f| write!(f, "{:x}", vmid.0);
    ProtocolName: "a protocol", protocol, |name, f| f.write_str(name);
    Vec<u8>: "bytes in hexadecimal", bytes, |bytes, f| bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"));
    [u8; 32]: "32 bytes in hexadecimal", |word| bytes(word)?.try_into().ok(),
        |bytes, f| bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"));
}

/// For `#[serde(with = …)]`: a [`Word`].
pub(crate) fn serialize<T: Word, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&Shown(value))
}

/// For `#[serde(with = …)]`: a [`Word`].
pub(crate) fn deserialize<'de, T: Word, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_str(Reader(PhantomData))
}

/// For `#[serde(with = …)]`: a [`Word`], or nothing.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Read, Serializer, Word};

    pub(crate) fn serialize<T: Word, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => super::serialize(value, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T: Word, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
        Option::<Read<T>>::deserialize(from).map(|read| read.map(|Read(value)| value))
    }
}

/// For `#[serde(with = …)]`: several [`Word`]s, each of them once.
pub(crate) mod set {
    use std::collections::BTreeSet;

    use super::{Deserialize, Deserializer, Read, Serializer, Shown, Word};

    pub(crate) fn serialize<T: Word, S: Serializer>(set: &BTreeSet<T>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(set.iter().map(Shown))
    }

    pub(crate) fn deserialize<'de, T: Word + Ord, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeSet<T>, D::Error> {
        Vec::<Read<T>>::deserialize(from).map(|all| all.into_iter().map(|Read(value)| value).collect())
    }
}

/// For `#[serde(with = …)]`: counts by [`Word`], as a list of pairs.
pub(crate) mod counts {
    use std::collections::BTreeMap;

    use super::{Deserialize, Deserializer, Read, Serializer, Shown, Word};

    pub(crate) fn serialize<T: Word, S: Serializer>(
        counts: &BTreeMap<T, u64>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(counts.iter().map(|(value, count)| (Shown(value), count)))
    }

    pub(crate) fn deserialize<'de, T: Word + Ord, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<T, u64>, D::Error> {
        let pairs = Vec::<(Read<T>, u64)>::deserialize(from)?;
        Ok(pairs.into_iter().map(|(Read(value), count)| (value, count)).collect())
    }
}

/// A [`Word`] that is written.
struct Shown<'a, T>(&'a T);

impl<T: Word> fmt::Display for Shown<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f)
    }
}

impl<T: Word> Serialize for Shown<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// A [`Word`] that is read.
struct Read<T>(T);

impl<'de, T: Word> Deserialize<'de> for Read<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        deserialize(from).map(Self)
    }
}

struct Reader<T>(PhantomData<T>);

impl<T: Word> Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<T, E> {
        T::read(word).ok_or_else(|| E::invalid_value(Unexpected::Str(word), &self))
    }
}

/// For `#[serde(with = …)]`: an exception by its numbering and its number.
pub(crate) mod exception {
    use super::{Deserialize, Deserializer, Error as _, Exception, Serialize, Serializer, Unexpected};

    pub(crate) fn serialize<S: Serializer>(value: &Option<Exception>, to: S) -> Result<S::Ok, S::Error> {
        value.map(|exception| (exception.numbering(), exception.number())).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Exception>, D::Error> {
        let Some((numbering, number)) = Option::<(String, u16)>::deserialize(from)? else { return Ok(None) };
        let unknown = || D::Error::invalid_value(Unexpected::Str(&numbering), &"a numbering of exceptions");
        Exception::numbered(&numbering, number).map(Some).ok_or_else(unknown)
    }
}

/// For `#[serde(with = …)]`: the contexts in which code is visible.
pub(crate) mod scope {
    use super::{ContextId, Deserialize, Deserializer, Serialize, Serializer, Vmid};
    use tracewalk::program::Scope;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Form {
        #[serde(with = "super::optional", default, skip_serializing_if = "Option::is_none")]
        context_id: Option<ContextId>,
        #[serde(with = "super::optional", default, skip_serializing_if = "Option::is_none")]
        vmid: Option<Vmid>,
    }

    pub(crate) fn serialize<S: Serializer>(scope: &Scope, to: S) -> Result<S::Ok, S::Error> {
        // A format without names cannot leave a field out.
        if !to.is_human_readable() {
            return scope.serialize(to);
        }
        let Scope { context_id, vmid } = *scope;
        Form { context_id, vmid }.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Scope, D::Error> {
        if !from.is_human_readable() {
            return Scope::deserialize(from);
        }
        let Form { context_id, vmid } = Form::deserialize(from)?;
        Ok(Scope { context_id, vmid })
    }
}
