//! Parses one file's text into its modules, with the names that they define and the paths that they name.

use std::collections::BTreeSet;

use proc_macro2::{Spacing, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

use super::{Binding, Module, ModulePath, Named, Place};

/// The modules of one file.
#[derive(Default)]
pub(super) struct FileModules {
    /// The modules with a body in the file.
    pub(super) modules: Vec<(ModulePath, Module)>,
    /// The modules that the file declares in other files.
    pub(super) declared: Vec<ModulePath>,
}

/// Reads `text`, the file of the module `path`.
pub(super) fn read(text: &str, file: &str, path: &[String]) -> Result<FileModules, syn::Error> {
    let parsed = syn::parse_file(text)?;
    if is_for_tests(&parsed.attrs) {
        return Ok(FileModules::default());
    }
    let mut reader = Reader { module: Module::new(file), ..Reader::default() };
    reader.path = path.to_vec();
    reader.visit_file(&parsed);
    reader.done.modules.push((reader.path, reader.module));
    Ok(reader.done)
}

impl Module {
    fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            named: Vec::new(),
            names: Default::default(),
            globs: Vec::new(),
            methods: Vec::new(),
        }
    }
}

impl Default for Module {
    fn default() -> Self {
        Self::new("")
    }
}

#[derive(Default)]
struct Reader {
    path: ModulePath,
    module: Module,
    /// The type that `Self` means, as written.
    self_type: Option<Vec<String>>,
    /// Whether this is the body of a function, whose items are local.
    is_body: bool,
    done: FileModules,
}

impl Reader {
    fn bind(&mut self, name: String, binding: Binding) {
        self.module.names.entry(name).or_default().push(binding);
    }

    fn name(&mut self, line: usize, path: Vec<String>, place: Place) {
        self.module.named.push(Named { line, path, place });
    }

    /// A path in the code, with `Self` replaced if its type is known.
    fn name_in_code(&mut self, line: usize, path: Vec<String>, place: Place) {
        let path = match (path.first().map(String::as_str), &self.self_type) {
            (Some("Self"), Some(self_type)) => [self_type, &path[1..]].concat(),
            _ => path,
        };
        self.name(line, path, place);
    }

    fn inner_module(&mut self, module: &syn::ItemMod) {
        let name = module.ident.to_string();
        let path = [self.path.as_slice(), std::slice::from_ref(&name)].concat();
        if module.attrs.iter().any(|attribute| attribute.path().is_ident("path")) {
            self.name(module.ident.span().start().line, vec!["#[path]".to_owned()], Place::Macro);
        }
        self.bind(name, Binding::Module);
        if module.content.is_none() {
            self.done.declared.push(path);
            return;
        }
        let inner = Module::new(&self.module.file);
        let outer = (
            std::mem::replace(&mut self.path, path),
            std::mem::replace(&mut self.module, inner),
            self.self_type.take(),
        );
        visit::visit_item_mod(self, module);
        let path = std::mem::replace(&mut self.path, outer.0);
        let inner = std::mem::replace(&mut self.module, outer.1);
        self.self_type = outer.2;
        self.done.modules.push((path, inner));
    }

    /// The names that the branches of a `use` import.
    fn use_tree(&mut self, tree: &UseTree, prefix: &[String], place: Place) {
        let below = |name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.use_tree(&path.tree, &below(&path.ident), place),
            UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.use_tree(item, prefix, place));
            }
            UseTree::Glob(glob) => {
                self.module.globs.push(prefix.to_vec());
                let path = [prefix, &["*".to_owned()]].concat();
                self.name(glob.star_token.span.start().line, path, place);
            }
            UseTree::Name(name) => {
                let path = if name.ident == "self" { prefix.to_vec() } else { below(&name.ident) };
                let alias = path.last().cloned().unwrap_or_default();
                self.brought_in(&name.ident, path, alias, place);
            }
            UseTree::Rename(rename) => {
                let path = if rename.ident == "self" { prefix.to_vec() } else { below(&rename.ident) };
                self.brought_in(&rename.ident, path, rename.rename.to_string(), place);
            }
        }
    }

    fn brought_in(&mut self, at: &syn::Ident, path: Vec<String>, alias: String, place: Place) {
        self.bind(alias, Binding::Alias(path.clone()));
        self.name(at.span().start().line, path, place);
    }

    /// The names in the arguments of a macro, or in its rules.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        // The token before the next word: `::` continues a path, `.` calls a method, `'` is a lifetime.
        let (mut colons, mut is_named_elsewhere) = (0, false);
        for token in tokens {
            match &token {
                TokenTree::Ident(word) if colons == 2 && !path.is_empty() => path.push(word.to_string()),
                TokenTree::Ident(word) => {
                    self.end_path(line, &mut path);
                    if !is_named_elsewhere {
                        path.push(word.to_string());
                        line = word.span().start().line;
                    }
                }
                TokenTree::Group(group) => {
                    self.end_path(line, &mut path);
                    self.tokens(group.stream());
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => {}
                TokenTree::Punct(mark) if mark.as_char() == '!' && mark.spacing() == Spacing::Alone => {
                    self.invoked(&path, line);
                    self.end_path(line, &mut path);
                }
                _ => self.end_path(line, &mut path),
            }
            (colons, is_named_elsewhere) = match &token {
                TokenTree::Punct(mark) if mark.as_char() == ':' => {
                    (if mark.spacing() == Spacing::Joint || colons == 1 { colons + 1 } else { 0 }, false)
                }
                TokenTree::Punct(mark) => (0, matches!(mark.as_char(), '.' | '\'')),
                _ => (0, false),
            };
        }
        self.end_path(line, &mut path);
    }

    fn invoked(&mut self, path: &[String], line: usize) {
        if let Some(name) = path.last() {
            self.name(line, vec![format!("{name}!")], Place::Macro);
        }
    }

    fn end_path(&mut self, line: usize, path: &mut Vec<String>) {
        if !path.is_empty() {
            self.name_in_code(line, std::mem::take(path), Place::Code);
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        if let Item::Mod(module) = item {
            self.inner_module(module);
            return;
        }
        if let Some((name, variants)) = defined(item).filter(|_| !self.is_body) {
            self.bind(name, Binding::Item { variants });
        }
        visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let place = if matches!(item.vis, Visibility::Inherited) { Place::Use } else { Place::Reexport };
        self.use_tree(&item.tree, &[], place);
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        let name = item.ident.to_string();
        self.name(item.ident.span().start().line, vec![name], Place::Use);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let self_type = match &*item.self_ty {
            syn::Type::Path(path) => Some(words(&path.path)),
            _ => None,
        };
        if let (Some(self_type), None) = (&self_type, &item.trait_) {
            let names = item.items.iter().filter_map(|item| match item {
                syn::ImplItem::Fn(function) if !is_for_tests(&function.attrs) => Some(&function.sig.ident),
                syn::ImplItem::Const(constant) if !is_for_tests(&constant.attrs) => Some(&constant.ident),
                _ => None,
            });
            self.module.methods.extend(names.map(|name| (self_type.clone(), name.to_string())));
        }
        let outer = std::mem::replace(&mut self.self_type, self_type);
        visit::visit_item_impl(self, item);
        self.self_type = outer;
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let outer = std::mem::replace(&mut self.is_body, true);
        visit::visit_block(self, block);
        self.is_body = outer;
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !is_for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let is_self = matches!(&*call.receiver, syn::Expr::Path(path) if path.path.is_ident("self"));
        if is_self && self.self_type.is_some() {
            let path = vec!["Self".to_owned(), call.method.to_string()];
            self.name_in_code(call.method.span().start().line, path, Place::Method);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        self.name_in_code(line, words(path), Place::Code);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'ast syn::Macro) {
        self.invoked(&words(&invoked.path), invoked.bang_token.span.start().line);
        visit::visit_macro(self, invoked);
        self.tokens(invoked.tokens.clone());
    }

    /// `pub(in path)` uses nothing, and attributes are for the compiler and for derives.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// The words of a path, without generic arguments.
fn words(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// The name that an item defines, and the variants of an enum.
fn defined(item: &Item) -> Option<(String, BTreeSet<String>)> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => {
            let variants = item.variants.iter().map(|variant| variant.ident.to_string()).collect();
            return Some((item.ident.to_string(), variants));
        }
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some((name.to_string(), BTreeSet::new()))
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether these attributes restrict the item to tests.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args().is_ok_and(|condition| needs_test(&condition))
        }
        _ => false,
    })
}

/// Whether a condition holds in tests alone: `test`, or `all(…)` with it.
fn needs_test(condition: &syn::Meta) -> bool {
    match condition {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(syn::punctuated::Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated)
            .is_ok_and(|conditions| conditions.iter().any(needs_test)),
        _ => false,
    }
}
