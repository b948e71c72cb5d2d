//! Coverage as an LCOV tracefile (geninfo(1)), which most tools that show coverage read.

mod read;

use std::io::{self, Write};

use crate::words::CUT;
use tracewalk_analysis::coverage::{TracedFile, Tracefile};

pub use read::{TracefileError, TracefileErrorKind, read_lcov};

/// Writes a tracefile. If part of the trace was not decoded, it begins with a comment.
pub fn write_lcov(tracefile: &Tracefile, complete: bool, out: &mut dyn Write) -> io::Result<()> {
    if !complete {
        writeln!(out, "# {CUT}")?;
    }
    for (name, file) in &tracefile.files {
        // The record is required; if the name is empty, genhtml(1) calls the test "unnamed".
        writeln!(out, "TN:\nSF:{name}")?;
        write_functions(file, out)?;
        write_branches(file, out)?;
        write_lines(file, out)?;
        writeln!(out, "end_of_record")?;
    }
    Ok(())
}

fn write_functions(file: &TracedFile, out: &mut dyn Write) -> io::Result<()> {
    for (name, function) in &file.functions {
        writeln!(out, "FN:{},{name}", function.line)?;
    }
    for (name, function) in &file.functions {
        writeln!(out, "FNDA:{},{name}", function.count)?;
    }
    let hit = file.functions.values().filter(|function| function.count > 0).count();
    writeln!(out, "FNF:{}\nFNH:{hit}", file.functions.len())
}

fn write_branches(file: &TracedFile, out: &mut dyn Write) -> io::Result<()> {
    for ((line, block, branch), taken) in &file.branches {
        write!(out, "BRDA:{line},{block},{branch},")?;
        match taken {
            Some(count) => writeln!(out, "{count}")?,
            None => writeln!(out, "-")?,
        }
    }
    let hit = file.branches.values().filter(|taken| taken.is_some_and(|count| count > 0)).count();
    writeln!(out, "BRF:{}\nBRH:{hit}", file.branches.len())
}

fn write_lines(file: &TracedFile, out: &mut dyn Write) -> io::Result<()> {
    for (number, line) in &file.lines {
        write!(out, "DA:{number},{}", line.count)?;
        match &line.checksum {
            Some(checksum) => writeln!(out, ",{checksum}")?,
            None => writeln!(out)?,
        }
    }
    let hit = file.lines.values().filter(|line| line.count > 0).count();
    writeln!(out, "LF:{}\nLH:{hit}", file.lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracefile_that_was_written_is_read_back() {
        let text = "TN:\nSF:/src/a.c\nFN:3,main\nFN:9,helper\nFNDA:1,main\nFNDA:0,helper\nFNF:2\nFNH:1\n\
                    BRDA:4,0,0,1\nBRDA:4,0,1,-\nBRF:2\nBRH:1\nDA:3,1,mnIyr0q+vKUkpCd1Q0kbjw\nDA:4,0\nLF:2\nLH:1\nend_of_record\n";
        let read = read_lcov(text).unwrap();
        let mut written = Vec::new();
        write_lcov(&read, true, &mut written).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert_eq!(read_lcov(&written), Ok(read));
        // Functions are written by name.
        assert_eq!(
            written,
            text.replace("FN:3,main\nFN:9,helper", "FN:9,helper\nFN:3,main")
                .replace("FNDA:1,main\nFNDA:0,helper", "FNDA:0,helper\nFNDA:1,main")
        );
    }
}
