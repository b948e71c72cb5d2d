//! A program of about a megabyte that contains the program whose trace buffer was dumped.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::output;

/// A program with a large description of its source lines.
#[derive(Debug)]
pub(super) struct Firmware {
    pub(super) elf: PathBuf,
    /// Addresses of the program's functions, in hexadecimal.
    pub(super) addresses: Vec<String>,
}

/// The number of translation units, and of pairs of functions in each: together about a megabyte of ELF.
const UNITS: usize = 24;
const FUNCTIONS: usize = 50;

impl Firmware {
    /// Compiles code that never runs, and links it after the code of `program`.
    pub(super) fn build(program: &Path, folder: &Path) -> Result<Self, String> {
        let folder = folder.join("firmware");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let elf = folder.join("firmware.elf");
        if !elf.exists() {
            let code = folder.join("program.bin");
            let mut objcopy = Command::new("arm-none-eabi-objcopy");
            output(objcopy.args(["-O", "binary"]).args([program, &code]))?;
            write(&folder.join("program.s"), ".section .program,\"ax\"\n.thumb\n.incbin \"program.bin\"\n")?;
            let mut gcc = Command::new("arm-none-eabi-gcc");
            gcc.current_dir(&folder).args(["-mcpu=cortex-m0", "-mthumb", "-g", "-Og", "-nostdlib"]);
            gcc.args(["-Wl,--section-start=.program=0", "-Wl,-Ttext=0x10000", "-Wl,-e,0"]);
            gcc.args(["-o", "firmware.elf", "program.s"]);
            for unit in 0..UNITS {
                let name = format!("unit_{unit}.c");
                write(&folder.join(&name), &source(unit))?;
                gcc.arg(name);
            }
            output(&mut gcc)?;
        }
        let symbols = output(Command::new("arm-none-eabi-nm").arg(&elf))?;
        let addresses = symbols.lines().filter(|line| line.contains(" T work_"));
        let addresses = addresses.filter_map(|line| line.split(' ').next()).map(str::to_owned).take(500);
        Ok(Self { addresses: addresses.collect(), elf })
    }
}

fn source(unit: usize) -> String {
    let mut text =
        "#include <stdint.h>\nstruct node { struct node *next; int32_t value; uint16_t flags; };\n\
                    extern int main(void);\nstatic volatile uint32_t sink;\n"
            .to_owned();
    for function in 0..FUNCTIONS {
        let (number, bit) = (unit * FUNCTIONS + function, function % 16);
        let _ = write!(
            text,
            "static int32_t step_{number}(struct node *node, int32_t by) {{\n\
             \x20   int32_t total = by + {number};\n\
             \x20   for (; node; node = node->next) total += node->value * {number};\n\
             \x20   return total;\n}}\n\
             int32_t work_{number}(struct node *first, uint32_t count) {{\n\
             \x20   int32_t result = 0;\n\
             \x20   for (uint32_t index = 0; index < count; index++) {{\n\
             \x20       if (first[index].flags & 1 << {bit}) result += step_{number}(&first[index], result);\n\
             \x20       else sink = sink + (uint32_t)result;\n\
             \x20   }}\n\
             \x20   return result;\n}}\n"
        );
    }
    text
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}
