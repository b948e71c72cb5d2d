//! How often exceptions were taken and how long they took, as text, CSV and JSON.

mod json;
mod table;
mod text;
use std::sync::Arc;

use tracewalk::ids::Exception;
use tracewalk_analysis::call_stack::FunctionId;
use tracewalk_analysis::interrupts::{Activities, Activity};
use tracewalk_analysis::timeline::Scale;
use tracewalk_analysis::{Code, Section};

use super::profile::of_program;

pub use json::write_interrupts_json;
pub use text::write_interrupts_text;

/// The durations of all sources.
#[derive(Debug)]
pub struct InterruptReport {
    /// The unit of time.
    pub scale: Scale,
    /// The sources.
    pub sources: Vec<(Section, Activities)>,
    /// The names of the sources' programs, if there are several.
    pub programs: Vec<(Arc<Code>, String)>,
    /// Whether every capture was decoded to its end.
    pub complete: bool,
}

impl InterruptReport {
    /// ` of m3.elf` if a source of another program has the same trace ID; otherwise empty.
    fn of_program(&self, section: &Section) -> String {
        of_program(section, &self.sources, &self.programs)
    }

    /// The title of the axis.
    fn title(&self) -> String {
        let is_of_itm = self.sources.iter().all(|(section, _)| is_of_itm(section));
        self.scale.title(if is_of_itm { "itm" } else { "" })
    }
}

/// Whether a section has the reports of an ITM.
fn is_of_itm(section: &Section) -> bool {
    section.protocol == "itm"
}

/// The subject of a row.
struct Row<'a> {
    name: String,
    exception: Option<Exception>,
    function: Option<FunctionId>,
    activity: &'a Activity,
}

/// A source's rows: exceptions by number, functions by address.
fn rows<'a>(code: &'a Code, activities: &'a Activities) -> impl Iterator<Item = Row<'a>> {
    let exceptions = activities.exceptions.iter().map(|(&exception, activity)| {
        let name = exception.map_or_else(
            || "an exception".to_owned(),
            |exception| code.interrupts.name_or_number(exception).into_owned(),
        );
        Row { name, exception, function: None, activity }
    });
    let functions = activities.functions.iter().map(|(&function, activity)| Row {
        name: function.name(code),
        exception: None,
        function: Some(function),
        activity,
    });
    exceptions.chain(functions)
}
