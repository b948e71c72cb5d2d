//! Objects and archives → records of the mapping.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use md5::{Digest as _, Md5};
use object::read::archive::ArchiveFile;
use object::{Object as _, ObjectSection as _};

use super::cursor::Cursor;
use super::{Decision, Fault, FaultKind, function, regions};

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) decisions: Vec<Decision>,
    pub(super) has_mapping: bool,
    /// The hashes of names and structures: headers are in several objects.
    seen: HashSet<(u64, u64)>,
}

/// A function's record.
struct Record<'a> {
    name: u64,
    structure: u64,
    files: u64,
    data: Cursor<'a>,
}

impl Found {
    /// Reads an object or an archive, which begins at `at` of its file.
    pub(super) fn add(&mut self, bytes: &[u8], at: u64) -> Result<(), Fault> {
        let not_an_object = |_| Fault { at, kind: FaultKind::NotAnObject };
        if !bytes.starts_with(b"!<arch>\n") {
            return self.object(bytes, at);
        }
        let archive = ArchiveFile::parse(bytes).map_err(not_an_object)?;
        for member in archive.members() {
            let member = member.map_err(not_an_object)?;
            let data = member.data(bytes).map_err(not_an_object)?;
            let at = at + member.file_range().0;
            // Archives may hold other files as well, but objects inside them are not archives.
            if data.starts_with(b"\x7fELF") {
                self.object(data, at)?;
            }
        }
        Ok(())
    }

    fn object(&mut self, bytes: &[u8], at: u64) -> Result<(), Fault> {
        let not_an_object = |_| Fault { at, kind: FaultKind::NotAnObject };
        let elf = object::File::parse(bytes).map_err(not_an_object)?;
        let (mut names, mut tables, mut records) = (HashMap::new(), HashMap::new(), Vec::new());
        for section in elf.sections() {
            let Ok(name @ ("__llvm_prf_names" | "__llvm_covmap" | "__llvm_covfun")) = section.name() else {
                continue;
            };
            let start = section.file_range().map_or(0, |(start, _)| start);
            let at = at + start.min(bytes.len() as u64);
            let truncated = |_| Fault { at, kind: FaultKind::Truncated };
            let data = Cursor::new(section.data().map_err(truncated)?, at);
            match name {
                "__llvm_prf_names" => function_names(data, &mut names)?,
                "__llvm_covmap" => file_tables(data, &mut tables)?,
                _ => function_records(data, &mut records)?,
            }
        }
        self.has_mapping |= !records.is_empty();
        for Record { name, structure, files, data } in records {
            // Structure 0: the unit declares the function and does not use it.
            if structure == 0 || !self.seen.insert((name, structure)) {
                continue;
            }
            let function = names.get(&name).ok_or(data.fault(FaultKind::NoFunction(name)))?;
            let table = tables.get(&files).ok_or(data.fault(FaultKind::NoFiles(files)))?;
            let (files, regions) = regions::read(data)?;
            let file = |index: u64| {
                let found = usize::try_from(index).ok().and_then(|index| table.get(index));
                found.cloned().ok_or(data.fault(FaultKind::NoFile(index)))
            };
            let files = files.into_iter().map(file).collect::<Result<Arc<[_]>, _>>()?;
            let found = function::decisions(&without_file(function, &files), &files, &regions);
            self.decisions.extend(found.map_err(|kind| data.fault(kind))?);
        }
        Ok(())
    }
}

type Names = HashMap<u64, String>;
type Tables = HashMap<u64, Vec<Arc<str>>>;

fn function_names(mut data: Cursor<'_>, names: &mut Names) -> Result<(), Fault> {
    while !data.is_padding() {
        let start = data;
        for name in data.packed()?.split(|byte| *byte == 1) {
            let text = std::str::from_utf8(name).map_err(|_| start.fault(FaultKind::NotText))?;
            names.insert(hash(name), text.replace(';', ":"));
        }
    }
    Ok(())
}

fn file_tables(mut data: Cursor<'_>, tables: &mut Tables) -> Result<(), Fault> {
    let start = data;
    while !data.is_empty() {
        let header = data;
        data.fixed(4)?;
        let bytes = data.fixed(4)?;
        data.fixed(4)?;
        let version = data.fixed(4)? + 1;
        if !matches!(version, 6 | 7) {
            return Err(header.fault(FaultKind::Version(version)));
        }
        let mut table = data.take(bytes)?;
        let key = hash(table.bytes());
        tables.insert(key, file_names(&mut table)?);
        data.align(&start);
    }
    Ok(())
}

/// The files of a table. The first name is the folder of the compilation; relative names are relative to it.
fn file_names(table: &mut Cursor<'_>) -> Result<Vec<Arc<str>>, Fault> {
    let (count, start) = (table.uleb()?, *table);
    let unpacked = table.packed()?;
    let inside = |fault: Fault| start.fault(fault.kind);
    let mut data = Cursor::new(&unpacked, 0);
    let mut names = Vec::new();
    for _ in 0..count {
        let length = data.uleb().map_err(inside)?;
        let name = data.take(length).map_err(inside)?.bytes();
        names.push(std::str::from_utf8(name).map_err(|_| start.fault(FaultKind::NotText))?.into());
    }
    Ok(names)
}

fn function_records<'a>(mut data: Cursor<'a>, records: &mut Vec<Record<'a>>) -> Result<(), Fault> {
    let start = data;
    while !data.is_empty() {
        let name = data.fixed(8)?;
        let bytes = data.fixed(4)?;
        let (structure, files) = (data.fixed(8)?, data.fixed(8)?);
        records.push(Record { name, structure, files, data: data.take(bytes)? });
        data.align(&start);
    }
    Ok(())
}

/// The name as llvm-cov prints it: a static function's file is left out if it is the first of its files.
fn without_file(function: &str, files: &[Arc<str>]) -> Arc<str> {
    let own = files.first().and_then(|file| function.strip_prefix(&**file)?.strip_prefix(':'));
    own.unwrap_or(function).into()
}

/// The first eight bytes of the MD5.
fn hash(bytes: &[u8]) -> u64 {
    let digest = <[u8; 16]>::from(Md5::digest(bytes));
    digest.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
