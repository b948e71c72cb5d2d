//! The kernel: its modules, as unlinked files, and its names. The expected code is that of binutils' linker
//! for the same addresses.

use std::process::Command;

use super::*;
use crate::support::Kinds;

/// The processors that modules are built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Armv7,
    Armv8,
}

impl Target {
    const ALL: [Self; 2] = [Self::Armv7, Self::Armv8];

    const fn tools(self) -> &'static str {
        match self {
            Self::Armv7 => "arm-none-eabi",
            Self::Armv8 => "aarch64-linux-gnu",
        }
    }

    /// The address where modules begin.
    const fn start(self) -> u64 {
        match self {
            Self::Armv7 => 0xbf00_0000,
            Self::Armv8 => 0xffff_ffc0_0010_0000,
        }
    }

    /// A function of the kernel.
    const fn of_the_kernel(self) -> u64 {
        self.start() - 0x10_0000
    }

    const fn isa(self) -> &'static str {
        match self {
            Self::Armv7 => "a32",
            Self::Armv8 => "a64",
        }
    }

    /// A function that returns, of two instructions.
    const fn function(self) -> [u32; 2] {
        match self {
            Self::Armv7 => [0xe1a0_0000, 0xe12f_ff1e],
            Self::Armv8 => [0xd503_201f, 0xd65f_03c0],
        }
    }

    fn source(self) -> String {
        match self {
            Self::Armv7 => format!(".syntax unified\n.arm\n{MODULE}"),
            Self::Armv8 => MODULE.replace("bx lr", "ret"),
        }
    }

    /// A turn of these runs, each from its first address to its second.
    fn turn(self, runs: [(u64, u64); 3]) -> String {
        runs.map(|(start, end)| format!("R {start:x} {end:x} {}\n", self.isa())).concat()
    }
}

/// A module with code in two sections, which call each other and a function of the kernel.
const MODULE: &str = "
    .text
    .type walk, %function
walk:
    nop
    bl helper
    b walk
    .size walk, . - walk
    .type called, %function
called:
    nop
    bl of_the_kernel
    b called
    .size called, . - called
    .section .text.unlikely, \"ax\"
    .type helper, %function
helper:
    nop
    bx lr
    .size helper, . - helper
    .section .init.text, \"ax\"
    .type init, %function
init:
    bl walk
    bx lr
    .size init, . - init
";

/// The number of bytes before the second function.
const CALLED: u64 = 12;

/// The module's file, and the code of its sections `.text` and `.text.unlikely`, linked at these addresses by
/// binutils.
struct Module {
    target: Target,
    folder: tempfile::TempDir,
    places: [u64; 2],
    code: [Vec<u8>; 2],
}

impl Module {
    fn at(target: Target, places: [u64; 2]) -> Self {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("root/lib/modules")).unwrap();
        std::fs::write(path("walk.s"), target.source()).unwrap();
        let tool = |name: &str, arguments: &[&str]| {
            let command = Command::new(format!("{}-{name}", target.tools()))
                .args(arguments)
                .current_dir(folder.path())
                .status();
            assert!(command.unwrap().success(), "{name} {arguments:?}");
        };
        tool("as", &["walk.s", "-o", "root/lib/modules/walk.ko"]);
        // Code that runs only when the module is loaded may be at any address.
        let [text, unlikely] = places;
        let script = format!(
            "SECTIONS {{ .text {text:#x} : {{ *(.text) }} .text.unlikely {unlikely:#x} : {{ *(.text.unlikely) }} \
             .init.text {:#x} : {{ *(.init.text) }} }}",
            target.start() + 0x8000
        );
        std::fs::write(path("script"), script).unwrap();
        let kernel = format!("--defsym=of_the_kernel={:#x}", target.of_the_kernel());
        let file = "root/lib/modules/walk.ko";
        tool("ld", &["-T", "script", &kernel, "-e", "0", file, "-o", "linked"]);
        let code = [".text", ".text.unlikely"].map(|section| {
            tool("objcopy", &["-O", "binary", "-j", section, "linked", "code"]);
            std::fs::read(path("code")).unwrap()
        });
        Self { target, folder, places, code }
    }

    /// A recording of turns in the module, and the execution.
    fn machine(&self) -> Machine {
        let [text, unlikely] = self.places;
        let mut program = Program::new();
        for (place, code) in self.places.iter().zip(&self.code) {
            program.add(Address::new(*place), code).unwrap();
        }
        let turn = self.target.turn([(text, text + 8), (unlikely, unlikely + 8), (text + 8, text + 12)]);
        self.machine_of(&program, &turn)
    }

    /// A recording of this turn, and the execution.
    fn machine_of(&self, program: &Program, turn: &str) -> Machine {
        let record = format!("# tracewalk record 1\nP ar\n{}", turn.repeat(100));
        let mut path = Path::expand(&Record::parse(&record).unwrap(), program).unwrap();
        path.steps.insert(0, Step::ContextId(ContextId(10)));
        let mut machine = Machine::new(Kind::Etmv4);
        machine.recording.kernel_mapped(at(0, 1, 0), self.target.start(), 0x1000, 0, "/lib/modules/walk.ko");
        let (bytes, runs) = Kind::Etmv4.trace_of(&path, program, 10);
        let source = SourceBytes { id: TraceId::new(IDS[0]).unwrap(), bytes };
        machine.taken(at(10, 2, 0), &frames(&[source], FormatterOptions::default()), 0);
        machine.runs.extend(runs);
        machine
    }

    /// Writes the recording and a list of names, and returns the arguments that state both.
    fn arguments(&self, machine: &Machine, names: Option<&str>) -> Vec<String> {
        let path = |name: &str| self.folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("perf.data"), machine.recording.file()).unwrap();
        let mut arguments = vec![path("perf.data"), "--symfs".to_owned(), path("root")];
        if let Some(names) = names {
            std::fs::write(path("kallsyms"), names).unwrap();
            arguments.extend(["--kallsyms".to_owned(), path("kallsyms")]);
        }
        arguments
    }
}

fn runs_of(arguments: &[String]) -> Vec<String> {
    let flow = ["flow", "--format", "runs", "--quiet"].map(str::to_owned);
    let outcome = run(flow.iter().chain(arguments));
    comparable(&outcome.stdout).into_iter().filter(|line| line != "U").collect()
}

fn notices(arguments: &[String]) -> Kinds {
    run_with_notices(["info".to_owned()].iter().chain(arguments)).1
}

#[test]
#[ignore = "needs Arm binutils"]
fn a_module_runs_where_the_kernel_put_its_sections() {
    for target in Target::ALL {
        let start = target.start();
        // In the order of the file, and at the addresses in the kernel's own list.
        for (places, has_names) in [([start, start + 24], false), ([start + 0x100, start + 0x40], true)] {
            let module = Module::at(target, places);
            eprintln!("{target:?}, {places:x?}");
            let machine = module.machine();
            let [text, unlikely] = places;
            let names =
                format!("{:x} T _text\n{text:x} t walk\t[walk]\n{unlikely:x} t helper\t[walk]\n", start - 8);
            let arguments = module.arguments(&machine, has_names.then_some(&names));
            assert!(machine.runs.len() > 100);
            assert_same_runs(&runs_of(&arguments), &machine.runs);
            let kinds = notices(&arguments);
            assert!(!kinds.has("modules_left_out"), "{kinds:?}");
            // The file has a branch to the kernel's function, but nothing gives the function's address.
            assert!(kinds.has("module_branches_unknown"), "{kinds:?}");
            let profile = ["profile", "--format", "csv", "--quiet"].map(str::to_owned);
            let csv = run(profile.iter().chain(&arguments)).stdout;
            let mut functions =
                csv.lines().skip(1).map(|line| line.split(',').nth(3).unwrap()).collect::<Vec<_>>();
            functions.sort_unstable();
            assert_eq!(functions, ["helper", "walk"]);
        }
    }
}

#[test]
#[ignore = "needs Arm binutils"]
fn a_branch_of_a_module_into_the_kernel_is_followed_if_its_name_is_listed() {
    for target in Target::ALL {
        let (start, of_the_kernel) = (target.start(), target.of_the_kernel());
        let module = Module::at(target, [start, start + 24]);
        eprintln!("{target:?}");
        // The generator of the trace knows the kernel's code there; its decoder does not.
        let mut program = Program::new();
        program.add(Address::new(start), &module.code[0]).unwrap();
        program.add(Address::new(of_the_kernel), &bytes(&target.function())).unwrap();
        let called = start + CALLED;
        let turn = [(called, called + 8), (of_the_kernel, of_the_kernel + 8), (called + 8, called + 12)];
        let machine = module.machine_of(&program, &target.turn(turn));
        let own = |runs: &[String], end: u64| {
            let is_own = |run: &&String| {
                let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
                matches!(*run.split(' ').collect::<Vec<_>>(), ["R", from, to, _] if (hex(from), hex(to)) == (called, end))
            };
            runs.iter().filter(is_own).count()
        };
        // Without the name the call itself is left out; with the name, only the called function.
        let unnamed = runs_of(&module.arguments(&machine, None));
        assert_eq!((own(&unnamed, called + 4), own(&unnamed, called + 8)), (100, 0), "{:?}", &unnamed[..9]);
        let names = format!("{:x} T _text\n{of_the_kernel:x} T of_the_kernel\n", of_the_kernel - 8);
        let arguments = module.arguments(&machine, Some(&names));
        let named = runs_of(&arguments);
        assert_eq!((own(&named, called + 4), own(&named, called + 8)), (0, 100), "{:?}", &named[..9]);
        let kinds = notices(&arguments);
        assert!(!kinds.has("module_branches_unknown"), "{kinds:?}");
    }
}

#[test]
#[ignore = "needs Arm binutils"]
fn a_module_whose_place_is_not_known_is_not_used() {
    for target in Target::ALL {
        let start = target.start();
        let module = Module::at(target, [start, start + 24]);
        let machine = module.machine();
        // Contradictory names, a file that is not a module, and no file.
        let names = format!("{start:x} t walk\t[walk]\n{start:x} t called\t[walk]\n");
        let arguments = module.arguments(&machine, Some(&names));
        assert!(notices(&arguments).has("modules_left_out"));
        let file = module.folder.path().join("root/lib/modules/walk.ko");
        std::fs::write(&file, b"\x7fELF no module").unwrap();
        assert!(notices(&module.arguments(&machine, None)).has("binaries_missing"));
        std::fs::remove_file(&file).unwrap();
        assert!(notices(&module.arguments(&machine, None)).has("modules_left_out"));
    }
}

#[test]
fn functions_of_the_kernel_have_names_wherever_its_list_is() {
    // The kernel ran 0x2000 above the addresses in the list, as after another boot.
    let mut machine = Machine::new(Kind::Etmv4);
    machine.recording.kernel_mapped(at(0, 1, 0), 0x4000, 0x1_0000, 0x4000, "[kernel.kallsyms]_text");
    machine.runs(at(10, 2, 0), SPIN);
    let slid = CODE - 0x2000;
    let list = format!("00002000 T _text\n{slid:08x} T spin\n0000e000 T other\n00008004 t wrong\t[gone]\n");
    let core = places::core_file(u32::try_from(CODE).unwrap(), &bytes(SPIN.words));
    let id = [0xcd; 20];
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("perf.data");
    std::fs::create_dir_all(directory.join("kcore_dir")).unwrap();
    std::fs::write(
        directory.join("data"),
        places::with_build_id(machine.recording.file(), "[kernel.kallsyms]", &id),
    )
    .unwrap();
    std::fs::write(directory.join("kcore_dir/kcore"), core).unwrap();
    let cache = folder.path().join("cache");
    let cached = cache.join(".build-id/cd").join("cd".repeat(19));
    let [beside, in_cache, stated] =
        [directory.join("kcore_dir/kallsyms"), cached.join("kallsyms"), folder.path().join("names")];
    std::fs::create_dir_all(cached).unwrap();
    for (file, option) in [
        (&beside, None),
        (&in_cache, Some(["--debug-dir", cache.to_str().unwrap()])),
        (&stated, Some(["--kallsyms", stated.to_str().unwrap()])),
    ] {
        std::fs::write(file, &list).unwrap();
        let arguments = ["profile", directory.to_str().unwrap(), "--format", "csv", "--quiet"];
        let outcome = run(arguments.iter().chain(option.iter().flatten()));
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let functions = outcome.stdout.lines().skip(1).map(|line| line.split(',').nth(3).unwrap());
        assert_eq!(functions.collect::<Vec<_>>(), ["spin"], "{}", file.display());
        std::fs::remove_file(file).unwrap();
    }
    // If the kernel hid the addresses, the list gives no names, and a notice reports it.
    std::fs::write(&stated, "00000000 T _text\n00000000 T spin\n").unwrap();
    let arguments = ["profile", directory.to_str().unwrap(), "--kallsyms", stated.to_str().unwrap()];
    assert!(run_with_notices(arguments).1.has("names_missing"));
}
