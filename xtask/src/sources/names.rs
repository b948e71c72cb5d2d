//! Resolves a path to the file that defines it, through modules, `use` and re-exports.

use std::collections::{BTreeMap, BTreeSet};

use super::{Binding, Module, ModulePath, Sources};

/// The definition that a path leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Module(ModulePath),
    /// An item that is defined in `module`.
    Item {
        module: ModulePath,
        name: String,
    },
}

/// The modules that define a type's methods, by the type and the method's name.
pub(crate) type Methods = BTreeMap<(Target, String), BTreeSet<ModulePath>>;

/// The names that are being looked up, which ends cycles of names.
type Asked = BTreeSet<(ModulePath, Vec<String>)>;

impl Sources {
    /// Everything that `path`, as written in the module `from`, may mean: a name can be both a module and a
    /// function. Empty if it leads out of these crates.
    pub(crate) fn targets(&self, from: &[String], path: &[String], methods: &Methods) -> BTreeSet<Target> {
        let mut found = BTreeSet::new();
        for (target, rest) in self.follow(from, path, &mut Asked::new()) {
            let method = rest.first().map(|method| (target.clone(), method.clone()));
            match method.and_then(|method| methods.get(&method)) {
                Some(modules) => {
                    let name = path[path.len().saturating_sub(rest.len() + 1)..].join("::");
                    found.extend(
                        modules
                            .iter()
                            .map(|module| Target::Item { module: module.clone(), name: name.clone() }),
                    );
                    found.insert(target);
                }
                None => {
                    found.insert(target);
                }
            }
        }
        found
    }

    /// The modules that define the methods of each type.
    pub(crate) fn methods(&self) -> Methods {
        let mut methods = Methods::new();
        for (path, module) in &self.modules {
            for (written, method) in &module.methods {
                for (target, _) in self.follow(path, written, &mut Asked::new()) {
                    methods.entry((target, method.clone())).or_default().insert(path.clone());
                }
            }
        }
        methods
    }

    /// `path` as the module `from` means it, starting at its crate. Follows the names that the `use` of
    /// `from` itself defines, but not re-exports in other modules, so that the result shows through which
    /// path an item is used.
    pub(crate) fn spelled(&self, from: &[String], path: &[String]) -> ModulePath {
        self.spell(from, path, RENAMES)
    }

    fn spell(&self, from: &[String], path: &[String], renames: usize) -> ModulePath {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        match first.as_str() {
            "crate" => return [&from[..1], rest].concat(),
            "self" => return [from, rest].concat(),
            "super" => {
                let parent = &from[..from.len().saturating_sub(1).max(1)];
                return match rest.first().map(String::as_str) {
                    Some("super") => self.spell(parent, rest, renames),
                    _ => [parent, rest].concat(),
                };
            }
            _ => {}
        }
        let bindings = self.modules.get(from).and_then(|module| module.names.get(first));
        for binding in bindings.into_iter().flatten() {
            match binding {
                Binding::Module | Binding::Item { .. } => return [from, path].concat(),
                Binding::Alias(meant) if renames > 0 && meant.first() != Some(first) => {
                    return self.spell(from, &[meant, rest].concat(), renames - 1);
                }
                Binding::Alias(_) => {}
            }
        }
        path.to_vec()
    }

    /// The targets of `path`, each with the remaining words: after an item they name a part of it.
    fn follow<'p>(
        &self,
        from: &[String],
        path: &'p [String],
        asked: &mut Asked,
    ) -> Vec<(Target, &'p [String])> {
        let Some((first, mut rest)) = path.split_first() else { return Vec::new() };
        let mut reached = match first.as_str() {
            "crate" => BTreeSet::from([Target::Module(from[..1].to_vec())]),
            "self" => BTreeSet::from([Target::Module(from.to_vec())]),
            "super" => {
                let mut above = from.len() - 1;
                while let Some((_, after)) = rest.split_first().filter(|(word, _)| *word == "super") {
                    above -= 1;
                    rest = after;
                }
                BTreeSet::from([Target::Module(from[..above.max(1)].to_vec())])
            }
            _ => self.in_scope(from, first, asked),
        };
        let mut found = Vec::new();
        while let Some((next, after)) = rest.split_first() {
            let modules = take_modules(&mut reached);
            found.extend(std::mem::take(&mut reached).into_iter().map(|item| (item, rest)));
            for module in modules {
                let below = self.look_up(&module, next, asked);
                // An item that a macro generates is not known; it counts as its module's, if that is one of
                // ours.
                let is_unknown = |read: &Module| next != "*" && !read.names.contains_key(next);
                if below.is_empty() && self.modules.get(&module).is_some_and(is_unknown) {
                    reached.insert(Target::Item { module, name: next.clone() });
                } else {
                    reached.extend(below);
                }
            }
            rest = after;
        }
        found.extend(reached.into_iter().map(|target| (target, rest)));
        found
    }

    /// The meaning of the first word of a path in `module`: a local name, a name of a macro above it, or a
    /// crate.
    fn in_scope(&self, module: &[String], name: &str, asked: &mut Asked) -> BTreeSet<Target> {
        let found = self.look_up(module, name, asked);
        if found.is_empty() && self.modules.contains_key([name.to_owned()].as_slice()) {
            return BTreeSet::from([Target::Module(vec![name.to_owned()])]);
        }
        found
    }

    /// The meaning of `name` in `module`.
    fn look_up(&self, module: &[String], name: &str, asked: &mut Asked) -> BTreeSet<Target> {
        let mut found = BTreeSet::new();
        let Some(read) = self.modules.get(module) else { return found };
        if !asked.insert((module.to_vec(), vec![name.to_owned()])) {
            return found;
        }
        for binding in read.names.get(name).into_iter().flatten() {
            match binding {
                Binding::Module => {
                    found.insert(Target::Module([module, &[name.to_owned()]].concat()));
                }
                Binding::Item { .. } => {
                    found.insert(Target::Item { module: module.to_vec(), name: name.to_owned() });
                }
                Binding::Alias(path) => {
                    found.extend(self.follow(module, path, asked).into_iter().map(|(target, _)| target));
                }
            }
        }
        if found.is_empty() {
            for glob in &read.globs {
                for (target, _) in self.follow(module, glob, asked) {
                    match target {
                        Target::Module(below) => found.extend(self.look_up(&below, name, asked)),
                        item if self.has_variant(&item, name) => {
                            found.insert(item);
                        }
                        Target::Item { .. } => {}
                    }
                }
            }
        }
        asked.remove(&(module.to_vec(), vec![name.to_owned()]));
        found
    }

    fn has_variant(&self, target: &Target, variant: &str) -> bool {
        let Target::Item { module, name } = target else { return false };
        let bindings = self.modules.get(module).and_then(|module| module.names.get(name));
        bindings
            .into_iter()
            .flatten()
            .any(|binding| matches!(binding, Binding::Item { variants } if variants.contains(variant)))
    }
}

fn take_modules(targets: &mut BTreeSet<Target>) -> Vec<ModulePath> {
    let modules = targets.iter().filter_map(|target| match target {
        Target::Module(module) => Some(module.clone()),
        Target::Item { .. } => None,
    });
    let modules = modules.collect();
    targets.retain(|target| matches!(target, Target::Item { .. }));
    modules
}

/// The most names that may refer to one another before a path is left as written.
const RENAMES: usize = 4;
