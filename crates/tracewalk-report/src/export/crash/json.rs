//! The JSON document (docs/crash.md).

use std::io::{self, Write};

use serde_json::{Value, json};
use tracewalk::ids::{Address, Exception, TraceId};
use tracewalk_analysis::Code;
use tracewalk_analysis::crash::{Cause, CauseKind, Crash, Evidence, Holder, PathItem, Running, Target};

use super::{CrashReport, words};
use crate::Palette;

/// The version of the document's shape. A field that is added does not change it.
const VERSION: u32 = 1;

/// Writes the document.
pub fn write_crash_json(out: &mut dyn Write, report: &CrashReport, _: &Palette) -> io::Result<()> {
    let source = |(section, crash): &(tracewalk_analysis::Section, Option<Crash>)| {
        json!({
            "id": section.id.map(TraceId::get),
            "protocol": section.protocol,
            "number": section.number,
            "crash": crash.as_ref().map(|found| crash_json(&section.code, found)),
        })
    };
    let mut document = json!({
        "format": "tracewalk crash",
        "version": VERSION,
        "sources": report.sources.iter().map(source).collect::<Vec<_>>(),
    });
    if let Some(fields) = document.as_object_mut().filter(|_| !report.complete) {
        fields.insert("complete".to_owned(), Value::Bool(false));
    }
    serde_json::to_writer(&mut *out, &document)?;
    out.write_all(b"\n")
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
    let frame = crash.frame.map(|frame| {
        let names = ["r0", "r1", "r2", "r3", "r12", "lr", "pc", "xpsr"];
        let words = names.iter().zip(frame.words).map(|(name, value)| ((*name).to_owned(), word(value)));
        json!({ "address": address(frame.address), "registers": words.collect::<serde_json::Map<_, _>>() })
    });
    json!({
        "exception": exception(code, crash.exception),
        "numbered_by_registers": crash.numbered_by_registers,
        "at": crash.at.map(|at| place(code, at)),
        "handler": crash.handler.map(|at| place(code, at)),
        "status": status.collect::<Vec<_>>(),
        "frame": frame,
        "stack": crash.stack.iter().map(|running| running_json(code, running)).collect::<Vec<_>>(),
        "path": crash.path.iter().map(|item| path_json(code, item)).collect::<Vec<_>>(),
        "last": crash.last.iter().map(|at| place(code, *at)).collect::<Vec<_>>(),
        "cause": crash.cause.as_ref().map(|cause| cause_json(code, cause)),
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
    let frame = code.symbols.frames(at).into_iter().next();
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
    }
}

fn cause_json(code: &Code, cause: &Cause) -> Value {
    let mut value = kind_json(code, &cause.kind);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("sentence".to_owned(), Value::String(words::sentence(code, cause)));
        fields.insert("proof".to_owned(), cause.proof.iter().map(evidence_json).collect());
    }
    value
}

fn kind_json(code: &Code, kind: &CauseKind) -> Value {
    let at_place = |at: &Address| place(code, *at);
    let maybe = |at: &Option<Address>| at.map(|at| place(code, at));
    match kind {
        CauseKind::BadBranch { at, to, target, value, loaded_by, loaded_from, stored_by } => json!({
            "kind": "bad_branch", "at": at_place(at), "to": address(*to), "target": target_json(target),
            "value": value.map(word), "loaded_by": maybe(loaded_by), "loaded_from": loaded_from.map(address),
            "stored_by": maybe(stored_by),
        }),
        CauseKind::BadReturn { at, to, target, slot, saved_by, overwritten_by } => json!({
            "kind": "bad_return", "at": at_place(at), "to": address(*to), "target": target_json(target),
            "slot": slot.map(address), "saved_by": maybe(saved_by), "overwritten_by": maybe(overwritten_by),
        }),
        CauseKind::StackOverflow { pushed_by, stack_pointer, object: (name, start, end), branch, to } => {
            json!({
                "kind": "stack_overflow", "at": at_place(pushed_by), "stack_pointer": address(*stack_pointer),
                "object": { "name": name, "start": address(*start), "end": address(*end) },
                "branch": at_place(branch), "to": address(*to),
            })
        }
        CauseKind::UndefinedInstruction { at, bytes } => {
            json!({ "kind": "undefined_instruction", "at": at_place(at), "bytes": words::hex(bytes) })
        }
        CauseKind::DivideByZero { at, trap } => {
            json!({ "kind": "divide_by_zero", "at": at_place(at), "trap": maybe(trap) })
        }
        CauseKind::Unaligned { at, address: to } => {
            json!({ "kind": "unaligned", "at": at_place(at), "address": to.map(address) })
        }
        CauseKind::BusFault { at, address: to, store } => {
            json!({ "kind": "bus_fault", "at": at_place(at), "address": address(*to), "store": store })
        }
        CauseKind::MemoryProtection { at, address: to } => {
            json!({ "kind": "memory_protection", "at": at_place(at), "address": address(*to) })
        }
        CauseKind::NoHandler { handler, vectors, exception: which } => json!({
            "kind": "no_handler", "at": at_place(handler), "vectors": vectors, "exception": exception(code, *which),
        }),
        CauseKind::Watchdog { handler, reset, stuck: (start, last), times } => json!({
            "kind": "watchdog", "at": at_place(start), "last": address(*last), "handler": at_place(handler),
            "reset": reset, "times": times,
        }),
        _ => json!({ "kind": "other" }),
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
            "kind": "instruction", "role": words::role_name(*role), "at": address(*at),
            "bytes": words::hex(bytes), "executed": executed,
        }),
        Evidence::Went { from, to } => json!({ "kind": "went", "from": address(*from), "to": address(*to) }),
        Evidence::Taken { exception, at, handler } => json!({
            "kind": "taken", "exception": exception.map(Exception::number), "at": address(*at),
            "handler": address(*handler),
        }),
        Evidence::Word { role, at, value, holder } => json!({
            "kind": "word", "role": words::role_name(*role), "at": address(*at), "value": word(*value),
            "holder": match holder { Holder::Image => "image", Holder::Dump => "dump" },
        }),
        Evidence::Register { name, value } => {
            json!({ "kind": "register", "name": name, "value": word(*value) })
        }
        Evidence::Symbol { name, start, end } => {
            json!({ "kind": "symbol", "name": name, "start": address(*start), "end": address(*end) })
        }
        Evidence::Repeated { start, last, times } => {
            json!({ "kind": "repeated", "start": address(*start), "last": address(*last), "times": times })
        }
    }
}
