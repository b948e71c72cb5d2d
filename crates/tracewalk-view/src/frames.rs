//! The functions that are running, limited to the depth that a picture shows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracewalk_analysis::Code;
use tracewalk_analysis::call_stack::{CallStack, Entry, Frame, FrameKind, FunctionId, Observer};

/// The greatest depth of calls that is drawn.
pub(crate) const DEEPEST: usize = 48;

/// Marks each frame with the step at which it began.
pub(crate) struct Began(pub(crate) u64);

impl Observer for Began {
    type Mark = u64;

    fn enter(&mut self, _: Option<&mut Frame<u64>>, _: FrameKind, _: FunctionId, _: Entry) -> u64 {
        self.0
    }
}

/// The names of functions, by number.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Functions {
    numbers: BTreeMap<FunctionId, u32>,
    pub(crate) known: Vec<FunctionId>,
}

/// A frame in a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Drawn {
    /// The function's number.
    pub(crate) function: u32,
    /// The step at which the frame began.
    pub(crate) began: u64,
    pub(crate) is_exception: bool,
}

impl Functions {
    pub(crate) fn number(&mut self, function: FunctionId) -> u32 {
        let Self { numbers, known } = self;
        *numbers.entry(function).or_insert_with(|| {
            known.push(function);
            u32::try_from(known.len() - 1).unwrap_or(u32::MAX)
        })
    }

    pub(crate) fn name(&self, number: u32, code: &Code) -> String {
        let known = usize::try_from(number).ok().and_then(|number| self.known.get(number));
        known.map_or_else(String::new, |function| function.name(code))
    }
}

/// The outermost frames.
pub(crate) fn drawn(calls: &CallStack<u64>, functions: &mut Functions, into: &mut Vec<Drawn>) {
    into.clear();
    into.extend(calls.frames().take(DEEPEST).map(|frame| Drawn {
        function: functions.number(frame.function),
        began: frame.mark,
        is_exception: frame.kind.is_exception(),
    }));
}
