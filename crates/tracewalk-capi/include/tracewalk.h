/* tracewalk: Arm CoreSight trace to what the program did. docs/c.md shows how to use it.
 *
 * Handles: a handle belongs to the program, which frees it once, with the function that is named for it, when no other
 * call uses it. Using a freed handle, or freeing one twice, is undefined, as with free(). Freeing a null pointer does
 * nothing.
 *
 * Threads: different handles are independent of one another, and nothing is global. Many threads can use a
 * tracewalk_program and tracewalk_options at once. Any thread can use a decoder, one at a time: a call during another
 * one returns TRACEWALK_STATUS_STATE. Only the thread that opened a session can use and free it; calls from others
 * return the same.
 *
 * Arguments: if a required pointer is null, the call returns TRACEWALK_STATUS_ARGUMENT. Any other pointer points to the
 * declared object: a text ends with a NUL and is UTF-8, and `bytes` has `size` bytes. The size of a structure is its
 * `sizeof`, so that a program works with later versions of the library.
 *
 * Errors: `error` may be null. Otherwise it receives null, or the reason why the function failed (a status below 0),
 * which the program frees. A defect of the library is an error, too (TRACEWALK_STATUS_DEFECT); afterwards the handle
 * can only be freed.
 */

#ifndef TRACEWALK_H
#define TRACEWALK_H

/* Made by cbindgen: `cargo xtask c --write`. */

#include <stddef.h>
#include <stdint.h>

/*
 The ABI version, which changes if programs have to be compiled again. New functions, fields at the end of
 structures, and values of enumerations do not change it.
 */
#define TRACEWALK_ABI 0

/*
 `address` is valid.
 */
#define TRACEWALK_HAS_ADDRESS 1

/*
 `return_address` is valid.
 */
#define TRACEWALK_HAS_RETURN_ADDRESS 2

/*
 `exception` and `numbering` are valid.
 */
#define TRACEWALK_HAS_EXCEPTION 4

/*
 `context_id` is valid.
 */
#define TRACEWALK_HAS_CONTEXT_ID 8

/*
 `vmid` is valid.
 */
#define TRACEWALK_HAS_VMID 16

/*
 `level` is valid.
 */
#define TRACEWALK_HAS_LEVEL 32

/*
 `value` is valid.
 */
#define TRACEWALK_HAS_VALUE 64

/*
 `capture_offset` is valid.
 */
#define TRACEWALK_HAS_CAPTURE_OFFSET 128

/*
 `data_bytes` and `store` are valid.
 */
#define TRACEWALK_HAS_ACCESS 256

/*
 The result of a function. Below 0 the function failed, and the error states the reason.
 */
enum tracewalk_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Done.
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
   An argument is invalid.
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
   The handle's state does not allow the call.
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
 The kind of a stretch of a source's bytes.
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
   Bytes that are not a packet: `name` is the reason.
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
 The kind of a packet's field.
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
 The kind of an element, and the fields that are valid.
 */
enum tracewalk_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   A kind that this version of the ABI has no fields for.
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
   Execution could not be followed: `reason` is a `tracewalk_gap`, `doubt`; `address` and `isa` of the place, if
   known.
   */
  TRACEWALK_KIND_GAP = 14,
  /*
   A place that the trace states explicitly: `address` and `isa`, if known.
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
   The element is not about an instruction.
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
   With an instruction that is not a branch: something happened after it.
   */
  TRACEWALK_ENDING_INTERRUPTED = 0,
  /*
   With an instruction that is not a branch, and whose condition failed.
   */
  TRACEWALK_ENDING_CONDITION_FAILED = 1,
  /*
   With a branch whose target is in the code: see `taken`, `link`, `returns`.
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
 The kind of return, judged by the branch's form.
 */
enum tracewalk_returns
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Not a return.
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
   Not stated.
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
 The effect of an instruction on program flow.
 */
enum tracewalk_class
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Execution continues after the instruction.
   */
  TRACEWALK_CLASS_OTHER = 0,
  /*
   A branch with its target in the instruction: `target` and `target_isa`.
   */
  TRACEWALK_CLASS_DIRECT = 1,
  /*
   A branch with a computed target.
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
   A wait for an interrupt or an event.
   */
  TRACEWALK_CLASS_WAIT = 6,
  /*
   The start of a transaction.
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
   Unknown.
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
   Older than the profiles: ARM7 to ARM11.
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
 How serious a notice is.
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
 The reason why tracing began: `reason` of `TRACEWALK_KIND_TRACE_ON`.
 */
enum tracewalk_begin
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Another reason.
   */
  TRACEWALK_BEGIN_OTHER = 0,
  /*
   Tracing was enabled.
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
 The reason why execution could not be followed: `reason` of `TRACEWALK_KIND_GAP`.
 */
enum tracewalk_gap
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Another reason.
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
   The trace lacks the address that execution went to.
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
   The trace does not name the executed instructions: `value` of them, if their number is known.
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
 The state of a transaction: `reason` of `TRACEWALK_KIND_TRANSACTION`.
 */
enum tracewalk_transaction
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Another state.
   */
  TRACEWALK_TRANSACTION_OTHER = 0,
  /*
   The transaction started.
   */
  TRACEWALK_TRANSACTION_STARTED = 1,
  /*
   Execution is inside a transaction.
   */
  TRACEWALK_TRANSACTION_UNDER_WAY = 2,
  /*
   The transaction was committed.
   */
  TRACEWALK_TRANSACTION_COMMITTED = 3,
  /*
   The transaction failed.
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
 Decodes bytes in pieces of any size. Holds the elements until the program has taken them.
 */
typedef struct tracewalk_decoder tracewalk_decoder;

/*
 The reason why a function failed. The program owns the error, and frees it.
 */
typedef struct tracewalk_error tracewalk_error;

/*
 Options for opening a capture.
 */
typedef struct tracewalk_options tracewalk_options;

/*
 The executed code, which decoders follow. A decoder keeps the code that was added before it was created.
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
   The field's name, as in `packets --format jsonl` of the command.
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
   The kind of the content.
   */
  tracewalk_field_kind kind;
  /*
   0.
   */
  uint32_t reserved;
} tracewalk_field;

/*
 A stretch of a source's bytes. The packets of a source cover each of its bytes once, in order.

 Later versions add fields at the end: the library fills in the first `size` bytes.
 */
typedef struct tracewalk_packet {
  /*
   The number of bytes of this structure that the library fills in.
   */
  uint32_t size;
  /*
   The kind.
   */
  tracewalk_packet_kind kind;
  /*
   `TRACEWALK_HAS_CAPTURE_OFFSET` if `capture_offset` is valid.
   */
  uint32_t has;
  /*
   The source's trace ID; 0 for a source without one.
   */
  uint32_t trace_id;
  /*
   The position of the first byte among the source's own bytes.
   */
  uint64_t stream_start;
  /*
   The offset of the first byte in the capture's file.
   */
  uint64_t capture_offset;
  /*
   The packet's name, as in `packets --format jsonl` of the command.
   */
  const char *name;
  /*
   The packet's bytes.
   */
  const uint8_t *bytes;
  /*
   The number of bytes.
   */
  size_t byte_count;
  /*
   The packet's fields.
   */
  const struct tracewalk_field *fields;
  /*
   The number of fields.
   */
  size_t field_count;
} tracewalk_packet;

/*
 Receives a packet, which is valid only during the call, as are its texts. A result other than 0 ends the work. The
 callback must not use the handle that calls it, and must not leave by an exception or `longjmp`.
 */
typedef int (*tracewalk_on_packet)(void *user, const struct tracewalk_packet *packet);

/*
 One piece of program flow. Fields that `kind` does not name are 0.

 Later versions add fields at the end: the library fills in the first `size` bytes.
 */
typedef struct tracewalk_element {
  /*
   The number of bytes of this structure that the library fills in.
   */
  uint32_t size;
  /*
   The kind.
   */
  tracewalk_kind kind;
  /*
   The optional fields that are valid: `TRACEWALK_HAS_…`.
   */
  uint32_t has;
  /*
   The source's trace ID; 0 for a source without one.
   */
  uint32_t trace_id;
  /*
   The first byte that proves the element, counted in the source's own bytes.
   */
  uint64_t stream_start;
  /*
   The byte after the last one that proves the element.
   */
  uint64_t stream_end;
  /*
   The offset of the first byte in the capture's file.
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
   An address in the program's memory.
   */
  uint64_t address;
  /*
   The address that the exception would return to.
   */
  uint64_t return_address;
  /*
   A number: a time, cycles, a value.
   */
  uint64_t value;
  /*
   The number of instructions.
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
   The kind of return, judged by the branch's form.
   */
  tracewalk_returns returns;
  /*
   The reason: see `kind`.
   */
  uint32_t reason;
  /*
   1 if elements since the last proof may be wrong.
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
   The number of accessed bytes of memory; 0 if unknown.
   */
  uint32_t data_bytes;
  /*
   1 for a store.
   */
  uint32_t store;
} tracewalk_element;

/*
 Receives an element, which is valid only during the call. A result other than 0 ends the work. The callback must not
 use the handle that calls it, and must not leave by an exception or `longjmp`.
 */
typedef int (*tracewalk_on_element)(void *user, const struct tracewalk_element *element);

/*
 An instruction.

 Later versions add fields at the end: the library fills in the first `size` bytes.
 */
typedef struct tracewalk_instruction {
  /*
   The number of bytes of this structure that the library fills in.
   */
  uint32_t size;
  /*
   The size of the instruction in bytes: 2 or 4.
   */
  uint32_t bytes;
  /*
   The effect on program flow.
   */
  tracewalk_class flow;
  /*
   1 if the instruction's own encoding is conditional. An IT instruction before it is ignored.
   */
  uint32_t conditional;
  /*
   1 if the instruction writes the link register.
   */
  uint32_t link;
  /*
   The kind of return, judged by the instruction's form.
   */
  tracewalk_returns returns;
  /*
   For an IT instruction, the number of following instructions that it makes conditional; else 0.
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
 A source of trace in a capture. The texts live as long as the session.
 */
typedef struct tracewalk_source {
  /*
   The number of bytes of this structure that the library fills in.
   */
  uint32_t size;
  /*
   The trace ID; 0 for a source without one.
   */
  uint32_t trace_id;
  /*
   The protocol: `etmv3`, `pft`, `etmv4` or `mtb`.
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
 A notice about the capture or an answer. The texts live as long as the session.
 */
typedef struct tracewalk_notice {
  /*
   The number of bytes of this structure that the library fills in.
   */
  uint32_t size;
  /*
   How serious the notice is.
   */
  tracewalk_severity severity;
  /*
   1 if `offset` is valid.
   */
  uint32_t has_offset;
  /*
   0.
   */
  uint32_t reserved;
  /*
   The offset in the capture's file at which the notice first occurs.
   */
  uint64_t offset;
  /*
   A short name of the notice's kind, which is the same in all versions.
   */
  const char *kind;
  /*
   The sentence, as the command prints it.
   */
  const char *sentence;
} tracewalk_notice;

/*
 The outcome of following a source.
 */
typedef struct tracewalk_outcome {
  /*
   The number of bytes of this structure that the library fills in.
   */
  uint32_t size;
  /*
   1 if all of the source was decoded.
   */
  uint32_t complete;
  /*
   The number of executed instructions.
   */
  uint64_t instructions;
  /*
   The number of packets.
   */
  uint64_t packets;
  /*
   The number of stretches of bytes that are not packets.
   */
  uint64_t malformed;
} tracewalk_outcome;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The ABI version of the loaded library: compare it with `TRACEWALK_ABI`.
 */
uint32_t tracewalk_abi_version(void);

/*
 The version of the loaded library, like `0.1.0`.
 */
const char *tracewalk_version(void);

/*
 Creates a decoder of one source's bytes, without frames around them. `source` has the form of the command's
 `--source`, like `etmv3,cpu=cortex-m3,etmcr=0x500`. Without a program (null) the decoder finds no instructions.
 */
tracewalk_status tracewalk_decoder_new(const char *source,
                                       const struct tracewalk_program *program,
                                       struct tracewalk_decoder **out,
                                       struct tracewalk_error **error);

/*
 Creates a decoder of CoreSight frames with `count` sources. Each source has its trace ID, like
 `0x10=etmv3,cpu=cortex-m3`, and its program, which may be null. With `port` other than 0 the frames are a trace
 port's, with FSYNCs; else a buffer's.
 */
tracewalk_status tracewalk_decoder_new_formatted(const char *const *sources,
                                                 const struct tracewalk_program *const *programs,
                                                 size_t count,
                                                 int port,
                                                 struct tracewalk_decoder **out,
                                                 struct tracewalk_error **error);

/*
 Reports packets to `callback` while bytes are pushed, each before the elements that it proves. A result other than 0
 ends the reports. Call this function before the first bytes.
 */
tracewalk_status tracewalk_decoder_on_packet(const struct tracewalk_decoder *decoder,
                                             tracewalk_on_packet callback,
                                             void *user,
                                             struct tracewalk_error **error);

/*
 Decodes the next bytes. The elements are held until `tracewalk_decoder_next` or `tracewalk_decoder_each` takes them:
 push pieces of some kilobytes, and take elements in between.
 */
tracewalk_status tracewalk_decoder_push(const struct tracewalk_decoder *decoder,
                                        const uint8_t *bytes,
                                        size_t size,
                                        struct tracewalk_error **error);

/*
 Reports that bytes were lost before the next ones: a gap, after which decoding continues at the next
 synchronisation. A decoder of frames detects losses itself, and refuses this call.
 */
tracewalk_status tracewalk_decoder_lost(const struct tracewalk_decoder *decoder, struct tracewalk_error **error);

/*
 Ends the trace. The last elements can be taken.
 */
tracewalk_status tracewalk_decoder_finish(const struct tracewalk_decoder *decoder, struct tracewalk_error **error);

/*
 The number of bytes at the end of the trace that are not decoded because their frame is incomplete; 0 without frames. Call
 this function after `tracewalk_decoder_finish`.
 */
tracewalk_status tracewalk_decoder_cut(const struct tracewalk_decoder *decoder,
                                       uint64_t *bytes,
                                       struct tracewalk_error **error);

/*
 Takes the next element; `size` is `sizeof(tracewalk_element)`. `TRACEWALK_STATUS_NEED_INPUT`: there is none until
 more bytes are pushed; `TRACEWALK_STATUS_END`: there are no more.
 */
tracewalk_status tracewalk_decoder_next(const struct tracewalk_decoder *decoder,
                                        struct tracewalk_element *out,
                                        size_t size,
                                        struct tracewalk_error **error);

/*
 Gives all elements so far to a callback. If the callback ends the work (`TRACEWALK_STATUS_STOPPED`), the element
 that it received is taken, and the later ones can still be taken.
 */
tracewalk_status tracewalk_decoder_each(const struct tracewalk_decoder *decoder,
                                        tracewalk_on_element callback,
                                        void *user,
                                        struct tracewalk_error **error);

/*
 Frees a decoder; a null pointer is ignored.
 */
void tracewalk_decoder_free(struct tracewalk_decoder *decoder);

/*
 The status that came with the error; `TRACEWALK_STATUS_OK` for a null pointer.
 */
tracewalk_status tracewalk_error_status(const struct tracewalk_error *error);

/*
 A short name of the reason, which is the same in all versions. The text lives as long as the error; null for a null
 pointer.
 */
const char *tracewalk_error_kind(const struct tracewalk_error *error);

/*
 A sentence for people. The text lives as long as the error; null for a null pointer.
 */
const char *tracewalk_error_message(const struct tracewalk_error *error);

/*
 Frees an error; a null pointer is ignored.
 */
void tracewalk_error_free(struct tracewalk_error *error);

/*
 Describes the instruction at the start of `code`, which is at `address`; `isa` is a `tracewalk_isa`, and `out_size`
 is `sizeof(tracewalk_instruction)`. Code after the instruction is ignored.
 */
tracewalk_status tracewalk_classify(const uint8_t *code,
                                    size_t size,
                                    uint64_t address,
                                    uint32_t isa,
                                    struct tracewalk_instruction *out,
                                    size_t out_size,
                                    struct tracewalk_error **error);

/*
 Creates options with nothing stated: tracewalk works out everything.
 */
struct tracewalk_options *tracewalk_options_new(void);

/*
 Sets an option by the command's name without its dashes: `image`, `source`, `root`, `id`, `debug-dir` (each may be
 set several times), `container`, `frame-start`, `read-pointer`, `swap-words`, `dump-address`, `vector-table`, `svd`,
 `symfs`, `kallsyms`, `registers`, `mtb-position`, `mtb-master`, `mtb-base`, `mtb-pc`, `memory`, `strict`,
 `trust-image`, `doubtful`, `threads`. Switches take `true` or `false`. The default of `doubtful` is `keep`: gaps
 state which elements may be wrong.
 */
tracewalk_status tracewalk_options_set(const struct tracewalk_options *options,
                                       const char *name,
                                       const char *value,
                                       struct tracewalk_error **error);

/*
 Frees options; a null pointer is ignored. Sessions that were opened with them stay valid.
 */
void tracewalk_options_free(struct tracewalk_options *options);

/*
 Creates a program without code.
 */
struct tracewalk_program *tracewalk_program_new(void);

/*
 Adds code from memory: `size` bytes at `address`, visible in all contexts. The bytes are copied. If memory is
 already known, the bytes must be the same.
 */
tracewalk_status tracewalk_program_add(const struct tracewalk_program *program,
                                       uint64_t address,
                                       const uint8_t *bytes,
                                       size_t size,
                                       struct tracewalk_error **error);

/*
 Adds code that is visible only under one context ID, and replaces there the code that is visible everywhere.
 */
tracewalk_status tracewalk_program_add_in_context(const struct tracewalk_program *program,
                                                  uint32_t context_id,
                                                  uint64_t address,
                                                  const uint8_t *bytes,
                                                  size_t size,
                                                  struct tracewalk_error **error);

/*
 Adds code from a file, in the form of the command's `--image`: `FILE` for ELF, Intel HEX and Motorola S-records,
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
 Reads the known code from `address` on, as much as fits into `size` bytes without a hole. `got` receives the number
 of copied bytes, 0 if the program has no code there. `context` is null, or an element of `TRACEWALK_KIND_CONTEXT`,
 whose context ID and VMID select the visible code.
 */
tracewalk_status tracewalk_program_read(const struct tracewalk_program *program,
                                        const struct tracewalk_element *context,
                                        uint64_t address,
                                        uint8_t *bytes,
                                        size_t size,
                                        size_t *got,
                                        struct tracewalk_error **error);

/*
 Describes the instruction at `address`; `isa` is a `tracewalk_isa`, and `size` is `sizeof(tracewalk_instruction)`.
 `context` is as for `tracewalk_program_read`. `TRACEWALK_STATUS_END`: the program has no code there.
 */
tracewalk_status tracewalk_program_instruction(const struct tracewalk_program *program,
                                               const struct tracewalk_element *context,
                                               uint64_t address,
                                               uint32_t isa,
                                               struct tracewalk_instruction *out,
                                               size_t size,
                                               struct tracewalk_error **error);

/*
 Frees a program; a null pointer is ignored. Decoders that were created with it stay valid.
 */
void tracewalk_program_free(struct tracewalk_program *program);

/*
 Opens a capture: a file of trace bytes, a perf.data file, a capture.toml, or a snapshot directory. Settings that
 `options` do not state are inferred; a null pointer states nothing.
 */
tracewalk_status tracewalk_session_open(const char *path,
                                        const struct tracewalk_options *options,
                                        struct tracewalk_session **out,
                                        struct tracewalk_error **error);

/*
 The number of sources whose program flow can be decoded; 0 for a null pointer.
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
 Reads a notice: those of opening come first, then those of work, in the order in which they arose. `size` is
 `sizeof(tracewalk_notice)`. `TRACEWALK_STATUS_END` if `index` is not below the number of notices.
 */
tracewalk_status tracewalk_session_notice(const struct tracewalk_session *session,
                                          size_t index,
                                          struct tracewalk_notice *out,
                                          size_t size,
                                          struct tracewalk_error **error);

/*
 Frees a session; a null pointer is ignored. Only the thread that opened the session can free it; in others nothing
 happens.
 */
void tracewalk_session_free(struct tracewalk_session *session);

/*
 Follows a source from its beginning, and gives each element to a callback. `out` is null, or receives the outcome if
 the callback did not end the work; `size` is `sizeof(tracewalk_outcome)`.
 */
tracewalk_status tracewalk_session_each(const struct tracewalk_session *session,
                                        size_t index,
                                        tracewalk_on_element callback,
                                        void *user,
                                        struct tracewalk_outcome *out,
                                        size_t size,
                                        struct tracewalk_error **error);

/*
 Reads a source's packets from its beginning, and gives each to a callback. `out` and `size` are as for
 `tracewalk_session_each`; instructions are not counted.
 */
tracewalk_status tracewalk_session_packets(const struct tracewalk_session *session,
                                           size_t index,
                                           tracewalk_on_packet callback,
                                           void *user,
                                           struct tracewalk_outcome *out,
                                           size_t size,
                                           struct tracewalk_error **error);

/*
 Creates a program with the code that a source's processor ran: from images, from the capture itself, and from dumps
 of memory. The caller frees it, and can use it in any thread, and after the session.
 */
tracewalk_status tracewalk_session_program(const struct tracewalk_session *session,
                                           size_t index,
                                           struct tracewalk_program **out,
                                           struct tracewalk_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TRACEWALK_H */
