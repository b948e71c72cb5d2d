//! Packets as names and fields.

use crate::protocol::{Describe, Field};

use super::address::{AddressForm, SentAddress};
use super::atoms::Atoms;
use super::packet::{
    Cancel, ConditionalInstruction, ConditionalResult, Context, CycleCount, DataSynchronisation, Exception,
    KeyedResult, Packet, Timestamp, TraceInfo,
};

impl Describe for Packet {
    fn name(&self) -> &'static str {
        match self {
            Self::ASync => "a_sync",
            Self::Discard => "discard",
            Self::Overflow => "overflow",
            Self::BranchFutureFlush => "branch_future_flush",
            Self::TraceInfo(_) => "trace_info",
            Self::Timestamp(_) => "timestamp",
            Self::TraceOn => "trace_on",
            Self::FunctionReturn => "function_return",
            Self::Exception(_) => "exception",
            Self::PeReset => "pe_reset",
            Self::TransactionFailure => "transaction_failure",
            Self::ExceptionReturn => "exception_return",
            Self::Instrumentation(_) => "instrumentation",
            Self::TransactionStart => "transaction_start",
            Self::TransactionCommit => "transaction_commit",
            Self::CycleCount(_) => "cycle_count",
            Self::DataSynchronisation(_) => "data_synchronisation",
            Self::Commit(_) => "commit",
            Self::Cancel(_) => "cancel",
            Self::Mispredict(_) => "mispredict",
            Self::ConditionalInstruction(_) => "conditional_instruction",
            Self::ConditionalFlush => "conditional_flush",
            Self::ConditionalResult(_) => "conditional_result",
            Self::Ignore => "ignore",
            Self::Event(_) => "event",
            Self::Context(_) => "context",
            Self::Address(_) => "address",
            Self::TimestampMarker => "timestamp_marker",
            Self::Q(_) => "q",
            Self::SourceAddress(_) => "source_address",
            Self::Atom(_) => "atom",
        }
    }

    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        let mut number = |name, value: u64| visit(name, Field::Number(value));
        match self {
            Self::TraceInfo(trace_info) => trace_info.fields(visit),
            Self::Timestamp(Timestamp { value, cycles }) => {
                number("timestamp", *value);
                optional("cycles", *cycles, visit);
            }
            Self::Exception(Exception { number: exception, address, fault_pending }) => {
                number("exception", u64::from(*exception));
                number("interpretation", u64::from(address.bits()));
                flag("fault_pending", *fault_pending, visit);
            }
            Self::Instrumentation(instrumentation) => {
                number("el", u64::from(instrumentation.exception_level));
                number("value", instrumentation.value);
            }
            Self::CycleCount(CycleCount { format, commit, cycles }) => {
                number("format", u64::from(*format));
                optional("commit", *commit, visit);
                optional("cycles", *cycles, visit);
            }
            Self::DataSynchronisation(DataSynchronisation::Numbered(marker)) => {
                number("numbered", u64::from(*marker));
            }
            Self::DataSynchronisation(DataSynchronisation::Unnumbered(marker)) => {
                number("unnumbered", u64::from(*marker));
            }
            Self::Commit(count) => number("commit", *count),
            Self::Cancel(Cancel { format, atoms, count, mispredict }) => {
                number("format", u64::from(*format));
                atoms.iter().for_each(|atoms| atoms_field(*atoms, visit));
                visit("cancel", Field::Number(*count));
                flag("mispredict", *mispredict, visit);
            }
            Self::Mispredict(atoms) => atoms.iter().for_each(|atoms| atoms_field(*atoms, visit)),
            Self::ConditionalInstruction(instruction) => instruction.fields(visit),
            Self::ConditionalResult(result) => result.fields(visit),
            Self::Event(events) => number("event", u64::from(*events)),
            Self::Context(None) => number("same", 1),
            Self::Context(Some(context)) => context.fields(visit),
            Self::Address(packet) => {
                packet.sent.fields(visit);
                packet.context.iter().for_each(|context| context.fields(visit));
            }
            Self::Q(q) => {
                optional("count", q.count, visit);
                q.sent.iter().for_each(|sent| sent.fields(visit));
            }
            Self::SourceAddress(sent) => sent.fields(visit),
            Self::Atom(atoms) => {
                number("format", u64::from(atoms.format().unwrap_or_default()));
                atoms_field(*atoms, visit);
            }
            Self::ASync
            | Self::Discard
            | Self::Overflow
            | Self::BranchFutureFlush
            | Self::TraceOn
            | Self::FunctionReturn
            | Self::PeReset
            | Self::TransactionFailure
            | Self::ExceptionReturn
            | Self::TransactionStart
            | Self::TransactionCommit
            | Self::ConditionalFlush
            | Self::Ignore
            | Self::TimestampMarker => {}
        }
    }
}

fn optional(name: &'static str, value: Option<u64>, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
    if let Some(value) = value {
        visit(name, Field::Number(value));
    }
}

fn flag(name: &'static str, value: bool, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
    if value {
        visit(name, Field::Number(1));
    }
}

fn atoms_field(atoms: Atoms, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
    let mut letters = [0; Atoms::MOST as usize];
    visit("atoms", Field::Text(atoms.letters(&mut letters)));
}

impl TraceInfo {
    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        visit("info", Field::Number(self.info));
        optional("key", self.key, visit);
        visit("spec", Field::Number(self.speculation));
        visit("threshold", Field::Number(self.threshold));
        optional("commit_window", self.commit_window, visit);
    }
}

impl SentAddress {
    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        visit("form", Field::Text(self.form.name()));
        if let AddressForm::Exact(index) = self.form {
            visit("match", Field::Number(u64::from(index)));
        }
        if let Some(address) = self.address {
            visit("addr", Field::Address(address));
        }
        visit("is", Field::Number(u64::from(self.alignment.bit())));
    }
}

impl Context {
    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        visit("el", Field::Number(u64::from(self.exception_level)));
        visit("sf", Field::Number(u64::from(self.is_64_bit)));
        visit("ns", Field::Number(u64::from(self.non_secure)));
        visit("nse", Field::Number(u64::from(self.non_secure_extension)));
        optional("vmid", self.vmid.map(|vmid| u64::from(vmid.0)), visit);
        optional("context_id", self.context_id.map(|context_id| u64::from(context_id.0)), visit);
    }
}

impl ConditionalInstruction {
    fn fields(self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        let mut number = |name, value: u64| visit(name, Field::Number(value));
        let mut format_2 = |count, advance| {
            number("format", 2);
            number("count", count);
            number("advance", advance);
        };
        match self {
            Self::Next => format_2(1, 1),
            Self::Same => format_2(1, 0),
            Self::NextAndSame => format_2(2, 1),
            Self::Key(key) => {
                number("format", 1);
                number("key", key);
            }
            Self::Successive { count, and_same } => {
                number("format", 3);
                number("count", u64::from(count));
                number("and_same", u64::from(and_same));
            }
        }
    }
}

impl ConditionalResult {
    fn fields(self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        let mut number = |name, value: u64| visit(name, Field::Number(value));
        match self {
            Self::Keys(first, second) => {
                number("format", 1);
                let mut keyed = |names: [&'static str; 3], KeyedResult { key, result, ci }| {
                    let values = [key, u64::from(result), u64::from(ci)];
                    names.into_iter().zip(values).for_each(|(name, value)| number(name, value));
                };
                keyed(["key", "result", "ci"], first);
                second.iter().for_each(|second| keyed(["key2", "result2", "ci2"], *second));
            }
            Self::Token { advance, token } => {
                number("format", 2);
                number("advance", u64::from(advance));
                number("token", u64::from(token));
            }
            Self::Tokens(tokens) => {
                number("format", 3);
                number("tokens", u64::from(tokens));
            }
            Self::Previous(token) => {
                number("format", 4);
                number("token", u64::from(token));
            }
        }
    }
}
