//! A program without std that follows a trace: it exits with 0 if the core finds what the trace contains.
//!
//! The panic handler and the allocator below are this program's own. If the core pulled std in, there would
//! be two panic handlers, and the program would not compile. The program needs a host with a C library, which
//! starts it.
#![no_std]
#![no_main]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

use tracewalk::flow::Element;
use tracewalk::ids::Address;
use tracewalk::program::Program;
use tracewalk::protocol::etmv3;
use tracewalk::source::{FlowStream, SourceConfig};

/// A-sync, I-sync at 0x100 in Thumb, two executed instructions.
const TRACE: &[u8] = &[0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x88];

/// movs r0, #1; bx lr
const CODE: &[u8] = &[0x01, 0x20, 0x70, 0x47];

fn instructions() -> Option<u32> {
    let mut program = Program::new();
    program.add(Address::new(0x100), CODE).ok()?;
    let mut flow = FlowStream::new(&SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3")?));
    let mut instructions = 0;
    let mut count = |element: Element| {
        if let Element::Block(block) = element {
            instructions += block.instructions;
        }
    };
    flow.push(TRACE, &program, &mut count);
    flow.finish(&program, &mut count);
    Some(instructions)
}

#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    i32::from(instructions() != Some(2))
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: `abort` may be called at any time.
    unsafe { abort() }
}

const HEAP_BYTES: usize = 1 << 20;

/// An allocator that never frees.
struct Heap {
    memory: UnsafeCell<[u8; HEAP_BYTES]>,
    used: AtomicUsize,
}

// SAFETY: `used` hands every byte of `memory` out only once.
unsafe impl Sync for Heap {}

// SAFETY: a piece starts at a multiple of its alignment, ends inside `memory`, and overlaps no other.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let taken = layout.size() + layout.align();
        let start = self.used.fetch_add(taken, Ordering::Relaxed);
        if start + taken > HEAP_BYTES {
            return core::ptr::null_mut();
        }
        // SAFETY: the check above keeps the sum inside the memory.
        let piece = unsafe { self.memory.get().cast::<u8>().add(start) };
        // SAFETY: the piece is larger than the size by one alignment.
        unsafe { piece.add(piece.align_offset(layout.align())) }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static HEAP: Heap = Heap { memory: UnsafeCell::new([0; HEAP_BYTES]), used: AtomicUsize::new(0) };

// The C library starts the program and copies memory.
#[link(name = "c")]
unsafe extern "C" {
    fn abort() -> !;
}

// Library code that was compiled with unwinding refers to these symbols; nothing here unwinds.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() {}
