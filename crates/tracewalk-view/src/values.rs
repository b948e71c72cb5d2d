//! What the path proves at a step: the registers before it, and what it does to registers and memory.

use serde_json::{Value, json};
use tracewalk::ids::{Address, Isa};
use tracewalk_analysis::values::{Near, ProvenAccess, Register};
use tracewalk_report::export::register_name;

use crate::names::{address, hex};
use crate::query::Query;
use crate::recording::Recording;

/// The registers and accesses of a step.
pub(crate) fn of(recording: &mut Recording<'_>, step: u64) -> Option<Value> {
    let isa = isa(recording, step)?;
    let code = recording.code.clone();
    let proven = recording.values.proven(step)?;
    let named = |address: u64| {
        let object = code.symbols.object(Address::new(address))?;
        let offset = address - object.start.get();
        Some(if offset == 0 { object.name } else { format!("{}+0x{offset:x}", object.name) })
    };
    let access = |access: &ProvenAccess| {
        json!({
            "store": access.is_store,
            "address": access.address.map(|address| hex(Address::new(address))),
            "name": access.address.and_then(named),
            "bytes": access.bytes,
            "value": access.value.map(number),
        })
    };
    let before = proven.before.as_deref().into_iter().flatten().zip(0..).take(registers(isa));
    let before = before.filter_map(|(value, register)| {
        Some(json!({ "register": name(register, isa), "value": number((*value)?) }))
    });
    let writes = proven.writes.iter().map(
        |(Register(register), value)| json!({ "register": name(*register, isa), "value": value.map(number) }),
    );
    Some(json!({
        "registers": before.collect::<Vec<_>>(),
        "writes": writes.collect::<Vec<_>>(),
        "accesses": proven.accesses.iter().map(access).collect::<Vec<_>>(),
    }))
}

/// The last step before this one that wrote a register, or the memory at an address.
pub(crate) fn writer(recording: &mut Recording<'_>, query: &Query) -> Option<Value> {
    let isa = isa(recording, query.step)?;
    let values: &mut Near<'_> = &mut recording.values;
    let found = match query.address.as_deref().and_then(address) {
        Some(at) => values.last_store(query.step, &(at.get()..at.get().saturating_add(query.count.max(1)))),
        None => {
            let register = (0..32).find(|register| name(*register, isa) == query.what)?;
            values.last_write(query.step, Register(register)).map(|step| (step, true))
        }
    };
    Some(found.map_or_else(|| json!({}), |(step, is_certain)| json!({ "step": step, "certain": is_certain })))
}

fn isa(recording: &mut Recording<'_>, step: u64) -> Option<Isa> {
    if !recording.cursor.seek_step(step) {
        return None;
    }
    recording.cursor.current()?.instruction.map(|instruction| instruction.location.isa)
}

const fn registers(isa: Isa) -> usize {
    if matches!(isa, Isa::A64) { 32 } else { 15 }
}

fn name(register: u8, isa: Isa) -> String {
    register_name(Register(register), isa)
}

fn number(value: u64) -> String {
    format!("0x{value:x}")
}
