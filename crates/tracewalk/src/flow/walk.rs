//! Following directives instruction by instruction.
//!
//! ```text
//! position: nowhere | at an instruction | behind an indirect branch, waiting for its target
//! to pass an instruction: fetch it, classify it, add it to the open block;
//!     a taken direct branch moves the position, a taken indirect one waits, everything else goes on behind itself
//! a branch, a failed condition and every event close the open block
//! what the image cannot confirm is a Gap, and the position is nowhere until the trace names one
//! ```

use crate::directive::{BeginReason, Directive, PreferredReturn, Rules, RunEnd, Transfer};
use crate::ids::{Address, ContextId, Exception, Isa, Location, SecurityState, Vmid};
use crate::isa::{self, Barrier, Class, Instruction, Return, Unclassified};
use crate::program::Program;
use crate::span::Span;

use super::data::DataState;
use super::element::{Block, BranchKind, Contradiction, Element, Ending, Event, EventKind, Gap, GapReason};
use super::location_stack::LocationStack;
use super::vectors::{self, Entered};

/// The plain walk: the oracle for anything faster.
///
/// ```
/// use tracewalk::directive::{BeginReason, Directive, Rules};
/// use tracewalk::flow::{Element, Walk};
/// use tracewalk::ids::{Address, Isa, Location};
/// use tracewalk::program::Program;
/// use tracewalk::span::Span;
///
/// let mut program = Program::new();
/// program.add(Address(0x100), &[0x01, 0x20, 0x70, 0x47])?; // movs r0, #1; bx lr
/// let mut walk = Walk::new(Rules::default());
/// let mut blocks = Vec::new();
/// let mut note = |element| {
///     if let Element::Block(block) = element {
///         blocks.push((block.start, block.end));
///     }
/// };
/// let at = Some(Location::new(Address(0x100), Isa::T32));
/// walk.follow(&program, Directive::Begin { at, why: BeginReason::Enabled }, Span::default(), &mut note);
/// walk.follow(&program, Directive::Instructions { executed: 2, then_failed: false }, Span::default(), &mut note);
/// walk.finish(&mut note);
/// assert_eq!(blocks, [(Address(0x100), Address(0x104))]);
/// # Ok::<(), tracewalk::program::AddRegionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Walk {
    rules: Rules,
    position: Position,
    open: Option<OpenBlock>,
    /// Where predicted returns go: behind the calls that were executed.
    return_stack: LocationStack,
    /// Where exceptions were taken from and execution has not returned to.
    interrupted: LocationStack,
    /// The instruction passed last, as long as nothing has said yet where execution went from there.
    unconfirmed: Option<Passed>,
    /// The instruction passed last.
    last: Option<Location>,
    /// How many instructions the last IT instruction still makes conditional.
    it_block: u8,
    /// Whether the first half of a 32-bit Thumb instruction was passed, where halfwords count.
    half_passed: bool,
    context: Context,
    data: DataState,
}

/// Where execution has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Unknown, and said so.
    Nowhere,
    /// Here.
    At(Location),
    /// Where the last instruction went, which the trace has still to say.
    Elsewhere,
}

/// Instructions that were passed and not told yet.
#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    start: Address,
    end: Address,
    last: Address,
    isa: Isa,
    instructions: u32,
    span: Span,
}

/// An instruction that was passed.
#[derive(Clone, Copy, Debug)]
struct Passed {
    at: Location,
    class: Class,
    returns: Option<Return>,
    taken: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Context {
    context_id: Option<ContextId>,
    vmid: Option<Vmid>,
    security: SecurityState,
}

/// What stopped a walk that should have gone on.
enum Stop {
    Gap(GapReason),
    /// The position was lost before, and that was said.
    Nowhere,
}

impl From<Contradiction> for Stop {
    fn from(contradiction: Contradiction) -> Self {
        Self::Gap(GapReason::Contradiction(contradiction))
    }
}

/// How far the code may go on without a waypoint. A trace unit sends a waypoint update where more than 4096 bytes lie
/// between waypoints (IHI 0035B, 4.6).
const FARTHEST_WAYPOINT: u32 = 4096 + 8;
/// How far a run that names its end may go. Straight code of this length is not a program, and every eight bytes of a
/// damaged MTB buffer may ask for a run.
const LONGEST_RUN: u32 = 1 << 16;

impl Walk {
    /// A walk that knows no position yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            position: Position::Nowhere,
            open: None,
            return_stack: LocationStack::new(),
            interrupted: LocationStack::new(),
            unconfirmed: None,
            last: None,
            it_block: 0,
            half_passed: false,
            context: Context::default(),
            data: DataState::default(),
        }
    }

    /// Follows one directive and calls `sink` with what it proves. `span` is the trace that it came from.
    pub fn follow(
        &mut self,
        program: &Program,
        directive: Directive,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        match directive {
            Directive::Instructions { executed, then_failed } => {
                self.instructions(program, executed, then_failed, span, sink);
            }
            Directive::Waypoint { executed } => {
                let result = self.waypoint(program, executed, span, sink);
                self.stop(result, span, sink);
            }
            Directive::WaypointTo(target) => self.waypoint_to(program, target, span, sink),
            Directive::RunTo { address, end } => {
                let result = self.run_to(program, address, end, span, sink);
                self.stop(result, span, sink);
            }
            Directive::Continue(target) => self.go_on_at(target, span, sink),
            Directive::Resume(target) => self.resume(program, target, span, sink),
            Directive::Begin { at, why } => {
                self.jump(at);
                self.return_stack.clear();
                self.last = None;
                self.event(EventKind::TraceOn(why), span, sink);
            }
            Directive::Confirm(at) => self.confirm(at, span, sink),
            Directive::Exception { exception, handler, preferred_return } => {
                self.exception(program, exception, handler, preferred_return, span, sink);
            }
            Directive::ExceptionReturn => self.event(EventKind::ExceptionReturn, span, sink),
            Directive::ContextId(context_id) => {
                self.context(Context { context_id: Some(context_id), ..self.context }, span, sink);
            }
            Directive::Vmid(vmid) => self.context(Context { vmid: Some(vmid), ..self.context }, span, sink),
            Directive::Security(security) => self.context(Context { security, ..self.context }, span, sink),
            Directive::Timestamp(time) => self.event(EventKind::Timestamp(time), span, sink),
            Directive::Cycles(cycles) => self.event(EventKind::Cycles(cycles), span, sink),
            Directive::Trigger => self.event(EventKind::Trigger, span, sink),
            Directive::Data(transfer) => self.transfer(program, transfer, span, sink),
            Directive::LateData { tag, value } => {
                if let Some(transfer) = self.data.late(tag, value) {
                    self.event(EventKind::Data(transfer), span, sink);
                }
            }
            Directive::Lost => {
                self.close(Ending::Interrupted, sink);
                sink(Element::Gap(Gap { reason: GapReason::TraceLost, span }));
                self.jump(None);
                self.return_stack.clear();
                self.last = None;
                self.data = DataState::default();
            }
        }
    }

    /// The trace ends here.
    pub fn finish(&mut self, sink: &mut impl FnMut(Element)) {
        self.close(Ending::Interrupted, sink);
    }

    fn instructions(
        &mut self,
        program: &Program,
        executed: u8,
        then_failed: bool,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        let atoms = core::iter::repeat_n(true, usize::from(executed)).chain(then_failed.then_some(false));
        for passed_condition in atoms {
            let result = self.atom(program, passed_condition, span, sink);
            self.stop(result, span, sink);
        }
    }

    /// One ETM atom: one instruction, or half of a 32-bit Thumb instruction.
    fn atom(
        &mut self,
        program: &Program,
        executed: bool,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(), Stop> {
        let (at, instruction) = self.next_instruction(program)?;
        if self.rules.halfwords_count && at.isa != Isa::A32 && instruction.bytes == 4 && !self.half_passed {
            self.half_passed = true;
            return Ok(());
        }
        self.half_passed = false;
        // A barrier is a waypoint only where waypoints are counted.
        let class = if instruction.is_branch() { instruction.class } else { Class::Other };
        self.pass(program, at, &Instruction { class, ..instruction }, executed, span, sink)
    }

    /// Everything up to and including the next waypoint.
    fn waypoint(
        &mut self,
        program: &Program,
        executed: bool,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(), Stop> {
        let (at, waypoint) = self.run_to_waypoint(program, span, sink)?;
        // The newest entry is the target; a BLX that was predicted has still to make its own.
        let predicted = if executed && waypoint.class == Class::Indirect {
            let popped = self.rules.return_stack.then(|| self.return_stack.pop()).flatten();
            Some(popped.ok_or(Contradiction::ReturnStackEmpty(at)))
        } else {
            None
        };
        self.pass(program, at, &waypoint, executed, span, sink)?;
        if let Some(target) = predicted {
            self.position = Position::At(target?);
            self.unconfirmed = None;
        }
        Ok(())
    }

    /// A waypoint that was executed, and went to `target`.
    fn waypoint_to(
        &mut self,
        program: &Program,
        target: Location,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        let passed = self
            .run_to_waypoint(program, span, sink)
            .and_then(|(at, waypoint)| self.pass(program, at, &waypoint, true, span, sink));
        self.stop(passed, span, sink);
        self.go_on_at(target, span, sink);
    }

    /// Passes what stands before the next waypoint, which it returns.
    fn run_to_waypoint(
        &mut self,
        program: &Program,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(Location, Instruction), Stop> {
        let mut start = None;
        loop {
            let (at, instruction) = self.next_instruction(program)?;
            if self.is_waypoint(&instruction) {
                return Ok((at, instruction));
            }
            let start = *start.get_or_insert(at);
            if at.address.bytes_since(start.address) > FARTHEST_WAYPOINT {
                return Err(Contradiction::NoBranchInReach(start).into());
            }
            let plain = Instruction { class: Class::Other, ..instruction };
            self.pass(program, at, &plain, true, span, sink)?;
        }
    }

    fn is_waypoint(&self, instruction: &Instruction) -> bool {
        match instruction.class {
            Class::Direct(_) | Class::Indirect | Class::Barrier(Barrier::Isb) => true,
            Class::Barrier(Barrier::Dmb | Barrier::Dsb) => self.rules.barriers_are_waypoints,
            Class::Other => false,
        }
    }

    /// Everything up to `until`.
    fn run_to(
        &mut self,
        program: &Program,
        until: Address,
        end: RunEnd,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(), Stop> {
        let Position::At(from) = self.position else { return self.not_at_an_instruction() };
        let misses = Contradiction::RunMissesEnd { from, until };
        if until < from.address || until.bytes_since(from.address) > LONGEST_RUN {
            return Err(misses.into());
        }
        loop {
            let Position::At(at) = self.position else { return self.not_at_an_instruction() };
            let arrived = match end {
                RunEnd::Through => at.address > until,
                RunEnd::Before | RunEnd::Jumps => at.address >= until,
            };
            if arrived {
                return match end {
                    RunEnd::Jumps if at.address == until => self.jump_from_here(program, span, sink),
                    RunEnd::Before | RunEnd::Jumps if at.address != until => Err(misses.into()),
                    _ => Ok(()),
                };
            }
            self.pass_inside_run(program, until, end, span, sink)?;
        }
    }

    /// An instruction of a run, which does not branch.
    fn pass_inside_run(
        &mut self,
        program: &Program,
        until: Address,
        end: RunEnd,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(), Stop> {
        let (at, instruction) = self.next_instruction(program)?;
        if !instruction.is_branch() {
            // Before a waypoint update no waypoint was passed, a barrier no more than a branch.
            if end == RunEnd::Through && self.is_waypoint(&instruction) {
                return Err(Contradiction::RunPassesBranch { at, until }.into());
            }
            let plain = Instruction { class: Class::Other, ..instruction };
            return self.pass(program, at, &plain, true, span, sink);
        }
        // A branch to the next address changes nothing that an MTB must write a packet for (DDI 0486B, 2.3.1).
        let next = Location::new(at.address.plus(u32::from(instruction.bytes)), at.isa);
        if end != RunEnd::Through && instruction.class == Class::Direct(next) && !instruction.conditional {
            return self.pass(program, at, &instruction, true, span, sink);
        }
        let may_not_branch = instruction.conditional || self.in_it_block(program, at);
        if end == RunEnd::Through || !may_not_branch {
            return Err(Contradiction::RunPassesBranch { at, until }.into());
        }
        self.pass(program, at, &instruction, false, span, sink)
    }

    /// The instruction here was executed and jumped; the trace says where to.
    fn jump_from_here(
        &mut self,
        program: &Program,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(), Stop> {
        let (at, instruction) = self.next_instruction(program)?;
        // Behind an instruction that cannot jump flow goes on, and what the trace says next contradicts that.
        let class = if instruction.is_branch() { instruction.class } else { Class::Other };
        self.pass(program, at, &Instruction { class, ..instruction }, true, span, sink)
    }

    /// Fetches and classifies the instruction at the position.
    fn next_instruction(&mut self, program: &Program) -> Result<(Location, Instruction), Stop> {
        let Position::At(at) = self.position else { return self.not_at_an_instruction() };
        let Some(code) = program.code(at.address) else {
            return Err(Stop::Gap(match at.isa {
                Isa::Jazelle => GapReason::Undecodable(at, Unclassified::Jazelle),
                _ => GapReason::NoCode(at),
            }));
        };
        match isa::classify(code, at.address, at.isa) {
            Ok(instruction) => Ok((at, instruction)),
            Err(why) => Err(Stop::Gap(GapReason::Undecodable(at, why))),
        }
    }

    fn not_at_an_instruction<T>(&self) -> Result<T, Stop> {
        Err(match self.position {
            Position::Elsewhere => Stop::Gap(GapReason::AddressUnknown),
            _ => Stop::Nowhere,
        })
    }

    /// Adds one instruction to the open block and moves on.
    fn pass(
        &mut self,
        program: &Program,
        at: Location,
        instruction: &Instruction,
        executed: bool,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) -> Result<(), Stop> {
        // PFTv1.0 does not say of a barrier whether it was executed: either atom only says that it was passed.
        let barrier = matches!(instruction.class, Class::Barrier(_));
        if !executed && !barrier && !instruction.conditional && !self.in_it_block(program, at) {
            return Err(Contradiction::UnconditionalFailed(at).into());
        }
        let behind = Location::new(at.address.plus(u32::from(instruction.bytes)), at.isa);
        let open = self.open.get_or_insert(OpenBlock {
            start: at.address,
            end: at.address,
            last: at.address,
            isa: at.isa,
            instructions: 0,
            span,
        });
        open.end = behind.address;
        open.last = at.address;
        open.instructions += 1;
        open.span = span;
        self.it_block =
            if instruction.it_block > 0 { instruction.it_block } else { self.it_block.saturating_sub(1) };
        self.last = Some(at);
        self.unconfirmed =
            Some(Passed { at, class: instruction.class, returns: instruction.returns, taken: executed });
        let kind = match instruction.class {
            Class::Other => None,
            Class::Direct(_) => Some(BranchKind::Direct),
            Class::Indirect => Some(BranchKind::Indirect),
            Class::Barrier(_) => Some(BranchKind::Barrier),
        };
        self.position = match instruction.class {
            Class::Direct(target) if executed => Position::At(target),
            Class::Indirect if executed => Position::Elsewhere,
            _ => Position::At(behind),
        };
        if executed && instruction.link && self.rules.return_stack {
            self.return_stack.push(behind);
        }
        if let Some(kind) = kind {
            let (link, returns) = (instruction.link, instruction.returns);
            self.close(Ending::Branch { kind, taken: executed, link, returns }, sink);
        } else if !executed {
            self.close(Ending::ConditionFailed, sink);
        }
        Ok(())
    }

    /// Whether an IT instruction may make the instruction at `at` conditional. Execution may have come into an IT block
    /// by a return from an exception, so that the code before it counts as well as what was passed.
    fn in_it_block(&self, program: &Program, at: Location) -> bool {
        /// An IT instruction governs four instructions of four bytes at the most.
        const FARTHEST_IT: u32 = 1 + 3 * 2;
        if self.it_block > 0 {
            return true;
        }
        let is_it = |halfwords: u32| {
            let address = Address(at.address.0.wrapping_sub(2 * halfwords));
            let code = program.code(address).and_then(<[u8]>::first_chunk::<2>);
            code.is_some_and(|code| code[1] == 0b1011_1111 && code[0] & 0b1111 != 0)
        };
        at.isa != Isa::A32 && (1..=FARTHEST_IT).any(is_it)
    }

    /// Where the trace says that execution goes on.
    fn go_on_at(&mut self, target: Location, span: Span, sink: &mut impl FnMut(Element)) {
        let target = self.resumed(target);
        if let (Some(passed), Position::At(expected)) = (self.unconfirmed, self.position)
            && expected != target
        {
            let contradiction = match passed {
                Passed { at, class: Class::Direct(expected), taken: true, .. } => {
                    Contradiction::WrongTarget { at, expected, found: target }
                }
                Passed { at, .. } => Contradiction::NotABranch { at, went_to: target },
            };
            self.contradict(contradiction, span, sink);
        }
        if self.position != Position::At(target) {
            self.close(Ending::Interrupted, sink);
        }
        self.position = Position::At(target);
        self.unconfirmed = None;
        self.half_passed = false;
    }

    /// Where a return from an exception really goes that the trace says goes to `target`.
    ///
    /// A change of the instruction set needs an address of five bytes. Where the next exception comes before the first
    /// instruction behind a return, captures were seen to send fewer: the instruction set is then that of the handler,
    /// and the address is rounded down to its alignment. A return into the word that was interrupted, in another
    /// instruction set, is such a one: it goes where the exception was taken from.
    fn resumed(&mut self, target: Location) -> Location {
        let returns =
            self.unconfirmed.is_some_and(|passed| passed.taken && passed.returns == Some(Return::Exception));
        let interrupted = if returns { self.interrupted.pop() } else { None };
        let rounded = |interrupted: &Location| {
            interrupted.address != target.address
                && interrupted.address.aligned_for(target.isa) == target.address
        };
        interrupted.filter(rounded).unwrap_or(target)
    }

    /// A periodic synchronisation.
    fn confirm(&mut self, at: Location, span: Span, sink: &mut impl FnMut(Element)) {
        match self.position {
            Position::At(expected) if expected == at => {}
            Position::At(expected) => {
                self.contradict(Contradiction::WrongPosition { expected, found: at }, span, sink);
                self.jump(Some(at));
            }
            Position::Nowhere | Position::Elsewhere => self.jump(Some(at)),
        }
        self.return_stack.clear();
    }

    fn exception(
        &mut self,
        program: &Program,
        exception: Option<Exception>,
        handler: Option<Location>,
        preferred_return: PreferredReturn,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        let preferred_return = match (preferred_return, self.position) {
            (PreferredReturn::At(address), _) => Some(address),
            (PreferredReturn::Next, Position::At(at)) => Some(at.address),
            (PreferredReturn::Last, _) => self.last.map(|last| last.address),
            _ => None,
        };
        if let (Position::At(at), Some(_)) = (self.position, preferred_return) {
            self.interrupted.push(at);
        }
        let entered = match (exception, handler) {
            (None, Some(handler)) if self.rules.vectors_hold_addresses => vectors::entered(program, handler),
            _ => Entered::Exception(exception),
        };
        let kind = match entered {
            Entered::Exception(exception) => EventKind::Exception { exception, preferred_return, handler },
            Entered::ByDebugger => EventKind::TraceOn(BeginReason::DebugExit),
        };
        self.event(kind, span, sink);
        self.jump(handler);
    }

    /// Where execution goes on behind a return from an exception.
    fn resume(&mut self, program: &Program, target: Location, span: Span, sink: &mut impl FnMut(Element)) {
        match vectors::tail_chained(program, target) {
            Some(exception) => {
                let handler = Some(target);
                self.event(EventKind::Exception { exception, preferred_return: None, handler }, span, sink);
                self.jump(handler);
            }
            None => self.go_on_at(target, span, sink),
        }
    }

    fn transfer(
        &mut self,
        program: &Program,
        transfer: Transfer,
        span: Span,
        sink: &mut impl FnMut(Element),
    ) {
        if let Some(transfer) = self.data.transfer(program, self.last, transfer) {
            self.event(EventKind::Data(transfer), span, sink);
        }
    }

    /// Execution goes on at a place that the instruction passed last does not lead to.
    fn jump(&mut self, at: Option<Location>) {
        self.position = at.map_or(Position::Nowhere, Position::At);
        self.unconfirmed = None;
        self.it_block = 0;
        self.half_passed = false;
    }

    fn context(&mut self, context: Context, span: Span, sink: &mut impl FnMut(Element)) {
        self.context = context;
        let Context { context_id, vmid, security } = context;
        self.event(EventKind::Context { context_id, vmid, security }, span, sink);
    }

    fn event(&mut self, kind: EventKind, span: Span, sink: &mut impl FnMut(Element)) {
        self.close(Ending::Interrupted, sink);
        sink(Element::Event(Event { kind, span }));
    }

    fn contradict(&mut self, contradiction: Contradiction, span: Span, sink: &mut impl FnMut(Element)) {
        self.close(Ending::Interrupted, sink);
        sink(Element::Gap(Gap { reason: GapReason::Contradiction(contradiction), span }));
    }

    /// Tells why a walk stopped; the position is unknown from there on.
    fn stop(&mut self, result: Result<(), Stop>, span: Span, sink: &mut impl FnMut(Element)) {
        if let Err(stop) = result {
            self.close(Ending::Interrupted, sink);
            if let Stop::Gap(reason) = stop {
                sink(Element::Gap(Gap { reason, span }));
            }
            self.jump(None);
            // Calls and returns pass unseen now, and the trace unit's stack goes its own way.
            self.return_stack.clear();
        }
    }

    /// Tells the open block.
    fn close(&mut self, ending: Ending, sink: &mut impl FnMut(Element)) {
        if let Some(open) = self.open.take() {
            sink(Element::Block(Block {
                start: open.start,
                end: open.end,
                isa: open.isa,
                instructions: open.instructions,
                last: open.last,
                ending,
                span: open.span,
            }));
        }
    }
}
