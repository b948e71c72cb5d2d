//! Profiles in a file (docs/formats.md); the lines beside those of all saved files:
//!
//! ```text
//! S 0x10 etmv3 1               a source: trace ID, protocol, which of these; what follows is of it
//! M 120 0 3 0 3400             cycle counts, instructions of captures without any, timestamps, instructions of captures
//!                              without time, instructions whose time is known
//! Q 12 0                       instructions in doubt that were left out, and that were counted
//! U 0 12 0                     instructions, cycles and ticks of code that could not be followed
//! O 0 3 0                      the same while nothing was traced
//! W pendsv 21                  tasks switched: what showed it, how often
//! D 7                          calls that were counted to their callers
//! T 0 number 1                 a task: how many links of the chain of calls are outside, which: a number, `unresolved`, or
//!                              `within context=0x42,vmid=0x1`
//! X 1 65 m 15                  an exception: links outside, how often, profile and number
//! F 2 3 8000112 named 8000306 -
//!                              a function: links outside, how often it was called, from where, which (`named`, `unnamed`
//!                              or `missing` with its address, `unknown`), and for the first two in which contexts
//! C 8000306 8000316 t32 8 120 340 0
//!                              of the link above: a piece of code, its instructions, and what it cost in instructions,
//!                              cycles and ticks
//! ```
//!
//! Each link of a chain of calls stands behind those outside. Addresses are hexadecimal, other numbers decimal.

use std::io::{self, Write};

use tracewalk::ids::Address;

use super::{Measures, NodeId, NodeKind, Profile, ProgramProfiles};
use crate::call_stack::{Evidence, Piece, Task};
use crate::clock::Cost;
use crate::programs::SourceId;
use crate::saved::{
    Fields, Format, ReadItems, Save, SavedErrorKind, address, exception_words, function_words, isa_word,
    or_dash, save_in_doubt, scope_word, source_words,
};

/// All pieces of code in a file have at most so many instructions: looking each of them up takes time.
const MOST_INSTRUCTIONS: u64 = 1 << 28;
/// All costs in a file, and all calls, add up to at most so many: two years at a gigahertz.
const MOST_COST: u64 = 1 << 56;

impl Save for ProgramProfiles {
    const FORMAT: Format =
        Format { name: "profile", version: "2", items: "S, M, Q, U, O, W, D, T, X, F or C" };

    type Reader = Reader;

    fn save_items(&self, out: &mut dyn Write) -> io::Result<()> {
        for (source, profile) in &self.sources {
            writeln!(out, "S {}", source_words(*source))?;
            profile.in_order().save(out)?;
        }
        Ok(())
    }
}

impl Profile {
    /// Writes the lines of a profile that is in order.
    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        let Measures { cycle_counts, without_cycles, timestamps, without_time, timed_instructions } =
            self.measures;
        writeln!(out, "M {cycle_counts} {without_cycles} {timestamps} {without_time} {timed_instructions}")?;
        save_in_doubt(self.in_doubt, out)?;
        for (item, cost) in [('U', self.unfollowed), ('O', self.untraced)] {
            if !cost.is_zero() {
                writeln!(out, "{item} {}", cost_words(cost))?;
            }
        }
        for (evidence, times) in &self.switches {
            writeln!(out, "W {} {times}", evidence.name())?;
        }
        if self.folded_calls > 0 {
            writeln!(out, "D {}", self.folded_calls)?;
        }
        let mut entries = self.entries.iter().peekable();
        for (index, node) in self.nodes.iter().enumerate() {
            let (depth, calls) = (node.depth, node.calls);
            match node.kind {
                NodeKind::Task(task) => writeln!(out, "T {depth} {}", task_words(task))?,
                NodeKind::Exception(exception) => {
                    writeln!(out, "X {depth} {calls} {}", exception_words(exception))?;
                }
                NodeKind::Function { function, site } => {
                    writeln!(out, "F {depth} {calls} {} {}", or_dash(site), function_words(function))?;
                }
            }
            while let Some(entry) = entries.next_if(|entry| entry.node.index() == index) {
                let Piece { start, end, isa, instructions } = entry.piece;
                let cost = cost_words(entry.cost);
                writeln!(out, "C {start:x} {end:x} {} {instructions} {cost}", isa_word(isa))?;
            }
        }
        Ok(())
    }
}

fn cost_words(cost: Cost) -> String {
    format!("{} {} {}", cost.instructions, cost.cycles, cost.time)
}

fn task_words(task: Task) -> String {
    match task {
        Task::Context(scope) => format!("within {}", scope_word(scope)),
        Task::Number(number) => format!("number {number}"),
        Task::Unresolved => "unresolved".to_owned(),
    }
}

/// Reads the profiles of one program.
#[derive(Debug, Default)]
pub struct Reader {
    found: ProgramProfiles,
    /// The source whose lines are read.
    source: Option<Source>,
    /// How many instructions all pieces of code have.
    instructions: u64,
    /// What all costs add up to, and all calls.
    sum: Cost,
    calls: u64,
}

#[derive(Debug)]
struct Source {
    id: SourceId,
    profile: Profile,
    /// The chain of calls whose lines are read, outermost first.
    chain: Vec<NodeId>,
}

impl ReadItems for Reader {
    type Found = ProgramProfiles;

    fn line(&mut self, item: &str, mut fields: Fields<'_>) -> Result<(), SavedErrorKind> {
        if item == "S" {
            self.end_source();
            let id = fields.source_id()?;
            self.source = Some(Source { id, profile: Profile::default(), chain: Vec::new() });
            return Ok(());
        }
        let Self { source, instructions, sum, calls, .. } = self;
        let source = source.as_mut().ok_or(SavedErrorKind::Misplaced)?;
        let profile = &mut source.profile;
        match item {
            "M" => profile.measures += measures(&mut fields)?,
            "Q" => profile.in_doubt.add(fields.in_doubt()?),
            "U" => profile.unfollowed += cost(&mut fields, sum)?,
            "O" => profile.untraced += cost(&mut fields, sum)?,
            "W" => {
                let evidence = fields.one_of("evidence", &Evidence::ALL, Evidence::name)?;
                let switches = profile.switches.entry(evidence).or_default();
                *switches = switches.saturating_add(fields.decimal("count")?);
            }
            "D" => profile.folded_calls = profile.folded_calls.saturating_add(fields.decimal("count")?),
            "T" | "X" | "F" => source.link(item, fields, calls)?,
            "C" => {
                let piece = piece(&mut fields, instructions)?;
                let cost = cost(&mut fields, sum)?;
                let node = source.chain.last().ok_or(SavedErrorKind::Misplaced)?;
                let entry = profile.entry(*node, piece);
                profile.spend(entry, cost);
            }
            _ => return Err(SavedErrorKind::UnknownItem { found: item.to_owned() }),
        }
        Ok(())
    }

    fn finish(mut self) -> ProgramProfiles {
        self.end_source();
        self.found
    }
}

impl Reader {
    fn end_source(&mut self) {
        if let Some(Source { id, profile, .. }) = self.source.take() {
            self.found.sources.entry(id).or_default().merge(&profile);
        }
    }
}

impl Source {
    /// A link of a chain of calls.
    fn link(&mut self, item: &str, mut fields: Fields<'_>, sum: &mut u64) -> Result<(), SavedErrorKind> {
        let links = self.chain.len();
        let depth =
            fields.parsed("number of links", |word| word.parse().ok().filter(|depth| *depth <= links))?;
        let (kind, calls) = match item {
            "T" => (NodeKind::Task(task(&mut fields)?), 0),
            "X" => {
                let calls = fields.decimal("count")?;
                (NodeKind::Exception(fields.exception()?), calls)
            }
            _ => {
                let calls = fields.decimal("count")?;
                let site = fields.parsed("call's address", |word| match word {
                    "-" => Some(None),
                    word => address(word).map(Some),
                })?;
                (NodeKind::Function { function: fields.function()?, site }, calls)
            }
        };
        self.chain.truncate(depth);
        *sum = sum.saturating_add(calls);
        within(*sum, MOST_COST, "count", calls)?;
        let node = self.profile.add(self.chain.last().copied(), kind, calls);
        self.chain.push(node);
        Ok(())
    }
}

fn measures(fields: &mut Fields<'_>) -> Result<Measures, SavedErrorKind> {
    Ok(Measures {
        cycle_counts: fields.decimal("cycle counts")?,
        without_cycles: fields.decimal("instructions without cycles")?,
        timestamps: fields.decimal("timestamps")?,
        without_time: fields.decimal("instructions without time")?,
        timed_instructions: fields.decimal("timed instructions")?,
    })
}

fn cost(fields: &mut Fields<'_>, sum: &mut Cost) -> Result<Cost, SavedErrorKind> {
    let cost = Cost {
        instructions: fields.decimal("instructions")?,
        cycles: fields.decimal("cycles")?,
        time: fields.decimal("ticks")?,
    };
    *sum += cost;
    within(sum.instructions, MOST_COST, "instructions", cost.instructions)?;
    within(sum.cycles, MOST_COST, "cycles", cost.cycles)?;
    within(sum.time, MOST_COST, "ticks", cost.time)?;
    Ok(cost)
}

/// Refuses a field with which a sum becomes too much.
fn within(sum: u64, most: u64, field: &'static str, found: u64) -> Result<(), SavedErrorKind> {
    if sum <= most { Ok(()) } else { Err(SavedErrorKind::Field { field, found: found.to_string() }) }
}

fn task(fields: &mut Fields<'_>) -> Result<Task, SavedErrorKind> {
    match fields.word("task")? {
        "number" => fields.parsed("task's number", |word| word.parse().ok()).map(Task::Number),
        "within" => fields.scope("context").map(Task::Context),
        "unresolved" => Ok(Task::Unresolved),
        found => Err(SavedErrorKind::Field { field: "task", found: found.to_owned() }),
    }
}

fn piece(fields: &mut Fields<'_>, sum: &mut u64) -> Result<Piece, SavedErrorKind> {
    let start = fields.address("start")?;
    let end = fields.parsed("end", |word| address(word).filter(|end: &Address| *end >= start))?;
    let isa = fields.isa()?;
    let most = end.offset_from(start).unwrap_or(0) / u64::from(isa.alignment());
    let fits = |count: &u32| u64::from(*count) <= most;
    let instructions: u32 = fields.parsed("number of instructions", |word| word.parse().ok().filter(fits))?;
    *sum = sum.saturating_add(u64::from(instructions));
    within(*sum, MOST_INSTRUCTIONS, "number of instructions", instructions.into())?;
    Ok(Piece { start, end, isa, instructions })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profiles;
    use crate::profile::tests::{recorded, stories};
    use crate::programs::ProgramId;
    use crate::saved::ended;
    use proptest::prelude::*;

    const SAVED: &str = "\
# tracewalk profile 2
P build 0abc
I fw.elf
S 0x10 etmv3 1
M 3 0 2 0 40
Q 12 1
U 0 12 1
O 0 3 0
W context 2
W resumed 1
D 7
T 0 number 1
F 1 0 - named 100 -
C 100 104 t32 2 20 31 4
C 104 106 t32 1 1 2 0
F 2 3 102 named 200 context=0x42,vmid=0x1
C 200 208 a32 2 6 9 0
F 2 1 - missing 9000
F 2 1 106 unnamed 300 -
T 0 unresolved
T 0 within context=0x42
X 0 2 -
X 0 65 m 15
F 1 65 - unknown
C 0 0 t32 0 5 0 0
S - mtb 2
M 0 10 0 10 0
X 0 1 ar 14
P code 0101010101010101010101010101010101010101010101010101010101010101
E 29
";

    fn saved(profiles: &Profiles) -> String {
        let mut out = Vec::new();
        profiles.save(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_was_saved_is_read_and_saved_again_in_order() {
        let text = saved(&Profiles::read(SAVED).unwrap());
        let sorted = |text: &str| {
            let mut lines = text.lines().map(str::to_owned).collect::<Vec<_>>();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&text), sorted(SAVED));
        assert_eq!(saved(&Profiles::read(&text).unwrap()), text);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let with = |line: &str| format!("# tracewalk profile 2\nP build 0a\nS - mtb 1\n{line}\n");
        let much = format!("F 0 {} - unknown", u64::MAX);
        let cases = [
            ("S - stm 1", "found \"stm\" where the protocol should be"),
            ("S 0x7d pft 1", "found \"0x7d\" where the trace ID should be"),
            ("S - pft 0", "found \"0\" where the source's number should be"),
            ("M 1 2 3 4", "found no timed instructions"),
            ("W guess 1", "found \"guess\" where the evidence should be"),
            ("T 0 third", "found \"third\" where the task should be"),
            ("T 1 number 1", "found \"1\" where the number of links should be"),
            ("X 0 1 r 3", "found \"r\" where the profile should be"),
            ("X 0 1 ar 256", "found \"256\" where the exception number should be"),
            ("F 0 1 - named 100 everywhere", "found \"everywhere\" where the context should be"),
            ("C 0 4 t32 2 1 1 1", "the line that it belongs to does not stand before it"),
            ("T 0 number 1\nC 0 4 t32 3 1 1 1", "line 5: found \"3\" where the number of instructions"),
            ("T 0 number 1\nC 4 0 t32 1 1 1 1", "line 5: found \"0\" where the end should be"),
            ("T 0 number 1\nC 0 20000004 t32 268435457 1 1 1", "where the number of instructions should be"),
            ("U 1 72057594037927937 1", "found \"72057594037927937\" where the cycles should be"),
            (&much, "where the count should be"),
            ("B 1", "found an item \"B\", expected P, I, E, S, M, Q, U, O, W, D, T, X, F or C"),
        ];
        for (line, message) in cases {
            let error = Profiles::read(&with(line)).unwrap_err().to_string();
            assert!(error.contains(message) && error.starts_with("line "), "{line}: {error}");
        }
    }

    #[test]
    fn links_that_are_too_deep_count_to_those_outside() {
        let mut text = "# tracewalk profile 2\nP build 0a\nS - mtb 1\n".to_owned();
        for depth in 0..5000 {
            text.push_str(&format!("F {depth} 2 - named {depth:x} -\nC 0 2 t32 1 1 0 0\n"));
        }
        let profiles = Profiles::read(&ended(&text)).unwrap();
        let profile = profiles.programs.values().next().unwrap().found.sources.values().next().unwrap();
        assert_eq!(profile.nodes.len(), super::super::DEEPEST);
        assert_eq!(profile.total().instructions, 5000);
        assert_eq!(profile.folded_calls, 2 * (5000 - super::super::DEEPEST as u64));
    }

    fn profiles(story: &[u8]) -> Profiles {
        let source = SourceId { id: None, protocol: "pft", number: 1 };
        let sources = [(source, recorded(story))].into_iter().collect();
        let mut profiles = Profiles::default();
        profiles.add(ProgramId::Code([0; 32]), [], ProgramProfiles { sources });
        profiles
    }

    fn merged(parts: &[&Profiles]) -> String {
        let mut sum = Profiles::default();
        for part in parts {
            sum.merge((*part).clone()).unwrap();
        }
        saved(&sum)
    }

    proptest! {
        #[test]
        fn profiles_add_up_in_any_order_saved_or_not(a in stories(), b in stories(), c in stories()) {
            let (a, b, c) = (profiles(&a), profiles(&b), profiles(&c));
            let sum = merged(&[&a, &b, &c]);
            prop_assert_eq!(&merged(&[&c, &a, &b]), &sum);
            let again = |text: &str| Profiles::read(text).unwrap();
            prop_assert_eq!(&merged(&[&again(&saved(&a)), &again(&merged(&[&c, &b]))]), &sum);
            prop_assert_eq!(saved(&again(&sum)), sum);
        }
    }
}
