//! Sets of vectors, and the conditions that pairs of them cover.

use std::collections::BTreeSet;

use super::graph::Graph;

/// The values of an evaluation, and its result. Bit n is the condition with index n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vector {
    /// The conditions that were evaluated.
    pub evaluated: u64,
    /// Those that were true.
    pub values: u64,
    /// The result.
    pub result: bool,
}

/// What makes a pair of vectors with different results show the effect of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// It is the last condition, in the order of evaluation, of those that differ among the evaluated ones of both: it masks the
    /// others. GCC and GNATcoverage count these pairs.
    Masking,
    /// It is the only condition that differs among the evaluated ones of both. LLVM counts these pairs.
    UniqueCause,
}

/// The vectors of a decision, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vectors {
    all: BTreeSet<Vector>,
}

impl Vectors {
    /// The vector of an evaluation happened.
    pub fn add(&mut self, vector: Vector) {
        self.all.insert(vector);
    }

    /// The vectors of another capture happened as well.
    pub fn join(&mut self, other: &Self) {
        self.all.extend(&other.all);
    }

    /// The vectors.
    pub fn iter(&self) -> impl Iterator<Item = &Vector> {
        self.all.iter()
    }

    /// The number of vectors with this result.
    #[must_use]
    pub fn count(&self, result: bool) -> usize {
        self.all.iter().filter(|vector| vector.result == result).count()
    }

    /// The conditions, by their bits, that a pair of vectors covers.
    #[must_use]
    pub fn covered(&self, graph: &Graph, pairs: Pairs) -> u64 {
        let of = |result| self.all.iter().filter(move |vector| vector.result == result);
        let mut covered = 0;
        for a in of(true) {
            for b in of(false) {
                let differ = a.evaluated & b.evaluated & (a.values ^ b.values);
                covered |= match pairs {
                    Pairs::UniqueCause if differ.is_power_of_two() => differ,
                    Pairs::UniqueCause => 0,
                    Pairs::Masking => {
                        let last = graph.order().rfind(|condition| differ >> condition & 1 != 0);
                        last.map_or(0, |condition| 1 << condition)
                    }
                };
            }
        }
        covered
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::super::Node;
    use super::*;

    /// A vector as `TF-=F`.
    fn vector(text: &str) -> Vector {
        let (values, result) = text.split_once('=').unwrap();
        let bits = |is: fn(char) -> bool| {
            values.chars().enumerate().filter(|(_, value)| is(*value)).fold(0, |bits, (n, _)| bits | 1 << n)
        };
        Vector {
            evaluated: bits(|value| value != '-'),
            values: bits(|value| value == 'T'),
            result: result == "T",
        }
    }

    fn vectors<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vectors {
        Vectors { all: texts.into_iter().map(vector).collect() }
    }

    /// Conditions that follow each other: for the order alone.
    fn chain(conditions: u64) -> Graph {
        let node = |id| Node { id, if_true: if id == conditions { 0 } else { id + 1 }, if_false: 0 };
        Graph::new(&(1..=conditions).map(node).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_masked_condition_may_differ_in_a_pair() {
        // `(a || b) && c`
        let found = vectors(["T-F=F", "FTT=T"]);
        assert_eq!(found.covered(&chain(3), Pairs::Masking), 0b100);
        let found = vectors(["TTF=F", "FTT=T"]);
        assert_eq!(found.covered(&chain(3), Pairs::Masking), 0b100);
        assert_eq!(found.covered(&chain(3), Pairs::UniqueCause), 0);
    }

    #[test]
    fn vectors_of_two_captures_cover_together() {
        let mut found = vectors(["TT=T"]);
        assert_eq!(found.covered(&chain(2), Pairs::Masking), 0);
        found.join(&vectors(["F-=F", "TT=T"]));
        assert_eq!((found.covered(&chain(2), Pairs::Masking), found.iter().count()), (0b01, 2));
        assert_eq!([found.count(true), found.count(false)], [1, 1]);
    }

    #[tracewalk_corpus::test]
    fn unique_cause_pairs_cover_what_llvm_cov_says() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/mcdc");
        let mut decisions = 0;
        for program in ["decisions", "proto", "json", "motor", "sched", "lexer"] {
            let text = std::fs::read(corpus.join(program).join("expected.json")).unwrap();
            let truth = serde_json::from_slice::<Value>(&text).unwrap();
            for decision in truth["decisions"].as_array().unwrap() {
                let texts = decision["vectors"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
                let found = vectors(texts);
                let flags = decision["covered"].as_array().unwrap();
                let expected = flags.iter().enumerate().filter(|(_, flag)| **flag == Value::Bool(true));
                let expected = expected.fold(0, |bits, (n, _)| bits | 1_u64 << n);
                let graph = chain(flags.len() as u64);
                assert_eq!(found.covered(&graph, Pairs::UniqueCause), expected, "{program} {decision}");
                // Masking counts these pairs, too.
                assert_eq!(
                    found.covered(&graph, Pairs::Masking) & expected,
                    expected,
                    "{program} {decision}"
                );
                decisions += 1;
            }
        }
        assert!(decisions > 100, "{decisions}");
    }
}
