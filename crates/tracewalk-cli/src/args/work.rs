//! How the work is done, for every command that decodes.

use clap::Args;

/// How the work is done and measured.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WorkArgs {
    /// Print totals and the time taken at the end, as one line of JSON on standard error.
    #[arg(long, help_heading = "Output")]
    pub(crate) stats: bool,

    /// The number of threads that decode program flow; one for each processor if omitted. The output does not depend on
    /// it.
    #[arg(long, value_name = "N", default_value_t = processors(), hide_default_value = true, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Output")]
    pub(crate) threads: u16,
}

/// How many processors this process may use.
fn processors() -> u16 {
    std::thread::available_parallelism().ok().and_then(|count| u16::try_from(count.get()).ok()).unwrap_or(1)
}
