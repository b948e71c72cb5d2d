//! Where tasks' stacks were when they stopped and went on, by the values that the path proves.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use tracewalk::ids::Isa;
use tracewalk::span::CaptureOffset;

use super::Stretch;
use super::blocks::{Block, Noted};
use crate::Section;
use crate::call_stack::{Task, loads_stack_pointer};
use crate::record::FlowRecord;
use crate::symbols::CurrentTask;
use crate::values::{
    Halt, HaltUse, Instruction, Profile, Proven, ProvenAccess, Register, Step, ValueSetup, ValueSink,
    ValueSummary,
};

/// The stack pointers and control blocks of a source's tasks, as far as they are proven. It is the sink of a prover of values.
#[derive(Debug, Default)]
pub struct Stacks {
    /// For each exception and return from one, the address of the frame that it stored or loaded.
    frames: VecDeque<Option<u64>>,
    /// The instructions that exchanged the stack pointer for a stored one: the number of instructions up to it, and both pointers.
    exchanges: VecDeque<(u64, [Option<u64>; 2])>,
    instructions: u64,
    pointer: Option<u64>,
    /// The last stack pointer that was stored.
    stored: Option<u64>,
    noted: Option<Noted>,
    /// The control block of the running task, each from this number of instructions on.
    blocks: VecDeque<(u64, Option<Block>)>,
    halt: Option<Halt>,
}

impl Stacks {
    /// Before the first step of a source that is set up like this, and whose operating system has this variable.
    #[must_use]
    pub fn new(setup: &ValueSetup, variable: Option<CurrentTask>) -> Self {
        let bytes = if setup.profile == Profile::A64 { 8 } else { 4 };
        let noted = variable.map(|variable| Noted::new(variable, setup.image.clone(), bytes));
        Self { noted, halt: setup.halt.clone(), ..Self::default() }
    }

    /// What the running task's control block became among the first instructions.
    pub(super) fn block(&mut self, instructions: u64) -> Option<Option<Block>> {
        let mut found = None;
        while let Some((_, block)) = self.blocks.pop_front_if(|(at, _)| *at <= instructions) {
            found = Some(block);
        }
        found
    }

    /// The name in a control block at the end, if memory of then is known.
    pub(super) fn name_at_end(&self, block: u64) -> Option<Arc<str>> {
        self.noted.as_ref()?.name_at_end(block, self.halt.as_ref()?)
    }

    /// The frame of the next exception or return.
    pub(super) fn frame(&mut self) -> Option<u64> {
        self.frames.pop_front().flatten()
    }

    /// The next exchange of the stack pointer among the first instructions.
    pub(super) fn exchange(&mut self, instructions: u64) -> Option<[Option<u64>; 2]> {
        let (_, pointers) = self.exchanges.pop_front_if(|(at, _)| *at <= instructions)?;
        Some(pointers)
    }

    fn instruction(&mut self, instruction: &Instruction, proven: &Proven) {
        self.instructions += 1;
        let stores = |access: &&ProvenAccess| access.is_store && access.value == self.pointer;
        if self.pointer.is_some() && proven.accesses.iter().any(|access| stores(&access)) {
            self.stored = self.pointer;
        }
        let isa = instruction.at.isa;
        let register = Register(if isa == Isa::A64 { 31 } else { 13 });
        let write = proven.writes.iter().rfind(|(written, _)| *written == register);
        let Some((_, pointer)) = write else { return };
        let before = std::mem::replace(&mut self.pointer, *pointer);
        let word = if instruction.bytes == 2 { instruction.code << 16 } else { instruction.code };
        // `longjmp` goes on on the same stack.
        if before.is_some() && self.stored == before && loads_stack_pointer(isa, word) {
            self.exchanges.push_back((self.instructions, [before, *pointer]));
        }
    }
}

impl ValueSink for Stacks {
    fn section(&mut self, _: &Section) -> io::Result<()> {
        Ok(())
    }

    fn element(&mut self, _: &FlowRecord) -> io::Result<()> {
        Ok(())
    }

    fn pass(&mut self, _: &FlowRecord) {}

    fn step(&mut self, _: CaptureOffset, step: &Step, proven: &Proven) -> io::Result<()> {
        if let Some(block) = self.noted.as_mut().and_then(|noted| noted.step(proven)) {
            let is_instruction = matches!(step, Step::Instruction(_));
            self.blocks.push_back((self.instructions + u64::from(is_instruction), block));
        }
        match step {
            Step::Instruction(instruction) => self.instruction(instruction, proven),
            Step::Exception { .. } | Step::ExceptionReturn { .. } => {
                self.frames.push_back(proven.accesses.first().and_then(|access| access.address));
                // The pointer may be another one from here on.
                self.pointer = None;
            }
            Step::Gap => self.pointer = None,
        }
        Ok(())
    }

    fn end_section(&mut self, summary: &ValueSummary) -> io::Result<()> {
        self.halt.take_if(|_| summary.halt != Some(HaltUse::Used));
        Ok(())
    }
}

/// The stack pointers around a stretch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ends {
    /// Where the task went on.
    pub(super) resumed: Option<u64>,
    /// Where it stopped.
    pub(super) left: Option<u64>,
}

/// Names stretches by the stacks on which they stopped and went on; if these are not known, by their control blocks, or else by
/// their call stacks.
#[derive(Debug, Default)]
pub(super) struct Names {
    waiting: BTreeMap<u64, Task>,
    /// The task of each name that the call stack gave.
    named: BTreeMap<Task, Task>,
    last: u32,
    /// The last task of each control block.
    pub(super) blocks: BTreeMap<u64, Task>,
    /// How often the stack was that of a task with another control block.
    pub(super) contradictions: u64,
}

impl Names {
    /// Names beyond those of these stretches.
    pub(super) fn of(stretches: &[Stretch]) -> Self {
        let number = |stretch: &Stretch| match stretch.task {
            Task::Number(number) => number,
            Task::Context(_) | Task::Unresolved => 0,
        };
        Self { last: stretches.iter().map(number).max().unwrap_or(0), ..Self::default() }
    }

    /// The task of the next stretch.
    pub(super) fn next(&mut self, stretch: &Stretch) -> Task {
        let Stretch { task, ends, .. } = *stretch;
        let block = stretch.block.as_ref().map(|block| block.address);
        let of_block = block.and_then(|block| self.blocks.get(&block).copied());
        let is_new = stretch.begins && task != Task::Unresolved && !self.named.contains_key(&task);
        let has_other = |blocks: &BTreeMap<u64, Task>, name: Task| {
            block.is_some_and(|block| blocks.iter().any(|(of, task)| *of != block && *task == name))
        };
        let found = ends.resumed.and_then(|at| self.waiting.remove(&at));
        let name = match (found, of_block) {
            (Some(found), _) => found,
            (None, Some(of_block)) if !is_new => of_block,
            _ => match self.by_call_stack(task, ends.resumed.is_some()) {
                Task::Unresolved if block.is_some() => self.another(),
                name if has_other(&self.blocks, name) => self.another(),
                name => name,
            },
        };
        if let Some(block) = block {
            let had_other = has_other(&self.blocks, name);
            let is_others = !is_new && of_block.is_some_and(|of_block| of_block != name);
            self.contradictions += u64::from(had_other || is_others);
            self.blocks.insert(block, name);
        }
        if task != Task::Unresolved {
            self.named.insert(task, name);
        }
        if let Some(left) = ends.left.filter(|_| name != Task::Unresolved) {
            self.waiting.retain(|_, waiting| *waiting != name);
            self.waiting.insert(left, name);
        }
        name
    }

    fn by_call_stack(&mut self, task: Task, is_known: bool) -> Task {
        let Some(&name) = self.named.get(&task) else { return task };
        // That task waits on another stack.
        if is_known && self.waiting.values().any(|waiting| *waiting == name) {
            return self.another();
        }
        name
    }

    fn another(&mut self) -> Task {
        self.last = self.last.saturating_add(1);
        Task::Number(self.last)
    }
}
