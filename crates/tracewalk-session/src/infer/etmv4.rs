//! Contents of ETMv4 and ETE packets that no trace unit with this configuration sends.
//!
//! The format has few reserved headers, so that a wrong reading parses for long. Its packets then contradict the order
//! in which trace units send them, or name contexts and addresses that no processor has.

use tracewalk::ids::{Address, Profile};
use tracewalk::protocol::etmv4::{Config, Version};
use tracewalk::protocol::{Describe, Field};

/// Checks a source's packets in their order.
#[derive(Debug)]
pub(super) struct PacketCheck {
    is_m_profile: bool,
    is_ete: bool,
    counts_cycles: bool,
    speculates: bool,
    /// After an A-sync packet: trace info follows, and events before it in ETE.
    after_a_sync: bool,
    /// After trace info: the next address is the current place of execution.
    begins: bool,
    /// After an exception packet: its address follows.
    wants_address: bool,
    /// SF of the last context.
    is_64_bit: Option<bool>,
    last_time: u64,
    /// P0 elements, roughly.
    elements: u64,
    /// Packets that commit or cancel P0 elements.
    settlements: u64,
    exceptions: u64,
    /// Whether an exception returned.
    returns: bool,
    /// Whether a transaction may be going on.
    is_in_transaction: bool,
    /// Whether a context named an exception level other than EL0.
    left_el0: bool,
}

/// The most elements that a unit leaves uncommitted.
const DEEPEST: u64 = 256;

/// Among this many exceptions, at least one has returned.
const ENOUGH_EXCEPTIONS: u64 = 8;

/// The bit of a trace info packet's INFO that says that a transaction goes on.
const TRANSACTION: u64 = 1 << 6;

/// The statement of a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    /// The number of impossible statements.
    pub(super) impossible: u64,
    /// An address.
    pub(super) address: Option<Address>,
    /// Whether the address is the first after synchronisation.
    pub(super) is_beginning: bool,
}

/// The fields that are checked.
#[derive(Clone, Copy, Debug, Default)]
struct Fields {
    address: Option<Address>,
    is_t32: bool,
    exception_level: Option<u64>,
    is_64_bit: bool,
    non_secure: bool,
    realm_extension: bool,
    exception: u64,
    interpretation: u64,
    info: u64,
    commits: bool,
    time: u64,
}

impl Fields {
    fn take(&mut self, name: &str, field: Field<'_>) {
        match (name, field) {
            ("addr", Field::Address(address)) => self.address = Some(address),
            ("is", Field::Number(number)) => self.is_t32 = number == 1,
            ("el", Field::Number(number)) => self.exception_level = Some(number),
            ("sf", Field::Number(number)) => self.is_64_bit = number == 1,
            ("ns", Field::Number(number)) => self.non_secure = number == 1,
            ("nse", Field::Number(number)) => self.realm_extension = number == 1,
            ("exception", Field::Number(number)) => self.exception = number,
            ("interpretation", Field::Number(number)) => self.interpretation = number,
            ("info", Field::Number(number)) => self.info = number,
            ("commit", Field::Number(_)) => self.commits = true,
            ("timestamp", Field::Number(number)) => self.time = number,
            _ => {}
        }
    }
}

impl PacketCheck {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            is_m_profile: config.profile() == Profile::M,
            is_ete: config.version() >= Version::Ete(0),
            counts_cycles: config.cycle_counting(),
            speculates: config.greatest_speculation() > 0,
            after_a_sync: false,
            begins: false,
            wants_address: false,
            is_64_bit: None,
            last_time: 0,
            elements: 0,
            settlements: 0,
            exceptions: 0,
            returns: false,
            is_in_transaction: true,
            left_el0: false,
        }
    }

    pub(super) fn packet(&mut self, packet: &dyn Describe) -> Said {
        let name = packet.name();
        let mut said = Said { impossible: self.out_of_order(name), ..Said::default() };
        if name == "atom" {
            self.elements += 1;
            return said;
        }
        let mut fields = Fields::default();
        packet.fields(&mut |name, field| fields.take(name, field));
        said.address = fields.address;
        said.impossible += match name {
            "a_sync" => {
                self.after_a_sync = true;
                0
            }
            "trace_info" => {
                self.begins = true;
                self.last_time = 0;
                self.is_in_transaction = fields.info & TRANSACTION != 0;
                u64::from((fields.info & 0b1 != 0) != self.counts_cycles)
            }
            "cycle_count" => {
                self.settlements += u64::from(fields.commits);
                u64::from(!self.counts_cycles)
            }
            "commit" | "cancel" | "mispredict" => {
                self.settlements += 1;
                u64::from(!self.speculates)
            }
            "exception" => {
                self.elements += 1;
                self.exceptions += 1;
                self.wants_address = true;
                let is_reserved = matches!(fields.interpretation, 0b00 | 0b11);
                u64::from(is_reserved || !self.is_exception(fields.exception))
            }
            "exception_return" => {
                self.returns = true;
                0
            }
            "transaction_start" => {
                self.is_in_transaction = true;
                0
            }
            // M profile's debug halt has the same TYPE, and needs no transaction.
            "transaction_failure" => u64::from(!std::mem::take(&mut self.is_in_transaction)),
            "timestamp" => self.timestamp(fields.time),
            "context" => self.context(&fields),
            "address" => {
                self.wants_address = false;
                said.is_beginning = std::mem::take(&mut self.begins);
                self.context(&fields) + self.address(&fields)
            }
            _ => 0,
        };
        said
    }

    /// Bytes were lost before the next packet.
    pub(super) const fn lose(&mut self) {
        self.after_a_sync = false;
        self.begins = false;
        self.wants_address = false;
        self.is_in_transaction = true;
        self.last_time = 0;
    }

    /// The number of contradictions that show only at the end.
    pub(super) fn impossible(&self) -> u64 {
        // A unit that speculates keeps committing elements. A few such packets among many are damage.
        let is_settled = self.settlements * DEEPEST >= self.elements;
        let never_settled = if self.speculates && !is_settled { self.elements } else { 0 };
        // ETMv4 sends a packet for each return from an exception.
        let never_returns = !self.is_ete && !self.returns && self.exceptions >= ENOUGH_EXCEPTIONS;
        // In A and R profile, exceptions are not taken to EL0.
        let stays_in_el0 = if self.is_m_profile || self.left_el0 { 0 } else { self.exceptions };
        never_settled + u64::from(never_returns) + stays_in_el0
    }

    /// 1 if a packet of this kind cannot come here, else 0.
    fn out_of_order(&mut self, name: &str) -> u64 {
        let is_anywhere = matches!(name, "event" | "ignore" | "timestamp_marker");
        if is_anywhere {
            return 0;
        }
        let is_first = std::mem::take(&mut self.after_a_sync);
        let lacks_trace_info = is_first && !matches!(name, "trace_info" | "a_sync");
        let belongs =
            matches!(name, "context" | "address" | "timestamp" | "cycle_count" | "a_sync" | "trace_info");
        let lacks_address = self.wants_address && !belongs;
        if lacks_address {
            self.wants_address = false;
        }
        u64::from(lacks_trace_info || lacks_address)
    }

    /// Whether the profile has an exception of this TYPE.
    const fn is_exception(&self, number: u64) -> bool {
        if self.is_m_profile {
            return matches!(number, 1..=7 | 11 | 12 | 14..=26 | 0x208..=0x3ef);
        }
        match number {
            0..=4 | 6 | 7 | 10..=12 | 14 | 15 => true,
            0x18 => self.is_ete,
            _ => false,
        }
    }

    const fn timestamp(&mut self, time: u64) -> u64 {
        // 0 means that the time is unknown.
        let goes_back = time != 0 && time < self.last_time;
        if time != 0 {
            self.last_time = time;
        }
        goes_back as u64
    }

    fn context(&mut self, fields: &Fields) -> u64 {
        let Some(level) = fields.exception_level else { return 0 };
        self.is_64_bit = Some(fields.is_64_bit);
        self.left_el0 |= level > 0;
        if self.is_m_profile {
            return u64::from(level > 0 || fields.is_64_bit || fields.realm_extension);
        }
        // EL3 is Secure, or Root if there is a Realm.
        let is_el3_elsewhere = level == 3 && fields.non_secure && !fields.realm_extension;
        u64::from(is_el3_elsewhere || fields.realm_extension && !self.is_ete)
    }

    fn address(&self, fields: &Fields) -> u64 {
        let Some(address) = fields.address else { return 0 };
        // Virtual addresses have at most 52 bits; the upper bits are all 0 or all 1.
        let upper = address.get() >> 52;
        let is_none = upper != 0 && upper != 0xfff;
        // In M profile, a return address that does not exist is sent as an A32 address.
        let is_a32 = self.is_m_profile && !fields.is_t32 && address.get() < 0xffff_fff0;
        u64::from(is_none || is_a32)
    }
}
