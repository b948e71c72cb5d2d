//! simpleperf's feature FILE2: messages about the mapped files (`record_file.proto`). The message of a kernel
//! module states how far the module's code is from its beginning.

use super::fields::u32_at;

/// The modules' files, and the distance of each module's `.text` from the start of its mapping.
pub(super) fn module_texts(mut bytes: &[u8]) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    while let Some(length) = u32_at(bytes, 0).and_then(|length| usize::try_from(length).ok()) {
        let Some((message, rest)) = bytes.get(4..).and_then(|rest| rest.split_at_checked(length)) else {
            break;
        };
        found.extend(module_text(message));
        bytes = rest;
    }
    found
}

fn module_text(message: &[u8]) -> Option<(String, u64)> {
    const PATH: u64 = 1;
    const KERNEL_MODULE: u64 = 7;
    const MEMORY_OFFSET_OF_TEXT: u64 = 1;
    let bytes = |wanted| {
        Fields(message).find_map(|(field, value)| match value {
            Value::Bytes(bytes) if field == wanted => Some(bytes),
            _ => None,
        })
    };
    let path = String::from_utf8_lossy(bytes(PATH)?).into_owned();
    let offset = Fields(bytes(KERNEL_MODULE)?).find_map(|(field, value)| match value {
        Value::Number(number) if field == MEMORY_OFFSET_OF_TEXT => Some(number),
        _ => None,
    })?;
    Some((path, offset))
}

/// The fields of a message in the encoding of Protocol Buffers, up to the first that cannot be read.
struct Fields<'a>(&'a [u8]);

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Fields<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self, length: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.number()?;
        let value = match key & 0b111 {
            0 => Value::Number(self.number()?),
            1 => Value::Bytes(self.bytes(8)?),
            2 => {
                let length = self.number()?;
                Value::Bytes(self.bytes(length)?)
            }
            5 => Value::Bytes(self.bytes(4)?),
            _ => return None,
        };
        Some((key >> 3, value))
    }
}
