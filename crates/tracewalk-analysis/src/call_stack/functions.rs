//! The functions that a block's instructions belong to, and functions that do something unusual to the stack.

use std::rc::Rc;
use std::sync::Arc;

use tracewalk::flow::{Block, Element};
use tracewalk::ids::{Address, Isa, Location};
use tracewalk::program::ViewId;

use super::frame::FunctionId;
use super::observer::Piece;
use super::stack::Next;
use super::switching::changes_stack;
use crate::quick::QuickMap;
use crate::{Code, CodeInContext};

/// A function's effect on the stack beyond calling and returning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Nothing,
    /// `longjmp` may return to its return address again.
    SetsJump,
    /// The function chooses the next task; the exception that it runs in may return to that task.
    Schedules,
    /// The function continues in another task, so that it does not return to its caller.
    Switches,
    /// The function goes on with the unwinding of its caller, which is over.
    Unwinds,
}

/// Looks functions up and caches the result: symbols are searched once for each block of the program.
#[derive(Clone, Debug)]
pub(super) struct Functions {
    code: CodeInContext,
    blocks: QuickMap<(ViewId, Address, Address, Isa), Pieces>,
    special: QuickMap<(ViewId, Address), Special>,
    /// A direct-mapped cache of functions by address, in the current view of the program: a power of two of entries, or empty
    /// before the first look-up.
    entered: Box<[Option<Entered>]>,
}

/// A function that holds an address.
#[derive(Clone, Copy, Debug)]
struct Entered {
    at: Address,
    function: FunctionId,
    special: Special,
}

/// The parts of a block by function.
#[derive(Clone, Debug)]
pub(super) enum Pieces {
    One,
    /// One part, which returns with another stack than it was called with.
    Switching,
    Several(Rc<[Piece]>),
}

/// The program bounds the number of blocks, but a program given as raw bytes may have very many.
const MOST_BLOCKS: usize = 1 << 20;

/// The number of addresses in the cache: a power of two.
const ENTERED: usize = 1 << 11;

/// `setjmp` and its variants in the C libraries.
const SETS_JUMP: [&str; 5] = ["setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "savectx"];

/// Functions that run in an exception and choose the task that it returns to, by the names that operating systems give
/// them: FreeRTOS, Zephyr, CMSIS-RTX, ThreadX, RT-Thread, embOS, µC/OS, NuttX, RIOT, Mbed OS.
const SCHEDULES: [&str; 24] = [
    "vTaskSwitchContext",
    "xPortPendSVHandler",
    "vPortSVCHandler",
    "vPortRestoreContextOfFirstTask",
    "z_arm_pendsv",
    "z_arm_context_switch",
    "z_get_next_switch_handle",
    "osRtxThreadSwitch",
    "rt_switch_req",
    "rt_schedule",
    "_tx_thread_schedule",
    "__tx_PendSVHandler",
    "__tx_ts_handler",
    "OS_Switch",
    "OS_PendSV",
    "OSTaskSwHook",
    "OS_CPU_PendSVHandler",
    "OSCtxSw",
    "OSIntCtxSw",
    "nxsched_resume_scheduler",
    "sched_run",
    "isr_pendsv",
    "osRtxPendSV_Handler",
    "rt_hw_context_switch_interrupt",
];

/// Functions that return in another task: ChibiOS, NuttX, RT-Thread, ThreadX, Linux, RTEMS, Zephyr, `ucontext`, Boost. Others are
/// recognised by their [code](changes_stack), if that is one block.
const SWITCHES: [&str; 13] = [
    "port_switch",
    "_port_switch",
    "__port_switch",
    "arm_switchcontext",
    "up_switchcontext",
    "rt_hw_context_switch",
    "_tx_thread_system_return",
    "__switch_to",
    "swapcontext",
    "cpu_switch_to",
    "_CPU_Context_switch",
    "z_arm64_context_switch",
    "jump_fcontext",
];

/// Functions with which a cleanup ends that a thrown exception ran (IHI 0041D, 9.2).
const UNWINDS: [&str; 2] = ["_Unwind_Resume", "__cxa_end_cleanup"];

impl Functions {
    pub(super) fn new(code: Arc<Code>) -> Self {
        Self {
            code: CodeInContext::new(code),
            blocks: QuickMap::default(),
            special: QuickMap::default(),
            entered: Box::default(),
        }
    }

    /// Whether the context ID changes with each task.
    pub(super) fn states_tasks(&self) -> bool {
        self.code.states_tasks
    }

    /// Takes the next element, which may change the view of the program.
    pub(super) fn element(&mut self, element: &Element) {
        let before = self.code.seen();
        self.code.element(element);
        if self.code.seen() != before {
            self.entered.fill(None);
        }
    }

    /// Changes to the view of the program at another place.
    pub(super) fn see(&mut self, code: CodeInContext) {
        self.code = code;
        self.entered.fill(None);
    }

    pub(super) const fn code(&self) -> &CodeInContext {
        &self.code
    }

    /// The function with an instruction at `at`, if `at` was reached in a way that makes it an entry. `at` is the entry if no
    /// symbol names one.
    #[inline]
    pub(super) fn entered(&mut self, at: Address) -> FunctionId {
        self.at(at).function
    }

    #[inline]
    fn at(&mut self, at: Address) -> Entered {
        let index = ((at.get() ^ at.get() >> 11) >> 1) as usize % ENTERED;
        match self.entered.get(index) {
            Some(Some(known)) if known.at == at => *known,
            _ => self.look_up(index, at),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, index: usize, at: Address) -> Entered {
        let function = FunctionId::entered(at, &self.code);
        let found = Entered { at, function, special: self.special_by_name(function) };
        if self.entered.is_empty() {
            self.entered = vec![None; ENTERED].into();
        }
        if let Some(place) = self.entered.get_mut(index) {
            *place = Some(found);
        }
        found
    }

    /// Whether a function starts at `at`.
    pub(super) fn is_start(&mut self, at: Address) -> bool {
        matches!(self.entered(at), FunctionId::Named(start, _) if start == at)
    }

    /// The start of the function that `at` belongs to by the symbols.
    pub(super) fn named(&self, at: Address) -> Option<Address> {
        self.code.symbols.function(at).map(|function| function.start)
    }

    /// What a function does to the stack beyond calling and returning.
    #[inline]
    pub(super) fn special(&mut self, function: FunctionId) -> Special {
        let FunctionId::Named(start, _) = function else { return Special::Nothing };
        let known = self.at(start);
        if known.function == function { known.special } else { self.special_by_name(function) }
    }

    fn special_by_name(&mut self, function: FunctionId) -> Special {
        let FunctionId::Named(start, _) = function else { return Special::Nothing };
        if let Some(known) = self.special.get(&(self.code.view(), start)) {
            return *known;
        }
        let found = self.code.symbols.function(start).map_or(Special::Nothing, |function| {
            let name = function.name;
            if SETS_JUMP.contains(&name) {
                Special::SetsJump
            } else if SCHEDULES.contains(&name) {
                Special::Schedules
            } else if SWITCHES.contains(&name) {
                Special::Switches
            } else if UNWINDS.contains(&name) {
                Special::Unwinds
            } else {
                Special::Nothing
            }
        });
        self.special.insert((self.code.view(), start), found);
        found
    }

    /// A block's parts by function.
    pub(super) fn pieces(&mut self, block: &Block) -> Pieces {
        let key = (self.code.view(), block.start, block.end, block.isa);
        if let Some(known) = self.blocks.get(&key) {
            return known.clone();
        }
        let found = self.divide(block);
        if self.blocks.len() >= MOST_BLOCKS {
            self.blocks.clear();
        }
        self.blocks.insert(key, found.clone());
        found
    }

    fn divide(&self, block: &Block) -> Pieces {
        let mut function = self.named(block.start);
        if function == self.named(block.last) {
            // Functions do not interleave: bytes between two instructions of one function are its own code, or data.
            let switches =
                matches!(Next::after(block), Some(Next::Return)) && changes_stack(block, &self.code.program);
            return if switches { Pieces::Switching } else { Pieces::One };
        }
        let mut pieces: Vec<Piece> = Vec::new();
        let mut at = block.start;
        for _ in 0..block.instructions {
            let next = self.code.after(Location::new(at, block.isa));
            let before = std::mem::replace(&mut function, self.named(at));
            match pieces.last_mut().filter(|_| function == before) {
                Some(piece) => {
                    piece.end = next;
                    piece.instructions += 1;
                }
                None => pieces.push(Piece { start: at, end: next, isa: block.isa, instructions: 1 }),
            }
            at = next;
        }
        Pieces::Several(pieces.into())
    }
}
