//! Numbers as options have them.

pub(super) fn register(text: &str) -> Result<u32, String> {
    let number = number(text).and_then(|number| number.try_into().ok());
    number.ok_or_else(|| "expected a 32-bit number, for example 0x20000000".to_owned())
}

/// A number of at most 64 bits, in hexadecimal with 0x or in decimal; underscores may group the digits.
pub(super) fn number(text: &str) -> Option<u64> {
    let digits = text.replace('_', "");
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) if !hex.starts_with('+') => u64::from_str_radix(hex, 16),
        Some(_) => return None,
        None if digits.starts_with('+') => return None,
        None => digits.parse(),
    };
    number.ok()
}
