//! Tests that need the corpus, a folder beside the project that is not part of it.

use std::path::Path;

use proc_macro::TokenStream;

/// A test, as by `#[test]`, that is ignored if there was no corpus when it was compiled. With `--ignored` it runs
/// all the same, and fails.
#[proc_macro_attribute]
pub fn test(_: TokenStream, function: TokenStream) -> TokenStream {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let ignored = if corpus.is_dir() { "" } else { "#[ignore = \"needs the corpus\"]" };
    let attributes = format!("#[::core::prelude::v1::test] {ignored}").parse::<TokenStream>();
    attributes.expect("attributes").into_iter().chain(function).collect()
}
