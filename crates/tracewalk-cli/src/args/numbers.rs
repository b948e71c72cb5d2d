//! Numbers as options have them.

pub(super) use tracewalk_analysis::place::number;

pub(super) fn register(text: &str) -> Result<u32, String> {
    let number = number(text).and_then(|number| number.try_into().ok());
    number.ok_or_else(|| "expected a 32-bit number, for example 0x20000000".to_owned())
}
