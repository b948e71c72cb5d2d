//! A trace that both decoders are to read.

use tracewalk::ids::TraceId;
use tracewalk::program::Program;
use tracewalk::protocol::{etmv3, pft};
use tracewalk::source::SourceConfig;

use super::compare::{self, Difference};
use super::deviations::{DEVIATIONS, Deviation};
use super::listing::Listing;
use super::place::Place;
use super::reading::Reading;
use tracewalk_generate::capture::{Capture, Container, File, Unit};

/// A trace and what it is read with.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The source.
    pub config: SourceConfig,
    /// The registers that OpenCSD reads.
    pub registers: Registers,
    /// The processor.
    pub cpu: String,
    /// The trace.
    pub bytes: Vec<u8>,
    /// What ran.
    pub program: &'a Program,
}

/// The registers of a trace unit, all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// ETMCR.
    pub etmcr: u32,
    /// ETMIDR.
    pub etmidr: u32,
    /// ETMCCER.
    pub etmccer: u32,
}

/// A difference, and the deviation that explains it, if there is one.
#[derive(Debug)]
pub struct Found {
    /// The difference.
    pub difference: Difference,
    /// The deviation.
    pub deviation: Option<&'static Deviation>,
}

/// Why OpenCSD cannot read a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsuitable(pub &'static str);

const ID: u8 = 0x10;

impl Subject<'_> {
    /// The files of a snapshot.
    pub fn snapshot(&self) -> Result<Vec<File>, Unsuitable> {
        let id = TraceId::new(ID).ok_or(Unsuitable("no trace ID"))?;
        let (protocol, minor_version) = match &self.config {
            SourceConfig::Etmv3(config) => ("etmv3", config.minor_version),
            SourceConfig::Pft(config) => ("pft", u8::from(config.version == pft::Version::V1_1)),
            SourceConfig::Mtb { .. } => return Err(Unsuitable("it reads no MTB")),
        };
        let Registers { etmcr, etmidr, etmccer } = self.registers;
        let registers =
            [("ETMCR", etmcr), ("ETMIDR", etmidr), ("ETMCCER", etmccer), ("ETMTRACEIDR", u32::from(ID))];
        // The profile is all that OpenCSD takes from the name, and it knows no processor before ARMv7.
        let cpu = if self.cpu.starts_with("arm") { "cortex-a8" } else { &self.cpu };
        let unit = Unit { protocol, cpu: Some(cpu.to_owned()), id: Some(id), registers: Vec::new() };
        let capture = Capture { container: Container::Raw, unit, itm: None, bytes: self.bytes.clone() };
        Ok(capture.snapshot(self.program, minor_version, &registers))
    }

    /// Whether OpenCSD makes flow of it: not where data is traced.
    #[must_use]
    pub const fn has_flow(&self) -> bool {
        match &self.config {
            SourceConfig::Etmv3(etmv3::Config { data, .. }) => !data.addresses && !data.values,
            _ => true,
        }
    }

    /// Where the readings differ: OpenCSD's of packets alone, and its decoding.
    #[must_use]
    pub fn differences(&self, packets: &str, decoding: &str) -> Vec<Found> {
        let listing = Listing::parse(packets);
        let decoded = Listing::parse(decoding);
        let ours = Reading::ours(&self.config, &self.bytes, self.program);
        let theirs = Reading::theirs(listing.packets, &decoded.steps, self.program);
        let place =
            |difference: &Difference| Place::around(self, &ours, &theirs, &decoded, difference.places());
        let explained = |difference: Difference| {
            let place = place(&difference);
            let deviation = |difference: &Difference| {
                DEVIATIONS.iter().find(|deviation| (deviation.recognises)(difference, &place))
            };
            let whole = deviation(&difference);
            if whole.is_none()
                && let Some(parts) = difference.parts()
            {
                let parts =
                    parts.into_iter().map(|part| Found { deviation: deviation(&part), difference: part });
                let parts = parts.collect::<Vec<_>>();
                if parts.iter().all(|part| part.deviation.is_some()) {
                    return parts;
                }
            }
            vec![Found { difference, deviation: whole }]
        };
        let mut packets =
            compare::packets(&ours, &theirs).into_iter().flat_map(explained).collect::<Vec<_>>();
        let cuts = packets.iter().filter(|found| matches!(found.difference, Difference::Cut { .. }));
        let cuts =
            cuts.filter_map(|cut| Some((cut.difference.places().0, cut.deviation?))).collect::<Vec<_>>();
        let cause = |from: u64, until: u64| {
            cuts.iter().rfind(|(at, _)| (from..=until).contains(at)).map(|(_, deviation)| *deviation)
        };
        // Timestamps are compressed against the last one, and addresses against those since the last I-sync, which only one
        // of the two may have read.
        for found in packets.iter_mut().filter(|found| found.deviation.is_none()) {
            if let Difference::Packet { ours, .. } = &found.difference {
                let from = if ours.kind == "timestamp" { 0 } else { place(&found.difference).from };
                found.deviation = cause(from, ours.at);
            }
        }
        if !self.has_flow() {
            return packets;
        }
        let mut flow = compare::flow(&ours, &theirs).into_iter().flat_map(explained).collect::<Vec<_>>();
        // Packets that are read otherwise tell something else, up to the next I-sync.
        for found in flow.iter_mut().filter(|found| found.deviation.is_none()) {
            found.deviation = cause(place(&found.difference).from, found.difference.places().1);
        }
        packets.into_iter().chain(flow).collect()
    }
}
