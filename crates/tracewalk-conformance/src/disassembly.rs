//! Parses objdump's text: one line in, the instruction's effect out.
//!
//! The module judges by mnemonics and operands alone and shares nothing with `tracewalk::isa`, so that the
//! two can check each other. It judges only what the line states.

mod a64;

use tracewalk::ids::{Address, Isa, Location};
use tracewalk::isa::{Access, Barrier, Class, Direction, Raises, Return};

/// One line of disassembly.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// The instruction's address.
    pub(crate) address: Address,
    /// The instruction's bytes in memory.
    pub(crate) code: Vec<u8>,
    /// The instruction set: the grouping of the digits distinguishes T32 from the sets of whole words.
    pub(crate) isa: Isa,
    /// Whether the text marks the instruction as undefined or unpredictable.
    pub(crate) doubtful: bool,
    pub(crate) mnemonic: &'a str,
    pub(crate) operands: &'a str,
}

/// The instruction's properties according to the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) class: Class,
    pub(crate) link: bool,
    pub(crate) returns: Option<Return>,
    pub(crate) raises: Option<Raises>,
    pub(crate) it_block: u8,
    pub(crate) access: Option<Access>,
    /// For a branch: whether the mnemonic ends in a condition or compares with zero.
    pub(crate) conditional_branch: bool,
}

const CONDITIONS: &[&str] =
    &["eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "al", "hs", "lo"];

/// objdump's marks for undefined or unpredictable encodings. CLRM of ARMv8.1-M takes the place of an
/// unpredictable LDM.
const DOUBT: &[&str] = &[
    "<UNDEFINED>",
    "<UNPREDICTABLE>",
    "<illegal",
    "<und",
    "<overflow",
    "unpredictable",
    "undefined (",
    "{}",
    "clrm",
];

/// Instructions that compute a value from registers, so that their first operand is the destination.
const DATA_PROCESSING: &[&str] = &[
    "mov", "mvn", "add", "addw", "adc", "sub", "subw", "sbc", "rsb", "rsc", "and", "eor", "orr", "orn",
    "bic", "lsl", "lsr", "asr", "ror", "rrx", "adr", "neg",
];

/// Loads and stores of one register or two, after `ld` or `st`: size and number of transfers.
const SINGLE: &[(&str, u8, u8)] = &[
    ("r", 4, 1),
    ("rt", 4, 1),
    ("rex", 4, 1),
    ("a", 4, 1),
    ("l", 4, 1),
    ("aex", 4, 1),
    ("lex", 4, 1),
    ("rb", 1, 1),
    ("rbt", 1, 1),
    ("rsb", 1, 1),
    ("rsbt", 1, 1),
    ("rexb", 1, 1),
    ("ab", 1, 1),
    ("lb", 1, 1),
    ("aexb", 1, 1),
    ("lexb", 1, 1),
    ("rh", 2, 1),
    ("rht", 2, 1),
    ("rsh", 2, 1),
    ("rsht", 2, 1),
    ("rexh", 2, 1),
    ("ah", 2, 1),
    ("lh", 2, 1),
    ("aexh", 2, 1),
    ("lexh", 2, 1),
    ("rd", 4, 2),
    ("rexd", 8, 1),
    ("aexd", 8, 1),
    ("lexd", 8, 1),
];

/// Loads and stores of several core registers.
const MULTIPLE: &[&str] = &["m", "mia", "mib", "mda", "mdb", "mfd", "mfa", "med", "mea"];

/// Loads and stores of several extension registers, after `vld` or `vst`, `fld` or `fst`.
const EXTENSION_MULTIPLE: &[&str] = &["m", "mia", "mdb", "miax", "mdbx"];

const RETURN_FROM_EXCEPTION: &[&str] = &["rfe", "rfeia", "rfeib", "rfeda", "rfedb"];

/// Coprocessor loads and stores, after `ld` or `st`; the `f` forms are those of an old floating-point unit.
const COPROCESSOR: &[&str] = &["c", "cl", "c2", "c2l", "fs", "fd", "fe", "fp"];

impl<'a> Line<'a> {
    /// The instruction on a line of `objdump -d`, in which words are instructions of the set `words`; `None`
    /// if the line contains none, or data.
    pub(crate) fn parse(text: &'a str, words: Isa) -> Option<Self> {
        let mut columns = text.split('\t');
        let address = u64::from_str_radix(columns.next()?.trim().strip_suffix(':')?, 16).ok()?;
        let digits = columns.next()?.trim_end();
        let mnemonic = columns.next()?;
        // After an A64 branch, a comment gives other names of its condition.
        let operands = columns.next().unwrap_or("");
        let operands = operands.split_once("  //").map_or(operands, |(operands, _)| operands);
        if mnemonic.starts_with('.') || !mnemonic.starts_with(|c: char| c.is_ascii_lowercase()) {
            return None;
        }
        let isa = if digits.len() == 8 { words } else { Isa::T32 };
        let mut code = Vec::new();
        for unit in digits.split(' ') {
            let number = u32::from_str_radix(unit, 16).ok()?;
            code.extend(number.to_le_bytes().iter().take(unit.len() / 2));
        }
        let doubtful =
            DOUBT.iter().any(|mark| text.contains(mark)) || isa == Isa::T32 && misuses_pc(mnemonic, operands);
        Some(Self { address: Address::new(address), code, isa, doubtful, mnemonic, operands })
    }

    /// The instruction's properties according to the text.
    pub(crate) fn read(&self) -> Reading {
        if self.isa == Isa::A64 {
            return a64::read(self.mnemonic, self.target());
        }
        let mnemonic = self.mnemonic.strip_suffix(".n").or(self.mnemonic.strip_suffix(".w"));
        let mnemonic = mnemonic.unwrap_or(self.mnemonic);
        let mut reading = Reading {
            class: Class::Other,
            link: false,
            returns: None,
            raises: None,
            it_block: it_block(mnemonic),
            access: self.access(mnemonic),
            conditional_branch: false,
        };
        self.read_branch(mnemonic, &mut reading);
        self.read_armv8_1_m(mnemonic, &mut reading);
        self.read_load_to_pc(mnemonic, &mut reading);
        self.read_computed_pc(mnemonic, &mut reading);
        reading.raises = raises(mnemonic);
        if has_stem(mnemonic, "wfe") || has_stem(mnemonic, "wfi") {
            reading.class = Class::Wait;
        }
        if let Some(barrier) = self.barrier(mnemonic) {
            reading.class = Class::Barrier(barrier);
        }
        reading
    }

    fn first_operand(&self) -> &'a str {
        self.operands.split([',', ' ']).next().unwrap_or("")
    }

    /// ARMv8.1-M's loops, and its return to an authenticated address.
    fn read_armv8_1_m(&self, mnemonic: &str, reading: &mut Reading) {
        let name = mnemonic.split('.').next().unwrap_or(mnemonic);
        if name == "bxaut" {
            (reading.class, reading.returns) = (Class::Indirect, Some(Return::Function));
        }
        if !matches!(name, "le" | "letp" | "wls" | "wlstp") {
            return;
        }
        let Some(target) = self.target() else { return };
        reading.class = Class::Direct(Location::new(target, self.isa));
        // LE without LR always branches back.
        reading.conditional_branch = name != "le" || self.first_operand() == "lr";
    }

    fn read_branch(&self, mnemonic: &str, reading: &mut Reading) {
        let stem = ["b", "bl", "blx", "bx", "bxj", "bxns", "blxns", "cbz", "cbnz", "tbb", "tbh", "eret"]
            .into_iter()
            .find(|stem| has_stem(mnemonic, stem));
        let Some(stem) = stem else { return };
        reading.link = matches!(stem, "bl" | "blx" | "blxns");
        reading.conditional_branch = mnemonic != stem || matches!(stem, "cbz" | "cbnz");
        reading.class = match (stem, self.target()) {
            ("b" | "bl" | "cbz" | "cbnz", Some(target)) => Class::Direct(Location::new(target, self.isa)),
            ("blx", Some(target)) => {
                let other = if self.isa == Isa::A32 { Isa::T32 } else { Isa::A32 };
                Class::Direct(Location::new(target, other))
            }
            _ => Class::Indirect,
        };
        reading.returns = match (stem, self.first_operand()) {
            ("bx" | "bxns", "lr") => Some(Return::Function),
            ("eret", _) => Some(Return::Exception),
            _ => None,
        };
    }

    /// The target of a direct branch: the number before the symbol.
    fn target(&self) -> Option<Address> {
        let last = self.operands.rsplit(", ").next()?;
        let number = last.split(' ').next()?;
        u64::from_str_radix(number.strip_prefix("0x").unwrap_or(number), 16).ok().map(Address::new)
    }

    fn read_load_to_pc(&self, mnemonic: &str, reading: &mut Reading) {
        let is_pop = has_stem(mnemonic, "pop");
        let single = condition(mnemonic, "ldr").filter(|_| self.first_operand() == "pc");
        let multiple = condition(mnemonic, "pop")
            .or_else(|| mnemonic.strip_prefix("ld").and_then(|mode| any_condition(mode, MULTIPLE)))
            .filter(|_| self.list().any(|register| register == "pc"));
        let exception = any_condition(mnemonic, RETURN_FROM_EXCEPTION);
        let Some(condition) = single.or(multiple).or(exception) else { return };
        reading.class = Class::Indirect;
        reading.conditional_branch = !condition.is_empty();
        let after_increment = self.operands.contains("[sp], #") && !self.operands.contains("[sp], #-");
        let base_is_stack = is_pop || self.first_operand().trim_end_matches('!') == "sp";
        let loads_stack = self.isa == Isa::A32 && self.list().any(|register| register == "sp");
        if exception.is_some() || multiple.is_some() && self.operands.ends_with('^') {
            reading.returns = Some(Return::Exception);
        } else if single.is_some() && after_increment || multiple.is_some() && (base_is_stack || loads_stack)
        {
            reading.returns = Some(Return::Function);
        }
    }

    fn read_computed_pc(&self, mnemonic: &str, reading: &mut Reading) {
        if self.first_operand() != "pc" {
            return;
        }
        let plain = any_condition(mnemonic, DATA_PROCESSING);
        let flag_setting = DATA_PROCESSING
            .iter()
            .find_map(|stem| mnemonic.strip_prefix(stem).and_then(|rest| condition(rest, "s")));
        let Some(condition) = plain.or(flag_setting) else { return };
        reading.class = Class::Indirect;
        reading.conditional_branch = !condition.is_empty();
        let moves_lr = has_stem(mnemonic, "mov") && self.operands == "pc, lr";
        reading.returns = match plain {
            Some(_) => moves_lr.then_some(Return::Function),
            None => Some(Return::Exception),
        };
    }

    fn barrier(&self, mnemonic: &str) -> Option<Barrier> {
        let is_mcr = has_stem(mnemonic, "mcr") && self.operands.starts_with("15, 0, ");
        Some(match mnemonic {
            "isb" => Barrier::Isb,
            "dsb" => Barrier::Dsb,
            "dmb" => Barrier::Dmb,
            _ if is_mcr && self.operands.ends_with("cr7, cr5, {4}") => Barrier::Isb,
            _ if is_mcr && self.operands.ends_with("cr7, cr10, {4}") => Barrier::Dsb,
            _ if is_mcr && self.operands.ends_with("cr7, cr10, {5}") => Barrier::Dmb,
            _ => return None,
        })
    }

    fn access(&self, mnemonic: &str) -> Option<Access> {
        let of = |direction, bytes, transfers| Some(Access { direction, bytes, transfers });
        match mnemonic {
            "tbb" => return of(Direction::Load, 1, 1),
            "tbh" => return of(Direction::Load, 2, 1),
            _ if has_stem(mnemonic, "swp") => return of(Direction::Swap, 4, 1),
            _ if has_stem(mnemonic, "swpb") => return of(Direction::Swap, 1, 1),
            _ if has_stem(mnemonic, "push") => return of(Direction::Store, 4, self.list_length()),
            _ if has_stem(mnemonic, "pop") => return of(Direction::Load, 4, self.list_length()),
            _ if mnemonic.starts_with("srs") => return of(Direction::Store, 4, 2),
            _ if mnemonic.starts_with("rfe") => return of(Direction::Load, 4, 2),
            _ if has_stem(mnemonic, "vpush") => return of(Direction::Store, 4, self.list_words()),
            _ if has_stem(mnemonic, "vpop") => return of(Direction::Load, 4, self.list_words()),
            _ => {}
        }
        let (direction, rest) = match (mnemonic.find("ld"), mnemonic.find("st")) {
            (Some(at @ 0..=1), _) => (Direction::Load, (&mnemonic[..at], &mnemonic[at + 2..])),
            (_, Some(at @ 0..=1)) => (Direction::Store, (&mnemonic[..at], &mnemonic[at + 2..])),
            _ => return None,
        };
        match rest {
            ("", mode) => {
                let single = SINGLE.iter().find(|(stem, ..)| has_stem(mode, stem));
                if let Some(&(_, bytes, transfers)) = single {
                    of(direction, bytes, transfers)
                } else if any_condition(mode, MULTIPLE).is_some() {
                    of(direction, 4, self.list_length())
                } else if any_condition(mode, COPROCESSOR).is_some() {
                    of(direction, 4, 1)
                } else {
                    None
                }
            }
            ("v" | "f", mode) if any_condition(mode, EXTENSION_MULTIPLE).is_some() => {
                of(direction, 4, self.list_words())
            }
            ("v", mode) if has_stem(mode, "r") => {
                of(direction, 4, if self.operands.starts_with('d') { 2 } else { 1 })
            }
            ("v", mode) => self.structure_access(direction, mode),
            _ => None,
        }
    }

    /// VLD1 to VLD4 and VST1 to VST4: `mode` is the number of elements, a point and the size in bits.
    fn structure_access(&self, direction: Direction, mode: &str) -> Option<Access> {
        let (elements, bits) = mode.split_once('.')?;
        let elements: u8 = elements.parse().ok()?;
        let bits: u8 = bits.parse().ok()?;
        let bytes = bits / 8;
        // A lane or all lanes: one structure.
        let single = self.operands.contains("[]") || self.operands.split('}').next()?.contains('[');
        let transfers = if single { elements } else { self.list_length() * (8 / bytes) };
        Some(Access { direction, bytes, transfers })
    }

    /// The registers in braces; a range is its two ends.
    fn list(&self) -> impl Iterator<Item = &'a str> {
        let list = self.operands.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        list.map_or("", |(list, _)| list).split([',', '-']).map(str::trim).filter(|name| !name.is_empty())
    }

    fn list_length(&self) -> u8 {
        let list = self.operands.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        let names = list.map_or("", |(list, _)| list).split(',').filter(|name| !name.is_empty());
        names.map(range_length).sum()
    }

    /// The words in a list of extension registers.
    fn list_words(&self) -> u8 {
        let double = self.list().any(|register| register.starts_with('d'));
        self.list_length() * if double { 2 } else { 1 }
    }
}

/// Whether a T32 instruction uses PC in a way that is undefined or unpredictable, which objdump does not
/// mark: as the destination of anything but a word load and some 16-bit instructions, or as the source or
/// base of a store.
fn misuses_pc(mnemonic: &str, operands: &str) -> bool {
    if mnemonic.starts_with("st") || mnemonic.starts_with("vst") {
        return operands.split([',', ' ', '[', ']', '!']).any(|name| name == "pc");
    }
    let narrow = any_condition(mnemonic, &["mov", "add", "bx", "blx"]).is_some();
    let loads_word = condition(mnemonic.trim_end_matches(".w"), "ldr").is_some();
    operands.split(',').next() == Some("pc") && !narrow && !loads_word
}

/// The registers in one entry of a list, `d8` or `d8-d15`.
fn range_length(entry: &str) -> u8 {
    let number = |name: &str| {
        name.trim_matches(|c: char| !c.is_ascii_digit())
            .split('[')
            .next()
            .and_then(|digits| digits.parse().ok())
    };
    match entry.split_once('-').map(|(first, last)| (number(first), number(last))) {
        Some((Some(first), Some(last))) => u8::abs_diff(last, first) + 1,
        _ => 1,
    }
}

/// The condition after `stem`, empty if there is none; `None` if `mnemonic` is another one.
fn condition<'a>(mnemonic: &'a str, stem: &str) -> Option<&'a str> {
    mnemonic.strip_prefix(stem).filter(|rest| rest.is_empty() || CONDITIONS.contains(rest))
}

/// The condition after one of `stems`.
fn any_condition<'a>(mnemonic: &'a str, stems: &[&str]) -> Option<&'a str> {
    stems.iter().find_map(|stem| condition(mnemonic, stem))
}

fn has_stem(mnemonic: &str, stem: &str) -> bool {
    condition(mnemonic, stem).is_some()
}

/// The number of instructions that `it`, `ite`, `itte` and so on make conditional.
fn it_block(mnemonic: &str) -> u8 {
    match mnemonic.strip_prefix("it").map(|then| (then.len(), then.chars().all(|c| matches!(c, 't' | 'e')))) {
        Some((0, true)) => 1,
        Some((1, true)) => 2,
        Some((2, true)) => 3,
        Some((3, true)) => 4,
        _ => 0,
    }
}

fn raises(mnemonic: &str) -> Option<Raises> {
    let table = [
        ("svc", Raises::SupervisorCall),
        ("hvc", Raises::HypervisorCall),
        ("smc", Raises::SecureMonitorCall),
        ("bkpt", Raises::Breakpoint),
        ("udf", Raises::Undefined),
    ];
    table.into_iter().find(|(stem, _)| has_stem(mnemonic, stem)).map(|(_, raises)| raises)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Reading {
        Line::parse(text, Isa::A32).expect("the line holds an instruction").read()
    }

    fn access(text: &str) -> Option<(Direction, u8, u8)> {
        read(text).access.map(|Access { direction, bytes, transfers }| (direction, bytes, transfers))
    }

    #[test]
    fn digits_give_the_instruction_set_and_data_is_no_instruction() {
        let word = Line::parse("    8004:\teb0037fa \tbl\t15ff4 <abort>", Isa::A32).expect("an instruction");
        assert_eq!((word.isa, word.code), (Isa::A32, vec![0xfa, 0x37, 0x00, 0xeb]));
        let halfwords =
            Line::parse("    8002:\tf00a f939 \tbl\t12278 <abort>", Isa::A32).expect("an instruction");
        assert_eq!((halfwords.isa, halfwords.code), (Isa::T32, vec![0x0a, 0xf0, 0x39, 0xf9]));
        assert_eq!(Line::parse("   34c3c:\t00070bc0 \t.word\t0x00070bc0", Isa::A32), None);
        assert_eq!(Line::parse("00008000 <_start>:", Isa::A32), None);
    }

    #[test]
    fn words_are_of_the_set_that_the_caller_names() {
        let read = |text| Line::parse(text, Isa::A64).expect("an instruction").read();
        let at = |address| Class::Direct(Location::new(Address::new(address), Isa::A64));
        let conditional = read("   2a91c:\t54fffe42 \tb.cs\t2a8e4 <x+0x23e4>  // b.hs, b.nlast");
        assert_eq!((conditional.class, conditional.conditional_branch), (at(0x2a8e4), true));
        let bit = read("    400000:\t37f80023 \ttbnz\tw3, #31, 400004 <x>");
        assert_eq!((bit.class, bit.conditional_branch, bit.link), (at(0x40_0004), true, false));
        assert_eq!(read("    400000:\td65f03c0 \tret").returns, Some(Return::Function));
        assert!(read("    400000:\td63f03c0 \tblr\tx30").link);
    }

    #[test]
    fn branches_are_distinguished_from_their_conditions() {
        let at = |address, isa| Class::Direct(Location::new(Address::from(address), isa));
        let ble = read("    8192:\tdd0c      \tble.n\t8c26 <x>");
        assert_eq!((ble.class, ble.link, ble.conditional_branch), (at(0x8c26, Isa::T32), false, true));
        let bleq = read("    80d0:\t0b00006f \tbleq\t8294 <x>");
        assert_eq!((bleq.class, bleq.link, bleq.conditional_branch), (at(0x8294, Isa::A32), true, true));
        let blx = read("    80d0:\tf7fe ec3a \tblx\t6948 <x>");
        assert_eq!((blx.class, blx.link), (at(0x6948, Isa::A32), true));
        let bics = read("    8444:\te3d0c102 \tbics\tip, r0, #-2147483648\t@ 0x80000000");
        assert_eq!(bics.class, Class::Other);
        let table = read("    84ec:\t108ff103 \taddne\tpc, pc, r3, lsl #2");
        assert_eq!((table.class, table.conditional_branch), (Class::Indirect, true));
        assert_eq!(read("    91a8:\td8bd8070 \tpople\t{r4, pc}").returns, Some(Return::Function));
        assert_eq!(read("    80ba:\tbf1d      \tittte\tne").it_block, 4);
    }

    #[test]
    fn accesses_are_counted_by_lists() {
        let load = |bytes, transfers| Some((Direction::Load, bytes, transfers));
        assert_eq!(access("0:\te92d4010 \tpush\t{r4, lr}"), Some((Direction::Store, 4, 2)));
        assert_eq!(access("0:\tecbd8b0c \tvpop\t{d8-d13}"), load(4, 12));
        assert_eq!(access("0:\tf420020d \tvld1.8\t{d0-d3}, [r0]!"), load(1, 32));
        assert_eq!(access("0:\tf4a00c0f \tvld1.8\t{d0[]}, [r0]"), load(1, 1));
        assert_eq!(access("0:\tf1d000b0 \tldrsh\tr0, [r0]"), load(2, 1));
        assert_eq!(access("0:\tf5d0f000 \tpld\t[r0]"), None);
    }
}
