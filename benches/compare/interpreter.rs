//! A capture that does not repeat: a Lua interpreter on a Cortex-M3, run in QEMU and encoded by the
//! generator.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Options;
use super::captures::{Capture, size};
use crate::process::{output, workspace};

/// The crate that contains Lua's sources, and their folder in it.
const LUA_SRC: &str = "548.1.2";
const LUA: &str = "lua-5.4.8";

/// The most instructions that are listed.
const LISTED: u64 = 1_000_000;

/// The source for OpenCSD's harness.
const SOURCE: &[&str] = &["etmv3,0x10,0x0,0x4114f250,0x18541800"];

/// Makes the capture in `folder`, or reuses that of an earlier run.
pub(super) fn capture(folder: &Path, generator: &Path, options: Options) -> Result<Capture, String> {
    let instructions = options.interpreter_instructions();
    let whole = make(folder, generator, instructions)?;
    // The listing has a line for each instruction.
    let short = make(folder, generator, instructions.min(LISTED))?;
    let image = folder.join("lua.image");
    let mut objcopy = Command::new("arm-none-eabi-objcopy");
    objcopy.args(["-O", "binary"]).arg(folder.join("lua/lua.elf")).arg(&image);
    output(&mut objcopy)?;
    let trace = whole.join("trace.bin");
    Ok(Capture {
        name: "lua",
        once: whole.join("capture.toml"),
        repeated: whole.join("capture.toml"),
        repeats: 1,
        for_text: short.join("capture.toml"),
        for_listing: short.join("capture.toml"),
        listing_bytes: size(&short.join("trace.bin"))?,
        bytes: size(&trace)?,
        trace_once: trace,
        container: "raw",
        address: "0x0",
        image,
        sources: SOURCE,
        known: Some(instructions),
        differs: Some("it keeps some instructions that an interrupt cancelled (`cancelled-instruction`)"),
        flow_goal: None,
        has_goal: false,
    })
}

/// The capture of a run of a number of instructions.
fn make(folder: &Path, generator: &Path, instructions: u64) -> Result<PathBuf, String> {
    let made = folder.join(format!("lua-{instructions}"));
    if made.join("capture.toml").exists() {
        return Ok(made);
    }
    let work = folder.join("lua");
    create(&work)?;
    let elf = build(&work)?;
    let record = work.join("lua.record");
    emulate(&work, (&elf, &record), generator, instructions)?;
    let mut encode = Command::new(generator);
    encode.arg("capture").arg("--record").arg(&record).arg("--elf").arg(&elf);
    encode.args(["--protocol", "etmv3,cpu=cortex-m3", "--container", "raw", "--output"]).arg(&made);
    output(&mut encode)?;
    // `runs.txt` is many times as long as the trace, and is not needed here.
    let _ = fs::remove_file(made.join("runs.txt"));
    let _ = fs::remove_file(&record);
    Ok(made)
}

/// Compiles the interpreter, with its script, for the board that QEMU emulates.
fn build(work: &Path) -> Result<PathBuf, String> {
    let sources = workspace().join("benches/lua");
    let lua = lua_sources(work)?;
    let script = read(&sources.join("script.lua"))?;
    let mut text = "static const char script[] =\n".to_owned();
    for line in script.lines() {
        text += &format!("    \"{}\\n\"\n", line.replace('\\', "\\\\").replace('"', "\\\""));
    }
    text += "    ;\n";
    write(&work.join("script.h"), &text)?;
    let elf = work.join("lua.elf");
    let mut gcc = Command::new("arm-none-eabi-gcc");
    gcc.args(["-mcpu=cortex-m3", "-mthumb", "-O2", "-g", "-gdwarf-4", "-nostartfiles", "-I"]).arg(work);
    gcc.arg("-I").arg(&lua).arg("-T").arg(sources.join("program.ld"));
    gcc.arg("-Wl,--no-warn-rwx-segments").arg("-o").arg(&elf).arg(sources.join("main.c"));
    let entries = fs::read_dir(&lua).map_err(|error| format!("{}: {error}", lua.display()))?;
    let mut files = entries.filter_map(|entry| Some(entry.ok()?.path())).collect::<Vec<_>>();
    files.sort();
    let is_wanted = |file: &&PathBuf| {
        file.extension() == Some(OsStr::new("c"))
            && !matches!(file.file_stem().and_then(OsStr::to_str), Some("lua" | "luac"))
    };
    gcc.args(files.iter().filter(is_wanted)).arg("-lm");
    output(&mut gcc)?;
    Ok(elf)
}

/// The folder with the unpacked Lua sources.
fn lua_sources(work: &Path) -> Result<PathBuf, String> {
    let project = work.join("fetch");
    create(&project.join("src"))?;
    let manifest = project.join("Cargo.toml");
    let text = format!(
        "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[dependencies]\nlua-src = \
         \"={LUA_SRC}\"\n[workspace]\n"
    );
    write(&manifest, &text)?;
    write(&project.join("src/lib.rs"), "")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut metadata = Command::new(cargo);
    metadata.args(["metadata", "--format-version", "1", "--manifest-path"]).arg(&manifest);
    let said = output(&mut metadata)?;
    let end = format!("/lua-src-{LUA_SRC}/Cargo.toml\"");
    let before = said.split_once(&end).ok_or("found no sources of lua-src")?.0;
    let folder = before.rsplit_once('"').ok_or("found no folder of lua-src")?.1;
    Ok(PathBuf::from(format!("{folder}/lua-src-{LUA_SRC}")).join(LUA))
}

/// Runs the program for a number of instructions. QEMU's log goes through a pipe, because it has some hundred
/// bytes for each instruction.
fn emulate(
    work: &Path,
    (elf, record): (&Path, &Path),
    generator: &Path,
    instructions: u64,
) -> Result<(), String> {
    let plugin = work.join("accesses.so");
    let source = workspace().join("testdata/firmware/accesses.c");
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-o"]).arg(&plugin).arg(source);
    output(&mut compile)?;
    let log = work.join("log");
    let _ = fs::remove_file(&log);
    output(Command::new("mkfifo").arg(&log))?;
    let mut qemu = Command::new("qemu-system-arm");
    qemu.args(["-M", "mps2-an385", "-nographic", "-monitor", "none", "-serial", "none", "-singlestep"]);
    qemu.args(["-icount", "shift=5,align=off,sleep=off", "-d", "exec,nochain,int,cpu,plugin", "-kernel"])
        .arg(elf);
    qemu.arg("-plugin").arg(format!("{},limit={instructions}", plugin.display())).arg("-D").arg(&log);
    qemu.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut qemu = qemu.spawn().map_err(|error| format!("qemu-system-arm: {error}"))?;
    let mut reader = Command::new(generator);
    reader.arg("record").arg("--elf").arg(elf).arg("--log").arg(&log).arg("--output").arg(record);
    let read = output(&mut reader);
    if read.is_err() {
        let _ = qemu.kill();
    }
    let ended = qemu.wait().map_err(|error| format!("qemu-system-arm: {error}"))?;
    read.and_then(|_| if ended.success() { Ok(()) } else { Err(format!("qemu-system-arm: {ended}")) })
}

fn create(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}
