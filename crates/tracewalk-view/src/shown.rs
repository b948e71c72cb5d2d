//! Steps as rows of the list.

use std::rc::Rc;

use serde::Serialize;
use tracewalk::flow::{BranchKind, Element, Ending, EventKind};
use tracewalk::program::ViewId;
use tracewalk_analysis::Code;
use tracewalk_analysis::drive::Here;

use crate::names::{Names, hex};

/// A row of the list.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) step: u64,
    /// `instruction`, `exception`, `gap` or `event`.
    pub(crate) kind: &'static str,
    /// The number of the instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) function: Option<Rc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) inlined: Option<Rc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<Rc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
    /// The instruction, or what happened.
    pub(crate) text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) operands: String,
    /// The depth of calls.
    pub(crate) depth: usize,
    /// Whether it is a branch that was not taken, or an instruction whose condition failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) failed: bool,
}

/// The program as seen in a context, and the number of this view.
pub(crate) fn seen(code: &Code, context: Option<EventKind>) -> (ViewId, &Code) {
    match context {
        Some(EventKind::Context { context_id, vmid, .. }) => {
            let view = code.program.view_in(context_id, vmid);
            (view, code.in_view(view))
        }
        _ => (ViewId::default(), code),
    }
}

/// The row of the step that a cursor is on.
pub(crate) fn row(here: &Here<'_>, depth: usize, code: &Code, names: &mut Names) -> Row {
    let (view, seen) = seen(code, here.context);
    let empty = Row {
        step: here.step,
        kind: "event",
        number: None,
        address: None,
        function: None,
        offset: None,
        inlined: None,
        file: None,
        line: None,
        text: String::new(),
        operands: String::new(),
        depth,
        failed: false,
    };
    match (here.element, here.instruction) {
        (Element::Block(block), Some(instruction)) => {
            let named = names.at(view, instruction.location, seen);
            let failed = match block.ending {
                Ending::ConditionFailed => true,
                Ending::Branch { kind, taken, .. } => !taken && kind != BranchKind::Barrier,
                Ending::Interrupted => false,
            };
            Row {
                kind: "instruction",
                number: Some(instruction.number),
                address: Some(hex(instruction.location.address)),
                function: named.function.clone(),
                offset: named.function.is_some().then_some(named.offset),
                inlined: named.inlined.clone(),
                file: named.file.clone(),
                line: named.line,
                text: named.mnemonic.clone(),
                operands: named.operands.clone(),
                failed: failed && instruction.is_last,
                ..empty
            }
        }
        (Element::Gap(gap), _) => Row { kind: "gap", text: gap.reason.to_string(), ..empty },
        (Element::Event(event), _) => match event.kind {
            EventKind::Exception { exception, preferred_return, .. } => {
                let name = exception.map_or_else(
                    || "an exception".to_owned(),
                    |exception| code.interrupts.describe(exception).to_string(),
                );
                let returns =
                    preferred_return.map_or_else(String::new, |at| format!(", returns to {}", hex(at)));
                Row { kind: "exception", text: format!("{name}{returns}"), ..empty }
            }
            other => Row { text: other.to_string(), ..empty },
        },
        (element, _) => Row { text: element.to_string(), ..empty },
    }
}
