//! The prompts of debuggers, which logs have before commands and output.

/// Removes prompts: if commands come from a file, their output follows the prompt on the same line.
pub(super) fn without_prompts(mut line: &str) -> &str {
    const PROMPTS: [&str; 4] = ["(gdb)", "J-Link>", "pyocd>", ">"];
    while let Some(rest) = PROMPTS.iter().find_map(|prompt| line.trim_start().strip_prefix(prompt)) {
        line = rest;
    }
    line
}
