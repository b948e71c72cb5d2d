//! The registers of a processor, as GDB numbers them, and their description for GDB.
//!
//! GDB and DWARF number the core registers alike. The artificial registers after them ([`Place`]) give the place in the
//! recording. Setting one is a jump, after which GDB reads all registers again.

use std::fmt::Write as _;

/// The processor's architecture, as GDB knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    /// M profile.
    M,
    /// A or R profile in AArch32 state.
    A32,
    /// AArch64 state.
    A64,
}

/// The part of the place that an artificial register gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The number of the step.
    Step,
    /// The last timestamp.
    Time,
    /// How many exceptions have been taken.
    Exception,
}

/// One register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register {
    /// GDB's number of the register.
    pub(crate) number: u16,
    /// How many bytes it has.
    pub(crate) bytes: usize,
}

impl Architecture {
    /// The stack pointer.
    pub(crate) const fn stack_pointer(self) -> u16 {
        match self {
            Self::M | Self::A32 => 13,
            Self::A64 => 31,
        }
    }

    /// The link register.
    pub(crate) const fn link(self) -> u16 {
        match self {
            Self::M | Self::A32 => 14,
            Self::A64 => 30,
        }
    }

    /// The program counter.
    pub(crate) const fn program_counter(self) -> u16 {
        match self {
            Self::M | Self::A32 => 15,
            Self::A64 => 32,
        }
    }

    /// The status register: xPSR or CPSR.
    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::M | Self::A32 => 25,
            Self::A64 => 33,
        }
    }

    /// The register that gives a part of the place.
    pub(crate) const fn place(self, place: Place) -> u16 {
        self.status()
            + match place {
                Place::Step => 1,
                Place::Time => 2,
                Place::Exception => 3,
            }
    }

    /// How many bytes an address has.
    pub(crate) const fn word(self) -> usize {
        match self {
            Self::M | Self::A32 => 4,
            Self::A64 => 8,
        }
    }

    /// The registers in the order of their numbers, which is the order of the packet `g`.
    pub(crate) fn registers(self) -> Vec<Register> {
        let general = (0..=self.program_counter()).map(|number| Register { number, bytes: self.word() });
        let status = Register { number: self.status(), bytes: 4 };
        let places = Place::ALL.map(|place| Register { number: self.place(place), bytes: 8 });
        general.chain([status]).chain(places).collect()
    }

    /// The description of the registers for GDB (GDB manual, "Target Descriptions").
    pub(crate) fn description(self) -> String {
        let mut xml =
            String::from("<?xml version=\"1.0\"?>\n<!DOCTYPE target SYSTEM \"gdb-target.dtd\">\n<target>\n");
        let (name, feature) = match self {
            Self::M => ("arm", "org.gnu.gdb.arm.m-profile"),
            Self::A32 => ("arm", "org.gnu.gdb.arm.core"),
            Self::A64 => ("aarch64", "org.gnu.gdb.aarch64.core"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(xml, "<architecture>{name}</architecture>\n<feature name=\"{feature}\">");
        for Register { number, bytes } in self.registers() {
            if number > self.status() {
                break;
            }
            let (name, kind) = self.name(number);
            let bits = bytes * 8;
            let _ = writeln!(
                xml,
                "<reg name=\"{name}\" bitsize=\"{bits}\" regnum=\"{number}\" type=\"{kind}\"/>"
            );
        }
        xml.push_str("</feature>\n<feature name=\"org.tracewalk.place\">\n");
        for place in Place::ALL {
            let (name, number) = (place.name(), self.place(place));
            let _ = writeln!(
                xml,
                "<reg name=\"{name}\" bitsize=\"64\" regnum=\"{number}\" type=\"uint64\" group=\"system\" \
                 save-restore=\"no\"/>"
            );
        }
        xml.push_str("</feature>\n</target>\n");
        xml
    }

    /// A register's name and type.
    fn name(self, number: u16) -> (String, &'static str) {
        let general = match self {
            Self::M | Self::A32 => ("r", "uint32"),
            Self::A64 => ("x", "int"),
        };
        match number {
            _ if number == self.stack_pointer() => ("sp".to_owned(), "data_ptr"),
            _ if number == self.program_counter() => ("pc".to_owned(), "code_ptr"),
            _ if number == self.status() => match self {
                Self::M => ("xpsr".to_owned(), "uint32"),
                Self::A32 | Self::A64 => ("cpsr".to_owned(), "uint32"),
            },
            14 if self != Self::A64 => ("lr".to_owned(), "uint32"),
            _ => (format!("{}{number}", general.0), general.1),
        }
    }
}

impl Place {
    /// In the order of their numbers.
    pub(crate) const ALL: [Self; 3] = [Self::Step, Self::Time, Self::Exception];

    const fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Time => "time",
            Self::Exception => "exception",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_in_the_order_of_their_numbers_and_all_are_described() {
        for architecture in [Architecture::M, Architecture::A32, Architecture::A64] {
            let registers = architecture.registers();
            assert!(registers.is_sorted_by_key(|register| register.number));
            let description = architecture.description();
            assert_eq!(description.matches("<reg ").count(), registers.len());
            for Register { number, .. } in registers {
                assert!(description.contains(&format!("regnum=\"{number}\"")), "{architecture:?} {number}");
            }
        }
    }
}
