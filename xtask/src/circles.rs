//! `circles`: finds files of a crate that use one another in a circle, so that none can be read, tested or
//! moved alone.
//!
//! A file uses another if its code, apart from tests, names something that the other defines, no matter
//! through which `use`, re-export or glob. Declaring a module or re-exporting a name is not a use. If a type
//! has methods in several files, code that uses the type uses the file of the type. With `--methods` its
//! methods count as well if the code states the type (`Type::method`, `Self::method`, `self.method()`).

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::{Methods, Place, Sources, Target};
use crate::{Answer, Outcome, workspace};

/// The items that the files of a project use of one another: user → used → items.
type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Runs the task.
pub(crate) fn run() -> Answer {
    let (options, filters) =
        std::env::args().skip(2).partition::<Vec<_>, _>(|argument| argument.starts_with("--"));
    if let Some(unknown) = options.iter().find(|option| *option != "--methods") {
        return Err(format!("found {unknown}, expected --methods or a part of a file's name"));
    }
    let filter = filters.first().cloned().unwrap_or_default();
    let sources = Sources::of_workspace(&workspace())?;
    let methods = if options.is_empty() { Methods::new() } else { sources.methods() };
    let uses = uses(&sources, &methods);
    let circles =
        circles(&uses).into_iter().filter(|circle| circle.iter().any(|file| file.contains(&filter)));
    let circles = circles.collect::<Vec<_>>();
    for circle in &circles {
        print!("{}", describe(circle, &uses));
    }
    let files = circles.iter().map(BTreeSet::len).sum::<usize>();
    Ok(Outcome::Done(format!("{} circles of {files} files among {} files", circles.len(), sources.files())))
}

/// The circles in crates, one finding each; no circle is allowed.
pub(crate) fn findings(sources: &Sources) -> Vec<String> {
    let uses = uses(sources, &Methods::new());
    circles(&uses).into_iter().map(|circle| describe(&circle, &uses).trim_end().to_owned()).collect()
}

/// The items that each file uses of the others.
fn uses(sources: &Sources, methods: &Methods) -> Uses {
    let file_of = |module: &[String]| sources.modules.get(module).map(|module| module.file.clone());
    let mut uses = Uses::new();
    for (path, module) in &sources.modules {
        for named in module.named.iter().filter(|named| named.place != Place::Reexport) {
            for target in sources.targets(path, &named.path, methods) {
                let Target::Item { module: defining, name } = target else { continue };
                if let Some(used) = file_of(&defining).filter(|used| *used != module.file) {
                    uses.entry(module.file.clone()).or_default().entry(used).or_default().insert(name);
                }
            }
        }
    }
    uses
}

/// The largest sets of files that all reach one another.
fn circles(uses: &Uses) -> Vec<BTreeSet<String>> {
    let reached = uses.keys().map(|file| (file, reachable(uses, file))).collect::<BTreeMap<_, _>>();
    let reaches = |from: &String, to: &String| reached.get(from).is_some_and(|files| files.contains(to));
    let circles = reached.iter().filter(|(file, files)| files.contains(**file)).map(|(file, files)| {
        files.iter().filter(|other| reaches(other, file)).map(|other| (*other).clone()).collect()
    });
    circles.collect::<BTreeSet<_>>().into_iter().collect()
}

fn reachable<'a>(uses: &'a Uses, from: &String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        for used in uses.get(file).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(used) {
                next.push(used);
            }
        }
    }
    reached
}

/// The files of a circle, each with the items that it uses of the others.
fn describe(circle: &BTreeSet<String>, uses: &Uses) -> String {
    let mut text = format!("circle of {} files\n", circle.len());
    for file in circle {
        let inside = uses.get(file).into_iter().flatten().filter(|(used, _)| circle.contains(*used));
        for (used, items) in inside {
            let items = items.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            text += &format!("  {file} uses {used}: {items}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circles among these modules; each module is a file.
    fn found(texts: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources = Sources::of_texts(texts);
        let circles = circles(&uses(&sources, &sources.methods()));
        circles.into_iter().map(|circle| circle.into_iter().collect()).collect()
    }

    const ROOT: (&str, &str) = ("t", "mod a;\nmod b;\nmod c;");

    #[test]
    fn two_files_that_use_each_other_are_a_circle() {
        let texts =
            [ROOT, ("t::a", "use crate::b::B;\npub struct A;"), ("t::b", "pub struct B(super::a::A);")];
        assert_eq!(found(&texts), [["t::a", "t::b"]]);
        let texts = [ROOT, ("t::a", "use crate::b::B;\npub struct A;"), ("t::b", "pub struct B;")];
        assert!(found(&texts).is_empty());
    }

    #[test]
    fn a_circle_is_refused_in_every_crate() {
        let circle_in = |name: &str| {
            let mut sources = Sources::default();
            let texts = [
                ("t", "mod a;\nmod b;"),
                ("t::a", "use crate::b::B;\npub struct A;"),
                ("t::b", "pub struct B(super::a::A);"),
            ];
            for (index, (module, text)) in texts.into_iter().enumerate() {
                let module = module.split("::").map(str::to_owned).collect::<Vec<_>>();
                sources.add_text(text, &format!("crates/{name}/src/{index}.rs"), &module).unwrap();
            }
            findings(&sources).len()
        };
        assert_eq!(circle_in("tracewalk-input"), 1);
        assert_eq!(circle_in("tracewalk-cellar"), 1);
    }

    #[test]
    fn a_circle_of_three_is_one() {
        let texts = [
            ROOT,
            ("t::a", "pub fn a() { crate::b::b() }"),
            ("t::b", "pub fn b() { crate::c::c() }"),
            ("t::c", "pub fn c() { crate::a::a() }"),
        ];
        assert_eq!(found(&texts), [["t::a", "t::b", "t::c"]]);
    }

    #[test]
    fn a_reexport_leads_to_the_file_that_defines() {
        let root = ("t", "mod a;\nmod b;\npub use a::A;\npub(crate) use b::*;");
        let texts =
            [root, ("t::a", "pub struct A;\nuse crate::B;"), ("t::b", "pub struct B;\nuse crate::A;")];
        assert_eq!(found(&texts), [["t::a", "t::b"]]);
        // The root re-exports an item of `a`, and `a` uses an item of the root: only one direction.
        let root = ("t", "mod a;\npub use a::A;\npub struct R;");
        assert!(found(&[root, ("t::a", "pub struct A(crate::R);")]).is_empty());
        // Here the root also uses the item.
        let root = ("t", "mod a;\npub use a::A;\npub struct R(Option<A>);");
        assert_eq!(found(&[root, ("t::a", "pub struct A(crate::R);")]), [["t", "t::a"]]);
    }

    #[test]
    fn inline_paths_macros_and_methods_are_uses() {
        let a = ("t::a", "pub struct A;\npub const N: usize = 1;\nimpl A { pub fn new() {} }");
        let with = |text| found(&[ROOT, a, ("t::b", text), ("t::c", "")]).len();
        // Each of these is a circle if `a` uses `b`.
        let back =
            ("t::a", "use crate::b::B;\npub struct A;\npub const N: usize = 1;\nimpl A { pub fn new() {} }");
        let circles = |text| found(&[ROOT, back, ("t::b", text), ("t::c", "")]).len();
        for text in [
            "pub struct B; fn f() { crate::a::A::new() }",
            "pub struct B; fn f() { assert_eq!(1, crate::a::N) }",
            "pub struct B; use crate::a; fn f() { a::A::new() }",
            "pub struct B; use crate::a as other; fn f(x: &other::A) {}",
            "pub struct B; use crate::a::*; fn f(x: Vec<A>) {}",
            "pub struct B; fn f() -> Option<Box<dyn Fn(super::a::A)>> { None }",
        ] {
            assert_eq!((with(text), circles(text)), (0, 1), "{text}");
        }
        assert_eq!(circles("pub struct B; use crate::a;"), 0, "a module alone is no item");
    }

    #[test]
    fn methods_in_another_file_are_found_where_their_type_is_said() {
        let type_of = "pub struct A;\nimpl A { pub fn run(&self) { self.part() } }";
        let parts = "use crate::a::A;\nimpl A { pub fn part(&self) {} }";
        assert_eq!(found(&[ROOT, ("t::a", type_of), ("t::b", parts)]), [["t::a", "t::b"]]);
        let alone = "pub struct A;\nimpl A { pub fn run(&self) { self.own() } pub fn own(&self) {} }";
        assert!(found(&[ROOT, ("t::a", alone), ("t::b", parts)]).is_empty());
        let sources = Sources::of_texts(&[ROOT, ("t::a", type_of), ("t::b", parts)]);
        assert!(circles(&uses(&sources, &Methods::new())).is_empty(), "they count where they are asked for");
    }

    #[test]
    fn tests_are_left_out() {
        let b = "pub struct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n#[cfg(all(test, unix))]\nfn f(x: crate::a::A) {}\n\
                 #[test]\nfn g() { crate::a::A; }";
        let a = ("t::a", "use crate::b::B;\npub struct A;");
        assert!(found(&[ROOT, a, ("t::b", b)]).is_empty());
        assert_eq!(found(&[ROOT, a, ("t::b", &b.replace("all(test, unix)", "any(test, unix)"))]).len(), 1);
    }

    #[test]
    fn other_crates_are_followed_through_their_fronts() {
        let front = ("front", "mod deep;\npub use deep::Deep;");
        let deep = ("front::deep", "pub struct Deep;");
        let sources = Sources::of_texts(&[front, deep, ("user", "fn f(x: front::Deep) {}")]);
        let uses = uses(&sources, &Methods::new());
        assert_eq!(uses["user"].keys().collect::<Vec<_>>(), ["front::deep"]);
    }

    #[test]
    fn names_that_stand_for_one_another_end() {
        let texts = [
            ROOT,
            ("t::a", "pub use crate::b::*;\npub use crate::b::X;"),
            ("t::b", "pub use crate::a::*;\nuse crate::a::X;\nfn f(x: X) {}"),
        ];
        assert!(found(&texts).is_empty());
    }
}
