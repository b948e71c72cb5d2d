//! A timeline as text: a line for the start of each span and, if something happened in it, one for its end.
use std::sync::Arc;

use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;

use super::TimelineExport;
use super::names::{Names, details};
use crate::layout::Fitted;
use crate::words::CUT;
use crate::{Look, Palette};
use tracewalk_analysis::timeline::{Certainty, Change, Finish, Item, Mark, Moment, Scale, Span, Track, What};
use tracewalk_analysis::{Code, Section};

/// Writes lines.
#[derive(Debug)]
pub struct TimelineText<W> {
    out: Fitted<W>,
    palette: Palette,
    scale: Option<Scale>,
    names: Names,
    open: HashMap<Track, Vec<Open>>,
    /// A span without items inside it yet.
    held: Option<(Span, Moment)>,
    first_section: bool,
}

#[derive(Clone, Debug)]
struct Open {
    name: Rc<str>,
    since: Moment,
}

/// The widths of the columns of times and tracks.
const TIME_WIDTH: usize = 14;
const TRACK_WIDTH: usize = 14;
/// Spans deeper than this are not indented further.
const DEEPEST: usize = 24;

impl<W: Write> TimelineText<W> {
    /// Writes to `out`.
    pub fn new(out: W, look: Look) -> Self {
        Self {
            out: Fitted::new(out, look.width),
            palette: look.palette,
            scale: None,
            names: Names::new(Arc::new(Code::unknown())),
            open: HashMap::new(),
            held: None,
            first_section: true,
        }
    }

    fn release(&mut self) -> io::Result<()> {
        let Some((span, at)) = self.held.take() else { return Ok(()) };
        let text = self.span_text(&span);
        let depth = self.open.get(&span.track).map_or(0, Vec::len);
        self.line(at, span.track, depth.saturating_sub(1), &text)
    }

    /// The name of a span and its details.
    fn span_text(&mut self, span: &Span) -> String {
        let Palette { function, exception, problem, head, quiet, .. } = self.palette;
        let style = match span.what {
            What::Function { .. } => function,
            What::Exception(_) => exception,
            What::Gap(_) => problem,
            What::Task(_) => head,
        };
        let name = self.names.span(&span.what);
        let mut text = format!("{style}{name}{style:#}");
        let notes = details(&span.what).into_iter().filter(|(field, _)| *field != "address");
        let notes = notes.map(|(field, note)| match field {
            "entry" => note,
            _ => format!("{} {note}", field.replace('_', " ")),
        });
        for note in notes.chain(span.start.note().map(str::to_owned)) {
            text.push_str(&format!("  {quiet}{note}{quiet:#}"));
        }
        text
    }

    fn line(&mut self, at: Moment, track: Track, depth: usize, text: &str) -> io::Result<()> {
        let quiet = self.palette.quiet;
        let time = self.time(at.ticks);
        let mark = match at.certainty {
            Certainty::Exact => ' ',
            Certainty::Interpolated => '~',
            Certainty::Estimated => '?',
        };
        let track = self.names.track(track);
        let indent = 2 * depth.min(DEEPEST);
        writeln!(
            self.out,
            "{mark}{time:>TIME_WIDTH$}  {quiet}{track:<TRACK_WIDTH$}{quiet:#}  {:indent$}{text}",
            ""
        )
    }

    fn time(&self, ticks: u64) -> String {
        match self.scale.filter(Scale::is_in_seconds) {
            Some(scale) => {
                let nanoseconds = scale.nanoseconds(ticks);
                format!("{}.{:09} s", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
            }
            None => ticks.to_string(),
        }
    }

    fn end(&mut self, at: Moment, track: Track, finish: Finish) -> io::Result<()> {
        let quiet = self.palette.quiet;
        let open = self.open.get_mut(&track).and_then(Vec::pop);
        let Some(open) = open else { return Ok(()) };
        let length = self.time(at.ticks.saturating_sub(open.since.ticks));
        let note = finish.note().map_or_else(String::new, |note| format!(", {note}"));
        if let Some((span, begun)) = self.held.take_if(|(span, _)| span.track == track) {
            let depth = self.open.get(&track).map_or(0, Vec::len);
            let text = format!("{}  {quiet}{length}{note}{quiet:#}", self.span_text(&span));
            return self.line(begun, track, depth, &text);
        }
        self.release()?;
        let depth = self.open.get(&track).map_or(0, Vec::len);
        self.line(at, track, depth, &format!("{quiet}└ {}  {length}{note}{quiet:#}", open.name))
    }
}

impl<W: Write> TimelineExport for TimelineText<W> {
    fn section(&mut self, section: &Section, scale: &Scale) -> io::Result<()> {
        let head = self.palette.head;
        if !std::mem::take(&mut self.first_section) {
            writeln!(self.out)?;
        }
        self.scale = Some(*scale);
        self.names = Names::new(Arc::clone(&section.code));
        self.open.clear();
        writeln!(self.out, "{head}{}{head:#}", format_args!("{section}, {}", scale.title(section.protocol)))?;
        if scale.unit != tracewalk_analysis::clock::Unit::Instructions {
            writeln!(self.out, "~ interpolated  ? estimated")?;
        }
        Ok(())
    }

    fn item(&mut self, item: &Item) -> io::Result<()> {
        match &item.change {
            Change::Begin(span) => {
                self.release()?;
                let name = self.names.span(&span.what);
                self.open.entry(span.track).or_default().push(Open { name, since: item.at });
                self.held = Some((*span, item.at));
                Ok(())
            }
            Change::End { track, finish, .. } => self.end(item.at, *track, *finish),
            Change::Mark { track, mark } => {
                self.release()?;
                let text = match mark {
                    Mark::Text(text) => format!("{text:?}"),
                    mark => self.names.mark(mark).1.into_owned(),
                };
                self.line(item.at, *track, 0, &text)
            }
        }
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.release()
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        if !complete {
            writeln!(self.out, "{CUT}")?;
        }
        self.out.flush()
    }
}
