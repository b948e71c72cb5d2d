//! The command `capture`: a record → a capture of its trace.

use std::error::Error;

use tracewalk_generate::arguments::Arguments;
use tracewalk_generate::capture::File;
use tracewalk_generate::path::Path;

use crate::etmv4_files;
use crate::files::{read, read_elf, read_record, write};
use crate::generate::{Input, Keys, etmv3_files, mtb_files, pft_files};

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let record_file = arguments.required("--record")?;
    let elf_file = arguments.required("--elf")?;
    let folder = arguments.required("--output")?;
    let protocol = arguments.required("--protocol")?;
    let elf = read_elf(&elf_file)?;
    let path = Path::expand(&read_record(&record_file)?, &elf.program);
    let path = path.map_err(|error| format!("{record_file}: {error}"))?;
    let name =
        std::path::Path::new(&elf_file).file_name().and_then(|name| name.to_str()).unwrap_or("image.elf");
    let input = Input { path, elf, image: File { name: name.to_owned(), bytes: read(&elf_file)? } };
    let (protocol, keys) = protocol.split_once(',').unwrap_or((&protocol, ""));
    let keys = Keys::parse(keys)?;
    let files = match protocol {
        "etmv3" => etmv3_files(&input, &keys, arguments)?,
        "pft" => pft_files(&input, &keys, arguments)?,
        "etmv4" => etmv4_files::files(&input, &keys, arguments)?,
        "mtb" => mtb_files(&input, &keys, arguments)?,
        other => {
            return Err(format!("\"{other}\" is not a protocol, expected etmv3, pft, etmv4 or mtb").into());
        }
    };
    std::fs::create_dir_all(&folder).map_err(|error| format!("{folder}: {error}"))?;
    for file in files {
        write(&format!("{folder}/{}", file.name), &file.bytes)?;
    }
    Ok(())
}
