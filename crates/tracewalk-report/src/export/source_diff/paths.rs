//! The paths in a diff.

use tracewalk_analysis::coverage::DiffPath;

/// The two paths in the head of a file.
#[derive(Debug, Default)]
pub(super) struct GitNames {
    /// From a rename or a copy, without prefixes.
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
    pub(super) added: bool,
    pub(super) deleted: bool,
    /// The path of the first line, if both are the same apart from their prefixes.
    both: Option<DiffPath>,
    /// The paths after `---` and `+++`.
    heads: [Option<String>; 2],
    is_git: bool,
}

impl GitNames {
    /// The paths of the line `diff --git OLD NEW`. If it is ambiguous, other lines have the paths.
    pub(super) fn of(names: &[u8]) -> Self {
        let names = unquoted_pair(names);
        let both = names.and_then(|(old, new)| {
            let stripped = (without_prefix(&old)?, without_prefix(&new)?);
            let (path, may_have_prefix) =
                if stripped.0 == stripped.1 { (stripped.0, false) } else { (new.as_str(), true) };
            Some(DiffPath { path: path.to_owned(), may_have_prefix })
        });
        Self { both, is_git: true, ..Self::default() }
    }

    /// Reads the rest of a line after `---` or `+++`: a path, and a time after a tab.
    pub(super) fn read_head(&mut self, text: &[u8], is_old: bool) {
        let path = match text.first() {
            Some(b'"') => unquoted(text),
            _ => unquoted(text.split(|byte| *byte == b'\t').next().unwrap_or_default()),
        };
        let [old, new] = &mut self.heads;
        *(if is_old { old } else { new }) = Some(path.trim_end_matches('\r').to_owned());
    }

    /// The old and the new path.
    pub(super) fn paths(self) -> (Option<DiffPath>, Option<DiffPath>) {
        let exactly = |path: String| DiffPath { path, may_have_prefix: false };
        let is_nothing = |head: &Option<String>| head.as_deref() == Some("/dev/null");
        let added = self.added || is_nothing(&self.heads[0]);
        let deleted = self.deleted || is_nothing(&self.heads[1]);
        let [old_head, new_head] = self.heads;
        let known_pair = |old: &Option<String>, new: &Option<String>| {
            let (old, new) = (without_prefix(old.as_deref()?)?, without_prefix(new.as_deref()?)?);
            (old == new).then(|| old.to_owned())
        };
        let same = known_pair(&old_head, &new_head);
        let is_git = self.is_git;
        let path = |renamed: Option<String>, head: Option<String>| {
            let of_head = head.filter(|head| head != "/dev/null").map(|head| {
                // Git's prefixes are a letter and a slash; `--no-prefix` leaves them out.
                let stripped = without_prefix(&head).filter(|_| is_git || same.is_some());
                match stripped {
                    Some(path) => exactly(path.to_owned()),
                    None => DiffPath { path: head, may_have_prefix: !is_git },
                }
            });
            renamed.map(exactly).or(of_head).or_else(|| self.both.clone())
        };
        let (old, new) = (path(self.old, old_head), path(self.new, new_head));
        (old.filter(|_| !added), new.filter(|_| !deleted))
    }
}

/// The path without Git's prefix: `a/` and `b/`, or with diff.mnemonicPrefix `i/`, `w/`, `c/` and `o/`.
fn without_prefix(path: &str) -> Option<&str> {
    path.split_once('/')
        .filter(|(prefix, _)| matches!(*prefix, "a" | "b" | "i" | "w" | "c" | "o"))
        .map(|(_, path)| path)
}

/// Two paths with a space between them. Unquoted paths have to be the same apart from a prefix, so that the space is in the
/// middle.
fn unquoted_pair(text: &[u8]) -> Option<(String, String)> {
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    if text.first() == Some(&b'"') {
        let end = end_of_quote(text)?;
        let (old, new) = text.split_at_checked(end)?;
        return Some((unquoted(old), unquoted(new.strip_prefix(b" ")?)));
    }
    let middle = text.len() / 2;
    let (old, new) = text.split_at_checked(middle)?;
    let pair = (unquoted(old), unquoted(new.strip_prefix(b" ")?));
    (text.len() % 2 == 1).then_some(pair)
}

/// The index after the quote that ends a quoted path.
fn end_of_quote(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    for (index, byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(index + 1),
            _ => {}
        }
    }
    None
}

/// A path without its quotes. In quotes, Git escapes unusual bytes as C does: `"a/\303\244.c"`.
pub(super) fn unquoted(text: &[u8]) -> String {
    let Some(inner) = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")) else {
        return String::from_utf8_lossy(text).into_owned();
    };
    let mut path = Vec::new();
    let mut rest = inner;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let Some((&escaped, after)) = rest.split_first().filter(|_| byte == b'\\') else {
            path.push(byte);
            continue;
        };
        let octal =
            rest.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        if let Some(octal) = octal {
            path.push(octal);
            rest = rest.get(3..).unwrap_or_default();
            continue;
        }
        path.push(match escaped {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            other => other,
        });
        rest = after;
    }
    String::from_utf8_lossy(&path).into_owned()
}
