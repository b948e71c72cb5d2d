//! The processor's registers, as debuggers print them beside memory.
//!
//! ```text
//! GDB, info registers    pc             0xe6                0xe6 <HardFault_Handler>
//! OpenOCD, reg           (15) pc (/32): 0x000000e6
//! OpenOCD, on halt       xPSR: 0x61000003 pc: 0x000000e6 msp: 0x20000210
//! J-Link, h              SP(R13)= 20000210, MSP= 20000210, PSP= 00000000, R14(LR) = FFFFFFF9
//! pyOCD, reg             r0: 0x00000003     r1: 0x00000000
//! by hand                CFSR=0x00020000
//! ```

use std::collections::BTreeMap;

/// Registers of an M-profile processor that a text names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessorRegisters {
    /// r0 to pc.
    pub core: [Option<u32>; 16],
    /// xPSR.
    pub xpsr: Option<u32>,
    /// The main and the process stack pointer.
    pub stack_pointers: [Option<u32>; 2],
    /// Registers of the System Control Block, by their addresses.
    pub system: BTreeMap<u32, u32>,
    /// The registers of A64: x0 to x30, 31 for sp and 32 for pc.
    pub wide: BTreeMap<u8, u64>,
}

/// The System Control Block registers that are printed by name (DDI 0403E, table B3-4).
const SYSTEM: [(&str, u32); 9] = [
    ("cpuid", 0xe000_ed00),
    ("icsr", 0xe000_ed04),
    ("vtor", 0xe000_ed08),
    ("shcsr", 0xe000_ed24),
    ("cfsr", 0xe000_ed28),
    ("hfsr", 0xe000_ed2c),
    ("dfsr", 0xe000_ed30),
    ("mmfar", 0xe000_ed34),
    ("bfar", 0xe000_ed38),
];

/// A register that a line names.
#[derive(Clone, Copy)]
enum Named {
    Core(usize),
    Status,
    StackPointer(usize),
    System(u32),
    Wide(u8),
}

impl ProcessorRegisters {
    /// Whether no register is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The registers of these lines.
    pub(super) fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut registers = Self::default();
        for line in lines {
            registers.read_line(line);
        }
        registers
    }

    /// Reads the registers of a line that begins with a register's name. A later value replaces an earlier
    /// one. Returns whether the line had any.
    pub(super) fn read_line(&mut self, line: &str) -> bool {
        // OpenOCD numbers its registers.
        let line = match line.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
            Some((number, rest)) if number.bytes().all(|digit| digit.is_ascii_digit()) => rest,
            _ => line,
        };
        // J-Link prints numbers without a prefix.
        let bare = line.contains('=');
        let words = line.split([' ', '\t', ',', '=', ':', '(', ')']).filter(|word| !word.is_empty());
        let mut named = None;
        let mut found = false;
        for (index, word) in words.enumerate() {
            let is_name = name(word);
            if index == 0 && is_name.is_none() {
                return false;
            }
            if let Some(name) = is_name {
                named = Some(name);
            } else if word != "/32"
                && let Some(name) = named.take()
                && let Some(value) = value(word, bare)
            {
                self.set(name, value);
                found = true;
            }
        }
        found
    }

    fn set(&mut self, named: Named, wide: u64) {
        if let Named::Wide(number) = named {
            self.wide.insert(number, wide);
        }
        // Of A64's registers these two have the names of the others.
        if let Named::Core(13 | 15) = named {
            self.wide.insert(if matches!(named, Named::Core(13)) { 31 } else { 32 }, wide);
        }
        let Ok(value) = u32::try_from(wide) else { return };
        match named {
            Named::Wide(_) => {}
            Named::Core(number) => {
                self.core.get_mut(number).into_iter().for_each(|register| *register = Some(value));
            }
            Named::Status => self.xpsr = Some(value),
            Named::StackPointer(which) => {
                self.stack_pointers.get_mut(which).into_iter().for_each(|register| *register = Some(value));
            }
            Named::System(address) => {
                self.system.insert(address, value);
            }
        }
    }
}

fn name(word: &str) -> Option<Named> {
    let word = word.to_ascii_lowercase();
    let word = word.strip_prefix("scb->").unwrap_or(&word);
    Some(match word {
        "sp" => Named::Core(13),
        "lr" => Named::Core(14),
        "pc" => Named::Core(15),
        "xpsr" => Named::Status,
        "msp" => Named::StackPointer(0),
        "psp" => Named::StackPointer(1),
        _ => match SYSTEM.iter().find(|(name, _)| *name == word) {
            Some((_, address)) => Named::System(*address),
            None if word.starts_with('x') => {
                let number = word.strip_prefix('x').filter(|digits| !digits.starts_with('+'))?;
                Named::Wide(number.parse().ok().filter(|number| *number < 31)?)
            }
            None => {
                let number = word.strip_prefix('r').filter(|digits| !digits.starts_with('+'))?;
                Named::Core(number.parse().ok().filter(|number| *number < 16)?)
            }
        },
    })
}

fn value(word: &str, bare: bool) -> Option<u64> {
    let digits = word.strip_prefix("0x");
    let digits = digits.or(Some(word).filter(|word| bare && matches!(word.len(), 8 | 16)))?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u64::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_of_a64_have_64_bits() {
        let registers = read(
            "x0             0x1ffffffff         8589934591\nx30            0x40100abc          1074792124\n\
             sp             0x40112f80          0x40112f80\npc             0xffff800040100abc  0xffff800040100abc <main>",
        );
        assert_eq!((registers.wide[&0], registers.wide[&30]), (0x1_ffff_ffff, 0x4010_0abc));
        assert_eq!((registers.wide[&31], registers.wide[&32]), (0x4011_2f80, 0xffff_8000_4010_0abc));
        assert_eq!((registers.core[13], registers.core[15]), (Some(0x4011_2f80), None));
    }

    fn read(text: &str) -> ProcessorRegisters {
        let mut registers = ProcessorRegisters::default();
        for line in text.lines() {
            assert!(registers.read_line(line), "{line}");
        }
        registers
    }

    /// Printed by GDB 13.1 connected to QEMU.
    #[test]
    fn gdb_prints_a_register_a_line() {
        let registers = read(
            "r0             0x3                 3\n\
             sp             0x20000210          0x20000210\n\
             pc             0xe6                0xe6 <HardFault_Handler>\n\
             xpsr           0x1000003           16777219",
        );
        assert_eq!(registers.core[0], Some(3));
        assert_eq!((registers.core[13], registers.core[15]), (Some(0x2000_0210), Some(0xe6)));
        assert_eq!(registers.xpsr, Some(0x0100_0003));
    }

    /// OpenOCD src/target/target.c, `COMMAND_HANDLER(handle_reg_command)`; src/target/armv7m.c, `armv7m_arch_state`.
    #[test]
    fn openocd_numbers_them_and_prints_some_when_it_halts() {
        let registers = read(
            "(14) lr (/32): 0xfffffff9\n(16) xPSR (/32): 0x61000003\n\
             xPSR: 0x61000003 pc: 0x000000e6 psp: 0x20000410",
        );
        assert_eq!((registers.core[14], registers.core[15]), (Some(0xffff_fff9), Some(0xe6)));
        assert_eq!(registers.stack_pointers, [None, Some(0x2000_0410)]);
    }

    /// From published sessions of J-Link Commander.
    #[test]
    fn j_link_prints_several_a_line_without_a_prefix() {
        let registers = read(
            "PC = 000000E6, CycleCnt = 00000000\nR0 = 00000003, R1 = 0000000A, R2 = FFFFFFFF\n\
             SP(R13)= 20000210, MSP= 20000210, PSP= 00000000, R14(LR) = FFFFFFF9\n\
             XPSR = 61000003: APSR = nZCvq, EPSR = 01000000, IPSR = 003 (HardFault)",
        );
        assert_eq!(registers.core[..3], [Some(3), Some(10), Some(0xffff_ffff)]);
        assert_eq!((registers.core[13], registers.core[14]), (Some(0x2000_0210), Some(0xffff_fff9)));
        assert_eq!(registers.xpsr, Some(0x6100_0003));
        assert_eq!(registers.stack_pointers, [Some(0x2000_0210), Some(0)]);
    }

    #[test]
    fn pyocd_prints_several_a_line_and_people_write_down_fault_status() {
        let registers = read("r0: 0x00000003     lr: 0xfffffff9\nSCB->CFSR = 0x00020000\nhfsr: 0x40000000");
        assert_eq!((registers.core[0], registers.core[14]), (Some(3), Some(0xffff_fff9)));
        assert_eq!(registers.system[&0xe000_ed28], 0x0002_0000);
        assert_eq!(registers.system[&0xe000_ed2c], 0x4000_0000);
    }

    #[test]
    fn what_is_no_register_is_not_taken_for_one() {
        let mut registers = ProcessorRegisters::default();
        for line in [
            "   0x154 <SysTick_Handler>:\tpush\t{r4, lr}",
            "ldr r3, 0x160",
            "r3 is wrong",
            "(gdb) x/4wx $sp",
            "$1 = (void (*)()) 0xc0 <Reset_Handler>",
            "J-Link>mem32 0x1FFF7590,3",
        ] {
            assert!(!registers.read_line(line), "{line}");
        }
        assert!(registers.is_empty());
    }
}
