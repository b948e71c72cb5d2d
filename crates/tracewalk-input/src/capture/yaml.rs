//! A YAML text as a tree. References to other parts of a text are refused: they can make a small text endless.

use std::borrow::Cow;

use saphyr_parser::{Event, Parser};

/// A value, with its line, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node<'t> {
    pub(super) line: u32,
    pub(super) value: Value<'t>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value<'t> {
    Scalar(Cow<'t, str>),
    List(Vec<Node<'t>>),
    /// Keys that are no text are left out.
    Table(Vec<(Cow<'t, str>, Node<'t>)>),
}

/// Why a text is not read: the line, from 1, and the parser's words.
pub(super) type Fault = (u32, String);

/// The deepest nesting. Descriptions have about six levels.
const DEEPEST: usize = 64;

impl<'t> Node<'t> {
    /// The first document of a text; an empty one is an empty table.
    pub(super) fn parse(text: &'t str) -> Result<Self, Fault> {
        let mut open = vec![Self { line: 1, value: Value::List(Vec::new()) }];
        for event in Parser::new_from_str(text) {
            let (event, span) =
                event.map_err(|error| (line(error.marker().line()), error.info().to_owned()))?;
            let line = line(span.start.line());
            let node = match event {
                Event::Scalar(text, ..) => Self { line, value: Value::Scalar(text) },
                Event::SequenceStart(..) | Event::MappingStart(..) if open.len() > DEEPEST => {
                    return Err((line, "is nested too deeply".to_owned()));
                }
                Event::SequenceStart(..) => {
                    open.push(Self { line, value: Value::List(Vec::new()) });
                    continue;
                }
                Event::MappingStart(..) => {
                    open.push(Self { line, value: Value::Table(Vec::new()) });
                    continue;
                }
                Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                    Some(node) => node,
                    None => continue,
                },
                Event::Alias(_) => return Err((line, "has a reference (`*`), which is not read".to_owned())),
                Event::DocumentEnd => break,
                _ => continue,
            };
            open.last_mut().into_iter().for_each(|parent| parent.push(node.clone()));
        }
        let root = open.into_iter().next().and_then(|root| match root.value {
            Value::List(mut documents) if !documents.is_empty() => Some(documents.swap_remove(0)),
            _ => None,
        });
        Ok(root.unwrap_or(Self { line: 1, value: Value::Table(Vec::new()) }))
    }

    /// Adds a value to a list, or a key or its value to a table.
    fn push(&mut self, node: Self) {
        /// A key whose value follows.
        const WAITING: u32 = 0;
        match &mut self.value {
            Value::List(list) => list.push(node),
            Value::Table(table) => match table.last_mut() {
                Some((_, value)) if value.line == WAITING => *value = node,
                _ => {
                    let key = match node.value {
                        Value::Scalar(key) => key,
                        _ => Cow::Borrowed(""),
                    };
                    let value = Value::Scalar(Cow::Borrowed(""));
                    table.push((key, Self { line: WAITING, value }));
                }
            },
            Value::Scalar(_) => {}
        }
    }

    /// The value of a key of a table.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(table) => table.iter().find(|(known, _)| known == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The values of a list that is the value of a key; none if there is no list.
    pub(super) fn list(&self, key: &str) -> &[Self] {
        match self.get(key).map(|node| &node.value) {
            Some(Value::List(list)) => list,
            _ => &[],
        }
    }

    /// The text that is the value of a key.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key).map(|node| &node.value) {
            Some(Value::Scalar(text)) => Some(text),
            _ => None,
        }
    }
}

fn line(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tables_and_lists_are_read_with_their_lines() {
        let node = Node::parse("# a comment\na: 1\nb:\n- c: 0x2\n  d:\n- c: [3, 4]\n").expect("YAML");
        assert_eq!(node.text("a"), Some("1"));
        let [first, second] = node.list("b") else { panic!("two items") };
        assert_eq!((first.text("c"), first.line, second.list("c").len()), (Some("0x2"), 4, 2));
        assert_eq!(Node::parse("").map(|node| node.value), Ok(Value::Table(Vec::new())));
    }

    #[test]
    fn what_could_be_endless_is_refused() {
        assert_eq!(Node::parse("a: &x 1\nb: *x\n").map_err(|(line, _)| line), Err(2));
        assert!(Node::parse(&"[".repeat(1000)).is_err());
        assert!(Node::parse("a: [1\n").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ a-c:\\-\\[\\]{},\n&*#|>!\"']{0,80}") {
            let _ = Node::parse(&text);
        }
    }
}
