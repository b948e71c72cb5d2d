//! Compresses the pages for users into the command, so that an installed command has them: `tracewalk help PAGE`.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let package = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    // The package has the folder. In a checkout it is a symbolic link, which git may write as a file on Windows.
    let folders = ["docs", "../../docs"].map(|folder| Path::new(&package).join(folder));
    let folder = folders.iter().find(|folder| folder.is_dir()).expect("the folder of the pages");
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries =
        fs::read_dir(folder).expect("a readable folder").map(|entry| entry.expect("an entry").path());
    let mut pages =
        entries.filter(|path| path.extension().is_some_and(|end| end == "md")).collect::<Vec<_>>();
    pages.sort();
    let mut table = String::from("&[\n");
    for page in pages {
        let name = page.file_stem().and_then(|name| name.to_str()).expect("a name in ASCII");
        let text = fs::read_to_string(&page).expect("a readable page");
        let title = text.lines().next().unwrap_or_default().trim_start_matches("# ");
        let bytes = miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 10);
        writeln!(table, "({name:?}, {title:?}, &{bytes:?}),").expect("memory");
    }
    table.push(']');
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("pages.rs"), table).expect("room for the list");
}
