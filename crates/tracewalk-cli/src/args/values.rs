//! `--where` and `--writes`: what is searched in values.

use tracewalk_analysis::Code;
use tracewalk_analysis::values::{Register, Search};
use tracewalk_input::nearest::nearest_few;

use super::numbers::number;
use crate::failure::Failure;

/// Reads a register, and its value if one is stated.
pub(super) fn register(text: &str) -> Result<Search, String> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let name = name.trim().to_ascii_lowercase();
    let numbered = |prefix: &str, last: u8| {
        name.strip_prefix(prefix)?.parse().ok().filter(|number| *number <= last).map(Register)
    };
    let (narrow, wide) = match name.as_str() {
        "sp" => (Some(Register(13)), Some(Register(31))),
        "lr" => (Some(Register(14)), Some(Register(30))),
        _ => (numbered("r", 14), numbered("x", 30)),
    };
    if narrow.is_none() && wide.is_none() {
        return Err(
            "expected r0 to r12, sp, lr, or x0 to x30, and optionally a value, for example r3=0".to_owned()
        );
    }
    let value = value.map(|value| number(value.trim()).ok_or_else(|| format!("`{value}` is no number")));
    Ok(Search::Register { narrow, wide, value: value.transpose()? })
}

/// Fails if the processor has no such register, or the register cannot have the value.
pub(crate) fn check(search: &Search, is_a64: bool) -> Result<(), Failure> {
    let Search::Register { narrow, wide, value } = search else { return Ok(()) };
    let (register, most, names) = match is_a64 {
        true => (wide, u64::MAX, "x0 to x30, sp or lr"),
        false => (narrow, u64::from(u32::MAX), "r0 to r12, sp or lr, and a value of 32 bits"),
    };
    if register.is_some() && value.is_none_or(|value| value <= most) {
        return Ok(());
    }
    Err(Failure::input(
        "no_such_register",
        "--where: the processor has no such register or value",
        format!("use {names}"),
    ))
}

/// The bytes at an address, or of a variable of this program.
pub(crate) fn bytes(text: &str, code: &Code) -> Result<Search, Failure> {
    if let Some(address) = number(text) {
        return Ok(Search::Bytes(address..address.saturating_add(1)));
    }
    let objects = code.symbols.objects();
    let Some(object) = objects.iter().find(|object| object.name == text) else {
        let near = nearest_few(text, objects.iter().map(|object| object.name.as_str()), 3).join(", ");
        let hint =
            if near.is_empty() { "use an address".to_owned() } else { format!("similar names: {near}") };
        return Err(Failure::input(
            "no_such_variable",
            format!("--writes {text}: the program has no such variable"),
            hint,
        ));
    };
    Ok(Search::Bytes(object.start.get()..object.end))
}
