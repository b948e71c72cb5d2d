//! `info`: the contents of a capture.

use std::io::Write;

use tracewalk::frame::Discontinuity;
use tracewalk::plain::Plain;
use tracewalk::program::Scope;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::table::Tabular as _;
use tracewalk_analysis::{Context, Contexts, DoubtfulStretch, Doubts, Survey};
use tracewalk_input::capture::SourceDescription;
use tracewalk_input::capture::perf::{ContextTrace, Recorded};
use tracewalk_input::capture::wire::Reading;
use tracewalk_report::formats::WriteInfo;

use tracewalk_session::{Certainty, Contents, Finding, Info, ItmInfo, Session, Source};

use crate::args;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};
use tracewalk_report::{Fitted, Look, counted};
use tracewalk_sentences::{as_option, itm_name, source_name};

impl Task for args::Info {
    fn reads(&self) -> Reads<'_> {
        Reads::one(&self.capture)
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::output(self.output.as_deref())]
    }

    fn is_for_people(&self) -> bool {
        self.format.name == "text"
    }

    /// Prints the contents of a capture.
    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        let session = open::whole(&self.capture, messages)?;
        let info = session.info(messages)?;
        let output = self.output.as_deref();
        let look = look_for(output);
        write_to(output, |out| match self.format.make {
            WriteInfo::Text => print(&mut Fitted::new(out, look.width), look, &session, &info),
            WriteInfo::Tables(write) => Ok(write(out, &info.tables(), self.table, info.complete)?),
        })
    }
}

/// For people.
fn print(out: &mut dyn Write, look: Look, session: &Session, info: &Info<'_>) -> Result<(), Failure> {
    if let Some(recorded) = &session.capture().recorded {
        print_recorded(out, look, recorded)?;
    }
    for (index, contents) in session.contents().iter().enumerate() {
        print_buffer(out, look, session, index, contents)?;
        for (source, survey) in info.sources.iter().filter(|(source, _)| source.buffer == index) {
            print_source(out, look, source, survey)?;
        }
        for itm in info.itms.iter().filter(|info| info.itm.buffer == index) {
            print_itm(out, look, itm)?;
        }
    }
    let head = look.palette.head;
    for (index, image) in session.capture().images.iter().enumerate() {
        writeln!(out, "\n{head}{}{head:#}, image ({})", Plain(image.file.display()), image.origin)?;
        if image.scope != Scope::EVERYWHERE {
            writeln!(out, "  visible in    {}", image.scope)?;
        }
        if let Some(id) = session.build_id(image) {
            writeln!(out, "  build ID      {id}")?;
        }
        let of_image = session.image_findings().iter().filter(|(of, _)| *of == index);
        findings(out, &of_image.map(|(_, finding)| finding.clone()).collect::<Vec<_>>())?;
    }
    unused(out, look, session)
}

/// The unused statements of the description.
fn unused(out: &mut dyn Write, look: Look, session: &Session) -> Result<(), Failure> {
    const SHOWN: usize = 20;
    let unused = &session.capture().unused;
    if !unused.is_empty() {
        let head = look.palette.head;
        writeln!(out, "\n{head}not used{head:#}, from the description")?;
    }
    for entry in unused.iter().take(SHOWN) {
        writeln!(out, "  {entry}")?;
    }
    if let Some(more) = unused.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        writeln!(out, "  and {more} more")?;
    }
    Ok(())
}

/// The information in a recording of perf besides its trace.
fn print_recorded(out: &mut dyn Write, look: Look, recorded: &Recorded) -> Result<(), Failure> {
    let head = look.palette.head;
    let writer = if recorded.is_simpleperf { "simpleperf" } else { "perf" };
    writeln!(out, "{head}{}{head:#}, recorded by {writer}", Plain(recorded.file.display()))?;
    if !recorded.command.is_empty() {
        writeln!(out, "  command       {}", Plain(recorded.command.join(" ")))?;
    }
    let machine = [&recorded.os_release, &recorded.arch].into_iter().flatten().cloned().collect::<Vec<_>>();
    if !machine.is_empty() {
        writeln!(out, "  machine       {}", Plain(machine.join(", ")))?;
    }
    writeln!(out, "  trace units   {}", counted(recorded.cpus.len() as u64, "CPU"))?;
    let says = match recorded.contexts {
        ContextTrace::None => "not in the trace",
        ContextTrace::ContextId => "by context ID",
        ContextTrace::Process => "by context ID, above its address space",
        ContextTrace::ProcessByte => "by the lowest byte in the context ID, above its address space",
        ContextTrace::Vmid => "by VMID",
    };
    writeln!(out, "  processes     {says}")?;
    const SHOWN: usize = 20;
    for (pid, name) in recorded.processes().take(SHOWN) {
        writeln!(out, "  process {pid:>7} {}", Plain(name))?;
    }
    if let Some(more) = recorded.processes().count().checked_sub(SHOWN).filter(|more| *more > 0) {
        writeln!(out, "  and {more} more")?;
    }
    let counts = recorded.trace;
    let rows = [
        ("bytes of trace", counts.bytes),
        ("AUX records", counts.records),
        ("of these empty", counts.empty),
        ("truncated", counts.truncated),
        ("with gaps", counts.partial),
        ("collisions", counts.collisions),
        ("snapshots", counts.snapshots),
        ("not in the file", counts.missing),
        ("records lost", recorded.lost_records),
    ];
    for (what, count) in rows.into_iter().filter(|(_, count)| *count > 0) {
        writeln!(out, "  {what:16}{count:>9}")?;
    }
    Ok(())
}

fn print_buffer(
    out: &mut dyn Write,
    look: Look,
    session: &Session,
    index: usize,
    contents: &Contents,
) -> Result<(), Failure> {
    let head = look.palette.head;
    let buffer = &session.capture().buffers[index];
    let (file, bytes) = (Plain(buffer.file.display()), counted(buffer.trace_bytes(), "byte"));
    writeln!(out, "{head}{file}{head:#}, {bytes}")?;
    if let Some(dumped) = session.memory_of(index) {
        writeln!(out, "  read from     {}, {}", dumped.dump.form, counted(dumped.dump.bytes(), "byte"))?;
    }
    if let Some(reading) = &buffer.wires {
        wires(out, reading)?;
    }
    writeln!(out, "  container     {} ({})", contents.container.value, contents.container.origin)?;
    findings(out, &contents.findings)?;
    let Some(frames) = &contents.frames else { return Ok(()) };
    let account = &frames.account;
    for (id, bytes) in &frames.sources {
        writeln!(out, "  trace ID {id} {bytes:>10} bytes")?;
    }
    let others = [
        ("padding", account.padding),
        ("triggers", account.trigger),
        ("unowned", account.unowned),
        ("reserved IDs", account.reserved),
        ("frame overhead", account.overhead),
        ("lost", account.lost),
        ("incomplete end", account.tail),
    ];
    for (what, bytes) in others.into_iter().filter(|(_, bytes)| *bytes > 0) {
        writeln!(out, "  {what:14}{bytes:>9} bytes")?;
    }
    if frames.discontinuities > 0 {
        writeln!(out, "  {}", counted(frames.discontinuities, "discontinuity"))?;
    }
    let in_file = |at: CaptureOffset| CaptureOffset(buffer.file_offset(at));
    for discontinuity in &frames.first_discontinuities {
        writeln!(out, "    {}", Discontinuity { at: in_file(discontinuity.at), ..*discontinuity })?;
    }
    if let Some(more) = frames.discontinuities.checked_sub(frames.first_discontinuities.len() as u64)
        && more > 0
    {
        writeln!(out, "    and {more} more")?;
    }
    if frames.odd.places > 0 {
        writeln!(out, "  {} with bytes that no formatter writes", counted(frames.odd.places, "place"))?;
    }
    for (at, bytes) in &frames.odd.first {
        writeln!(out, "    {} at {}", counted(*bytes, "byte"), in_file(*at))?;
    }
    Ok(())
}

/// The findings, each with its evidence and the next best answer.
fn findings(out: &mut dyn Write, findings: &[Finding]) -> Result<(), Failure> {
    let that_matter = |finding: &&Finding| finding.certainty != Certainty::Indifferent;
    for (index, finding) in findings.iter().filter(that_matter).enumerate() {
        let label = if index == 0 { "inferred" } else { "" };
        writeln!(out, "  {label:13} {}: {}", finding.about, finding.best)?;
        if let Some(runner_up) = &finding.runner_up {
            writeln!(out, "  {:13}   not {runner_up}", "")?;
        }
    }
    let others = findings.iter().filter(|finding| finding.certainty == Certainty::Indifferent);
    let others = others.map(|finding| finding.about).collect::<Vec<_>>();
    if !others.is_empty() {
        writeln!(out, "  either way    {}", others.join(", "))?;
    }
    Ok(())
}

/// How a recording was read.
fn wires(out: &mut dyn Write, reading: &Reading) -> Result<(), Failure> {
    let channels = reading.channels.iter().map(|(role, name)| format!("{}={role}", Plain(name)));
    writeln!(out, "  on the wires  {}, {}", reading.wire, channels.collect::<Vec<_>>().join(" "))?;
    if let Some(rate) = reading.bits_per_second() {
        writeln!(out, "  bit rate      {rate:.0} a second")?;
    }
    let seconds = |at| reading.seconds(at).unwrap_or_default();
    if let (Some(length), Some(first), Some(last)) = (
        reading.seconds(reading.end),
        reading.times.at(0),
        reading.times.len().checked_sub(1).and_then(|last| reading.times.at(last)),
    ) {
        let (first, last) = (seconds(first), seconds(last));
        writeln!(out, "  recorded      {length:.6} s, bytes from {first:.6} s to {last:.6} s")?;
    }
    writeln!(out, "  wire errors   {}", reading.errors)?;
    Ok(())
}

/// The survey of a source's packets.
fn print_source(out: &mut dyn Write, look: Look, source: &Source, survey: &Survey) -> Result<(), Failure> {
    let head = look.palette.head;
    writeln!(out, "\n{head}{}{head:#}, {}", source_name(source.id), source.config.protocol())?;
    writeln!(out, "  as options    {}", as_option(&source.description))?;
    if let Some(others) = other_registers(&source.description) {
        writeln!(out, "  not used      {others}")?;
    }
    findings(out, &source.findings)?;
    let statistics = &survey.statistics;
    writeln!(out, "  bytes         {}", statistics.bytes)?;
    writeln!(out, "  packets       {}", statistics.packets)?;
    for (name, count) in &survey.packets {
        writeln!(out, "    {name:22} {count:>9}")?;
    }
    match survey.first_sync {
        Some(at) => {
            writeln!(out, "  synchronised  from {at}, after {}", counted(survey.unsynchronised, "byte"))?;
        }
        None => writeln!(out, "  synchronised  never")?,
    }
    writeln!(out, "  malformed     {}", counted(statistics.malformed, "stretch"))?;
    if survey.losses > statistics.malformed {
        writeln!(out, "  lost          in {}", counted(survey.losses, "place"))?;
    }
    if survey.passed_over > 0 {
        writeln!(out, "  passed over   {} to synchronise again", counted(survey.passed_over, "byte"))?;
    }
    print_doubts(out, &survey.doubts)?;
    for (reason, times) in &survey.begins {
        writeln!(out, "  trace begins  {} ({reason})", counted(*times, "time"))?;
    }
    print_contexts(out, &survey.contexts)?;
    if let Some((first, last)) = survey.timestamps {
        writeln!(out, "  timestamps    {first} to {last}")?;
    }
    if let Some(cycles) = survey.cycles.filter(|cycles| *cycles > 0) {
        writeln!(out, "  cycles        {cycles}")?;
    }
    Ok(())
}

/// The registers in a description that decoding does not depend on.
fn other_registers(description: &SourceDescription) -> Option<String> {
    let (zeros, others): (Vec<_>, Vec<_>) =
        description.other_registers().partition(|(_, stated)| stated.value == 0);
    let others = others.into_iter().map(|(name, stated)| format!("{name}=0x{:x}", stated.value));
    // A trace unit has a hundred comparators and counters, most of them unused.
    let zeros = match zeros.as_slice() {
        [] => None,
        [(name, _)] => Some(format!("{name}=0x0")),
        _ => Some(format!("and {} registers that are 0", zeros.len())),
    };
    let all = others.chain(zeros).collect::<Vec<_>>();
    (!all.is_empty()).then(|| all.join(" "))
}

/// The contents of an ITM's trace.
fn print_itm(
    out: &mut dyn Write,
    look: Look,
    ItmInfo { itm, counts, texts }: &ItmInfo,
) -> Result<(), Failure> {
    let head = look.palette.head;
    writeln!(out, "\n{head}{}{head:#}, {}", itm_name(itm.id), itm.protocol().protocol())?;
    writeln!(out, "  as options    {}", as_option(&itm.description))?;
    findings(out, &itm.findings)?;
    writeln!(out, "  bytes         {}", counts.bytes)?;
    writeln!(out, "  packets       {}", counts.packets.values().sum::<u64>())?;
    for (name, count) in &counts.packets {
        writeln!(out, "    {name:22} {count:>9}")?;
    }
    let malformed = counted(counts.malformed, "stretch");
    writeln!(out, "  malformed     {malformed}")?;
    for (index, text) in texts.iter().enumerate() {
        writeln!(out, "  {:13} {text}", if index == 0 { "text" } else { "" })?;
    }
    Ok(())
}

/// The stretches of trace that are in doubt.
fn print_doubts(out: &mut dyn Write, doubts: &Doubts) -> Result<(), Failure> {
    let Doubts { count, bytes, first } = doubts;
    if *count > 0 {
        let stretches = counted(*count, "stretch");
        writeln!(out, "  in doubt      {stretches}, {}", counted(*bytes, "byte"))?;
    }
    for DoubtfulStretch { from, to, .. } in first {
        writeln!(out, "    from {from} to {to}")?;
    }
    if let Some(more) = count.checked_sub(first.len() as u64).filter(|more| *more > 0) {
        writeln!(out, "    and {more} more")?;
    }
    Ok(())
}

/// The contexts in which code ran.
fn print_contexts(out: &mut dyn Write, contexts: &Contexts) -> Result<(), Failure> {
    const SHOWN: usize = 20;
    let named = |(context, _): &(Context, _)| *context != (None, None);
    let all = contexts.iter().filter(named).collect::<Vec<_>>();
    for (index, ((context_id, vmid), counts)) in all.iter().take(SHOWN).enumerate() {
        let label = if index == 0 { "contexts" } else { "" };
        let scope = Scope { context_id: *context_id, vmid: *vmid };
        writeln!(out, "  {label:13} {scope}, {}", counted(counts.times, "time"))?;
    }
    if let Some(more) = all.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        writeln!(out, "  {:13} and {}", "", counted(more as u64, "other"))?;
    }
    Ok(())
}
