//! The client with other people's servers.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::chip::{Chip, shared};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use tracewalk_target::client::{Client, Stop};
use tracewalk_target::connection::connect;
use tracewalk_target::record::{Ended, Request, Session, Until};

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs QEMU"]
fn an_emulator_stops_at_a_breakpoint_and_shows_registers_and_memory() {
    let elf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware/m3/m3.elf");
    let port = free_port();
    let mut command = Command::new("qemu-system-arm");
    command.args(["-M", "mps2-an385", "-nographic", "-monitor", "none", "-serial", "none", "-S"]);
    command.args(["-gdb", &format!("tcp:127.0.0.1:{port}"), "-kernel"]).arg(&elf);
    let _server = Server(command.stdin(Stdio::null()).spawn().expect("QEMU runs"));
    let mut client = Client::new(connected(port)).expect("a GDB server");
    client.attach().expect("a target");
    let bytes = std::fs::read(&elf).expect("an example");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let main = file.symbols().find(|symbol| symbol.name() == Ok("main")).expect("main").address() & !1;
    let main = u32::try_from(main).expect("32 bits");
    let kind = client.set_breakpoint(main).expect("a breakpoint");
    client.resume().expect("it runs");
    assert_eq!(client.wait(Duration::from_secs(10)), Ok(Some(Stop::Signal(5))));
    client.remove_breakpoint(kind, main).expect("it was there");
    let registers = client.registers().expect("registers");
    assert_eq!((registers.general[15], registers.xpsr.map(|xpsr| xpsr >> 24 & 1)), (main, Some(1)));
    let text = file.section_by_name(".text").expect("code");
    let code = text.data().expect("bytes");
    let start = u32::try_from(text.address()).expect("32 bits");
    let read = client.read(start, u32::try_from(code.len()).expect("32 bits")).expect("memory");
    assert!(read == code);
    let word = code.first_chunk().map(|word| u32::from_le_bytes(*word));
    assert_eq!(client.read_word(start).ok(), word);
    client.resume().expect("it runs");
    assert_eq!(client.wait(Duration::from_millis(20)), Ok(None));
    assert_eq!(client.interrupt(), Ok(Stop::Signal(2)));
}

/// pyOCD, installed if missing.
pub(crate) fn pyocd() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pyocd");
    let program = folder.join("bin/pyocd");
    let run =
        |command: &mut Command| assert!(command.status().is_ok_and(|status| status.success()), "{command:?}");
    if !program.is_file() {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
        run(Command::new(folder.join("bin/python")).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "pyocd==0.46.0",
        ]));
    }
    program
}

/// OpenOCD with the simulated chip's JTAG probe, as a user starts it for a board.
pub(crate) fn openocd(probe: u16) -> Command {
    let mut command = Command::new("openocd");
    for line in [
        "adapter driver remote_bitbang",
        &format!("remote_bitbang port {probe}"),
        "remote_bitbang host 127.0.0.1",
        "transport select jtag",
        "jtag newtap chip cpu -irlen 4 -expected-id 0x4ba00477",
        "dap create chip.dap -chain-position chip.cpu",
        "target create chip.cpu cortex_m -dap chip.dap",
        "telnet_port disabled",
        "tcl_port disabled",
    ] {
        command.args(["-c", line]);
    }
    command
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.expect("a free port").port()
}

/// A connection to a server that is starting.
fn connected(port: u16) -> std::net::TcpStream {
    let connection = (0..200).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        connect("127.0.0.1", port).ok()
    });
    connection.expect("the server listens")
}

/// Records two chips through a server, and compares the bytes.
fn assert_recorded(started: impl Fn(&Path, &str, u16) -> (Chip, Server)) {
    let rows = [
        ("m3-etm-etb", "gauge-m3", 0x178, None),
        ("m0plus-mtb", "gauge-m0", 0x17c, Some((0x2000_0000, 0x2000))),
    ];
    for (name, program, end, buffer) in rows {
        let port = free_port();
        let (_chip, _server) = started(&shared(&format!("sim/chips/{name}.json")), program, port);
        let client = Client::new(connected(port)).expect("a GDB server");
        let mut session = Session::new(client).expect("a target");
        let until = Until::Address(end);
        let setup = session.plan(&Request { buffer, ..Request::new(until) }, false).expect("a plan");
        let recording = session.record(&setup, until, &|| false).expect("a recording");
        assert_eq!(recording.ended, Ended::Reached, "{name}");
        let expected =
            std::fs::read(shared(&format!("corpus/record/expected/{name}.trace.bin"))).expect("the corpus");
        assert!(recording.bytes == expected, "{name}: {} bytes", recording.bytes.len());
        session.leave().expect("the server answers");
    }
}

#[tracewalk_corpus::test]
#[ignore = "needs OpenOCD"]
fn heavy_a_chip_is_recorded_through_the_genuine_openocd() {
    assert_recorded(|file, program, port| {
        let chip = Chip::through("--probe", file, program, &["--jtag"]);
        let mut command = openocd(chip.port);
        command.args(["-c", &format!("gdb_port {port}"), "-c", "init", "-c", "halt"]);
        let server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        (chip, Server(server.expect("OpenOCD runs")))
    });
}

#[tracewalk_corpus::test]
#[ignore = "installs pyOCD"]
fn heavy_a_chip_is_recorded_through_the_genuine_pyocd() {
    assert_recorded(|file, program, port| {
        let chip = Chip::through("--probe", file, program, &[]);
        let mut command = Command::new(pyocd());
        command.args([
            "gdbserver",
            "-t",
            "cortex_m",
            "-M",
            "attach",
            "-T",
            "0",
            "-O",
            "resume_on_disconnect=false",
        ]);
        command.args(["-u", &format!("remote:127.0.0.1:{}", chip.port), "-p", &port.to_string()]);
        let server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        (chip, Server(server.expect("pyOCD runs")))
    });
}
