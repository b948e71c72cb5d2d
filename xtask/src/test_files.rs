//! Finds files of tests that no test binary contains: a crate's tests are one binary, `tests/all.rs`, and a
//! file that its modules do not declare would never run.

use std::fs;
use std::path::Path;

/// The undeclared files below `crates/*/tests`, one finding each.
pub(crate) fn undeclared(root: &Path) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for folder in entries(&root.join("crates"))? {
        let (tests, all) = (folder.join("tests"), folder.join("tests/all.rs"));
        if let Ok(text) = fs::read_to_string(&all) {
            undeclared_in(&tests, &text, &mut findings)?;
        }
    }
    let shown = |file: String| file.strip_prefix(&format!("{}/", root.display())).unwrap_or(&file).to_owned();
    Ok(findings
        .into_iter()
        .map(|file| format!("{}: no module declares the file, so its tests never run", shown(file)))
        .collect())
}

/// The undeclared files in `folder`, the folder of the modules that `text` declares.
fn undeclared_in(folder: &Path, text: &str, findings: &mut Vec<String>) -> Result<(), String> {
    for entry in entries(folder)? {
        let name = entry.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_source = entry.extension().is_some_and(|extension| extension == "rs");
        if is_source && name != "all" && name != "mod" {
            if !declares(text, &name) {
                findings.push(entry.display().to_string());
            }
        } else if let Ok(inner) = fs::read_to_string(entry.join("mod.rs")) {
            if declares(text, &name) {
                undeclared_in(&entry, &inner, findings)?;
            } else {
                findings.push(entry.join("mod.rs").display().to_string());
            }
        } else if entry.join("main.rs").exists() {
            findings.push(entry.join("main.rs").display().to_string());
        } else if let Ok(beside) = fs::read_to_string(folder.join(format!("{name}.rs")))
            && entry.is_dir()
        {
            undeclared_in(&entry, &beside, findings)?;
        }
    }
    Ok(())
}

fn declares(text: &str, module: &str) -> bool {
    text.lines().any(|line| {
        let declared = line.trim_start().trim_start_matches("pub(crate) ").strip_prefix("mod ");
        declared.and_then(|rest| rest.strip_suffix(';')) == Some(module)
    })
}

fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_module_declares_is_found() {
        let root = std::env::temp_dir().join(format!("tracewalk-tests-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let file = root.join("crates/one/tests").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("all.rs", "mod known;\nmod deep;\nmod flat;\n");
        write("known.rs", "");
        write("deep/mod.rs", "pub(crate) mod below;");
        write("deep/below.rs", "");
        write("deep/data.txt", "");
        write("flat.rs", "mod part;");
        write("flat/part.rs", "");
        write("scripts/one.py", "");
        assert_eq!(undeclared(&root).unwrap(), [""; 0]);
        write("unknown.rs", "");
        write("deep/lost.rs", "");
        write("flat/lost.rs", "");
        write("other/mod.rs", "");
        write("former/main.rs", "");
        let found = undeclared(&root).unwrap();
        let files = ["deep/lost.rs", "flat/lost.rs", "former/main.rs", "other/mod.rs", "unknown.rs"];
        assert_eq!(found.len(), files.len(), "{found:?}");
        for (finding, file) in found.iter().zip(files) {
            assert!(finding.starts_with(&format!("crates/one/tests/{file}: ")), "{finding}");
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
