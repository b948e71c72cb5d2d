/* tracewalk: Arm CoreSight trace to what the program did. docs/c.md shows how to use it.
 *
 * Handles: a handle belongs to the program, which frees it once, with the function that is named for it, when no other call uses it.
 * To use a freed handle, or to free one twice, is undefined, as for free(). To free a null pointer does nothing.
 *
 * Threads: different handles are independent of one another, and nothing is global. A tracewalk_program and tracewalk_options can be
 * used by many threads at once. A decoder can be used from any thread, by one at a time: a call that meets another at work answers
 * TRACEWALK_STATUS_STATE. Only the thread that opened a session can use and free it; calls from others answer the same.
 *
 * Arguments: a null pointer where something is needed is answered with TRACEWALK_STATUS_ARGUMENT. A pointer that is not null points to
 * what the declaration says: a text ends with a NUL and is UTF-8, and `bytes` has `size` bytes. A size of a structure is `sizeof`
 * of it, so that a program goes on with later versions of the library.
 *
 * Errors: `error` may be null. Otherwise it receives null, or why the function failed (a status below 0), to be freed by the program.
 * A defect of the library is an error, too (TRACEWALK_STATUS_DEFECT); afterwards the handle can only be freed.
 */

#ifndef TRACEWALK_H
#define TRACEWALK_H

/* Made by cbindgen: `cargo xtask c --write`. */

#include <stddef.h>
#include <stdint.h>

/*
 The number of the ABI. It changes if a program has to be compiled again; functions, fields at the end of structures, and
 values of enumerations may be added without.
 */
#define TRACEWALK_ABI 0

/*
 `address` holds one.
 */
#define TRACEWALK_HAS_ADDRESS 1

/*
 `return_address` holds one.
 */
#define TRACEWALK_HAS_RETURN_ADDRESS 2

/*
 `exception` and `numbering` hold one.
 */
#define TRACEWALK_HAS_EXCEPTION 4

/*
 `context_id` holds one.
 */
#define TRACEWALK_HAS_CONTEXT_ID 8

/*
 `vmid` holds one.
 */
#define TRACEWALK_HAS_VMID 16

/*
 `level` holds an exception level.
 */
#define TRACEWALK_HAS_LEVEL 32

/*
 `value` holds one.
 */
#define TRACEWALK_HAS_VALUE 64

/*
 `capture_offset` holds one.
 */
#define TRACEWALK_HAS_CAPTURE_OFFSET 128

/*
 `data_bytes` and `store` say how memory was accessed.
 */
#define TRACEWALK_HAS_ACCESS 256

/*
 What a function answers. Below 0 it failed, and the error says why.
 */
enum tracewalk_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   It is done.
   */
  TRACEWALK_STATUS_OK = 0,
  /*
   There is nothing more.
   */
  TRACEWALK_STATUS_END = 1,
  /*
   There is nothing more until more bytes are pushed.
   */
  TRACEWALK_STATUS_NEED_INPUT = 2,
  /*
   A callback ended the work.
   */
  TRACEWALK_STATUS_STOPPED = 3,
  /*
   An argument is not what it should be.
   */
  TRACEWALK_STATUS_ARGUMENT = -1,
  /*
   The capture or an image cannot be opened.
   */
  TRACEWALK_STATUS_OPEN = -2,
  /*
   Work on a source failed.
   */
  TRACEWALK_STATUS_RUN = -3,
  /*
   The handle is not in a state for this.
   */
  TRACEWALK_STATUS_STATE = -4,
  /*
   A defect of the library: please report it.
   */
  TRACEWALK_STATUS_DEFECT = -5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_status tracewalk_status;
#else
typedef int32_t tracewalk_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 What a stretch of a source's bytes is.
 */
enum tracewalk_packet_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   A packet: `name` and `fields`.
   */
  TRACEWALK_PACKET_KIND_PACKET = 0,
  /*
   Bytes that are no packet: `name` is the reason.
   */
  TRACEWALK_PACKET_KIND_MALFORMED = 1,
  /*
   Bytes before a synchronisation, which cannot be read.
   */
  TRACEWALK_PACKET_KIND_UNSYNCHRONISED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_packet_kind tracewalk_packet_kind;
#else
typedef uint32_t tracewalk_packet_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 What a field of a packet holds.
 */
enum tracewalk_field_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   `value`, a number.
   */
  TRACEWALK_FIELD_KIND_NUMBER = 0,
  /*
   `value`, an address.
   */
  TRACEWALK_FIELD_KIND_ADDRESS = 1,
  /*
   `text`.
   */
  TRACEWALK_FIELD_KIND_TEXT = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_field_kind tracewalk_field_kind;
#else
typedef uint32_t tracewalk_field_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 What an element is, and which of its fields say something.
 */
enum tracewalk_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Of a kind that this version of the ABI has no fields for.
   */
  TRACEWALK_KIND_OTHER = 0,
  /*
   Instructions that were executed one after the other: `start` to `end`, `last`, `isa`, `instructions`, `ending`.
   */
  TRACEWALK_KIND_BLOCK = 1,
  /*
   Tracing began, or began again: `reason` is a `tracewalk_begin`.
   */
  TRACEWALK_KIND_TRACE_ON = 2,
  /*
   An exception was taken: `exception`, `return_address`; `address` and `isa` of the handler.
   */
  TRACEWALK_KIND_EXCEPTION = 3,
  /*
   The instruction before returned from an exception.
   */
  TRACEWALK_KIND_EXCEPTION_RETURN = 4,
  /*
   A transaction: `reason` is a `tracewalk_transaction`.
   */
  TRACEWALK_KIND_TRANSACTION = 5,
  /*
   The context from here on: `context_id`, `vmid`, `level`, `security`.
   */
  TRACEWALK_KIND_CONTEXT = 6,
  /*
   The clock's speed changed.
   */
  TRACEWALK_KIND_CLOCK_CHANGED = 7,
  /*
   `value` is the time; 0 if the source did not know it.
   */
  TRACEWALK_KIND_TIMESTAMP = 8,
  /*
   `value` cycles were spent since the last count, up to the end of the next block.
   */
  TRACEWALK_KIND_CYCLES = 9,
  /*
   The trigger condition occurred.
   */
  TRACEWALK_KIND_TRIGGER = 10,
  /*
   `value` has a bit for each event of the trace unit that occurred.
   */
  TRACEWALK_KIND_EVENTS = 11,
  /*
   The program wrote `value` into the trace, at `level`.
   */
  TRACEWALK_KIND_INSTRUMENTATION = 12,
  /*
   An access to memory: `address`, `value`, `data_bytes`, `store`; `start` and `isa` of the instruction if `instructions` is 1.
   */
  TRACEWALK_KIND_DATA = 13,
  /*
   Execution could not be followed: `reason` is a `tracewalk_gap`, `doubt`; `address` and `isa` of where, if that is known.
   */
  TRACEWALK_KIND_GAP = 14,
  /*
   A place that the trace names by itself: `address` and `isa`, if it is known.
   */
  TRACEWALK_KIND_PROOF = 15,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_kind tracewalk_kind;
#else
typedef uint32_t tracewalk_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 An instruction set.
 */
enum tracewalk_isa
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   The element is about no instruction.
   */
  TRACEWALK_ISA_NONE = 0,
  /*
   ARM.
   */
  TRACEWALK_ISA_A32 = 1,
  /*
   Thumb.
   */
  TRACEWALK_ISA_T32 = 2,
  /*
   ThumbEE.
   */
  TRACEWALK_ISA_T32EE = 3,
  /*
   Jazelle.
   */
  TRACEWALK_ISA_JAZELLE = 4,
  /*
   The 64-bit instruction set.
   */
  TRACEWALK_ISA_A64 = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_isa tracewalk_isa;
#else
typedef uint32_t tracewalk_isa;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 How a block ends.
 */
enum tracewalk_ending
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   With an instruction that is no branch: something happened after it.
   */
  TRACEWALK_ENDING_INTERRUPTED = 0,
  /*
   With an instruction that is no branch, and whose condition failed.
   */
  TRACEWALK_ENDING_CONDITION_FAILED = 1,
  /*
   With a branch whose target stands in the code: see `taken`, `link`, `returns`.
   */
  TRACEWALK_ENDING_DIRECT = 2,
  /*
   With a branch whose target was computed.
   */
  TRACEWALK_ENDING_INDIRECT = 3,
  /*
   With a barrier that the trace unit treats as a waypoint.
   */
  TRACEWALK_ENDING_BARRIER = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_ending tracewalk_ending;
#else
typedef uint32_t tracewalk_ending;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 What a branch returns from, by its form.
 */
enum tracewalk_returns
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   It is no return.
   */
  TRACEWALK_RETURNS_NO = 0,
  /*
   From a function.
   */
  TRACEWALK_RETURNS_FUNCTION = 1,
  /*
   From an exception.
   */
  TRACEWALK_RETURNS_EXCEPTION = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_returns tracewalk_returns;
#else
typedef uint32_t tracewalk_returns;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 How exceptions are numbered.
 */
enum tracewalk_numbering
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   No exception is known.
   */
  TRACEWALK_NUMBERING_NONE = 0,
  /*
   M profile: the architecture's exception number (IPSR).
   */
  TRACEWALK_NUMBERING_M = 1,
  /*
   A and R profile: the code of ETMv3 and PFT.
   */
  TRACEWALK_NUMBERING_AR = 2,
  /*
   A and R profile: TYPE of ETMv4 and ETE.
   */
  TRACEWALK_NUMBERING_AR_TYPE = 3,
  /*
   M profile: a TYPE of ETMv4 without a number of the architecture.
   */
  TRACEWALK_NUMBERING_M_TYPE = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_numbering tracewalk_numbering;
#else
typedef uint32_t tracewalk_numbering;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 A security state.
 */
enum tracewalk_security
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   It is not stated.
   */
  TRACEWALK_SECURITY_UNKNOWN = 0,
  /*
   Secure.
   */
  TRACEWALK_SECURITY_SECURE = 1,
  /*
   Non-secure.
   */
  TRACEWALK_SECURITY_NON_SECURE = 2,
  /*
   Root.
   */
  TRACEWALK_SECURITY_ROOT = 3,
  /*
   Realm.
   */
  TRACEWALK_SECURITY_REALM = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_security tracewalk_security;
#else
typedef uint32_t tracewalk_security;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 How an instruction takes part in program flow.
 */
enum tracewalk_class
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Execution continues after it.
   */
  TRACEWALK_CLASS_OTHER = 0,
  /*
   A branch whose target stands in the instruction: `target` and `target_isa`.
   */
  TRACEWALK_CLASS_DIRECT = 1,
  /*
   A branch whose target is computed.
   */
  TRACEWALK_CLASS_INDIRECT = 2,
  /*
   An instruction synchronisation barrier.
   */
  TRACEWALK_CLASS_ISB = 3,
  /*
   A data synchronisation barrier.
   */
  TRACEWALK_CLASS_DSB = 4,
  /*
   A data memory barrier.
   */
  TRACEWALK_CLASS_DMB = 5,
  /*
   It waits for an interrupt or an event.
   */
  TRACEWALK_CLASS_WAIT = 6,
  /*
   It begins a transaction.
   */
  TRACEWALK_CLASS_TRANSACTION_START = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_class tracewalk_class;
#else
typedef uint32_t tracewalk_class;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 A profile of the architecture.
 */
enum tracewalk_profile
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   It is not known.
   */
  TRACEWALK_PROFILE_UNKNOWN = 0,
  /*
   Application: Cortex-A.
   */
  TRACEWALK_PROFILE_A = 1,
  /*
   Real-time: Cortex-R.
   */
  TRACEWALK_PROFILE_R = 2,
  /*
   Microcontroller: Cortex-M.
   */
  TRACEWALK_PROFILE_M = 3,
  /*
   Before there were profiles: ARM7 to ARM11.
   */
  TRACEWALK_PROFILE_CLASSIC = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_profile tracewalk_profile;
#else
typedef uint32_t tracewalk_profile;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 How much a notice matters.
 */
enum tracewalk_severity
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Worth knowing.
   */
  TRACEWALK_SEVERITY_NOTE = 0,
  /*
   Something may be wrong with an answer.
   */
  TRACEWALK_SEVERITY_WARNING = 1,
  /*
   A part of the capture could not be read.
   */
  TRACEWALK_SEVERITY_INCOMPLETE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_severity tracewalk_severity;
#else
typedef uint32_t tracewalk_severity;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 Why tracing began: `reason` of `TRACEWALK_KIND_TRACE_ON`.
 */
enum tracewalk_begin
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   For another reason.
   */
  TRACEWALK_BEGIN_OTHER = 0,
  /*
   It was enabled.
   */
  TRACEWALK_BEGIN_ENABLED = 1,
  /*
   The trace unit's FIFO had overflowed.
   */
  TRACEWALK_BEGIN_OVERFLOW = 2,
  /*
   The processor left Debug state.
   */
  TRACEWALK_BEGIN_DEBUG_EXIT = 3,
  /*
   The decoder found synchronisation.
   */
  TRACEWALK_BEGIN_SYNCHRONISED = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_begin tracewalk_begin;
#else
typedef uint32_t tracewalk_begin;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 Why execution could not be followed: `reason` of `TRACEWALK_KIND_GAP`.
 */
enum tracewalk_gap
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   For another reason.
   */
  TRACEWALK_GAP_OTHER = 0,
  /*
   No image holds the code.
   */
  TRACEWALK_GAP_NO_CODE = 1,
  /*
   The code cannot be decoded.
   */
  TRACEWALK_GAP_UNDECODABLE = 2,
  /*
   The trace does not say where execution went.
   */
  TRACEWALK_GAP_ADDRESS_UNKNOWN = 3,
  /*
   Trace and image disagree.
   */
  TRACEWALK_GAP_CONTRADICTION = 4,
  /*
   Trace was malformed or lost.
   */
  TRACEWALK_GAP_TRACE_LOST = 5,
  /*
   Instructions were executed, and the trace does not say which: `value` of them, if that is known.
   */
  TRACEWALK_GAP_UNSEEN = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_gap tracewalk_gap;
#else
typedef uint32_t tracewalk_gap;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 What became of a transaction: `reason` of `TRACEWALK_KIND_TRANSACTION`.
 */
enum tracewalk_transaction
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Something else.
   */
  TRACEWALK_TRANSACTION_OTHER = 0,
  /*
   It started.
   */
  TRACEWALK_TRANSACTION_STARTED = 1,
  /*
   Execution is inside one.
   */
  TRACEWALK_TRANSACTION_UNDER_WAY = 2,
  /*
   It was committed.
   */
  TRACEWALK_TRANSACTION_COMMITTED = 3,
  /*
   It failed.
   */
  TRACEWALK_TRANSACTION_FAILED = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tracewalk_transaction tracewalk_transaction;
#else
typedef uint32_t tracewalk_transaction;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 Takes bytes in pieces of any size. It holds the elements that they prove until the program has taken them.
 */
typedef struct tracewalk_decoder tracewalk_decoder;

/*
 Why a function failed. It belongs to the program, which frees it.
 */
typedef struct tracewalk_error tracewalk_error;

/*
 A capture to open, and what is known of it.
 */
typedef struct tracewalk_options tracewalk_options;

/*
 The code that ran: what decoders follow. A decoder keeps what was added before it was made.
 */
typedef struct tracewalk_program tracewalk_program;

/*
 An open capture. Only the thread that opened it can use and free it.
 */
typedef struct tracewalk_session tracewalk_session;

/*
 A field of a packet.
 */
typedef struct tracewalk_field {
  /*
   Its name, as in `packets --format jsonl` of the command.
   */
  const char *name;
  /*
   A text; empty for a number and an address.
   */
  const char *text;
  /*
   A number or an address.
   */
  uint64_t value;
  /*
   Which of them it has.
   */
  tracewalk_field_kind kind;
  /*
   0.
   */
  uint32_t reserved;
} tracewalk_field;

/*
 A stretch of a source's bytes. The packets of a source cover each of its bytes once, in order.

 Fields are added at the end: `size` says which ones the library has filled in.
 */
typedef struct tracewalk_packet {
  /*
   How many bytes of this structure the library fills in.
   */
  uint32_t size;
  /*
   What it is.
   */
  tracewalk_packet_kind kind;
  /*
   Whether `capture_offset` holds something: `TRACEWALK_HAS_CAPTURE_OFFSET`.
   */
  uint32_t has;
  /*
   The source's trace ID; 0 for a source without one.
   */
  uint32_t trace_id;
  /*
   Its first byte among the source's own bytes.
   */
  uint64_t stream_start;
  /*
   Where in the capture's file that byte stands.
   */
  uint64_t capture_offset;
  /*
   The packet's name, as in `packets --format jsonl` of the command.
   */
  const char *name;
  /*
   Its bytes.
   */
  const uint8_t *bytes;
  /*
   How many bytes it has.
   */
  size_t byte_count;
  /*
   Its fields.
   */
  const struct tracewalk_field *fields;
  /*
   How many fields it has.
   */
  size_t field_count;
} tracewalk_packet;

/*
 Takes a packet, which is valid during the call alone, as are its texts. An answer other than 0 ends the work. It must not use the
 handle that calls it, and must not leave by an exception or `longjmp`.
 */
typedef int (*tracewalk_on_packet)(void *user, const struct tracewalk_packet *packet);

/*
 One piece of what the program did. Fields that `kind` does not name are 0.

 Fields are added at the end: `size` says which ones the library has filled in.
 */
typedef struct tracewalk_element {
  /*
   How many bytes of this structure the library fills in.
   */
  uint32_t size;
  /*
   What it is.
   */
  tracewalk_kind kind;
  /*
   Which optional fields hold something: `TRACEWALK_HAS_…`.
   */
  uint32_t has;
  /*
   The source's trace ID; 0 for a source without one.
   */
  uint32_t trace_id;
  /*
   The first byte of the source's own bytes that proves it.
   */
  uint64_t stream_start;
  /*
   The byte after the last one.
   */
  uint64_t stream_end;
  /*
   Where in the capture's file that begins.
   */
  uint64_t capture_offset;
  /*
   The first instruction.
   */
  uint64_t start;
  /*
   The address after the last instruction.
   */
  uint64_t end;
  /*
   The last instruction.
   */
  uint64_t last;
  /*
   A place in the program's memory.
   */
  uint64_t address;
  /*
   Where an exception would return to.
   */
  uint64_t return_address;
  /*
   A number: a time, cycles, a value.
   */
  uint64_t value;
  /*
   How many instructions.
   */
  uint32_t instructions;
  /*
   The instruction set.
   */
  tracewalk_isa isa;
  /*
   How a block ends.
   */
  tracewalk_ending ending;
  /*
   1 if the branch was taken (a barrier: executed).
   */
  uint32_t taken;
  /*
   1 if the branch writes the link register.
   */
  uint32_t link;
  /*
   What the branch returns from, by its form.
   */
  tracewalk_returns returns;
  /*
   Why: see `kind`.
   */
  uint32_t reason;
  /*
   1 if what came since the last proof may be wrong.
   */
  uint32_t doubt;
  /*
   How `exception` is numbered.
   */
  tracewalk_numbering numbering;
  /*
   The exception.
   */
  uint32_t exception;
  /*
   The context ID.
   */
  uint32_t context_id;
  /*
   The virtual machine.
   */
  uint32_t vmid;
  /*
   The exception level.
   */
  uint32_t level;
  /*
   The security state.
   */
  tracewalk_security security;
  /*
   How many bytes of memory were accessed; 0 if that is unknown.
   */
  uint32_t data_bytes;
  /*
   1 for a store.
   */
  uint32_t store;
} tracewalk_element;

/*
 Takes an element, which is valid during the call alone. An answer other than 0 ends the work. It must not use the handle
 that calls it, and must not leave by an exception or `longjmp`.
 */
typedef int (*tracewalk_on_element)(void *user, const struct tracewalk_element *element);

/*
 An instruction.

 Fields are added at the end: `size` says which ones the library has filled in.
 */
typedef struct tracewalk_instruction {
  /*
   How many bytes of this structure the library fills in.
   */
  uint32_t size;
  /*
   How many bytes the instruction has: 2 or 4.
   */
  uint32_t bytes;
  /*
   How it takes part in program flow.
   */
  tracewalk_class flow;
  /*
   1 if its own encoding makes it conditional. What an IT instruction before it does is not looked at.
   */
  uint32_t conditional;
  /*
   1 if it writes the link register.
   */
  uint32_t link;
  /*
   What it returns from, by its form.
   */
  tracewalk_returns returns;
  /*
   How many instructions after it an IT instruction makes conditional; 0 for every other instruction.
   */
  uint32_t it_block;
  /*
   The instruction set at the target of a direct branch.
   */
  tracewalk_isa target_isa;
  /*
   The target of a direct branch.
   */
  uint64_t target;
} tracewalk_instruction;

/*
 A source of trace in a capture. Its texts live as long as the session.
 */
typedef struct tracewalk_source {
  /*
   How many bytes of this structure the library fills in.
   */
  uint32_t size;
  /*
   Its trace ID; 0 for a source without one.
   */
  uint32_t trace_id;
  /*
   Its protocol: `etmv3`, `pft`, `etmv4` or `mtb`.
   */
  const char *protocol;
  /*
   The processor, if it is known; else an empty text.
   */
  const char *cpu;
  /*
   The processor's profile.
   */
  tracewalk_profile profile;
  /*
   0.
   */
  uint32_t reserved;
} tracewalk_source;

/*
 Something worth knowing. Its texts live as long as the session.
 */
typedef struct tracewalk_notice {
  /*
   How many bytes of this structure the library fills in.
   */
  uint32_t size;
  /*
   How much it matters.
   */
  tracewalk_severity severity;
  /*
   1 if `offset` holds one.
   */
  uint32_t has_offset;
  /*
   0.
   */
  uint32_t reserved;
  /*
   Where in the file of the capture it shows first.
   */
  uint64_t offset;
  /*
   A short name of what it is about, which stays what it is.
   */
  const char *kind;
  /*
   The sentence, as the command prints it.
   */
  const char *sentence;
} tracewalk_notice;

/*
 What came of following a source.
 */
typedef struct tracewalk_outcome {
  /*
   How many bytes of this structure the library fills in.
   */
  uint32_t size;
  /*
   1 if all of the source was decoded.
   */
  uint32_t complete;
  /*
   How many instructions were executed.
   */
  uint64_t instructions;
  /*
   How many packets there were.
   */
  uint64_t packets;
  /*
   How many stretches of bytes are no packet.
   */
  uint64_t malformed;
} tracewalk_outcome;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The number of the ABI of the library that is loaded: compare it with `TRACEWALK_ABI`.
 */
uint32_t tracewalk_abi_version(void);

/*
 The version of the library that is loaded, like `0.1.0`.
 */
const char *tracewalk_version(void);

/*
 A decoder of one source's bytes, without frames around them. `source` is in the words of the command's `--source`, like
 `etmv3,cpu=cortex-m3,etmcr=0x500`. Without a program (null) it finds no instructions.
 */
tracewalk_status tracewalk_decoder_new(const char *source,
                                       const struct tracewalk_program *program,
                                       struct tracewalk_decoder **out,
                                       struct tracewalk_error **error);

/*
 A decoder of CoreSight frames that hold `count` sources, each with its trace ID, like `0x10=etmv3,cpu=cortex-m3`, and its
 program, which may be null. With `port` other than 0 the frames are a trace port's, with FSYNCs; else a buffer's.
 */
tracewalk_status tracewalk_decoder_new_formatted(const char *const *sources,
                                                 const struct tracewalk_program *const *programs,
                                                 size_t count,
                                                 int port,
                                                 struct tracewalk_decoder **out,
                                                 struct tracewalk_error **error);

/*
 Has packets reported to `callback` while bytes are pushed, each before what it proves; an answer other than 0 ends that. To be
 called before the first bytes.
 */
tracewalk_status tracewalk_decoder_on_packet(const struct tracewalk_decoder *decoder,
                                             tracewalk_on_packet callback,
                                             void *user,
                                             struct tracewalk_error **error);

/*
 Takes the next bytes. What they prove is held until it is taken, by `tracewalk_decoder_next` or `tracewalk_decoder_each`:
 push pieces of some kilobytes, and take in between.
 */
tracewalk_status tracewalk_decoder_push(const struct tracewalk_decoder *decoder,
                                        const uint8_t *bytes,
                                        size_t size,
                                        struct tracewalk_error **error);

/*
 Bytes were lost before the next ones: a gap, and decoding continues at the next synchronisation. In frames the decoder
 notices that by itself.
 */
tracewalk_status tracewalk_decoder_lost(const struct tracewalk_decoder *decoder, struct tracewalk_error **error);

/*
 The trace ends here. The last elements can be taken.
 */
tracewalk_status tracewalk_decoder_finish(const struct tracewalk_decoder *decoder, struct tracewalk_error **error);

/*
 Takes the next element; `size` is `sizeof(tracewalk_element)`. `TRACEWALK_STATUS_NEED_INPUT`: none before more is pushed;
 `TRACEWALK_STATUS_END`: none any more.
 */
tracewalk_status tracewalk_decoder_next(const struct tracewalk_decoder *decoder,
                                        struct tracewalk_element *out,
                                        size_t size,
                                        struct tracewalk_error **error);

/*
 Gives a callback all elements that were found so far. If it ends the work (`TRACEWALK_STATUS_STOPPED`) the element that it was
 given is taken, and those after it can be taken later.
 */
tracewalk_status tracewalk_decoder_each(const struct tracewalk_decoder *decoder,
                                        tracewalk_on_element callback,
                                        void *user,
                                        struct tracewalk_error **error);

/*
 Frees a decoder; a null pointer is none.
 */
void tracewalk_decoder_free(struct tracewalk_decoder *decoder);

/*
 The status that came with the error; `TRACEWALK_STATUS_OK` for a null pointer.
 */
tracewalk_status tracewalk_error_status(const struct tracewalk_error *error);

/*
 A short name of why it failed, which stays what it is. It lives as long as the error; null for a null pointer.
 */
const char *tracewalk_error_kind(const struct tracewalk_error *error);

/*
 A sentence for people. It lives as long as the error; null for a null pointer.
 */
const char *tracewalk_error_message(const struct tracewalk_error *error);

/*
 Frees an error; a null pointer is none.
 */
void tracewalk_error_free(struct tracewalk_error *error);

/*
 Reads the instruction at the start of `code`, which stands at `address`; `isa` is a `tracewalk_isa`, and `out_size` is
 `sizeof(tracewalk_instruction)`. Code after the instruction is not looked at.
 */
tracewalk_status tracewalk_classify(const uint8_t *code,
                                    size_t size,
                                    uint64_t address,
                                    uint32_t isa,
                                    struct tracewalk_instruction *out,
                                    size_t out_size,
                                    struct tracewalk_error **error);

/*
 Options with nothing stated: tracewalk works out everything.
 */
struct tracewalk_options *tracewalk_options_new(void);

/*
 States something, in the words of the command's options without their dashes: `image`, `source`, `root`, `id`, `debug-dir` (each
 may be given several times), `container`, `frame-start`, `read-pointer`, `swap-words`, `dump-address`, `vector-table`, `svd`, `symfs`,
 `kallsyms`, `registers`, `mtb-position`, `mtb-master`, `mtb-base`, `mtb-pc`, `memory`, `strict`, `trust-image`, `doubtful`, `threads`. Switches take
 `true` or `false`. `doubtful` is `keep` if nobody states it: gaps say which elements may be wrong.
 */
tracewalk_status tracewalk_options_set(const struct tracewalk_options *options,
                                       const char *name,
                                       const char *value,
                                       struct tracewalk_error **error);

/*
 Frees options; a null pointer is none. Sessions that were opened with them go on.
 */
void tracewalk_options_free(struct tracewalk_options *options);

/*
 A program without any code.
 */
struct tracewalk_program *tracewalk_program_new(void);

/*
 Adds code from memory: `size` bytes that stand at `address`, visible in all contexts. They are copied. Where memory is
 already known the bytes have to be the same.
 */
tracewalk_status tracewalk_program_add(const struct tracewalk_program *program,
                                       uint64_t address,
                                       const uint8_t *bytes,
                                       size_t size,
                                       struct tracewalk_error **error);

/*
 Adds code that is visible under one context ID alone, and there instead of what is visible everywhere.
 */
tracewalk_status tracewalk_program_add_in_context(const struct tracewalk_program *program,
                                                  uint32_t context_id,
                                                  uint64_t address,
                                                  const uint8_t *bytes,
                                                  size_t size,
                                                  struct tracewalk_error **error);

/*
 Adds code from a file, in the words of the command's `--image`: `FILE` for ELF, Intel HEX and Motorola S-records,
 `ADDRESS:FILE` for bytes.
 */
tracewalk_status tracewalk_program_add_file(const struct tracewalk_program *program,
                                            const char *image,
                                            struct tracewalk_error **error);

/*
 Sets the address of M profile's vector table (VTOR), by which exceptions are matched with their handlers.
 */
tracewalk_status tracewalk_program_set_vector_table(const struct tracewalk_program *program,
                                                    uint64_t address,
                                                    struct tracewalk_error **error);

/*
 The known code from `address` on, as much as fits into `size` bytes and stands in one piece: `got` receives how many bytes were
 copied, 0 if the program holds nothing there. `context` is null, or an element of `TRACEWALK_KIND_CONTEXT`: what is visible
 under its context ID and VMID.
 */
tracewalk_status tracewalk_program_read(const struct tracewalk_program *program,
                                        const struct tracewalk_element *context,
                                        uint64_t address,
                                        uint8_t *bytes,
                                        size_t size,
                                        size_t *got,
                                        struct tracewalk_error **error);

/*
 Reads the instruction at `address`; `isa` is a `tracewalk_isa`, and `size` is `sizeof(tracewalk_instruction)`. `context` as for
 `tracewalk_program_read`. `TRACEWALK_STATUS_END`: the program holds nothing there.
 */
tracewalk_status tracewalk_program_instruction(const struct tracewalk_program *program,
                                               const struct tracewalk_element *context,
                                               uint64_t address,
                                               uint32_t isa,
                                               struct tracewalk_instruction *out,
                                               size_t size,
                                               struct tracewalk_error **error);

/*
 Frees a program; a null pointer is none. Decoders that were made with it go on.
 */
void tracewalk_program_free(struct tracewalk_program *program);

/*
 Opens a capture: a file of trace bytes, a perf.data file, a capture.toml, or a snapshot directory. What `options` do not state is
 inferred; a null pointer states nothing.
 */
tracewalk_status tracewalk_session_open(const char *path,
                                        const struct tracewalk_options *options,
                                        struct tracewalk_session **out,
                                        struct tracewalk_error **error);

/*
 How many sources the capture has whose program flow can be decoded; 0 for a null pointer.
 */
size_t tracewalk_session_source_count(const struct tracewalk_session *session);

/*
 Describes a source; `size` is `sizeof(tracewalk_source)`. `TRACEWALK_STATUS_END` if `index` is not below the number of sources.
 */
tracewalk_status tracewalk_session_source(const struct tracewalk_session *session,
                                          size_t index,
                                          struct tracewalk_source *out,
                                          size_t size,
                                          struct tracewalk_error **error);

/*
 Reads a notice: those of opening, then those of work, in the order in which they arose; `size` is `sizeof(tracewalk_notice)`.
 `TRACEWALK_STATUS_END` if `index` is not below the number of notices.
 */
tracewalk_status tracewalk_session_notice(const struct tracewalk_session *session,
                                          size_t index,
                                          struct tracewalk_notice *out,
                                          size_t size,
                                          struct tracewalk_error **error);

/*
 Frees a session; a null pointer is none. In another thread than the one that opened it nothing is freed.
 */
void tracewalk_session_free(struct tracewalk_session *session);

/*
 Follows a source from its beginning, and gives a callback each element. `out` is null, or receives what came of it, if the callback
 did not end the work; `size` is `sizeof(tracewalk_outcome)`.
 */
tracewalk_status tracewalk_session_each(const struct tracewalk_session *session,
                                        size_t index,
                                        tracewalk_on_element callback,
                                        void *user,
                                        struct tracewalk_outcome *out,
                                        size_t size,
                                        struct tracewalk_error **error);

/*
 Reads a source's packets from its beginning, and gives a callback each. `out` and `size` are as for `tracewalk_session_each`; no
 instructions are counted.
 */
tracewalk_status tracewalk_session_packets(const struct tracewalk_session *session,
                                           size_t index,
                                           tracewalk_on_packet callback,
                                           void *user,
                                           struct tracewalk_outcome *out,
                                           size_t size,
                                           struct tracewalk_error **error);

/*
 The code that a source's processor ran: from images, from the capture itself, and from dumps of memory. It belongs to the program,
 which frees it; it can be used from any thread, and after the session.
 */
tracewalk_status tracewalk_session_program(const struct tracewalk_session *session,
                                           size_t index,
                                           struct tracewalk_program **out,
                                           struct tracewalk_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TRACEWALK_H */
