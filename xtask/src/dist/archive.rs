//! Archives of a folder: the same files give the same bytes, whoever packs them and when.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};

/// Packs the folder `tree`: by the archive's name as `zip` or as `tar.gz`.
pub(super) fn pack(tree: &Path, archive: &Path, level: Compression) -> Result<(), String> {
    let is_zip = archive.extension().is_some_and(|extension| extension == "zip");
    let packed = if is_zip { zip(tree, archive, level) } else { tar(tree, archive, level) };
    packed.map_err(|error| format!("{}: {error}", archive.display()))
}

/// The files below a folder in order, each with its name in the archive.
fn files(tree: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    fn below(folder: &Path, name: &str, found: &mut Vec<(PathBuf, String)>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = format!("{name}/{}", path.file_name().unwrap_or_default().to_string_lossy());
            if path.is_dir() {
                below(&path, &name, found)?;
            } else {
                found.push((path, name));
            }
        }
        Ok(())
    }
    let mut found = Vec::new();
    below(tree, &tree.file_name().unwrap_or_default().to_string_lossy(), &mut found)?;
    found.sort();
    Ok(found)
}

fn mode(name: &str) -> u32 {
    if name.contains("/bin/") { 0o755 } else { 0o644 }
}

fn tar(tree: &Path, archive: &Path, level: Compression) -> io::Result<()> {
    let out = BufWriter::new(File::create(archive)?);
    let mut tar = tar::Builder::new(GzBuilder::new().write(out, level));
    for (file, name) in files(tree)? {
        let mut header = tar::Header::new_gnu();
        header.set_size(fs::metadata(&file)?.len());
        header.set_mode(mode(&name));
        tar.append_data(&mut header, name, File::open(file)?)?;
    }
    tar.into_inner()?.finish()?.into_inner()?.sync_all()
}

fn zip(tree: &Path, archive: &Path, level: Compression) -> io::Result<()> {
    let mut zip = zip::ZipWriter::new(File::create(archive)?);
    for (file, name) in files(tree)? {
        let options = zip::write::SimpleFileOptions::default()
            .unix_permissions(mode(&name))
            .compression_level(Some(level.level().into()));
        zip.start_file(name, options)?;
        io::copy(&mut File::open(file)?, &mut zip)?;
    }
    zip.finish()?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_give_the_same_archives() {
        let root = std::env::temp_dir().join(format!("tracewalk-archive-{}", std::process::id()));
        for name in ["name.tar.gz", "name.zip"] {
            let packed = ["a", "b"].map(|parent| {
                let tree = root.join(parent).join("name");
                fs::create_dir_all(tree.join("bin")).unwrap();
                fs::write(tree.join("bin/tool"), "tool").unwrap();
                fs::write(tree.join("LICENSE"), "text").unwrap();
                let archive = tree.with_file_name(name);
                pack(&tree, &archive, Compression::fast()).unwrap();
                fs::read(archive).unwrap()
            });
            assert!(!packed[0].is_empty() && packed[0] == packed[1]);
        }
        fs::remove_dir_all(root).unwrap();
    }
}
