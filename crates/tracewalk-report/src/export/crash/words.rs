//! Causes, places and missing information, in words.

use tracewalk::ids::{Address, Exception, Isa, Location};
use tracewalk_analysis::Code;
use tracewalk_analysis::crash::{
    Cause, CauseKind, Doubt, Evidence, Holder, Missing, Role, Stop, Target, Waiting,
};

use super::super::text::instruction_text;

/// `run_timers+0xe`, or the address if there is no function.
pub(super) fn function(code: &Code, at: Address) -> String {
    match code.symbols.function(at) {
        Some(function) => match at.offset_from(function.start) {
            Some(0) | None => function.name.to_owned(),
            Some(offset) => format!("{}+0x{offset:x}", function.name),
        },
        None => at.to_string(),
    }
}

/// `crash.c:49`
pub(super) fn line(code: &Code, at: Address) -> Option<String> {
    let frame = code.symbols.innermost(at)?;
    let file = frame.file?;
    let name = file.rsplit(['/', '\\']).next().unwrap_or(&file);
    Some(frame.line.map_or_else(|| name.to_owned(), |line| format!("{name}:{line}")))
}

/// `run_timers+0xe (crash.c:49)`
pub(super) fn place(code: &Code, at: Address) -> String {
    let line = line(code, at).map_or_else(String::new, |line| format!(" ({line})"));
    format!("{}{line}", function(code, at))
}

/// `blx r3`, without padding.
pub(super) fn instruction(code: &Code, at: Address) -> String {
    let text = instruction_text(code, Location::new(at, Isa::T32));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn exception(code: &Code, exception: Option<Exception>) -> String {
    exception.map_or_else(|| "an exception".to_owned(), |it| code.interrupts.describe(it).to_string())
}

/// The cause as a sentence.
pub(super) fn sentence(code: &Code, cause: &Cause) -> String {
    let at_place = |at: Address| place(code, at);
    match &cause.kind {
        CauseKind::BadBranch { at, to, target, value, loaded_by, loaded_from, stored_by } => {
            let value = value.map_or_else(|| to.to_string(), |value| format!("0x{value:08x}"));
            let mut text = format!("{} branched to {value}, {}", at_place(*at), where_to(code, *to, target));
            if let Some(by) = loaded_by {
                let from = loaded_from.map_or_else(String::new, |from| format!(" from {}", data(code, from)));
                text += &format!("; {} loaded that address{from}", at_place(*by));
            }
            if let Some(by) = stored_by {
                text += &format!(", where {} had stored it", at_place(*by));
            }
            text + "."
        }
        CauseKind::BadReturn { at, to, target, slot, saved_by, overwritten_by } => {
            let mut text = format!("{} returned to {to}, {}", at_place(*at), where_to(code, *to, target));
            if let Some(slot) = slot {
                text += &format!("; the return address was on the stack at {slot}");
            }
            if let (Some(saved), Some(over)) = (saved_by, overwritten_by) {
                text += &format!(
                    ", where {} had saved it and {} overwrote it",
                    at_place(*saved),
                    at_place(*over)
                );
            }
            text + "."
        }
        CauseKind::StackOverflow { pushed_by, stack_pointer, object: (name, start, end), branch, to } => {
            format!(
                "The stack grew into `{name}` ({start} to {end}): {} pushed registers onto it, down to {stack_pointer}. \
             {} then branched to {to}, which it loaded from there.",
                at_place(*pushed_by),
                at_place(*branch),
            )
        }
        CauseKind::StackLimit { at: Some(at) } => {
            format!("{} moved the stack pointer below the limit of its stack.", at_place(*at))
        }
        CauseKind::StackLimit { at: None } => {
            "The stack pointer went below the limit of its stack, and the exception could not store the place.".to_owned()
        }
        CauseKind::FetchAbort { at, by_bus } => {
            let why = if *by_bus { "the bus refused it" } else { "execution is not permitted there" };
            format!("No instruction could be fetched from {at}: {why}. What led there is not proven.")
        }
        CauseKind::UndefinedInstruction { at, bytes } => {
            format!("{} is an undefined instruction ({}).", at_place(*at), hex(bytes))
        }
        CauseKind::DivideByZero { at, trap: None } => format!("{} divided by zero.", at_place(*at)),
        CauseKind::DivideByZero { at, trap: Some(trap) } => format!(
            "{} divided by zero: the division called {}, which traps.",
            at_place(*at),
            function(code, *trap)
        ),
        CauseKind::Unaligned { at, address } => {
            let address = address.map_or_else(String::new, |address| format!(" at {address}"));
            format!("{} made an unaligned access{address}.", at_place(*at))
        }
        CauseKind::BusFault { at, address, store } => {
            let did = if *store { "stored to" } else { "loaded from" };
            format!("{} {did} {address}, which caused a bus error.", at_place(*at))
        }
        CauseKind::MemoryProtection { at, address } => {
            format!("{} accessed {address}, which is not permitted.", at_place(*at))
        }
        CauseKind::NoHandler { handler, vectors, exception: which } => {
            let (which, verb) = match which {
                Some(_) => (exception(code, *which), "has"),
                None => ("The exception".to_owned(), "has"),
            };
            format!(
                "{which} {verb} no handler of its own: its vector leads to {}, an endless loop that {vectors} vectors \
                 share.",
                place(code, *handler)
            )
        }
        CauseKind::Watchdog { handler, reset, stuck: (start, _), times } => {
            let ended =
                if *reset { "The watchdog reset the processor" } else { "The watchdog's interrupt came" };
            let then = if *reset {
                format!(", while {} was running", function(code, *handler))
            } else {
                String::new()
            };
            format!(
                "{ended}{then}: the program was in a loop in {} that had run at least {times} times.",
                at_place(*start)
            )
        }
        CauseKind::Stopped { at, how, function, called_from } => {
            let who = function.map_or_else(|| "The program".to_owned(), |it| it.name(code).to_owned());
            let how = match how {
                Stop::EndlessLoop => "in a loop without an end at",
                Stop::Breakpoint => "at the breakpoint",
                Stop::Semihosting => "with the debugger's call at",
            };
            let called = called_from.map_or_else(String::new, |from| format!("; it was called by {}", at_place(from)));
            format!("{who} stopped the program, {how} {}{called}.", at_place(*at))
        }
        CauseKind::Waiting(waiting) => self::waiting(code, waiting),
        _ => "The cause has no description in this format.".to_owned(),
    }
}

/// What a loop waits for, as a sentence.
pub(super) fn waiting(code: &Code, waiting: &Waiting) -> String {
    let waited = waiting.on.iter().map(|waited| {
        let value = waited.value.map_or_else(String::new, |value| format!(", which was 0x{value:x}"));
        let what = data(code, waited.address);
        let device = if waited.is_device { "the device register " } else { "" };
        let stored = waited
            .stored_by
            .map_or_else(String::new, |by| format!(", and which {} had stored last", place(code, by)));
        format!("{device}{what}{value}{stored}")
    });
    let waited = waited.collect::<Vec<_>>().join("; and for ");
    let nothing = match waiting.is_on_device() {
        true => "",
        false => " Nothing that ran while it waited wrote there.",
    };
    let times = waiting.times;
    format!("{} waited at least {times} times for {waited}.{nothing}", place(code, waiting.at))
}

/// How a program stopped itself, in JSON.
pub(super) const fn stop_name(stop: Stop) -> &'static str {
    match stop {
        Stop::EndlessLoop => "endless_loop",
        Stop::Breakpoint => "breakpoint",
        Stop::Semihosting => "semihosting",
    }
}

fn where_to(code: &Code, to: Address, target: &Target) -> String {
    match target {
        Target::Nothing => "where no image has code".to_owned(),
        Target::Data(Some(name)) => format!("which is the data object `{name}`"),
        Target::Data(None) => "which is data".to_owned(),
        Target::NoThumbBit => format!("{} without the Thumb bit", function(code, to)),
    }
}

/// `timers+16 at 0x20000028`
fn data(code: &Code, at: Address) -> String {
    match code.symbols.object(at) {
        Some(object) => match at.offset_from(object.start) {
            Some(0) | None => format!("`{}` at {at}", object.name),
            Some(offset) => format!("`{}+{offset}` at {at}", object.name),
        },
        None => at.to_string(),
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// An entry of a proof as a line.
pub(super) fn evidence(code: &Code, evidence: &Evidence) -> String {
    match evidence {
        Evidence::Instruction { role, at, bytes, executed } => {
            let ran = if executed.is_some() { "" } else { ", not executed" };
            format!("{at}  {}: {} [{}]{ran}", role_name(*role), instruction(code, *at), hex(bytes))
        }
        Evidence::Went { from, to, .. } => format!("{from}  trace: execution went from here to {to}"),
        Evidence::Taken { exception: which, at, handler, .. } => {
            format!("{at}  trace: {} was taken here, handler {handler}", exception(code, *which))
        }
        Evidence::Word { role, at, value, holder } => {
            let holder = match holder {
                Holder::Image => "image",
                Holder::Dump => "dump",
            };
            format!("{at}  {holder}: {} 0x{value:08x}", role_name(*role))
        }
        Evidence::Register { name, value } => format!("register {name} = 0x{value:08x}"),
        Evidence::Proven { name, value } => format!("register {name} = 0x{value:08x}, by the path"),
        Evidence::Symbol { name, start, end } => format!("{start}  symbol `{name}`, up to {end}"),
        Evidence::Repeated { start, last, times } => {
            format!("{start}  trace: the loop from here to {last} ran at least {times} times")
        }
    }
}

pub(super) const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Branch => "branch",
        Role::Load => "load",
        Role::Store => "store",
        Role::Save => "save",
        Role::Faulting => "faulting",
        Role::Call => "call",
        Role::Handler => "handler",
        Role::Stop => "stop",
        Role::Pointer => "pointer",
        Role::Status => "fault status",
        Role::Cpuid => "CPUID",
        Role::Frame => "stacked frame",
        Role::Vector => "vector",
    }
}

pub(super) fn missing(code: &Code, missing: Missing) -> String {
    let text = match missing {
        Missing::Jump { call } => {
            return format!(
                "What led there. The call that lr shows is at {}, but execution may have gone on since.",
                place(code, call)
            );
        }
        Missing::Path if code.program.is_empty() => {
            "How the exception was taken: following the trace needs the program (--image FILE)."
        }
        Missing::FaultStatus => {
            "The fault status registers, unless it is ARMv6-M, which has none: print the words from 0xe000ed00 \
                           on (x/16wx 0xe000ed00)."
        }
        Missing::Frame => {
            "The registers that the exception stacked: they are found only while the processor is halted at the \
                           handler's first instruction. Print the memory at the stack pointer then (and psp, if bit 2 of \
                           lr is set)."
        }
        Missing::Registers => {
            "The core registers: print them with the memory, or give the log that has them (--dump FILE)."
        }
        Missing::Number => "Which exception it was: its handler is shared, and no register names it.",
        Missing::Path => {
            "How the exception was taken: the trace lost that part, or ended before it. `flow` prints what it holds."
        }
        Missing::Trace => {
            "What ran before the fault, and where a bad address or value came from: a trace shows that (an MTB's or ETB's buffer)."
        }
        Missing::NotStacked => {
            "Where it was taken, and the registers: by the fault status, the exception could not store all of them."
        }
        Missing::Stack => "The rest of the call stack: print more of the memory from the stack pointer on.",
        Missing::Program => {
            "Whether the image is the program: print some of its code into the log, to be compared."
        }
        Missing::NoFaultStatus => "Why, by the processor itself: ARMv6-M has no fault status registers.",
    };
    text.to_owned()
}

/// The words that an exception stacks, by name, from its frame's address on.
pub(super) const STACKED: [&str; 8] = ["r0", "r1", "r2", "r3", "r12", "lr", "pc", "xpsr"];

/// The short name of a kind of cause, in JSON and tables.
pub(super) const fn cause_name(kind: &CauseKind) -> &'static str {
    match kind {
        CauseKind::BadBranch { .. } => "bad_pointer",
        CauseKind::BadReturn { .. } => "corrupted_return",
        CauseKind::StackOverflow { .. } | CauseKind::StackLimit { .. } => "stack_overflow",
        CauseKind::FetchAbort { .. } => "prefetch_abort",
        CauseKind::UndefinedInstruction { .. } => "undefined_instruction",
        CauseKind::DivideByZero { .. } => "divide_by_zero",
        CauseKind::Unaligned { .. } => "unaligned",
        CauseKind::BusFault { .. } | CauseKind::MemoryProtection { .. } => "bad_access",
        CauseKind::NoHandler { .. } => "missing_handler",
        CauseKind::Watchdog { .. } => "watchdog",
        CauseKind::Stopped { .. } => "stopped",
        CauseKind::Waiting(_) => "waiting",
        _ => "other",
    }
}

/// The instruction that a cause is about, if it is about one.
pub(super) const fn cause_place(kind: &CauseKind) -> Option<Address> {
    match kind {
        CauseKind::BadBranch { at, .. }
        | CauseKind::BadReturn { at, .. }
        | CauseKind::StackOverflow { pushed_by: at, .. }
        | CauseKind::StackLimit { at: Some(at) }
        | CauseKind::FetchAbort { at, .. }
        | CauseKind::UndefinedInstruction { at, .. }
        | CauseKind::DivideByZero { at, .. }
        | CauseKind::Unaligned { at, .. }
        | CauseKind::BusFault { at, .. }
        | CauseKind::MemoryProtection { at, .. }
        | CauseKind::NoHandler { handler: at, .. }
        | CauseKind::Watchdog { stuck: (at, _), .. }
        | CauseKind::Stopped { at, .. }
        | CauseKind::Waiting(Waiting { at, .. }) => Some(*at),
        _ => None,
    }
}

pub(super) const fn holder_name(holder: Holder) -> &'static str {
    match holder {
        Holder::Image => "image",
        Holder::Dump => "dump",
    }
}

pub(super) const fn missing_name(missing: Missing) -> &'static str {
    match missing {
        Missing::FaultStatus => "fault_status",
        Missing::Frame => "frame",
        Missing::Registers => "registers",
        Missing::Number => "number",
        Missing::Path => "path",
        Missing::NoFaultStatus => "no_fault_status",
        Missing::Trace => "trace",
        Missing::NotStacked => "not_stacked",
        Missing::Stack => "stack",
        Missing::Jump { .. } => "jump",
        Missing::Program => "program",
    }
}

/// A reason to doubt the end, as a sentence.
pub(super) fn doubt(code: &Code, doubt: &Doubt) -> String {
    let places = |count: u64| if count == 1 { "one place".to_owned() } else { format!("{count} places") };
    match doubt {
        Doubt::OtherProgram => {
            "The image is not the program that was traced: the trace contradicts it repeatedly, and only the \
                                trace was followed."
                .to_owned()
        }
        Doubt::Contradicted { count, at, first } => format!(
            "Trace and image contradict each other in {}, first at {at}: {first}. What ran after a contradiction may be wrong.",
            places(*count)
        ),
        Doubt::TraceLost { count, at } => {
            format!("Trace is malformed or missing in {}, first at {at}.", places(*count))
        }
        Doubt::Incomplete => {
            "Parts of the trace are missing or cannot be read, which may include the end of the program."
                .to_owned()
        }
        Doubt::OtherCode { at } => {
            format!(
                "The image is not the program: the saved memory has other code, first at {at}. The image was not used."
            )
        }
        Doubt::NoProgram => {
            "Without the program no place has a name, and a trace shows only where execution branched: give it with --image FILE."
                .to_owned()
        }
        Doubt::HaltedElsewhere { traced, halted } => format!(
            "The registers may be of another crash: the trace ends in {}, but the processor was halted in {}.",
            place(code, *traced),
            place(code, *halted)
        ),
        Doubt::StackedElsewhere { traced, stacked } => format!(
            "The registers may be of another crash: the exception was taken at {} by the trace, but at {} by the stacked registers.",
            place(code, *traced),
            place(code, *stacked)
        ),
        _ => "A doubt that has no description in this format.".to_owned(),
    }
}

/// The short name of a reason to doubt the end, in JSON and tables.
pub(super) const fn doubt_name(doubt: &Doubt) -> &'static str {
    match doubt {
        Doubt::OtherProgram | Doubt::OtherCode { .. } => "other_program",
        Doubt::Contradicted { .. } => "contradicted",
        Doubt::TraceLost { .. } => "trace_lost",
        Doubt::Incomplete => "incomplete",
        Doubt::NoProgram => "no_program",
        Doubt::HaltedElsewhere { .. } => "halted_elsewhere",
        Doubt::StackedElsewhere { .. } => "stacked_elsewhere",
        _ => "other",
    }
}
