//! Names of spans and tracks, the same in all formats.
use std::sync::Arc;

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use tracewalk::flow::EventKind;
use tracewalk::ids::Exception;

use tracewalk_analysis::Code;
use tracewalk_analysis::call_stack::{Entry, FunctionId};
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::timeline::{Mark, Scale, Track, What};

/// Names of one program, looked up once each.
#[derive(Debug)]
pub(in crate::export) struct Names {
    code: Arc<Code>,
    functions: HashMap<FunctionId, Rc<str>>,
}

impl Names {
    pub(in crate::export) fn new(code: Arc<Code>) -> Self {
        Self { code, functions: HashMap::new() }
    }

    pub(super) fn span(&mut self, what: &What) -> Rc<str> {
        match what {
            What::Function { function, .. } => {
                let code = &self.code;
                let name = || function.name(code).into();
                Rc::clone(self.functions.entry(*function).or_insert_with(name))
            }
            What::Exception(interruption) => self.exception(interruption.exception).into(),
            What::Task(task) => task.name(&self.code).into(),
            What::Gap(why) => why.to_string().into(),
        }
    }

    pub(in crate::export) fn track(&self, track: Track) -> String {
        match track {
            Track::Running => "running".to_owned(),
            Track::Task(task) => task.name(&self.code),
            Track::OtherTasks => "other tasks".to_owned(),
            Track::Exception(exception) => self.exception(exception),
            Track::Gaps => "not known".to_owned(),
            Track::Events => "events".to_owned(),
            Track::Text(port) => format!("stimulus port {port}"),
            Track::Values(port) => format!("values of port {port}"),
            Track::Reported => "ITM exceptions".to_owned(),
            Track::Watched { comparator, object } => {
                let object = object.and_then(|at| self.code.symbols.object(at));
                object.map_or_else(|| format!("comparator {comparator}"), |object| object.name)
            }
        }
    }

    /// The kind of a mark in one word, and its text.
    pub(super) fn mark<'mark>(&self, mark: &'mark Mark) -> (&'static str, Cow<'mark, str>) {
        match mark {
            Mark::Trigger => ("trigger", "trigger".into()),
            Mark::Events(events) => ("event", EventKind::Events(*events).to_string().into()),
            Mark::Instrumentation(written) => {
                ("instrumentation", EventKind::Instrumentation(*written).to_string().into())
            }
            Mark::Transaction(transaction) => {
                ("transaction", EventKind::Transaction(*transaction).to_string().into())
            }
            Mark::Text(text) => ("text", text.into()),
            Mark::Value(value) => ("value", value.to_string().into()),
            Mark::Exception(exception, action) => {
                let name = exception.map_or_else(|| "thread mode".to_owned(), |of| self.exception(Some(of)));
                ("itm_exception", format!("{name} {}", action.name()).into())
            }
        }
    }

    fn exception(&self, exception: Option<Exception>) -> String {
        match exception {
            Some(exception) => self.code.interrupts.describe(exception).to_string(),
            None => "an exception".to_owned(),
        }
    }
}

/// The kind of a span, in one word.
pub(super) const fn kind(what: &What) -> &'static str {
    match what {
        What::Function { .. } => "function",
        What::Exception(_) => "exception",
        What::Task(_) => "task",
        What::Gap(_) => "gap",
    }
}

/// The details of a span besides its name: field and value.
pub(super) fn details(what: &What) -> Vec<(&'static str, String)> {
    let mut details = Vec::new();
    match what {
        What::Function { function, entry } => {
            details.extend(function.address().map(|address| ("address", address.to_string())));
            match entry {
                Entry::TailCalled => details.push(("entry", "tail call".to_owned())),
                Entry::Joined => details.push(("entry", "by a jump".to_owned())),
                _ => {}
            }
        }
        What::Exception(interruption) => {
            details.extend(interruption.returns_to.map(|address| ("returns_to", address.to_string())));
            if interruption.chained {
                details.push(("tail_chained", "to the one before".to_owned()));
            }
        }
        What::Task(_) | What::Gap(_) => {}
    }
    details
}

/// The position of a track among the others.
pub(super) fn rank(track: Track) -> i32 {
    match track {
        Track::Running => 0,
        Track::Task(_) => 1,
        Track::OtherTasks => 2,
        Track::Exception(exception) => 10 + exception.map_or(0, |exception| i32::from(exception.number())),
        Track::Gaps => 1 << 20,
        Track::Events => (1 << 20) + 1,
        Track::Reported => (1 << 20) + 2,
        Track::Text(port) => (1 << 20) + 3 + i32::from(port),
        Track::Values(port) => (1 << 20) + 3 + 256 + i32::from(port),
        Track::Watched { comparator, .. } => (1 << 20) + 3 + 512 + i32::from(comparator),
    }
}

/// The meaning of one `shown`, for viewers whose axis is always in seconds: `1 ns is 1 instruction`.
pub(super) fn ruler(scale: &Scale, shown: &str) -> Option<String> {
    let unit = match scale.unit {
        Unit::Instructions => "instruction",
        Unit::Cycles => "cycle",
        Unit::Time => "tick",
        Unit::Samples => "sample",
    };
    (!scale.is_in_seconds()).then(|| format!("{shown} is 1 {unit}"))
}

/// A source's title: its name, and the unit of its axis. Viewers cut long titles in the middle.
pub(super) fn title(section: &tracewalk_analysis::Section, scale: &Scale, shown: &str) -> String {
    let axis = scale.title(section.protocol);
    match ruler(scale, shown) {
        Some(ruler) => format!("{ruler}: {section}, {axis}"),
        None => format!("{section}, {axis}"),
    }
}
