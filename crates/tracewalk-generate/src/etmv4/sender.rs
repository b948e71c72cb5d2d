//! The output end of the trace unit: atoms in packets, uncommitted elements, addresses in their shortest
//! form, cycle counts.

use tracewalk::ids::{Address, Isa, Location};
use tracewalk::protocol::etmv4::{
    AddressForm, AddressPacket, AddressUnit, Atoms, Config, Context, CycleCount, Encoder, Packet, Q,
    SentAddress, Timestamp, TraceInfo,
};

use super::options::{ContextPlace, Options};
use crate::time::Clock;
use crate::trace::EncodeError;

/// Sends a trace unit's packets.
pub(super) struct Sender<'a> {
    pub(super) config: &'a Config,
    pub(super) options: &'a Options,
    encoder: Encoder,
    pub(super) bytes: Vec<u8>,
    /// Atoms that are still to be sent.
    atoms: Vec<bool>,
    /// P0 elements that were sent and may still be cancelled. Invariant: at most MAXSPEC.
    uncommitted: u64,
    since_commit: u64,
    choices: Choices,
    pub(super) clock: Clock,
    /// Cycles up to the last count that was sent.
    pub(super) cycles_sent: u64,
    /// The context that was sent last.
    context: Option<Context>,
}

/// Pseudo-random numbers with a fixed seed.
struct Choices(u32);

impl Choices {
    const fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let limit = if limit == 0 { 1 } else { limit };
        (self.0 >> 8) as u64 % limit
    }
}

impl<'a> Sender<'a> {
    pub(super) fn new(config: &'a Config, options: &'a Options) -> Self {
        Self {
            config,
            options,
            encoder: Encoder::new(config),
            bytes: Vec::new(),
            atoms: Vec::new(),
            uncommitted: 0,
            since_commit: 0,
            choices: Choices(1),
            clock: Clock::default(),
            cycles_sent: 0,
            context: None,
        }
    }

    /// Sends the atoms that are due, then `packet`.
    pub(super) fn send(&mut self, packet: &Packet) -> Result<(), EncodeError> {
        self.flush()?;
        self.append(packet)
    }

    fn append(&mut self, packet: &Packet) -> Result<(), EncodeError> {
        self.encoder
            .encode(packet, &mut self.bytes)
            .map_err(|error| EncodeError::Packet { message: format!("{error}: {packet:x?}") })
    }

    /// Adds the atom of a P0 instruction.
    pub(super) fn atom(&mut self, executed: bool) -> Result<(), EncodeError> {
        self.atoms.push(executed);
        if self.atoms.len() >= usize::from(Atoms::MOST) { self.flush() } else { Ok(()) }
    }

    /// Drops the N atoms that were not sent since the last E atom: a source address packet implies them.
    pub(super) fn absorb_failed(&mut self) {
        while self.atoms.last() == Some(&false) {
            self.atoms.pop();
        }
    }

    /// Sends the atoms in as few packets as there are headers for.
    pub(super) fn flush(&mut self) -> Result<(), EncodeError> {
        let all = std::mem::take(&mut self.atoms);
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let longest = rest.len().min(usize::from(Atoms::MOST));
            let fitting = (1..=longest).rev().find_map(|count| {
                let (first, rest) = rest.split_at(count);
                let atoms = atoms_of(first)?;
                atoms.format().map(|_| (atoms, rest))
            });
            let Some((atoms, after)) = fitting else { break };
            self.append(&Packet::Atom(atoms))?;
            rest = after;
            self.p0_sent(atoms.count().into());
        }
        self.commit_if_due()
    }

    /// Counts P0 elements that were sent. Those beyond MAXSPEC are committed without a packet.
    pub(super) fn p0_sent(&mut self, count: u64) {
        self.since_commit += count;
        self.uncommitted = (self.uncommitted + count).min(self.config.greatest_speculation().into());
    }

    fn commit_if_due(&mut self) -> Result<(), EncodeError> {
        if self.uncommitted == 0 || self.since_commit < self.options.commit_every {
            return Ok(());
        }
        let count = 1 + self.choices.below(self.uncommitted);
        self.commit(count)
    }

    fn commit(&mut self, count: u64) -> Result<(), EncodeError> {
        self.since_commit = 0;
        self.uncommitted -= count;
        self.append(&Packet::Commit(count))
    }

    /// Commits everything that was sent.
    pub(super) fn commit_all(&mut self) -> Result<(), EncodeError> {
        self.flush()?;
        if self.uncommitted == 0 { Ok(()) } else { self.commit(self.uncommitted) }
    }

    /// Sends a wrong path and the way back from it; afterwards the newest atom is `executed`. `false` if the
    /// unit does not speculate.
    pub(super) fn mispredict(
        &mut self,
        executed: bool,
        nearby: Location,
        exception: u16,
    ) -> Result<bool, EncodeError> {
        let most = u64::from(self.config.greatest_speculation());
        if most == 0 {
            return Ok(false);
        }
        self.flush()?;
        let wrong = !executed;
        let then = self.choices.below(most.min(9));
        if then == 0 {
            // The mispredict packet itself contains the atom that it inverts.
            self.append(&Packet::Mispredict(Some(Atoms::one(wrong))))?;
            self.p0_sent(1);
            self.commit_if_due()?;
            return Ok(true);
        }
        let replaced = self.choices.below(4) == 0;
        self.append(&Packet::Atom(Atoms::one(wrong)))?;
        self.p0_sent(1);
        self.go_wrong(then, nearby, exception)?;
        if replaced {
            // The wrong atom is cancelled as well; the right one follows.
            self.cancel(then + 1, false)?;
            self.atom(executed)?;
        } else {
            self.cancel(then, true)?;
        }
        Ok(true)
    }

    /// Sends a wrong path after correct elements.
    pub(super) fn stray(&mut self, nearby: Location, exception: u16) -> Result<(), EncodeError> {
        let most = u64::from(self.config.greatest_speculation());
        if most == 0 {
            return Ok(());
        }
        self.flush()?;
        let wrong = 1 + self.choices.below(most.min(40));
        self.go_wrong(wrong, nearby, exception)?;
        self.cancel(wrong, false)
    }

    /// Sends P0 elements that did not happen.
    fn go_wrong(&mut self, count: u64, nearby: Location, exception: u16) -> Result<(), EncodeError> {
        for _ in 0..count {
            if self.choices.below(8) == 0 {
                let number = exception;
                let address = tracewalk::protocol::etmv4::AddressInterpretation::Return;
                self.append(&Packet::Exception(tracewalk::protocol::etmv4::Exception {
                    number,
                    address,
                    fault_pending: false,
                }))?;
                self.append_address(nearby, None)?;
            } else {
                let executed = self.choices.below(2) == 0;
                self.append(&Packet::Atom(Atoms::one(executed)))?;
            }
            self.p0_sent(1);
            if self.choices.below(3) == 0 {
                let away = 4 * self.choices.below(1 << 12);
                self.append_address(nearby.after(away), None)?;
            }
        }
        Ok(())
    }

    fn cancel(&mut self, count: u64, mispredict: bool) -> Result<(), EncodeError> {
        let format = match (count, mispredict) {
            (1, true) => 2,
            (2..=5, true) => 3,
            _ => 1,
        };
        let cancel = tracewalk::protocol::etmv4::Cancel { format, atoms: None, count, mispredict };
        self.uncommitted -= count;
        self.append(&Packet::Cancel(cancel))
    }

    /// Sends A-sync and trace info.
    pub(super) fn synchronise(&mut self) -> Result<(), EncodeError> {
        self.send(&Packet::ASync)?;
        let threshold = if self.config.cycle_counting() { self.options.cycle_threshold } else { 0 };
        self.append(&Packet::TraceInfo(TraceInfo {
            info: self.config.cycle_counting().into(),
            key: None,
            speculation: self.uncommitted,
            threshold,
            commit_window: None,
        }))?;
        self.context = None;
        Ok(())
    }

    /// Ends the trace after a loss or discard; uncommitted elements are gone.
    pub(super) fn break_off(&mut self, packet: &Packet) -> Result<(), EncodeError> {
        self.uncommitted = 0;
        self.append(packet)
    }

    /// Sends where execution continues, and the context there if it changed.
    pub(super) fn address(&mut self, location: Location, context: Context) -> Result<(), EncodeError> {
        self.flush()?;
        if self.context == Some(context) {
            return self.append_address(location, None);
        }
        match self.options.contexts {
            ContextPlace::With => self.append_address(location, Some(context))?,
            ContextPlace::Before => {
                self.append(&Packet::Context(Some(context)))?;
                self.append_address(location, None)?;
            }
            ContextPlace::After => {
                self.append_address(location, None)?;
                self.append(&Packet::Context(Some(context)))?;
            }
        }
        self.context = Some(context);
        Ok(())
    }

    /// Sends the address of an exception, whose context is the previous one.
    pub(super) fn exception_address(&mut self, location: Location) -> Result<(), EncodeError> {
        self.append_address(location, None)?;
        self.p0_sent(1);
        Ok(())
    }

    /// Sends the context if it changed.
    pub(super) fn context(&mut self, context: Context) -> Result<(), EncodeError> {
        if self.context == Some(context) {
            return Ok(());
        }
        self.context = Some(context);
        self.send(&Packet::Context(Some(context)))
    }

    /// Whether the decoder knows this context.
    pub(super) fn knows(&self, context: Context) -> bool {
        self.context == Some(context)
    }

    fn append_address(&mut self, location: Location, context: Option<Context>) -> Result<(), EncodeError> {
        let mut last = None;
        for form in self.forms() {
            let sent = sent(location, form);
            match self.encoder.encode(&Packet::Address(AddressPacket { sent, context }), &mut self.bytes) {
                Ok(()) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        let message = last.map_or_else(String::new, |error| format!("{error}: {location}"));
        Err(EncodeError::Packet { message })
    }

    /// The forms of addresses, shortest first.
    fn forms(&self) -> impl Iterator<Item = AddressForm> + use<> {
        let exact = if self.options.exact_matches { 3 } else { 0 };
        let others = [AddressForm::Short, AddressForm::Long32, AddressForm::Long64];
        (0..exact).map(AddressForm::Exact).chain(others)
    }

    /// Sends that `count` instructions were executed and where execution continues. The decoder has to know
    /// the context.
    pub(super) fn q(&mut self, count: u64, then: Location) -> Result<(), EncodeError> {
        self.flush()?;
        let count = Some(count);
        let mut forms = self.forms().filter(|form| *form != AddressForm::Long64);
        let is_sent = forms.any(|form| {
            let packet = Packet::Q(Q { sent: Some(sent(then, form)), count });
            self.encoder.encode(&packet, &mut self.bytes).is_ok()
        });
        if !is_sent {
            self.append(&Packet::Q(Q { sent: None, count }))?;
            self.append_address(then, None)?;
        }
        self.p0_sent(1);
        Ok(())
    }

    /// Sends that execution reached and executed the waypoint at this place.
    pub(super) fn source(&mut self, at: Location) -> Result<(), EncodeError> {
        self.absorb_failed();
        self.flush()?;
        let is_sent = self
            .forms()
            .any(|form| self.encoder.encode(&Packet::SourceAddress(sent(at, form)), &mut self.bytes).is_ok());
        self.p0_sent(1);
        let message = || format!("found {at}, which no source address packet holds");
        if is_sent { Ok(()) } else { Err(EncodeError::Packet { message: message() }) }
    }

    /// Counts cycles, if there are enough of them.
    pub(super) fn count_cycles(&mut self) -> Result<(), EncodeError> {
        let threshold = self.options.cycle_threshold;
        let cycles = self.clock.now() - self.cycles_sent;
        if !self.config.cycle_counting() || cycles < threshold.max(1) {
            return Ok(());
        }
        self.flush()?;
        self.cycles_sent = self.clock.now();
        let speculates = self.config.greatest_speculation() > 0;
        let commit = self.config.cycle_counts_commit().then(|| match (speculates, self.uncommitted) {
            (true, 0) => 0,
            (true, uncommitted) => 1 + self.choices.below(uncommitted),
            (false, _) => 1,
        });
        if let Some(commit) = commit.filter(|_| speculates) {
            self.uncommitted -= commit;
            self.since_commit = 0;
        }
        let mut result = Ok(());
        for format in [3, 2, 1] {
            result = self.append(&Packet::CycleCount(CycleCount { format, commit, cycles: Some(cycles) }));
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// Sends the time, preceded by a marker if the unit has markers.
    pub(super) fn timestamp(&mut self) -> Result<(), EncodeError> {
        if self.config.has_timestamp_markers() {
            self.send(&Packet::TimestampMarker)?;
        }
        let since = self.clock.now() - self.cycles_sent;
        let cycles = Some(since).filter(|cycles| self.config.cycle_counting() && *cycles < 1 << 12);
        self.send(&Packet::Timestamp(Timestamp { value: self.clock.timestamp(), cycles }))
    }
}

fn atoms_of(executed: &[bool]) -> Option<Atoms> {
    let (first, rest) = executed.split_first()?;
    rest.iter().try_fold(Atoms::one(*first), |atoms, executed| atoms.and(*executed))
}

const fn sent(location: Location, form: AddressForm) -> SentAddress {
    let alignment = match location.isa {
        Isa::T32 | Isa::T32EE => AddressUnit::Halfwords,
        _ => AddressUnit::Words,
    };
    let address: Address = location.address;
    SentAddress { address: Some(address), alignment, form }
}
