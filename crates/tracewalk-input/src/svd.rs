//! Reads the names of a chip's interrupts from CMSIS-SVD files (System View Descriptions).
//!
//! Only a description's interrupts are read: external interrupt `n` of M profile is exception `16 + n`.
//!
//! A peripheral that is `derivedFrom` another one inherits its interrupts unless it names its own, and so
//! adds no new name.
//!
//! The file is read from front to back, and only names are kept. Crates that build trees are vulnerable:
//! `svd-parser` 0.14 recurses once for each nested element, and `roxmltree` 0.21 takes a minute for 5,000
//! nested elements that each declare a namespace.
//!
//! ```
//! use tracewalk_input::svd::InterruptNames;
//!
//! let svd = b"<device><peripherals><peripheral><name>UART0</name>
//!     <interrupt><name>UART0_IRQ</name><value>5</value></interrupt>
//! </peripheral></peripherals></device>";
//! let names = InterruptNames::from_bytes("chip.svd".as_ref(), svd)?;
//! assert_eq!(names.get(5), Some(["UART0_IRQ".to_owned()].as_slice()));
//! # Ok::<(), tracewalk_input::svd::SvdError>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};
use tracewalk::plain::Plain;

use crate::excerpt::excerpt;
use crate::file::{self, FileProblem};
use crate::number;

/// The names of a chip's external interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterruptNames {
    /// The names by number. Interrupts that peripherals share may have several names.
    names: BTreeMap<u16, Vec<String>>,
    /// The problem of the first interrupt without a usable name or number. The other interrupts are read
    /// nevertheless.
    pub problem: Option<SvdError>,
}

/// Why a System View Description, or an interrupt in it, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SvdError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1, if there is one.
    pub line: Option<u32>,
    /// The problem.
    pub kind: SvdErrorKind,
}

/// The problem with a System View Description.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", prefix = "svd_")]
#[non_exhaustive]
pub enum SvdErrorKind {
    /// The file cannot be read.
    File(FileProblem),
    /// The file is not XML; the reader's message.
    Xml(String),
    /// The file is XML that describes no device.
    Root {
        /// The outermost element.
        found: String,
    },
    /// The elements are nested more deeply than in any real description.
    TooDeep {
        /// The greatest depth.
        limit: usize,
    },
    /// The file ends inside an element.
    CutOff,
    /// The file describes no interrupt.
    NoInterrupt,
    /// An interrupt has no name, or no number.
    Incomplete {
        /// The missing element.
        missing: &'static str,
    },
    /// An interrupt's number is invalid.
    Number {
        /// The number.
        found: String,
    },
}

/// The longest descriptions have some ten million bytes.
const LONGEST: u64 = 64 << 20;
/// Clusters of registers may be nested, but hardly more than twice.
const DEEPEST: usize = 64;
/// ARMv8-M has 480 external interrupts (DDI 0553B, B3.9); other architectures fewer.
const INTERRUPTS: u16 = 480;
/// The most names of one interrupt.
const MOST_NAMES: usize = 4;

impl InterruptNames {
    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or as [`InterruptNames::from_bytes`].
    pub fn read(path: &Path) -> Result<Self, SvdError> {
        let bytes = file::read(path, LONGEST).map_err(|problem| SvdError {
            file: path.to_owned(),
            line: None,
            kind: SvdErrorKind::File(problem),
        })?;
        Self::from_bytes(path, &bytes)
    }

    /// Reads a file's bytes. `file` is used in messages.
    ///
    /// # Errors
    ///
    /// If the file is malformed, or names no interrupt.
    pub fn from_bytes(file: &Path, bytes: &[u8]) -> Result<Self, SvdError> {
        // Names are ASCII; only makers' names and addresses use other encodings.
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut description = Description::new(text);
        let error = |(offset, kind): Located| SvdError {
            file: file.to_owned(),
            line: offset.map(|offset| line(text, offset)),
            kind,
        };
        description.read().map_err(error)?;
        let Description { names, problem, .. } = description;
        if names.is_empty() {
            return Err(error(problem.unwrap_or((None, SvdErrorKind::NoInterrupt))));
        }
        Ok(Self { names, problem: problem.map(error) })
    }

    /// The interrupts' numbers and names, by number. Several names of one interrupt are joined by `/`.
    pub fn iter(&self) -> impl Iterator<Item = (u16, String)> {
        self.names.iter().map(|(&number, names)| (number, names.join("/")))
    }

    /// The names of external interrupt `number`.
    #[must_use]
    pub fn get(&self, number: u16) -> Option<&[String]> {
        self.names.get(&number).map(Vec::as_slice)
    }
}

/// The offset of a problem in the text, and the problem.
type Located = (Option<usize>, SvdErrorKind);

/// The path of elements to an interrupt.
const PATH: [&str; 4] = ["device", "peripherals", "peripheral", "interrupt"];

/// The state of reading a description.
struct Description<'a> {
    reader: Reader<&'a [u8]>,
    names: BTreeMap<u16, Vec<String>>,
    problem: Option<Located>,
    /// The number of open elements.
    depth: usize,
    /// The number of open elements that match [`PATH`], from the outermost one on.
    matched: usize,
    interrupt: Interrupt,
    /// The part of the interrupt that the text belongs to.
    part: Option<Part>,
}

/// The state of reading an interrupt.
#[derive(Debug, Default)]
struct Interrupt {
    name: Option<String>,
    number: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Name,
    Number,
}

impl<'a> Description<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            reader: Reader::from_str(text),
            names: BTreeMap::new(),
            problem: None,
            depth: 0,
            matched: 0,
            interrupt: Interrupt::default(),
            part: None,
        }
    }

    fn read(&mut self) -> Result<(), Located> {
        let mut is_device = false;
        loop {
            let event = self.reader.read_event();
            let event = event.map_err(|error| {
                let at = usize::try_from(self.reader.error_position()).ok();
                (at, SvdErrorKind::Xml(excerpt(&error.to_string())))
            })?;
            match event {
                Event::Start(start) => {
                    self.begin(start.local_name().into_inner())?;
                    is_device = true;
                }
                Event::Empty(start) if self.depth == 0 => {
                    self.begin(start.local_name().into_inner())?;
                    return Ok(());
                }
                Event::End(_) => self.end(),
                Event::Text(text) => self.text(&text.xml10_content()),
                Event::CData(text) => self.text(&text.xml10_content()),
                Event::GeneralRef(reference) => self.text(character(&reference).encode_utf8(&mut [0; 4])),
                Event::Eof if self.depth > 0 => return Err((Some(self.position()), SvdErrorKind::CutOff)),
                Event::Eof if !is_device => return Err((None, SvdErrorKind::Root { found: String::new() })),
                Event::Eof => return Ok(()),
                Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
    }

    fn position(&self) -> usize {
        usize::try_from(self.reader.buffer_position()).unwrap_or(0)
    }

    fn begin(&mut self, name: &str) -> Result<(), Located> {
        if self.depth == 0 && name != PATH[0] {
            return Err((Some(self.position()), SvdErrorKind::Root { found: excerpt(name) }));
        }
        if self.depth == DEEPEST {
            return Err((Some(self.position()), SvdErrorKind::TooDeep { limit: DEEPEST }));
        }
        self.part = None;
        if self.matched == self.depth && PATH.get(self.depth) == Some(&name) {
            self.matched += 1;
        } else if self.matched == PATH.len() && self.depth == PATH.len() {
            self.part = match name {
                "name" => Some(Part::Name),
                "value" => Some(Part::Number),
                _ => None,
            };
        }
        self.depth += 1;
        Ok(())
    }

    fn end(&mut self) {
        self.part = None;
        self.depth = self.depth.saturating_sub(1);
        if self.matched > self.depth {
            if self.matched == PATH.len() {
                let interrupt = std::mem::take(&mut self.interrupt);
                if let Err(kind) = self.add(interrupt) {
                    let at = self.position();
                    self.problem.get_or_insert((Some(at), kind));
                }
            }
            self.matched = self.depth;
        }
    }

    fn text(&mut self, text: &str) {
        let part = match self.part {
            Some(Part::Name) => &mut self.interrupt.name,
            Some(Part::Number) => &mut self.interrupt.number,
            None => return,
        };
        part.get_or_insert_default().push_str(text);
    }

    fn add(&mut self, interrupt: Interrupt) -> Result<(), SvdErrorKind> {
        let filled =
            |part: Option<String>| part.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let name = filled(interrupt.name).ok_or(SvdErrorKind::Incomplete { missing: "a name" })?;
        let number = filled(interrupt.number).ok_or(SvdErrorKind::Incomplete { missing: "a value" })?;
        let value = parse_number(&number).filter(|&value| value < INTERRUPTS);
        let value = value.ok_or_else(|| SvdErrorKind::Number { found: excerpt(&number) })?;
        let names = self.names.entry(value).or_default();
        let name = excerpt(&name);
        if !names.contains(&name) && names.len() < MOST_NAMES {
            names.push(name);
        }
        Ok(())
    }
}

/// Parses `scaledNonNegativeInteger` of the CMSIS-SVD schema, as far as interrupt numbers need it.
fn parse_number(text: &str) -> Option<u16> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let number = match text.strip_prefix('#') {
        Some(binary) => number::parse(&format!("0b{binary}")),
        // In the schema, leading zeros do not make a number octal.
        None => number::parse(text),
    };
    number.and_then(|number| number.try_into().ok())
}

/// The character that `&amp;` or `&#65;` stands for; names have no other entities.
fn character(reference: &BytesRef<'_>) -> char {
    match (reference.resolve_char_ref(), &**reference) {
        (Ok(Some(character)), _) => character,
        (_, "amp") => '&',
        (_, "lt") => '<',
        (_, "gt") => '>',
        (_, "quot") => '"',
        (_, "apos") => '\'',
        _ => char::REPLACEMENT_CHARACTER,
    }
}

/// The line at this offset of a text, from 1.
fn line(text: &str, offset: usize) -> u32 {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    let newlines = before.iter().filter(|&&byte| byte == b'\n').count();
    u32::try_from(newlines).map_or(u32::MAX, |newlines| newlines.saturating_add(1))
}

impl fmt::Display for SvdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", Plain(self.file.display()), Plain(&self.kind)),
            None => write!(f, "{}: {}", Plain(self.file.display()), Plain(&self.kind)),
        }
    }
}

impl std::error::Error for SvdError {}

impl SvdErrorKind {
    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::File(problem) => problem.name(),
            _ => self.into(),
        }
    }
}

impl fmt::Display for SvdErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(problem) => problem.fmt(f),
            Self::Xml(message) => write!(f, "is not XML: {message}"),
            Self::Root { found } if found.is_empty() => {
                f.write_str("is not a CMSIS-SVD file, expected `<device>`")
            }
            Self::Root { found } => {
                write!(f, "is not a CMSIS-SVD file, expected `<device>`, found `<{found}>`")
            }
            Self::TooDeep { limit } => write!(f, "expected at most {limit} levels of nested elements"),
            Self::CutOff => f.write_str("the file is cut off: it ends inside an element"),
            Self::NoInterrupt => f.write_str("describes no interrupts"),
            Self::Incomplete { missing } => write!(f, "the interrupt that ends here lacks {missing}"),
            Self::Number { found } => {
                write!(f, "expected the number of an interrupt, 0 to {}, found `{found}`", INTERRUPTS - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<InterruptNames, SvdError> {
        InterruptNames::from_bytes("chip.svd".as_ref(), text.as_bytes())
    }

    fn names(text: &str) -> Vec<(u16, String)> {
        let names = read(text).unwrap();
        assert_eq!(names.problem, None);
        names.iter().collect()
    }

    fn device(peripherals: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?>\n<device>\n<peripherals>\n{peripherals}\n</peripherals>\n</device>\n"
        )
    }

    fn interrupt(name: &str, value: &str) -> String {
        format!("<interrupt><name>{name}</name><value>{value}</value></interrupt>")
    }

    /// The shape of the example in the CMSIS-SVD documentation (ARM_Example.svd): three timers, two of them derived.
    const TIMERS: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<device schemaVersion="1.1" xmlns:xs="http://www.w3.org/2001/XMLSchema-instance" xs:noNamespaceSchemaLocation="CMSIS-SVD.xsd">
  <name>ARMCM3xxx</name>
  <cpu><name>CM3</name></cpu>
  <peripherals>
    <peripheral>
      <name>TIMER0</name>
      <baseAddress>0x40010000</baseAddress>
      <interrupt>
        <name>TIMER0</name>
        <description>Timer 0 interrupt</description>
        <value>0</value>
      </interrupt>
      <registers>
        <register><name>CR</name><fields><field><name>EN</name></field></fields></register>
      </registers>
    </peripheral>
    <peripheral derivedFrom="TIMER0">
      <name>TIMER1</name>
      <interrupt><name>TIMER1</name><value>4</value></interrupt>
    </peripheral>
    <peripheral derivedFrom="TIMER0">
      <name>TIMER2</name>
      <interrupt><name>TIMER2</name><value>6</value></interrupt>
    </peripheral>
    <peripheral derivedFrom="TIMER0"><name>TIMER3</name></peripheral>
  </peripherals>
</device>
"#;

    #[test]
    fn interrupts_have_the_names_of_their_peripherals() {
        let expected = [(0, "TIMER0"), (4, "TIMER1"), (6, "TIMER2")];
        assert_eq!(names(TIMERS), expected.map(|(number, name)| (number, name.to_owned())));
        assert_eq!(read(TIMERS).unwrap().get(4), Some(&["TIMER1".to_owned()][..]));
    }

    #[test]
    fn a_shared_interrupt_has_all_its_names_once() {
        let shared = ["SPI0", "TWI0", "SPI0", "A", "B", "C"]
            .map(|name| format!("<peripheral><name>{name}</name>{}</peripheral>", interrupt(name, "3")));
        assert_eq!(names(&device(&shared.concat())), [(3, "SPI0/TWI0/A/B".to_owned())]);
    }

    #[test]
    fn numbers_are_written_in_several_ways() {
        let ways = [("A", "0x1F"), ("B", "#101"), ("C", " 007\n"), ("D", "0X20"), ("E", "+12")];
        let interrupts = ways.map(|(name, value)| interrupt(name, value)).concat();
        let expected = [(5, "B"), (7, "C"), (12, "E"), (31, "A"), (32, "D")];
        let found = names(&device(&format!("<peripheral>{interrupts}</peripheral>")));
        assert_eq!(found, expected.map(|(number, name)| (number, name.to_owned())));
    }

    #[test]
    fn names_may_be_written_with_entities_and_sections() {
        let interrupts =
            interrupt("A&amp;<![CDATA[<B>]]>&#67;<!-- no -->D", "1") + &interrupt("&unknown;", "2");
        let found = names(&device(&format!("<peripheral>{interrupts}</peripheral>")));
        assert_eq!(found, [(1, "A&<B>CD".to_owned()), (2, "\u{fffd}".to_owned())]);
    }

    #[test]
    fn what_only_looks_like_an_interrupt_is_none() {
        let elsewhere = interrupt("X", "1");
        let inside = format!(
            "{elsewhere}<peripheral><registers>{elsewhere}</registers><interrupt><name>A</name><value>2</value>\
             <other><name>B</name><value>3</value></other></interrupt></peripheral>"
        );
        assert_eq!(names(&device(&inside)), [(2, "A".to_owned())]);
    }

    #[test]
    fn an_interrupt_that_cannot_be_used_is_reported_and_the_others_are_there() {
        let cases = [
            ("<interrupt><name>A</name></interrupt>", "svd_incomplete"),
            ("<interrupt><value>1</value></interrupt>", "svd_incomplete"),
            ("<interrupt/><interrupt></interrupt>", "svd_incomplete"),
            ("<interrupt><name>A</name><value>-1</value></interrupt>", "svd_number"),
            ("<interrupt><name>A</name><value>480</value></interrupt>", "svd_number"),
        ];
        for (broken, expected) in cases {
            let text = device(&format!("<peripheral>\n{broken}\n{}</peripheral>", interrupt("B", "7")));
            let found = read(&text).unwrap();
            let problem = found.problem.as_ref().map(|problem| (problem.line, problem.kind.name()));
            assert_eq!(problem, Some((Some(5), expected)), "{broken}");
            assert!(found.iter().eq([(7, "B".to_owned())]));
        }
    }

    #[test]
    fn what_is_no_description_is_refused() {
        let cases = [
            ("", None, "svd_root"),
            ("just text\n", None, "svd_root"),
            ("<?xml version=\"1.0\"?>\n<package/>", Some(2), "svd_root"),
            ("<device/>", None, "svd_no_interrupt"),
            ("<device><peripherals></peripherals></device>", None, "svd_no_interrupt"),
            ("<device>\n<peripherals>\n", Some(3), "svd_cut_off"),
            ("<device>\n<peripherals>\n</device>", Some(3), "svd_xml"),
            ("<device>\n<!-- ", Some(2), "svd_xml"),
        ];
        for (text, line, expected) in cases {
            let error = read(text).expect_err(text);
            let is_there = line.is_none() || error.line == line;
            assert!(is_there && error.kind.name() == expected, "{text:?}: {error}");
        }
    }

    #[test]
    fn huge_and_hostile_files_are_bounded() {
        let start = Instant::now();
        let nested = "<cluster>".repeat(1_000_000);
        assert_eq!(
            read(&device(&nested)).unwrap_err().to_string(),
            "chip.svd:4: expected at most 64 levels of nested elements"
        );
        let namespaces = (0..100_000).map(|index| format!("<a xmlns:n{index}='u'/>")).collect::<String>();
        let attributes = (0..100_000).map(|index| format!(" a{index}=''")).collect::<String>();
        let laughs = "<!DOCTYPE device [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'>]>";
        let interrupts =
            (0..100_000).map(|index| interrupt(&format!("N{index}&b;"), "1")).collect::<String>();
        let text = format!(
            "{laughs}<device><peripherals><peripheral{attributes}>{namespaces}{interrupts}</peripheral></peripherals></device>"
        );
        let found = read(&text).unwrap();
        assert_eq!(found.get(1).map(<[String]>::len), Some(MOST_NAMES));
        let long = interrupt(&"N".repeat(1_000_000), "1");
        let found = names(&device(&format!("<peripheral>{long}</peripheral>")));
        assert_eq!(found[0].1.chars().count(), 61);
        assert!(start.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_missing_file_is_reported() {
        let error = InterruptNames::read("no/such.svd".as_ref()).unwrap_err();
        assert_eq!(error.to_string(), "no/such.svd: no such file");
    }

    proptest! {
        #[test]
        fn damaged_descriptions_do_no_harm(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = TIMERS.as_bytes().to_vec();
            for (place, value) in damage {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
            let _ = InterruptNames::from_bytes("chip.svd".as_ref(), &bytes);
            bytes.truncate(cut.index(bytes.len()));
            let _ = InterruptNames::from_bytes("chip.svd".as_ref(), &bytes);
        }

        #[test]
        fn any_text_does_no_harm(text in any::<String>()) {
            let _ = read(&text);
            let _ = read(&format!("<device>{text}"));
        }
    }
}
