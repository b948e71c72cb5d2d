//! The JSON document (docs/crash.md).

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use tracewalk::ids::{Address, Exception, TraceId};
use tracewalk_analysis::Code;
use tracewalk_analysis::crash::{
    Cause, CauseKind, Crash, Doubt, Evidence, NO_TRACE, PathItem, Running, Target, TraceEnd, Waiting,
};

use super::{CrashReport, Source, words};
use crate::Look;

/// The version of the document's shape. A new field does not change it.
const VERSION: u32 = 1;

/// Writes the document about the source whose program crashed. Other sources are in `others`, in the same shape.
pub fn write_crash_json(out: &mut dyn Write, report: &CrashReport, _: Look) -> io::Result<()> {
    let crashed = report.sources.iter().position(|(_, crash)| crash.is_some()).unwrap_or_default();
    let mut document = json!({ "v": VERSION });
    if let Some(fields) = document.as_object_mut() {
        if let Some(source) = report.each().nth(crashed) {
            fields.append(&mut source_json(source));
        }
        let others = report.each().zip(0..).filter(|&(_, index)| index != crashed);
        let others = others.map(|(source, _)| source_json(source).into());
        let others = others.collect::<Vec<Value>>();
        if !others.is_empty() {
            fields.insert("others".to_owned(), others.into());
        }
        for (field, is) in [("complete", report.complete), ("whole", report.whole)] {
            if !is {
                fields.insert(field.to_owned(), Value::Bool(false));
            }
        }
    }
    serde_json::to_writer(&mut *out, &document)?;
    out.write_all(b"\n")
}

/// The object of one source.
fn source_json(source: Source<'_>) -> Map<String, Value> {
    let Source { section, crash, .. } = source;
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| _ = fields.insert(name.to_owned(), value);
    set("id", section.id.map(TraceId::get).into());
    set("protocol", Some(section.protocol).filter(|name| *name != NO_TRACE).into());
    set("number", section.number.into());
    set("doubts", source.doubts().iter().map(|doubt| doubt_json(&section.code, doubt)).collect());
    if let Some(polls) = source.polls() {
        set("polls", polls_json(&section.code, polls));
    }
    if let Some(end) = source.shown_end() {
        set("trace_end", end_json(&section.code, end));
    }
    let Some(crash) = crash else {
        ["fault", "at", "cause", "registers"].into_iter().for_each(|name| set(name, Value::Null));
        ["stack", "path"].into_iter().for_each(|name| set(name, Value::Array(Vec::new())));
        return fields;
    };
    if let Value::Object(found) = crash_json(&section.code, crash) {
        fields.extend(found);
    }
    fields
}

/// A reason to doubt the end.
fn doubt_json(code: &Code, doubt: &Doubt) -> Value {
    let mut value = match doubt {
        Doubt::Contradicted { count, at, .. } | Doubt::TraceLost { count, at } => {
            json!({ "count": count, "offset": at.0 })
        }
        Doubt::HaltedElsewhere { traced, halted } => {
            json!({ "traced": place(code, *traced), "halted": place(code, *halted) })
        }
        Doubt::StackedElsewhere { traced, stacked } => {
            json!({ "traced": place(code, *traced), "stacked": place(code, *stacked) })
        }
        _ => json!({}),
    };
    if let Some(fields) = value.as_object_mut() {
        fields.insert("kind".to_owned(), words::doubt_name(doubt).into());
        fields.insert("sentence".to_owned(), words::doubt(code, doubt).into());
    }
    value
}

/// The loop over a device's registers that the trace ends in.
fn polls_json(code: &Code, polls: &Waiting) -> Value {
    let mut value = waiting_json(code, polls);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("at".to_owned(), place(code, polls.at));
        fields.insert("sentence".to_owned(), words::waiting(code, polls).into());
    }
    value
}

fn waiting_json(code: &Code, waiting: &Waiting) -> Value {
    let on = waiting.on.iter().map(|waited| {
        json!({
            "address": address(waited.address), "bytes": waited.bytes,
            "name": code.symbols.object(waited.address).map(|object| object.name),
            "value": waited.value.map(word), "device": waited.is_device,
            "stored_by": waited.stored_by.map(|at| place(code, at)),
        })
    });
    let (start, last) = waiting.bounds;
    json!({
        "start": address(start), "last": address(last), "times": waiting.times,
        "waits_for": on.collect::<Vec<_>>(),
    })
}

/// What ran before execution could not be followed.
fn end_json(code: &Code, end: &TraceEnd) -> Value {
    json!({
        "stack": end.stack.iter().map(|running| running_json(code, running)).collect::<Vec<_>>(),
        "path": end.path.iter().map(|item| path_json(code, item)).collect::<Vec<_>>(),
        "last": end.last.iter().map(|at| place(code, *at)).collect::<Vec<_>>(),
    })
}

fn crash_json(code: &Code, crash: &Crash) -> Value {
    let status = crash.status.iter().map(|register| {
        json!({
            "name": register.name,
            "address": address(register.address),
            "value": word(register.value),
            "fields": register.fields.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        })
    });
    let registers = crash.frame.map(|frame| {
        let words =
            words::STACKED.iter().zip(frame.words).map(|(name, value)| ((*name).to_owned(), word(value)));
        Value::Object(words.collect())
    });
    let mut fault = if crash.is_without_exception() { Value::Null } else { exception(code, crash.exception) };
    if let Some(fields) = fault.as_object_mut() {
        fields.insert("numbered_by_registers".to_owned(), crash.numbered_by_registers.into());
        fields.insert("handler".to_owned(), crash.handler.map(|at| place(code, at)).into());
        fields.insert("status".to_owned(), status.collect());
    }
    let at = crash.at.map(|at| {
        let mut at_fault = place(code, at);
        if let Some(fields) = at_fault.as_object_mut() {
            // If a branch led outside of functions, its target was no instruction.
            let is_code = code.symbols.function(at).is_some();
            fields.insert("instruction".to_owned(), is_code.then(|| words::instruction(code, at)).into());
        }
        at_fault
    });
    json!({
        "fault": fault,
        "at": at,
        "cause": crash.cause.as_ref().map(|cause| cause_json(code, cause)),
        "stack": crash.stack.iter().map(|running| running_json(code, running)).collect::<Vec<_>>(),
        "path": crash.path.iter().map(|item| path_json(code, item)).collect::<Vec<_>>(),
        "last": crash.last.iter().map(|at| place(code, *at)).collect::<Vec<_>>(),
        "registers": registers,
        "registers_at": crash.frame.map(|frame| address(frame.address)),
        "missing": crash.missing.iter().map(|missing| words::missing_name(*missing)).collect::<Vec<_>>(),
    })
}

fn address(at: Address) -> Value {
    Value::String(at.to_string())
}

fn word(value: u32) -> Value {
    Value::String(format!("0x{value:08x}"))
}

fn exception(code: &Code, exception: Option<Exception>) -> Value {
    let number = exception.map(Exception::number);
    let name = exception.map(|it| code.interrupts.name_or_number(it).into_owned());
    json!({ "number": number, "name": name })
}

fn place(code: &Code, at: Address) -> Value {
    let frame = code.symbols.innermost(at);
    let (file, line) = frame.map_or((None, None), |frame| (frame.file, frame.line));
    json!({
        "address": address(at),
        "function": code.symbols.function(at).map(|function| function.name),
        "file": file,
        "line": line,
    })
}

fn running_json(code: &Code, running: &Running) -> Value {
    json!({
        "function": running.function.name(code),
        "at": running.at.map(|at| place(code, at)),
        "handles": running.handles.map(|it| exception(code, it)),
    })
}

fn path_json(code: &Code, item: &PathItem) -> Value {
    match item {
        PathItem::Run { start, last, end, instructions } => json!({
            "kind": "run",
            "start": address(*start),
            "last": address(*last),
            "end": address(*end),
            "instructions": instructions,
            "function": code.symbols.function(*start).map(|function| function.name),
        }),
        PathItem::Loop { body, times } => json!({
            "kind": "loop",
            "times": times,
            "body": body.iter().map(|item| path_json(code, item)).collect::<Vec<_>>(),
        }),
        PathItem::Exception { exception: which, returns_to } => json!({
            "kind": "exception",
            "exception": exception(code, *which),
            "returns_to": returns_to.map(address),
        }),
        PathItem::ExceptionReturn => json!({ "kind": "exception_return" }),
        PathItem::Unknown => json!({ "kind": "unknown" }),
        PathItem::NoCode { at } => json!({ "kind": "no_code", "start": address(*at) }),
    }
}

fn cause_json(code: &Code, cause: &Cause) -> Value {
    let mut value = kind_json(code, &cause.kind);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("kind".to_owned(), words::cause_name(&cause.kind).into());
        if let Some(at) = words::cause_place(&cause.kind) {
            fields.insert("at".to_owned(), place(code, at));
        }
        fields.insert("sentence".to_owned(), Value::String(words::sentence(code, cause)));
        fields.insert("proof".to_owned(), cause.proof.iter().map(evidence_json).collect());
    }
    value
}

/// The fields of a cause besides its kind and its place.
fn kind_json(code: &Code, kind: &CauseKind) -> Value {
    let at_place = |at: &Address| place(code, *at);
    let maybe = |at: &Option<Address>| at.map(|at| place(code, at));
    match kind {
        CauseKind::BadBranch { to, target, value, loaded_by, loaded_from, stored_by, .. } => json!({
            "to": address(*to), "target": target_json(target),
            "value": value.map(word), "loaded_by": maybe(loaded_by), "loaded_from": loaded_from.map(address),
            "stored_by": maybe(stored_by),
        }),
        CauseKind::BadReturn { to, target, slot, saved_by, overwritten_by, .. } => json!({
            "to": address(*to), "target": target_json(target),
            "slot": slot.map(address), "saved_by": maybe(saved_by), "overwritten_by": maybe(overwritten_by),
        }),
        CauseKind::StackOverflow { stack_pointer, object: (name, start, end), branch, to, .. } => {
            json!({
                "stack_pointer": address(*stack_pointer),
                "object": { "name": name, "start": address(*start), "end": address(*end) },
                "branch": at_place(branch), "to": address(*to),
            })
        }
        CauseKind::UndefinedInstruction { bytes, .. } => {
            json!({ "bytes": words::hex(bytes) })
        }
        CauseKind::DivideByZero { trap, .. } => {
            json!({ "trap": maybe(trap) })
        }
        CauseKind::Unaligned { address: to, .. } => {
            json!({ "address": to.map(address) })
        }
        CauseKind::BusFault { address: to, store, .. } => {
            json!({ "refused_by": "bus", "address": address(*to), "store": store })
        }
        CauseKind::FetchAbort { by_bus, .. } => {
            json!({ "refused_by": if *by_bus { "bus" } else { "memory_protection" } })
        }
        CauseKind::MemoryProtection { address: to, .. } => {
            json!({ "refused_by": "memory_protection", "address": address(*to) })
        }
        CauseKind::NoHandler { vectors, exception: which, .. } => json!({
            "vectors": vectors, "exception": exception(code, *which),
        }),
        CauseKind::Watchdog { handler, reset, stuck: (_, last), times } => json!({
            "last": address(*last), "handler": at_place(handler),
            "reset": reset, "times": times,
        }),
        CauseKind::Stopped { how, function, called_from, .. } => json!({
            "how": words::stop_name(*how), "function": function.map(|function| function.name(code)),
            "called_from": maybe(called_from),
        }),
        CauseKind::Waiting(waiting) => waiting_json(code, waiting),
        _ => json!({}),
    }
}

fn target_json(target: &Target) -> Value {
    match target {
        Target::Nothing => json!({ "kind": "nothing" }),
        Target::Data(name) => json!({ "kind": "data", "name": name }),
        Target::NoThumbBit => json!({ "kind": "no_thumb_bit" }),
    }
}

fn evidence_json(evidence: &Evidence) -> Value {
    match evidence {
        Evidence::Instruction { role, at, bytes, executed } => json!({
            "kind": "instruction", "role": words::role_name(*role), "address": address(*at),
            "bytes": words::hex(bytes), "executed": executed.is_some(), "offset": executed.map(|at| at.0),
        }),
        Evidence::Went { from, to, traced_at } => {
            json!({ "kind": "went", "address": address(*from), "to": address(*to), "offset": traced_at.0 })
        }
        Evidence::Taken { exception, at, handler, traced_at } => json!({
            "kind": "taken", "exception": exception.map(Exception::number), "address": address(*at),
            "handler": address(*handler), "offset": traced_at.0,
        }),
        Evidence::Word { role, at, value, holder } => json!({
            "kind": "word", "role": words::role_name(*role), "address": address(*at), "value": word(*value),
            "holder": words::holder_name(*holder),
        }),
        Evidence::Register { name, value } => {
            json!({ "kind": "register", "name": name, "value": word(*value) })
        }
        Evidence::Proven { name, value } => {
            json!({ "kind": "proven", "name": name, "value": word(*value) })
        }
        Evidence::Symbol { name, start, end } => {
            json!({ "kind": "symbol", "name": name, "start": address(*start), "end": address(*end) })
        }
        Evidence::Repeated { start, last, times } => {
            json!({ "kind": "repeated", "start": address(*start), "last": address(*last), "times": times })
        }
    }
}
