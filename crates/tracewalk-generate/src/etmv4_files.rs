//! `--protocol etmv4`: ETMv4 and ETE.

use std::error::Error;

use tracewalk::ids::Vmid;
use tracewalk::protocol::etmv4 as protocol;
use tracewalk_generate::arguments::Arguments;
use tracewalk_generate::capture::File;
use tracewalk_generate::etmv4::{ContextPlace, Options, encode};

use crate::generate::{AllRegisters, Input, Keys, pauses, source_files, source_id, synchronise_every};

/// Flags that are bits of TRCCONFIGR.
const FLAGS: [(&str, u32); 5] = [
    ("--branch-broadcast", 3),
    ("--cycle-accurate", 4),
    ("--context-ids", 6),
    ("--vmids", 7),
    ("--return-stack", 12),
];

/// The VMID that every context has if VMIDs are traced.
const THE_VMID: Vmid = Vmid(1);

pub(crate) fn files(
    input: &Input,
    keys: &Keys,
    mut arguments: Arguments,
) -> Result<Vec<File>, Box<dyn Error>> {
    let id = source_id(&mut arguments)?;
    let cpu = keys.cpu()?;
    let core = protocol::Core::named(cpu)
        .ok_or_else(|| format!("\"{cpu}\" is not a processor with a known ETMv4 or ETE"))?;
    let mut trcconfigr = keys.register("trcconfigr").unwrap_or(0) | 1;
    for (flag, bit) in FLAGS {
        trcconfigr |= u32::from(arguments.flag(flag)) << bit;
    }
    let given = protocol::Registers {
        trcconfigr: Some(trcconfigr),
        trctraceidr: Some(u32::from(id.get())),
        trcdevarch: keys.register("trcdevarch"),
        trcidr0: keys.register("trcidr0"),
        trcidr1: keys.register("trcidr1"),
        trcidr2: keys.register("trcidr2"),
        trcidr8: keys.register("trcidr8"),
        ..protocol::Registers::default()
    };
    let all = given.or_usual_of(core);
    let config = protocol::Config::from_registers(all, Some(core.profile()))?;
    let is_set = |bit: u32| trcconfigr >> bit & 1 != 0;
    let usual = Options::default();
    let every = |number: Option<u32>| number.filter(|number| *number != 0).map(u64::from);
    let contexts = match arguments.optional("--contexts")? {
        None => usual.contexts,
        Some(word) => {
            let found = ContextPlace::ALL.into_iter().find(|(name, _)| *name == word);
            found.ok_or_else(|| format!("--contexts: \"{word}\" is not with, before or after"))?.1
        }
    };
    let depth = arguments.number("--return-stack-depth")?.and_then(|depth| usize::try_from(depth).ok());
    let options = Options {
        synchronise_every: synchronise_every(&mut arguments, usual.synchronise_every)?,
        timestamp_every: every(arguments.number("--timestamps")?),
        event_every: every(arguments.number("--triggers")?),
        pauses: pauses(&mut arguments)?,
        return_stack_depth: depth.unwrap_or(usual.return_stack_depth).max(1),
        branch_broadcast: is_set(3),
        context_ids: is_set(6),
        vmid: is_set(7).then_some(THE_VMID),
        non_secure: arguments.flag("--non-secure"),
        contexts,
        cycle_threshold: arguments.number("--cycle-threshold")?.map_or(usual.cycle_threshold, u64::from),
        wrong_path_every: match arguments.number("--wrong-paths")? {
            None => usual.wrong_path_every,
            given => every(given),
        },
        q_every: every(arguments.number("--q-elements")?),
        source_address_every: every(arguments.number("--source-addresses")?),
        late_addresses: arguments.flag("--late-addresses"),
        keeps_returns: arguments.flag("--keeps-returns"),
        ..usual
    };
    let trace = encode(&input.path, &input.elf.program, &config, &options)?;
    let registers = AllRegisters {
        given: named(given).filter(|(name, _)| *name != "TRCTRACEIDR").map(lower_case).collect(),
        all: named(all).collect(),
        id,
    };
    let minor = match config.version() {
        protocol::Version::Etmv4(minor) | protocol::Version::Ete(minor) => minor,
    };
    source_files(input, "etmv4", cpu, minor, &registers, &trace, arguments)
}

/// Registers by the names that snapshots use.
fn named(registers: protocol::Registers) -> impl Iterator<Item = (&'static str, u32)> {
    let all = [
        ("TRCCONFIGR", registers.trcconfigr),
        ("TRCTRACEIDR", registers.trctraceidr),
        ("TRCDEVARCH", registers.trcdevarch),
        ("TRCIDR0", registers.trcidr0),
        ("TRCIDR1", registers.trcidr1),
        ("TRCIDR2", registers.trcidr2),
        ("TRCIDR8", registers.trcidr8),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

/// Registers by the names that `capture.toml` uses.
fn lower_case((name, value): (&'static str, u32)) -> (String, u32) {
    (name.to_lowercase(), value)
}
