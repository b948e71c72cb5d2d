//! A program of cases: an ELF file without libraries, and its run under QEMU.

use std::collections::HashSet;
use std::process::{Command, Stdio};

use super::case::{Case, Set};
use super::numbers::After;

/// Where the program is.
const BASE: u64 = 0x10_0000;
/// Where the cases are, after the start and its data.
const CASES: u64 = BASE + 0x400;
/// Memory without bytes in the file: a log of refused instructions, the signal handler's stack, the arena.
const LOG: u64 = 0x800_0000;
const LOG_BYTES: u64 = 0x38_0000;
const SIGNAL_STACK: u64 = LOG + 0x20_0000;
/// The memory that the cases use.
pub(super) const ARENA: u64 = LOG + 0x30_0000;
pub(super) const ARENA_BYTES: usize = 0x1_0000;

/// The start: it sets a signal handler for SIGILL, SIGTRAP, SIGBUS and SIGSEGV, jumps to the cases, and at the end writes everything
/// to the standard output. The handler logs the instruction and goes on after it.
const START_A32: [u32; 58] = [
    0xe59f_00cc,
    0xe3a0_1000,
    0xe3a0_70ba,
    0xef00_0000,
    0xe3a0_4000,
    0xe59f_50bc,
    0xe795_0104,
    0xe59f_10b8,
    0xe3a0_2000,
    0xe3a0_3008,
    0xe3a0_70ae,
    0xef00_0000,
    0xe284_4001,
    0xe354_0004,
    0x1aff_fff5,
    0xe59f_f09c,
    0xe592_005c,
    0xe3a0_1302,
    0xe591_3000,
    0xe283_3001,
    0xe581_3000,
    0xe781_0103,
    0xe592_3060,
    0xe313_0020,
    0x0280_0004,
    0x0a00_0004,
    0xe1d0_30b0,
    0xe1a0_35a3,
    0xe353_001d,
    0x3280_0002,
    0x2280_0004,
    0xe582_005c,
    0xe592_3060,
    0xe3c3_3406,
    0xe3c3_3b3f,
    0xe582_3060,
    0xe12f_ff1e,
    0xe3a0_70ad,
    0xef00_0000,
    0xe3a0_0001,
    0xe3a0_1601,
    0xe59f_2038,
    0xe592_2000,
    0xe3a0_7004,
    0xef00_0000,
    0xe3a0_0001,
    0xe3a0_1302,
    0xe3a0_270e,
    0xe3a0_7004,
    0xef00_0000,
    0xe3a0_0000,
    0xe3a0_70f8,
    0xef00_0000,
    0x0010_0300,
    0x0010_0340,
    0x0010_0320,
    0x0010_0400,
    0x0010_0360,
];
const START_A64: [u32; 58] = [
    0x5800_0540,
    0xd280_0001,
    0xd280_1088,
    0xd400_0001,
    0xd280_0004,
    0x5800_04e5,
    0xb864_78a0,
    0x5800_04e1,
    0xd280_0002,
    0xd280_0103,
    0xd280_10c8,
    0xd400_0001,
    0x9100_0484,
    0xf100_109f,
    0x54ff_fee1,
    0x5800_0420,
    0xd61f_0000,
    0xf940_dc40,
    0x5800_0401,
    0xb940_0023,
    0x1100_0463,
    0xb900_0023,
    0xb823_7820,
    0x9100_1000,
    0xf900_dc40,
    0xd65f_03c0,
    0xd280_1168,
    0xd400_0001,
    0xd280_0020,
    0x5800_02e1,
    0x5800_0302,
    0xb940_0042,
    0xd280_0808,
    0xd400_0001,
    0xd280_0020,
    0x5800_01e1,
    0x5800_0282,
    0xd280_0808,
    0xd400_0001,
    0xd280_0000,
    0xd280_0bc8,
    0xd400_0001,
    0x0010_0300,
    0,
    0x0010_0340,
    0,
    0x0010_0320,
    0,
    0x0010_0400,
    0,
    0x0800_0000,
    0,
    0x0010_0000,
    0,
    0x0010_0360,
    0,
    0x0038_0000,
    0,
];

/// A program of cases.
#[derive(Debug)]
pub(super) struct Program {
    set: Set,
    bytes: Vec<u8>,
    count: usize,
}

/// What a run left.
#[derive(Debug)]
pub(super) struct Ran {
    /// The state after each case; `None` if the emulator refused the instruction.
    pub(super) cases: Vec<Option<After>>,
    pub(super) arena: Vec<u8>,
}

/// Where things are in a case, in words.
#[derive(Clone, Copy, Debug)]
struct Shape {
    size: usize,
    test: usize,
    input: usize,
    output: usize,
}

impl Shape {
    const fn of(set: Set) -> Self {
        match set {
            Set::A32 => Self { size: 68, test: 17, input: 36, output: 52 },
            Set::T32 => Self { size: 72, test: 19, input: 40, output: 56 },
            // The words before the state are the constant with its address.
            Set::A64 => Self { size: 200, test: 35, input: 72, output: 136 },
        }
    }
}

impl Program {
    pub(super) fn new(set: Set, cases: &[Case]) -> Self {
        let start = if set == Set::A64 { &START_A64 } else { &START_A32 };
        let mut words = start.to_vec();
        words.resize(0x400 / 4, 0);
        let (handler, restorer) = if set == Set::A64 { (0x44, 0x68) } else { (0x40, 0x94) };
        let base = u32::try_from(BASE).expect("an address of 32 bits");
        let stack = u32::try_from(SIGNAL_STACK).expect("an address of 32 bits");
        // stack_t, sigaction, the signals, and the number of bytes.
        let at = |offset: usize| offset / 4;
        const FLAGS: u32 = 0x4 | 0x0400_0000 | 0x0800_0000 | 0x4000_0000;
        if set == Set::A64 {
            words[at(0x300)] = stack;
            words[at(0x310)] = 0x1_0000;
            words[at(0x320)] = base + handler;
            words[at(0x328)] = FLAGS;
            words[at(0x330)] = base + restorer;
        } else {
            words[at(0x300)] = stack;
            words[at(0x308)] = 0x1_0000;
            words[at(0x320)] = base + handler;
            words[at(0x324)] = FLAGS;
            words[at(0x328)] = base + restorer;
        }
        words[at(0x340)..at(0x350)].copy_from_slice(&[4, 5, 7, 11]);
        for (index, case) in cases.iter().enumerate() {
            let place = CASES + (index * 4 * Shape::of(set).size) as u64;
            words.extend(if set == Set::A64 { wide(case, place) } else { narrow(case) });
        }
        let finish = if set == Set::A64 { 0x70 } else { 0x9c };
        words.extend(match set {
            // LDR X16, the next doubleword; BR X16.
            Set::A64 => vec![0x5800_0050, 0xd61f_0200, base + finish, 0],
            // LDR PC, the next word.
            _ => vec![0xe51f_f004, base + finish],
        });
        words[at(0x360)] = u32::try_from(4 * words.len()).expect("a small program");
        Self { set, bytes: words.into_iter().flat_map(u32::to_le_bytes).collect(), count: cases.len() }
    }

    /// The address of a case's instruction, or of the IT instruction before it.
    pub(super) const fn place(set: Set, index: usize) -> u64 {
        let shape = Shape::of(set);
        CASES + (4 * (index * shape.size + shape.test)) as u64
    }

    /// Runs the program.
    pub(super) fn run(&self) -> Ran {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("cases");
        std::fs::write(&file, self.elf()).expect("a program");
        let mut permissions = std::fs::metadata(&file).expect("a program").permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        std::fs::set_permissions(&file, permissions).expect("a program");
        let output = folder.path().join("output");
        let emulator = if self.set == Set::A64 { "qemu-aarch64" } else { "qemu-arm" };
        let status = Command::new(emulator)
            .args(["-cpu", "max"])
            .arg(&file)
            .stdout(Stdio::from(std::fs::File::create(&output).expect("a file")))
            .status()
            .expect("QEMU's user emulation is installed");
        let output = std::fs::read(&output).expect("the output");
        let length = self.bytes.len();
        assert!(
            status.success() && output.len() == length + usize::try_from(LOG_BYTES).expect("small"),
            "{status}"
        );
        let (cases, log) = output.split_at(length);
        let word =
            |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a word"));
        let refused = (1..=word(log, 0) as usize).map(|index| u64::from(word(log, 4 * index)));
        let refused = refused.collect::<HashSet<_>>();
        let shape = Shape::of(self.set);
        let state = |index: usize| {
            let place = 0x400 + index * 4 * shape.size;
            let test = Self::place(self.set, index);
            // With IT the instruction is two bytes on.
            if refused.contains(&test) || refused.contains(&(test + 2)) {
                return None;
            }
            let at = place + 4 * shape.output;
            Some(if self.set == Set::A64 {
                let double = |index: usize| {
                    u64::from_le_bytes(cases[at + 8 * index..][..8].try_into().expect("a doubleword"))
                };
                let flags = u32::try_from(double(31) >> 28).expect("four bits");
                After { registers: (0..31).map(double).collect(), flags }
            } else {
                let registers = (0..15).map(|index| word(cases, at + 4 * index).into()).collect();
                After { registers, flags: word(cases, at + 60) >> 28 }
            })
        };
        let arena = usize::try_from(ARENA - LOG).expect("small");
        Ran { cases: (0..self.count).map(state).collect(), arena: log[arena..arena + ARENA_BYTES].to_vec() }
    }

    /// The ELF file: the bytes, and memory without bytes.
    fn elf(&self) -> Vec<u8> {
        const PAGE: u64 = 0x1000;
        let wide = self.set == Set::A64;
        let mut file = vec![0x7f, b'E', b'L', b'F', if wide { 2 } else { 1 }, 1, 1];
        file.resize(16, 0);
        let length = self.bytes.len() as u64;
        // Type, machine, version; entry, tables; flags and sizes; then two segments that can be read, written and executed.
        let machine: u64 = if wide { 183 } else { 40 };
        let pointer = if wide { 8 } else { 4 };
        let (header, entry_size) = if wide { (64, 56) } else { (52, 32) };
        let mut put = |value: u64, bytes: usize| file.extend_from_slice(&value.to_le_bytes()[..bytes]);
        for (value, bytes) in [(2, 2), (machine, 2), (1, 4), (BASE, pointer), (header, pointer), (0, pointer)]
        {
            put(value, bytes);
        }
        let flags = if wide { 0 } else { 0x0500_0000 };
        for (value, bytes) in [(flags, 4), (header, 2), (entry_size, 2), (2, 2), (0, 2), (0, 2), (0, 2)] {
            put(value, bytes);
        }
        for (address, in_file, in_memory) in [(BASE, length, length), (LOG, 0, LOG_BYTES)] {
            let fields: &[(u64, usize)] = if wide {
                &[
                    (1, 4),
                    (7, 4),
                    (PAGE, 8),
                    (address, 8),
                    (address, 8),
                    (in_file, 8),
                    (in_memory, 8),
                    (PAGE, 8),
                ]
            } else {
                &[
                    (1, 4),
                    (PAGE, 4),
                    (address, 4),
                    (address, 4),
                    (in_file, 4),
                    (in_memory, 4),
                    (7, 4),
                    (PAGE, 4),
                ]
            };
            fields.iter().for_each(|&(value, bytes)| put(value, bytes));
        }
        file.resize(usize::try_from(PAGE).expect("small"), 0);
        file.extend_from_slice(&self.bytes);
        file
    }
}

/// A small number of words.
fn words_of(count: usize) -> u32 {
    u32::try_from(count).expect("a case is small")
}

/// The low 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
const fn low(value: u64) -> u32 {
    value as u32
}

/// A case of A32 or T32: all loads and stores are relative to the program counter, which leaves every register to the instruction.
fn narrow(case: &Case) -> Vec<u32> {
    let shape = Shape::of(case.set);
    let mut words = Vec::new();
    let relative = |words: &Vec<u32>, to: usize| u32::try_from(4 * (to - words.len()) - 8).expect("near");
    // LDR R0; MSR CPSR_f, R0; LDR of all.
    words.push(0xe59f_0000 | relative(&words, shape.input + 15));
    words.push(0xe128_f000);
    for register in 0..15 {
        words.push(0xe59f_0000 | register << 12 | relative(&words, shape.input + register as usize));
    }
    if case.set == Set::T32 {
        // ADD PC, PC, #1: on in T32 after the next word.
        words.extend([0xe28f_f001, 0xe320_f000]);
        const NOP: u16 = 0xbf00;
        #[expect(clippy::cast_possible_truncation, reason = "two halfwords")]
        let code = [(case.code >> 16) as u16, case.code as u16];
        let mut halves = case.it_code().into_iter().collect::<Vec<_>>();
        halves.extend(if case.is_wide() { &code[..] } else { &code[1..] });
        halves.resize(4, NOP);
        // BX PC: on in A32 after the next halfword.
        halves.extend([0x4778, NOP]);
        let (pairs, _) = halves.as_chunks::<2>();
        words.extend(pairs.iter().map(|[first, second]| u32::from(*second) << 16 | u32::from(*first)));
    } else {
        words.push(case.code);
    }
    for register in 0..15 {
        words.push(0xe58f_0000 | register << 12 | relative(&words, shape.output + register as usize));
    }
    // MRS R0, CPSR; STR R0.
    words.push(0xe10f_0000);
    words.push(0xe58f_0000 | relative(&words, shape.output + 15));
    // B to the end of the case.
    words.push(0xea00_0000 | u32::try_from(shape.size - words.len() - 2).expect("near"));
    words.resize(shape.input, 0);
    words.extend(case.registers[..15].iter().map(|&value| low(value)));
    words.push(case.flags << 28);
    words.resize(shape.size, 0);
    words
}

/// A case of A64: the stack pointer has the address of the state.
fn wide(case: &Case, place: u64) -> Vec<u32> {
    let shape = Shape::of(case.set);
    let address = place + 4 * shape.input as u64;
    let literal = shape.input - 2;
    // LDR X0, literal; MOV SP, X0; LDR X0, [SP, #248]; MSR NZCV, X0.
    let mut words = vec![
        0x5800_0000 | words_of(literal) << 5,
        0x9100_001f,
        0xf940_0000 | 31 << 10 | 31 << 5,
        0xd51b_4200,
    ];
    words.extend((0..31).map(|register| 0xf940_0000 | register << 10 | 31 << 5 | register));
    words.push(case.code);
    words.extend((0..31).map(|register| 0xf900_0000 | (32 + register) << 10 | 31 << 5 | register));
    // MRS X0, NZCV; STR X0, [SP, #504]; B to the end of the case.
    words.extend([0xd53b_4200, 0xf900_0000 | 63 << 10 | 31 << 5]);
    words.push(0x1400_0000 | words_of(shape.size - words.len()));
    words.resize(literal, 0);
    words.extend([low(address), 0]);
    let state = case.registers[..31].iter().copied().chain([u64::from(case.flags) << 28]);
    words.extend(state.flat_map(|value| [low(value), low(value >> 32)]));
    words.resize(shape.size, 0);
    words
}
