//! The call stack of a crash, as people read it.

use super::{arguments, crash};
use crate::support::run;

/// Recursion is one line with its count, and the outermost function is always shown.
#[test]
fn a_deep_stack_is_folded_and_shows_who_called() {
    for name in ["m0-stack-overflow", "m3-stack-overflow", "m4-stack-overflow"] {
        let found = crash(&arguments(name));
        let stack = found["stack"].as_array().unwrap();
        for markdown in [&[][..], &["--format=markdown".into()]] {
            let text = run(arguments(name).iter().chain(markdown)).stdout;
            let lines = text.lines().map(str::trim).skip_while(|line| !line.ends_with("Call stack"));
            let lines = lines.take_while(|line| !line.ends_with("Last path"));
            let lines = lines.filter(|line| line.starts_with(['#', '…']) && !line.starts_with("###"));
            let lines = lines.collect::<Vec<_>>();
            let count = |line: &&str| {
                let words = line.split_whitespace().collect::<Vec<_>>();
                match words.as_slice() {
                    ["…", more, "more"] | [.., more, "times"] => more.parse().unwrap(),
                    _ => 1,
                }
            };
            assert_eq!(lines.iter().map(count).sum::<usize>(), stack.len(), "{name}:\n{text}");
            let outermost = stack.last().unwrap()["function"].as_str().unwrap();
            let last = lines.last().unwrap().split_whitespace().nth(1).unwrap();
            assert_eq!(last, outermost, "{name}:\n{text}");
            assert!(lines.len() < stack.len(), "{name}:\n{text}");
        }
    }
}
