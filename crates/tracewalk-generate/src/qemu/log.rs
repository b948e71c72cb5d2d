//! Parses the relevant lines of QEMU's log.

use tracewalk::ids::{Address, Isa};

use crate::path::{Access, State};

/// An event in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// An instruction is about to run.
    Entered(Box<Entered>),
    /// An instruction is about to run, and the registers of the one before were not logged.
    NoRegisters,
    /// The instruction did not run.
    DidNotRun,
    /// The instruction accessed memory.
    Accessed(Access),
    /// The instruction called the debugger, which ends the program.
    Semihosting,
    /// An exception is about to be taken; the number is QEMU's own.
    Taking(u32),
    /// M profile: the address that faulted.
    FaultAddress(Address),
    /// A profile, to AArch64: the preferred return address of the exception.
    ReturnAddress(Address),
    /// M profile: the number of the exception.
    VectorNumber(u16),
    /// M profile: the handler's address.
    HandlerLoaded(Address),
    /// M profile: the SG instruction at this address was executed. The log contains nothing else about it.
    Gateway(Address),
    /// M profile: another exception replaces the return.
    TailChaining,
    /// M profile: the return from an exception completed.
    Returned,
    /// M profile: the processor was reset (`-d cpu_reset`); the address of its first instruction.
    Reset(Address),
}

/// The state in which an instruction is about to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entered {
    pub(super) address: Address,
    pub(super) isa: Isa,
    /// R0 to R15, or X0 to X30 and SP.
    pub(super) registers: [u64; 32],
    /// CPSR, PSTATE or XPSR.
    pub(super) status: u32,
    /// The exception level and security state, if the log states them.
    pub(super) state: Option<State>,
}

impl Entered {
    pub(super) fn register(&self, number: u32) -> u64 {
        usize::try_from(number).ok().and_then(|index| self.registers.get(index)).copied().unwrap_or(0)
    }

    /// A register of AArch32, or the lower half of one.
    pub(super) fn word(&self, number: u32) -> u32 {
        u32::try_from(self.register(number) & 0xffff_ffff).unwrap_or(0)
    }
}

/// The event that `line` completes, if any, or `None` if the line cannot be read. `entered` is the
/// instruction whose registers are being logged.
pub(super) fn event(line: &str, entered: &mut Option<Entered>) -> Option<Option<Event>> {
    if let Some(rest) = line.strip_prefix("Trace ") {
        if entered.is_some() {
            return Some(Some(Event::NoRegisters));
        }
        let Some(address) = trace_address(rest) else { return Some(None) };
        *entered = Some(Entered { address, ..Entered::default() });
        return None;
    }
    if let (Some(state), Some('R' | 'X')) = (entered.as_mut(), line.trim_start().chars().next())
        && !line.starts_with("XPSR=")
    {
        return registers(line, state).is_none().then_some(None);
    }
    if let (Some(state), Some(rest)) = (entered.as_mut(), line.strip_prefix(" PC=")) {
        let others = rest.split_once(' ').map(|(_, others)| others);
        return others.and_then(|others| registers(others, state)).is_none().then_some(None);
    }
    if let Some(rest) = line.strip_prefix("PSTATE=") {
        let state = entered.take()?;
        return Some(in_aarch64(&state, rest).map(|entered| Event::Entered(Box::new(entered))));
    }
    if let Some(rest) = line.strip_prefix("PSR=").or_else(|| line.strip_prefix("XPSR=")) {
        // A reset's registers are those before the reset.
        let state = entered.take()?;
        return Some(
            with_status(&state, rest, line.starts_with('X')).map(|entered| Event::Entered(Box::new(entered))),
        );
    }
    if line.starts_with("Stopped execution of TB chain before")
        || line.starts_with("cpu_io_recompile: rewound")
    {
        return Some(Some(Event::DidNotRun));
    }
    if let Some(rest) = line.strip_prefix("Access ") {
        return Some(access(rest).map(Event::Accessed));
    }
    if let Some(rest) = line.strip_prefix("Taking exception ") {
        let number = rest.split(' ').next().and_then(|word| word.parse().ok());
        return Some(
            number.map(|number| if number == 16 { Event::Semihosting } else { Event::Taking(number) }),
        );
    }
    if let Some(rest) = line.strip_prefix("...at fault address ") {
        return Some(hexadecimal(rest).map(Event::FaultAddress));
    }
    if let Some(rest) = line.strip_prefix("...with ELR ") {
        return Some(hexadecimal(rest).map(Event::ReturnAddress));
    }
    let pending = line.strip_prefix("...taking pending nonsecure exception ");
    if let Some(rest) = pending.or_else(|| line.strip_prefix("...taking pending secure exception ")) {
        return Some(rest.parse().ok().map(Event::VectorNumber));
    }
    if let Some(rest) = line.strip_prefix("...loaded new PC ") {
        // Bit 0 of a vector is the Thumb bit.
        return Some(hexadecimal(rest).map(|vector| Event::HandlerLoaded(vector.aligned_for(Isa::T32))));
    }
    // `...really an SG instruction at 0x10010000, executing it`
    if let Some(rest) = line.strip_prefix("...really an SG instruction at ") {
        return Some(rest.split(',').next().and_then(hexadecimal).map(Event::Gateway));
    }
    // `Loaded reset SP 0x20000260 PC 0xc1 from vector table`
    if let Some(rest) = line.strip_prefix("Loaded reset SP ") {
        let vector = rest.split(' ').nth(2).and_then(hexadecimal);
        return Some(vector.map(|vector| Event::Reset(vector.aligned_for(Isa::T32))));
    }
    match line {
        "...tailchaining to pending exception" => Some(Some(Event::TailChaining)),
        "...successful exception return" => Some(Some(Event::Returned)),
        _ => None,
    }
}

/// `0: 0x7f1b84000100 [00800400/000000c0/00000110/ff020201] name`: the address is the second of the four.
fn trace_address(rest: &str) -> Option<Address> {
    let state = rest.split_once('[')?.1;
    hexadecimal(state.split('/').nth(1)?)
}

/// `R00=00000000 R01=...`, `X00=0000000000000000 X01=... SP=...`
fn registers(line: &str, state: &mut Entered) -> Option<()> {
    for word in line.split_whitespace() {
        let (name, value) = word.split_once('=')?;
        let number = match name {
            "SP" => STACK_POINTER,
            name => name.strip_prefix(['R', 'X'])?.parse().ok()?,
        };
        *state.registers.get_mut(number)? = u64::from_str_radix(value, 16).ok()?;
    }
    Some(())
}

/// The index of SP among the registers of AArch64.
const STACK_POINTER: usize = 31;

/// `600003c5 -ZC- NS EL1h`
fn in_aarch64(state: &Entered, rest: &str) -> Option<Entered> {
    let mut words = rest.split_whitespace();
    let status = u32::from_str_radix(words.next()?, 16).ok()?;
    // At EL3 the log omits the security state.
    let non_secure = words.any(|word| word == "NS");
    let level = u8::try_from(status >> 2 & 0b11).ok()?;
    Some(Entered { isa: Isa::A64, status, state: Some(State { level, non_secure }), ..*state })
}

/// `21000000 --C- T priv-thread`, `60000010 -ZC- A NS usr32`
fn with_status(state: &Entered, rest: &str, is_m_profile: bool) -> Option<Entered> {
    let mut words = rest.split(' ');
    let status = u32::from_str_radix(words.next()?, 16).ok()?;
    let isa = match words.nth(1)? {
        "A" => Isa::A32,
        "T" => Isa::T32,
        _ => return None,
    };
    let level = match status & 0b1_1111 {
        _ if is_m_profile => 0,
        0b1_0000 => 0,
        0b1_0110 => 3,
        0b1_1010 => 2,
        _ => 1,
    };
    let of = |non_secure| Some(State { level, non_secure });
    let state_of = |word| if word == "NS" { of(true) } else { of(false).filter(|_| word == "S") };
    Some(Entered { isa, status, state: words.next().and_then(state_of), ..*state })
}

/// `INSTRUCTION ADDRESS SIZE r|w VALUE`, from the plugin.
fn access(rest: &str) -> Option<Access> {
    let mut words = rest.split(' ').skip(1);
    Some(Access {
        address: hexadecimal(words.next()?)?,
        bytes: words.next()?.parse().ok()?,
        store: words.next()? == "w",
        value: match words.next()? {
            "-" => None,
            value => Some(u64::from_str_radix(value, 16).ok()?),
        },
    })
}

fn hexadecimal(word: &str) -> Option<Address> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    u64::from_str_radix(digits, 16).ok().map(Address::new)
}
