//! The paths that a Rust source names: enough of the language to see which module uses which.
//!
//! A source's text comes in, its `use` trees and the paths in its code go out, each with its line and resolved as far
//! as the source itself says: `crate`, `self`, `super`, its own modules, and names that its `use` items bring in.
//! Comments, literals and whatever stands behind `#[cfg(test)]` are left out. Macros are not expanded.

use std::collections::BTreeMap;

/// A path from a crate's name down, like `["tracewalk", "protocol", "pft"]`. Ends in `*` for a glob.
pub(crate) type ModulePath = Vec<String>;

/// What a source holds.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// Every path that the code names.
    pub(crate) paths: Vec<NamedPath>,
    /// The modules in other files: `mod name;`.
    pub(crate) modules: Vec<ModulePath>,
}

/// A path that the code names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    pub(crate) line: usize,
    pub(crate) path: ModulePath,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind<'a> {
    Word(&'a str),
    /// `::`
    Separator,
    Mark(char),
}

#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    line: usize,
    kind: Kind<'a>,
}

/// Reads the source of the module `module`.
pub(crate) fn read(text: &str, module: &[String]) -> Source {
    let tokens = without_tests(&tokens(text));
    let mut reader = Reader { tokens: &tokens, position: 0, module: module.to_vec(), ..Reader::default() };
    reader.items();
    reader.resolve()
}

#[derive(Default)]
struct Reader<'t, 'a> {
    tokens: &'t [Token<'a>],
    position: usize,
    module: ModulePath,
    /// Paths as they stand, and the module in which they stand.
    named: Vec<(NamedPath, ModulePath)>,
    /// What `use` calls a name in a module.
    names: BTreeMap<(ModulePath, String), ModulePath>,
    /// Modules with and without a body.
    children: Vec<ModulePath>,
    modules: Vec<ModulePath>,
}

impl<'a> Reader<'_, 'a> {
    fn peek(&self, ahead: usize) -> Option<Kind<'a>> {
        self.tokens.get(self.position + ahead).map(|token| token.kind)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.position).map_or(0, |token| token.line)
    }

    /// Reads to the brace that closes this module, or to the end.
    fn items(&mut self) {
        let mut depth = 0_usize;
        while let Some(kind) = self.peek(0) {
            match (kind, self.peek(1), self.peek(2)) {
                (Kind::Word("mod"), Some(Kind::Word(name)), Some(end)) => {
                    self.position += 3;
                    self.child(name, end);
                    continue;
                }
                (Kind::Word("use"), ..) => {
                    self.position += 1;
                    self.use_tree(&[]);
                    continue;
                }
                (Kind::Word("extern"), Some(Kind::Word("crate")), Some(Kind::Word(name))) => {
                    self.name(vec![name.to_owned()], self.line());
                    self.position += 2;
                }
                (Kind::Word(_), Some(Kind::Separator), _) => {
                    self.expression_path();
                    continue;
                }
                (Kind::Mark('{'), ..) => depth += 1,
                (Kind::Mark('}'), ..) if depth == 0 => return,
                (Kind::Mark('}'), ..) => depth -= 1,
                _ => {}
            }
            self.position += 1;
        }
    }

    fn child(&mut self, name: &str, end: Kind<'_>) {
        let mut path = self.module.clone();
        path.push(name.to_owned());
        self.children.push(path.clone());
        if end == Kind::Mark('{') {
            let parent = std::mem::replace(&mut self.module, path);
            self.items();
            self.position += 1;
            self.module = parent;
        } else {
            self.modules.push(path);
        }
    }

    fn name(&mut self, path: ModulePath, line: usize) {
        self.named.push((NamedPath { line, path }, self.module.clone()));
    }

    /// `a::b::c` in code, where nothing but words and separators matters.
    fn expression_path(&mut self) {
        let line = self.line();
        let mut path = Vec::new();
        while let Some(Kind::Word(word)) = self.peek(0) {
            path.push(word.to_owned());
            self.position += 1;
            match (self.peek(0), self.peek(1)) {
                (Some(Kind::Separator), Some(Kind::Word(_))) => self.position += 1,
                _ => break,
            }
        }
        self.name(path, line);
    }

    /// The part of a `use` item behind `prefix`.
    fn use_tree(&mut self, prefix: &[String]) {
        let mut path = prefix.to_vec();
        let line = self.line();
        while let Some(kind) = self.peek(0) {
            self.position += 1;
            match kind {
                Kind::Word("as") => {
                    let alias = self.peek(0);
                    self.position += 1;
                    if let Some(Kind::Word(alias)) = alias {
                        self.names.insert((self.module.clone(), alias.to_owned()), path.clone());
                    }
                    self.name(path, line);
                    return;
                }
                Kind::Word(word) => path.push(word.to_owned()),
                Kind::Mark('*') => path.push("*".to_owned()),
                Kind::Separator => {}
                Kind::Mark('{') => {
                    while self.peek(0).is_some_and(|kind| kind != Kind::Mark('}')) {
                        self.use_tree(&path);
                        if self.peek(0) == Some(Kind::Mark(',')) {
                            self.position += 1;
                        }
                    }
                    self.position += 1;
                    return;
                }
                // The end of this branch: `,`, `}` or `;`, which belongs to the caller.
                Kind::Mark(_) => {
                    self.position -= 1;
                    break;
                }
            }
        }
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(name) = path.last().filter(|name| *name != "*") {
            self.names.insert((self.module.clone(), name.clone()), path.clone());
        }
        self.name(path, line);
    }

    fn resolve(self) -> Source {
        let Self { named, names, children, modules, .. } = self;
        let paths = named
            .into_iter()
            .map(|(NamedPath { line, path }, module)| {
                let path = resolve(&path, &module, &names, &children, RENAMES);
                NamedPath { line, path }
            })
            .collect();
        Source { paths, modules }
    }
}

/// How many names may stand for one another before a path is given up as it stands.
const RENAMES: usize = 4;

/// `path` as `module` means it, from its crate down.
fn resolve(
    path: &[String],
    module: &[String],
    names: &BTreeMap<(ModulePath, String), ModulePath>,
    children: &[ModulePath],
    renames: usize,
) -> ModulePath {
    let Some((first, rest)) = path.split_first() else { return Vec::new() };
    let below = |base: &[String]| [base, rest].concat();
    match first.as_str() {
        "crate" => below(&module[..1]),
        "self" => below(module),
        "super" => {
            let parent = &module[..module.len().saturating_sub(1).max(1)];
            match rest.first().map(String::as_str) {
                Some("super") => resolve(rest, parent, names, children, renames),
                _ => below(parent),
            }
        }
        _ if children.contains(&[module, std::slice::from_ref(first)].concat()) => [module, path].concat(),
        _ => match names.get(&(module.to_vec(), first.clone())) {
            Some(meant) if renames > 0 && meant.first() != Some(first) => {
                resolve(&below(meant), module, names, children, renames - 1)
            }
            _ => path.to_vec(),
        },
    }
}

/// The tokens without the items behind `#[cfg(test)]`.
fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    const CFG_TEST: [Kind<'static>; 7] = [
        Kind::Mark('#'),
        Kind::Mark('['),
        Kind::Word("cfg"),
        Kind::Mark('('),
        Kind::Word("test"),
        Kind::Mark(')'),
        Kind::Mark(']'),
    ];
    let mut kept = Vec::new();
    let mut rest = tokens;
    while let Some((token, behind)) = rest.split_first() {
        let is_test =
            rest.len() > CFG_TEST.len() && CFG_TEST.iter().zip(rest).all(|(kind, token)| *kind == token.kind);
        if is_test {
            rest = behind_item(&rest[CFG_TEST.len()..]);
        } else {
            kept.push(*token);
            rest = behind;
        }
    }
    kept
}

/// What stands behind the item at the start: behind its `;` or its body in braces.
fn behind_item<'t, 'a>(tokens: &'t [Token<'a>]) -> &'t [Token<'a>] {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Mark('{') => depth += 1,
            Kind::Mark('}') if depth <= 1 => return &tokens[index + 1..],
            Kind::Mark('}') => depth -= 1,
            Kind::Mark(';') if depth == 0 => return &tokens[index + 1..],
            _ => {}
        }
    }
    &[]
}

/// The words, separators and marks of a source, without comments and literals.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kind, length) = token(rest, first);
        if let Some(kind) = kind {
            tokens.push(Token { line, kind });
        }
        let (passed, behind) = rest.split_at(length.min(rest.len()));
        line += passed.matches('\n').count();
        rest = behind;
    }
    tokens
}

/// The token at the start of `rest` and its length; without a kind where nothing asks for it.
fn token(rest: &str, first: char) -> (Option<Kind<'_>>, usize) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if rest.starts_with("//") {
        return (None, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (None, block_comment(rest));
    }
    if let Some(length) = raw_string(rest).or_else(|| quoted(rest)) {
        return (None, length);
    }
    if rest.starts_with("::") {
        return (Some(Kind::Separator), 2);
    }
    if first == '\'' {
        return (None, character_or_lifetime(rest));
    }
    if is_word(first) {
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let word = &rest[..length];
        return ((!first.is_ascii_digit()).then_some(Kind::Word(word)), length);
    }
    ((!first.is_whitespace()).then_some(Kind::Mark(first)), first.len_utf8())
}

/// The length of a block comment, which may hold others.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of `r"…"`, `r#"…"#`, `br"…"` and so on.
fn raw_string(rest: &str) -> Option<usize> {
    let opening = rest.strip_prefix("br").or(rest.strip_prefix("cr")).or(rest.strip_prefix('r'))?;
    let hashes = opening.len() - opening.trim_start_matches('#').len();
    let body = opening[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let closing = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(rest.len() - body.len() + closing)
}

/// The length of `"…"` and `b"…"`.
fn quoted(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('b').or(rest.strip_prefix('c')).unwrap_or(rest).strip_prefix('"')?;
    let mut escaped = false;
    let closing = body.char_indices().find(|&(_, c)| {
        let closes = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        closes
    });
    Some(rest.len() - body.len() + closing.map_or(body.len(), |(at, _)| at + 1))
}

/// The length of `'a'`, `'\''` or the quote of a lifetime.
fn character_or_lifetime(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((escaped, c))) => {
            let behind = escaped + c.len_utf8();
            rest[behind..].find('\'').map_or(rest.len(), |at| behind + at + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str, module: &str) -> Vec<String> {
        let module = module.split("::").map(str::to_owned).collect::<Vec<_>>();
        read(text, &module).paths.iter().map(|named| named.path.join("::")).collect()
    }

    #[test]
    fn use_trees_are_unfolded_and_resolved() {
        let text = "use crate::{ids::{self, Isa}, span::*};\nuse super::etmv3 as other;\npub(crate) use self::packet::Packet;";
        let expected =
            ["t::ids", "t::ids::Isa", "t::span::*", "t::protocol::etmv3", "t::protocol::pft::packet::Packet"];
        assert_eq!(paths(text, "t::protocol::pft"), expected);
    }

    #[test]
    fn names_stand_for_what_use_brought_in() {
        let text =
            "use std::{fs as disk, thread};\nfn f() { disk::read(x); thread::spawn(y); Vec::<u8>::new() }";
        let expected = ["std::fs", "std::thread", "std::fs::read", "std::thread::spawn", "Vec"];
        assert_eq!(paths(text, "t::a"), expected);
        assert_eq!(paths("mod b;\nuse b::c;\nfn f() { b::d() }", "t::a"), ["t::a::b::c", "t::a::b::d"]);
        assert_eq!(paths("use b::c;\nuse c::b;\nfn f() { b::d() }", "t::a").len(), 3, "a circle ends");
    }

    #[test]
    fn inner_modules_have_parents() {
        let text = "mod inner { use super::super::x::Y; mod deep { use super::Z; } }\nuse super::x::W;";
        let source = read(text, &["t".to_owned(), "a".to_owned()]);
        let found = source.paths.iter().map(|named| named.path.join("::")).collect::<Vec<_>>();
        assert_eq!(found, ["t::x::Y", "t::a::inner::Z", "t::x::W"]);
    }

    #[test]
    fn comments_literals_and_tests_name_nothing() {
        let text = r####"
            // use std::fs;
            /* use std::fs; /* std::fs */ std::fs */
            const A: &str = "std::fs \" std::fs";
            const B: &str = r#"std::fs "quoted" std::fs"#;
            const C: char = '"'; fn f<'a>(x: &'a str) { '\'' ; x::y() }
            #[cfg(test)]
            mod tests { use std::fs; }
            #[cfg(test)]
            extern crate std;
            use std::io;
        "####;
        assert_eq!(paths(text, "t"), ["x::y", "std::io"]);
    }

    #[test]
    fn lines_are_counted_through_everything() {
        let text = "/* \n */ \"\n\" \n use std::io; fn f() {\n std::fs::read() }";
        let lines = read(text, &["t".to_owned()]).paths.iter().map(|named| named.line).collect::<Vec<_>>();
        assert_eq!(lines, [4, 5]);
    }

    #[test]
    fn modules_in_files_are_told_from_those_with_a_body() {
        let source = read("mod a;\npub mod b { mod c; }\n#[cfg(test)]\nmod tests;", &["t".to_owned()]);
        let modules = source.modules.iter().map(|path| path.join("::")).collect::<Vec<_>>();
        assert_eq!(modules, ["t::a", "t::b::c"]);
    }
}
