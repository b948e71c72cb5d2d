//! `merge`: saved coverage of several runs together.

use super::coverage::read_part;
use crate::args::Merge;
use crate::failure::Failure;
use crate::output::write_to;
use tracewalk_report::analysis::coverage::Coverage;

/// Puts saved parts together.
pub(crate) fn run(args: &Merge) -> Result<(), Failure> {
    let mut merged = Coverage::default();
    for path in &args.parts {
        merged.merge(read_part(path)?).map_err(|error| {
            Failure::input(
                format!("{}: {error}", path.display()),
                "only runs of the same program can be put together",
            )
        })?;
    }
    write_to(args.output.as_deref(), |out| merged.save(out))
}
