//! Output on a terminal goes through a pager, as in git.
//!
//! Standard output becomes a pipe to the pager. So does standard error if it is the same terminal, so that messages do not
//! disturb the screen. Commands write as usual. A pager that ends early closes the pipe, which ends the command as `head` does.

#[cfg(unix)]
mod unix {
    use std::io::{self, IsTerminal as _};
    use std::os::fd::OwnedFd;
    use std::process::{Child, Command, Stdio};
    use std::sync::{Mutex, OnceLock, PoisonError};

    use rustix::stdio::{dup2_stderr, dup2_stdout};

    use super::{chosen, is_words};
    use crate::output::terminal::Terminal;

    static PAGER: Mutex<Pager> = Mutex::new(Pager::Absent);

    /// The terminal that the pager writes to.
    static TERMINAL: OnceLock<Terminal> = OnceLock::new();

    enum Pager {
        Absent,
        Running(Running),
        /// The command or a signal has waited for the pager, and ends the program with its own status.
        Ended,
    }

    /// The running pager, and the original standard error.
    struct Running {
        child: Child,
        command: String,
        stderr: Option<OwnedFd>,
    }

    /// Starts the pager if standard output is a terminal and the user wants one. Returns a message if that failed.
    pub(crate) fn start() -> Option<String> {
        if !io::stdout().is_terminal() {
            return None;
        }
        let command = chosen(|name| std::env::var(name).ok())?;
        let terminal = Terminal::of_standard_output();
        let mut child = match spawn(&command) {
            Ok(child) => child,
            // The default pager may be missing without a message.
            Err(_) if command == super::DEFAULT => return None,
            Err(error) => return Some(format!("the pager `{command}` cannot be started: {error}")),
        };
        let stdin = child.stdin.take()?;
        let stderr = io::stderr().is_terminal().then(|| rustix::io::dup(io::stderr()).ok()).flatten();
        // Holding the lock delays signals until everything is set up.
        let mut pager = PAGER.lock().unwrap_or_else(PoisonError::into_inner);
        // The handler has to be there before the pipe is: Ctrl-C goes to the pager as well.
        crate::signals::before_ending(|| drop(finish()));
        let redirected =
            dup2_stdout(&stdin).and_then(|()| stderr.as_ref().map_or(Ok(()), |_| dup2_stderr(&stdin)));
        *pager = Pager::Running(Running { child, command, stderr });
        let _ = TERMINAL.set(terminal);
        redirected.err().map(|error| format!("standard output cannot go to the pager: {error}"))
    }

    /// The terminal that the pager writes to, if one runs.
    pub(crate) fn terminal() -> Option<Terminal> {
        TERMINAL.get().copied()
    }

    /// Waits for the pager to end. Returns a message if nothing could be shown.
    ///
    /// The command calls this at its end, and a signal handler when a signal comes. The first caller decides the program's
    /// status. The other caller never returns, so that an interrupted command does not end as a complete one, nor a complete one
    /// as interrupted.
    pub(crate) fn finish() -> Option<String> {
        // Held until the pager ends.
        let mut pager = PAGER.lock().unwrap_or_else(PoisonError::into_inner);
        let Running { mut child, command, stderr } = match std::mem::replace(&mut *pager, Pager::Ended) {
            Pager::Running(running) => running,
            Pager::Absent => {
                *pager = Pager::Absent;
                return None;
            }
            Pager::Ended => {
                drop(pager);
                loop {
                    std::thread::park();
                }
            }
        };
        // The pager waits for more as long as anything can be written to it.
        let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null").ok()?;
        let _ = dup2_stdout(&nowhere);
        if let Some(stderr) = stderr {
            let _ = dup2_stderr(stderr);
        }
        let status = child.wait();
        // By convention, a shell's status if it could not start the program.
        let failed = status.is_ok_and(|status| matches!(status.code(), Some(126 | 127)));
        failed.then(|| format!("the pager `{command}` could not be started"))
    }

    fn spawn(command: &str) -> io::Result<Child> {
        let mut pager = match is_words(command) {
            true => {
                let mut shell = Command::new("sh");
                shell.args(["-c", command]);
                shell
            }
            false => Command::new(command),
        };
        for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
            if std::env::var_os(name).is_none() {
                pager.env(name, value);
            }
        }
        pager.stdin(Stdio::piped()).spawn()
    }
}

#[cfg(not(unix))]
mod other {
    /// No pager: standard output cannot be made a pipe here.
    pub(crate) fn start() -> Option<String> {
        None
    }

    pub(crate) fn terminal() -> Option<crate::output::terminal::Terminal> {
        None
    }

    pub(crate) fn finish() -> Option<String> {
        None
    }
}

#[cfg(not(unix))]
pub(crate) use other::{finish, start, terminal};
#[cfg(unix)]
pub(crate) use unix::{finish, start, terminal};

/// The default pager. The variable LESS makes it show colours, and end at once for short text.
#[cfg(unix)]
const DEFAULT: &str = "less";

/// The pager that the environment asks for; `None` for none.
#[cfg(unix)]
fn chosen(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let is_dumb = variable("TERM").is_some_and(|terminal| terminal == "dumb");
    let pager =
        variable("TRACEWALK_PAGER").or_else(|| variable("PAGER")).unwrap_or_else(|| DEFAULT.to_owned());
    let pager = pager.trim();
    (!is_dumb && !matches!(pager, "" | "cat")).then(|| pager.to_owned())
}

/// Whether a command needs a shell to be understood.
#[cfg(unix)]
fn is_words(command: &str) -> bool {
    command.contains(|letter: char| letter.is_whitespace() || "|&;<>()$`\\\"'*?[#~=%".contains(letter))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses_a_pager_or_none() {
        let chosen = |set: &[(&str, &str)]| {
            chosen(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(chosen(&[]).as_deref(), Some("less"));
        assert_eq!(chosen(&[("PAGER", "more")]).as_deref(), Some("more"));
        assert_eq!(chosen(&[("PAGER", "more"), ("TRACEWALK_PAGER", "less -S")]).as_deref(), Some("less -S"));
        for none in ["", "cat", " "] {
            assert_eq!(chosen(&[("PAGER", "more"), ("TRACEWALK_PAGER", none)]), None, "{none:?}");
        }
        assert_eq!(chosen(&[("TERM", "dumb")]), None);
        assert!(is_words("less -R") && is_words("~/pager") && !is_words("/usr/bin/less"));
    }
}
