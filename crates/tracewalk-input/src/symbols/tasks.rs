//! Where operating systems for microcontrollers note the running task, and the tasks' names.

use tracewalk::ids::Address;

use super::dwarf::Debugging;
use super::dwarf::types::{Type, Types};
use super::{SourceLines, SymbolTable};

/// The variable in which an operating system notes the control block of the running task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentTask {
    /// The operating system.
    pub system: &'static str,
    /// The address of the variable: a pointer to a control block.
    pub pointer: Address,
    /// The task's name in the control block; `None` if the program was built without.
    pub name: Option<TaskName>,
}

/// A task's name in its control block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskName {
    /// The offset in the control block.
    pub offset: u64,
    /// The most characters; `None` if a pointer to them is there.
    pub characters: Option<u64>,
}

/// How a system spells the pointer to the running task, and the name.
struct Spelling {
    system: &'static str,
    /// The variable, and the members that lead to the pointer.
    pointer: &'static [&'static str],
    /// The structure of the control block, if the pointer has another type.
    block: Option<&'static str>,
    name: &'static str,
}

/// By the systems' sources.
#[rustfmt::skip]
const SPELLINGS: [Spelling; 9] = [
    Spelling { system: "FreeRTOS", pointer: &["pxCurrentTCB"], block: None, name: "pcTaskName" },
    Spelling { system: "FreeRTOS", pointer: &["pxCurrentTCBs"], block: None, name: "pcTaskName" },
    Spelling { system: "Zephyr", pointer: &["_kernel", "cpus", "current"], block: None, name: "name" },
    Spelling { system: "ThreadX", pointer: &["_tx_thread_current_ptr"], block: None, name: "tx_thread_name" },
    Spelling { system: "RTX5", pointer: &["osRtxInfo", "thread", "run", "curr"], block: None, name: "name" },
    Spelling { system: "NuttX", pointer: &["g_running_tasks"], block: None, name: "name" },
    Spelling { system: "NuttX", pointer: &["g_readytorun", "head"], block: Some("tcb_s"), name: "name" },
    Spelling { system: "ChibiOS", pointer: &["ch0", "rlist", "current"], block: None, name: "name" },
    Spelling { system: "ChibiOS", pointer: &["ch", "rlist", "current"], block: None, name: "name" },
];

impl SourceLines {
    /// Where the program with these symbols notes the running task, if it is built on a known operating system. Members' offsets
    /// are those of the debugging information.
    #[must_use]
    pub fn current_task(&self, symbols: &SymbolTable) -> Option<CurrentTask> {
        SPELLINGS.iter().find_map(|spelling| {
            let (variable, members) = spelling.pointer.split_first()?;
            let object =
                symbols.objects().iter().find(|object| object.is_variable && object.name == *variable)?;
            let without_types = CurrentTask { system: spelling.system, pointer: object.start, name: None };
            let of_debugging = |debugging: &Debugging| {
                let types = debugging.types();
                let (offset, pointer) = types.member(types.variable(variable)?, members)?;
                let name = name(&types, types.element(pointer), spelling);
                Some(CurrentTask { pointer: object.start.checked_add(offset)?, name, ..without_types })
            };
            let found = self.debugging().find_map(of_debugging);
            found.or_else(|| members.is_empty().then_some(without_types))
        })
    }
}

fn name(types: &Types<'_>, pointer: Type, spelling: &Spelling) -> Option<TaskName> {
    let block = match spelling.block {
        Some(block) => types.structure(block)?,
        None => types.target(pointer)?,
    };
    let (offset, of) = types.member(block, &[spelling.name])?;
    let characters = types.count(of);
    (characters.is_some() || types.is_pointer(of)).then_some(TaskName { offset, characters })
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Arc;

    use super::*;
    use crate::fixtures::TemporaryDirectory;
    use crate::image::{Image, ImageKind, Memory};

    /// The variables and control blocks as the systems spell them, with some other members.
    const SYSTEMS: [(&str, &str, u64, u64, Option<u64>); 6] = [
        (
            "FreeRTOS",
            "typedef struct tskTaskControlBlock { int *top; char pcTaskName[16]; } TCB_t; TCB_t *volatile pxCurrentTCB;",
            0,
            4,
            Some(16),
        ),
        (
            "FreeRTOS",
            "typedef struct tskTaskControlBlock { int *top; char pcTaskName[12]; } TCB_t; TCB_t *volatile pxCurrentTCBs[2];",
            0,
            4,
            Some(12),
        ),
        (
            "ThreadX",
            "typedef struct TX_THREAD_STRUCT { long id, runs; char *tx_thread_name; } TX_THREAD; TX_THREAD *_tx_thread_current_ptr;",
            0,
            8,
            None,
        ),
        (
            "RTX5",
            "typedef struct osRtxThread_s { char id; const char *name; } osRtxThread_t; \
             struct { const char *os; struct { struct { osRtxThread_t *curr, *next; } run; } thread; } osRtxInfo;",
            4,
            4,
            None,
        ),
        (
            "NuttX",
            "struct dq_entry_s { struct dq_entry_s *next; }; struct tcb_s { struct dq_entry_s links; char name[24]; } idle; \
             typedef struct { struct dq_entry_s *tail, *head; } dq_queue_t; dq_queue_t g_readytorun;",
            4,
            4,
            Some(24),
        ),
        (
            "ChibiOS",
            "typedef struct ch_thread { int *context[3]; const char *name; } thread_t; \
             typedef struct { int queue[2]; thread_t *current; } ready_list_t; \
             typedef struct { int core; ready_list_t rlist; } os_instance_t; os_instance_t ch0;",
            12,
            12,
            None,
        ),
    ];

    #[test]
    #[ignore = "needs a compiler for Arm"]
    fn each_system_is_found_by_its_names() {
        for (system, source, member, offset, characters) in SYSTEMS {
            let folder = TemporaryDirectory::new();
            let file = folder.write("os.c", format!("{source} int main(void) {{ return 0; }}").as_bytes());
            let elf = folder.path().join("os.elf");
            let mut compiler = Command::new("arm-none-eabi-gcc");
            compiler.args(["-mcpu=cortex-m3", "-g", "-fno-common", "-nostdlib", "-Wl,-e,0", "-o"]);
            assert!(compiler.arg(&elf).arg(file).status().unwrap().success(), "{source}");
            let image = Image::from_bytes(&elf, &ImageKind::Addressed, std::fs::read(&elf).unwrap()).unwrap();
            let mut memory = Memory::default();
            memory.add(Arc::new(image)).unwrap();
            let symbols = SymbolTable::of(&memory);
            let found = symbols.source_lines().current_task(&symbols).unwrap();
            assert_eq!(found.system, system);
            let object = symbols.object_at(found.pointer).unwrap();
            assert_eq!(found.pointer.get() - object.start.get(), member, "{source}");
            assert_eq!(found.name, Some(TaskName { offset, characters }), "{source}");
        }
    }
}
