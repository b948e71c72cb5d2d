//! Possible output of a trace unit: packets that describe a path through the program.
//!
//! Written only for the tests, instruction by instruction, from the documents (IHI 0014Q, IHI 0035B), and
//! stricter than flow: it doubts everything that the trace and the program allow to doubt. Damage that leaves
//! a possible trace is undetectable.

use tracewalk::ids::{Address, Isa, Location};
use tracewalk::isa::{Barrier, Class, Instruction, Return, classify};
use tracewalk::program::Program;
use tracewalk::protocol::{Describe, Field};
use tracewalk::source::SourceConfig;

/// The fields of a packet that can be wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    atoms: String,
    address: Option<Address>,
    isa: Option<Isa>,
    exception: Option<u64>,
    /// The deprecated code of exceptions, in address byte 5.
    deprecated: Option<u64>,
    cancel: bool,
    reason: Option<u64>,
    context_id: Option<u64>,
    time: Option<u64>,
}

impl Fields {
    pub(crate) fn of(packet: &dyn Describe) -> Self {
        let mut fields = Self::default();
        packet.fields(&mut |name, field| match (name, field) {
            ("atoms", Field::Text(atoms)) => atoms.clone_into(&mut fields.atoms),
            ("addr", Field::Address(address)) => fields.address = Some(address),
            ("isa", Field::Text(name)) => {
                let all = [Isa::A32, Isa::T32, Isa::T32EE, Isa::Jazelle];
                fields.isa = all.into_iter().find(|isa| isa.name() == name);
            }
            ("exception", Field::Number(number)) => fields.exception = Some(number),
            ("eee", Field::Number(code)) => fields.deprecated = Some(code),
            ("cancel", Field::Number(cancel)) => fields.cancel = cancel != 0,
            ("reason", Field::Number(reason)) => fields.reason = Some(reason),
            ("context_id", Field::Number(context_id)) => fields.context_id = Some(context_id),
            ("timestamp", Field::Number(time)) => fields.time = Some(time),
            _ => {}
        });
        fields
    }
}

impl Fields {
    /// The exception that a branch reports, in the numbering of the processor's profile.
    fn exception(&self) -> Result<Option<u64>, Impossible> {
        let Some(code) = self.deprecated else { return Ok(self.exception) };
        // IHI 0014Q, table 7.7.
        Ok(Some(match (code, self.address.map(|address| address.get() & 0x1f)) {
            (0, Some(0x00)) => 8,
            (0, Some(0x04)) => 9,
            (0, Some(0x08)) => 10,
            (0, Some(0x0c)) => 11,
            (0, Some(0x10)) => 12,
            (1, _) => 14,
            (4, _) => 5,
            (5, _) => 15,
            (6, _) => 4,
            (7, _) => 1,
            (code, _) => return Err(format!("exception code {code}")),
        }))
    }
}

/// Follows packets through the program.
pub(crate) struct Possible<'a> {
    program: &'a Program,
    unit: Unit,
    place: Place,
    /// The instruction set of the last address that was sent.
    sent: Isa,
    /// ETMv3: the last atom, which an exception may cancel.
    held: Option<bool>,
    /// How many instructions from here on are in an IT block; `None` if unknown.
    it_block: Option<u8>,
    /// The return addresses of calls; `None` if calls were not seen.
    calls: Option<Vec<Location>>,
    context_id: Option<u64>,
    time: u64,
}

/// The known settings of the trace unit.
#[derive(Clone, Copy, Default)]
struct Unit {
    waypoints: bool,
    barriers: bool,
    return_stack: bool,
    m_profile: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Unknown,
    At(Location),
    /// An address was sent, and nothing ran since.
    Sent(Location),
    /// A branch was taken, and its target has to come.
    Taken(Location),
    /// In debug state no traced instruction is executed.
    Debug,
}

/// The reason why packets cannot be a trace of this program.
pub(crate) type Impossible = String;

const FARTHEST_WAYPOINT: usize = 4096;

impl<'a> Possible<'a> {
    pub(crate) fn new(config: &SourceConfig, program: &'a Program) -> Self {
        let unit = match config {
            SourceConfig::Etmv3(config) => {
                Unit { m_profile: config.profile() == tracewalk::ids::Profile::M, ..Unit::default() }
            }
            SourceConfig::Pft(config) => Unit {
                waypoints: true,
                barriers: config.barriers_are_waypoints(),
                return_stack: config.return_stack(),
                m_profile: false,
            },
            _ => Unit::default(),
        };
        Self {
            program,
            unit,
            place: Place::Unknown,
            sent: Isa::A32,
            held: None,
            it_block: None,
            calls: None,
            context_id: None,
            time: 0,
        }
    }

    /// Trace was lost, or reported to be wrong: nothing is known.
    pub(crate) fn lose(&mut self) {
        self.place = Place::Unknown;
        self.held = None;
        self.it_block = None;
        self.calls = None;
        self.context_id = None;
        self.time = 0;
    }

    /// The next packet.
    pub(crate) fn packet(&mut self, name: &str, fields: &Fields) -> Result<(), Impossible> {
        match name {
            "p_header" => fields.atoms.bytes().filter(|atom| *atom != b'W').try_for_each(|atom| {
                let last = self.held.replace(atom == b'E');
                last.map_or(Ok(()), |executed| self.instruction(executed))
            }),
            "atom" => fields.atoms.bytes().try_for_each(|atom| self.waypoint(atom == b'E')),
            "branch" => self.branch(fields),
            "i_sync" => self.i_sync(fields),
            "waypoint_update" => self.run_through(fields),
            "context_id" => {
                self.context_id = fields.context_id;
                Ok(())
            }
            "timestamp" => {
                let time = fields.time.filter(|time| *time != 0).unwrap_or(self.time);
                let before = std::mem::replace(&mut self.time, time);
                if time < before { Err(format!("time {time} after {before}")) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// The last atom can no longer be cancelled.
    fn release(&mut self) -> Result<(), Impossible> {
        self.held.take().map_or(Ok(()), |executed| self.instruction(executed))
    }

    fn branch(&mut self, fields: &Fields) -> Result<(), Impossible> {
        let isa = fields.isa.unwrap_or(self.sent);
        self.sent = isa;
        let target = fields.address.map(|address| Location::new(address, isa));
        let Some(exception) = fields.exception()?.filter(|exception| *exception != 0) else {
            self.release()?;
            let Some(target) = target else { return Ok(()) };
            if self.unit.waypoints {
                return self.waypoint_to(target);
            }
            return self.go_on_at(target);
        };
        if fields.cancel {
            self.held = None;
        }
        self.release()?;
        if exception == 1 && !self.unit.m_profile {
            self.place = Place::Debug;
            return Ok(());
        }
        if self.place == Place::Debug {
            return Err("debug-state: exception".into());
        }
        if let Some(target) = target.filter(|_| !self.unit.m_profile) {
            let vector = match exception {
                4 | 12 => 0x10,
                8 => 0x00,
                9 => 0x04,
                2 | 10 => 0x08,
                11 => 0x0c,
                14 => 0x18,
                15 => 0x1c,
                3 => 0x14,
                5 | 13 => target.address.get() & 0x1f,
                _ => return Err(format!("exception {exception}")),
            };
            if target.address.get() & 0x1f != vector {
                return Err(format!("exception {exception} at {target}"));
            }
        }
        self.it_block = Some(0);
        self.place = target.map_or(Place::Unknown, Place::At);
        Ok(())
    }

    /// The place of execution, if known.
    fn at(&self) -> Option<Location> {
        match self.place {
            Place::At(at) | Place::Sent(at) => Some(at),
            Place::Unknown | Place::Taken(_) | Place::Debug => None,
        }
    }

    fn i_sync(&mut self, fields: &Fields) -> Result<(), Impossible> {
        let location = fields.address.zip(fields.isa).map(|(address, isa)| Location::new(address, isa));
        self.release()?;
        let found = (self.place, fields.reason, location);
        let context = (self.context_id, fields.context_id);
        self.context_id = fields.context_id;
        self.calls = Some(Vec::new());
        if let Some(location) = location {
            self.sent = location.isa;
            if fields.reason != Some(0) || self.at() != Some(location) {
                self.it_block = None;
            }
            self.place = Place::At(location);
        }
        match found {
            (Place::At(at) | Place::Sent(at), Some(0), Some(location)) if at != location => {
                return Err(format!("periodic I-sync at {location} instead of {at}"));
            }
            (Place::Taken(at), Some(1 | 3), _) => {
                return Err(format!("dead-end {at}: trace-on"));
            }
            (Place::Debug, Some(0), _) => return Err("debug-state: i-sync".into()),
            _ => {}
        }
        match context {
            (Some(before), now) if fields.reason == Some(0) && Some(before) != now => {
                Err(format!("context {now:?} after {before}"))
            }
            _ => Ok(()),
        }
    }

    /// The trace gives the place where execution continues.
    fn go_on_at(&mut self, target: Location) -> Result<(), Impossible> {
        let from = std::mem::replace(&mut self.place, Place::Sent(target));
        match from {
            // Direct branches may send a redundant address. If there are several addresses, the last one counts.
            Place::At(at) if at != target => Err(format!("at {target} instead of {at}")),
            Place::Debug => Err("debug-state: branch".into()),
            Place::Taken(at) => {
                let returns =
                    self.fetch(at).is_some_and(|instruction| instruction.returns == Some(Return::Exception));
                self.it_block = (!returns).then_some(0);
                Ok(())
            }
            Place::Unknown => {
                self.it_block = None;
                Ok(())
            }
            Place::At(_) | Place::Sent(_) => Ok(()),
        }
    }

    fn fetch(&self, at: Location) -> Option<Instruction> {
        classify(self.program.code(at.address)?, at.address, at.isa).ok()
    }

    /// The place of execution, and the instruction there.
    fn next(&mut self) -> Result<Option<(Location, Instruction)>, Impossible> {
        match self.place {
            Place::Unknown => Ok(None),
            Place::Debug => Err("debug-state: execution".into()),
            Place::Taken(at) => Err(format!("dead-end {at}: execution")),
            Place::At(at) | Place::Sent(at) => {
                let found = self.fetch(at).map(|instruction| (at, instruction));
                if found.is_none() {
                    self.lose_place();
                }
                Ok(found)
            }
        }
    }

    fn lose_place(&mut self) {
        self.place = Place::Unknown;
        self.it_block = None;
        self.calls = None;
    }

    /// One instruction of ETMv3.
    fn instruction(&mut self, executed: bool) -> Result<(), Impossible> {
        let Some((at, instruction)) = self.next()? else { return Ok(()) };
        let class = if instruction.is_branch() { instruction.class } else { Class::Other };
        self.pass(at, &Instruction { class, ..instruction }, executed)
    }

    /// Everything before the next waypoint.
    fn run(&mut self) -> Result<Option<(Location, Instruction)>, Impossible> {
        for _ in 0..FARTHEST_WAYPOINT {
            let Some((at, instruction)) = self.next()? else { return Ok(None) };
            let is_waypoint = match instruction.class {
                Class::Direct(_) | Class::Indirect | Class::Barrier(Barrier::Isb) => true,
                Class::Barrier(_) => self.unit.barriers,
                Class::Wait | Class::TransactionStart | Class::Other => false,
            };
            if is_waypoint {
                return Ok(Some((at, instruction)));
            }
            self.pass(at, &Instruction { class: Class::Other, ..instruction }, true)?;
        }
        Err("no waypoint".into())
    }

    /// One atom of PFT.
    fn waypoint(&mut self, executed: bool) -> Result<(), Impossible> {
        let Some((at, instruction)) = self.run()? else { return Ok(()) };
        self.pass(at, &instruction, executed)?;
        if executed && instruction.class == Class::Indirect {
            if !self.unit.return_stack {
                return Err(format!("address-missing: branch {at}"));
            }
            let Some(calls) = &mut self.calls else {
                self.place = Place::Unknown;
                return Ok(());
            };
            // An indirect call does not return to the address that it pushed itself.
            let own = if instruction.link { calls.pop() } else { None };
            let target = calls.pop();
            calls.extend(own);
            let target = target.ok_or_else(|| format!("call-missing: return {at}"))?;
            self.place = Place::At(target);
        }
        Ok(())
    }

    fn waypoint_to(&mut self, target: Location) -> Result<(), Impossible> {
        if let Some((at, instruction)) = self.run()? {
            self.pass(at, &instruction, true)?;
        }
        self.go_on_at(target)
    }

    /// A waypoint update.
    fn run_through(&mut self, fields: &Fields) -> Result<(), Impossible> {
        let isa = fields.isa.unwrap_or(self.sent);
        self.sent = isa;
        let Some(last) = fields.address else { return Ok(()) };
        while let Some((at, instruction)) = self.next()? {
            if at.address > last {
                return Ok(());
            }
            if instruction.is_branch() {
                return Err(format!("run to {last}: branch {at}"));
            }
            if at.after(instruction.bytes.into()).address > last && at.address != last {
                return Err(format!("run to {last}: inside {at}"));
            }
            self.pass(at, &Instruction { class: Class::Other, ..instruction }, true)?;
        }
        Ok(())
    }

    fn pass(&mut self, at: Location, instruction: &Instruction, executed: bool) -> Result<(), Impossible> {
        let in_block = match self.it_block {
            Some(left) => left > 0,
            None => self.may_be_in_it_block(at),
        };
        let is_barrier = matches!(instruction.class, Class::Barrier(_));
        if !executed && !is_barrier && !instruction.conditional && !in_block {
            return Err(format!("unconditional {at} fails"));
        }
        self.it_block = match (self.it_block, instruction.it_block) {
            (_, block @ 1..) => Some(block),
            (Some(left), 0) => Some(left.saturating_sub(1)),
            (None, 0) => None,
        };
        let after = at.after(instruction.bytes.into());
        self.place = match instruction.class {
            Class::Direct(target) if executed => {
                self.it_block = Some(0);
                Place::At(target)
            }
            Class::Indirect if executed => Place::Taken(at),
            _ => Place::At(after),
        };
        if executed
            && instruction.link
            && let Some(calls) = &mut self.calls
        {
            calls.push(after);
        }
        Ok(())
    }

    /// Whether some earlier IT instruction reaches this one.
    fn may_be_in_it_block(&self, at: Location) -> bool {
        let reaches = |halfwords: i64| {
            let mut place = at.moved(-2 * halfwords);
            let block = self.fetch(place).map_or(0, |instruction| instruction.it_block);
            place = place.after(2);
            (0..block).any(|_| {
                let found = place == at;
                let bytes = self.fetch(place).map_or(2, |instruction| instruction.bytes);
                place = place.after(bytes.into());
                found
            })
        };
        at.isa.is_thumb() && (1..=7).any(reaches)
    }
}
