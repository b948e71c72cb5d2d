//! The core's packets → C's.

use std::ffi::{CString, c_char, c_int, c_void};

use tracewalk::ids::TraceId;
use tracewalk::protocol::Field;
use tracewalk::source::PacketItem;
use tracewalk::span::{CaptureOffset, StreamOffset};

use crate::boundary::{c_text, size_field};
use crate::element::TRACEWALK_HAS_CAPTURE_OFFSET;

/// The kind of a stretch of a source's bytes.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tracewalk_packet_kind {
    /// A packet: `name` and `fields`.
    Packet = 0,
    /// Bytes that are not a packet: `name` is the reason.
    Malformed = 1,
    /// Bytes before a synchronisation, which cannot be read.
    Unsynchronised = 2,
}

/// The kind of a packet's field.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tracewalk_field_kind {
    /// `value`, a number.
    Number = 0,
    /// `value`, an address.
    Address = 1,
    /// `text`.
    Text = 2,
}

/// A field of a packet.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tracewalk_field {
    /// The field's name, as in `packets --format jsonl` of the command.
    pub name: *const c_char,
    /// A text; empty for a number and an address.
    pub text: *const c_char,
    /// A number or an address.
    pub value: u64,
    /// The kind of the content.
    pub kind: tracewalk_field_kind,
    /// 0.
    pub reserved: u32,
}

/// A stretch of a source's bytes. The packets of a source cover each of its bytes once, in order.
///
/// Later versions add fields at the end: the library fills in the first `size` bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tracewalk_packet {
    /// The number of bytes of this structure that the library fills in.
    pub size: u32,
    /// The kind.
    pub kind: tracewalk_packet_kind,
    /// `TRACEWALK_HAS_CAPTURE_OFFSET` if `capture_offset` is valid.
    pub has: u32,
    /// The source's trace ID; 0 for a source without one.
    pub trace_id: u32,
    /// The position of the first byte among the source's own bytes.
    pub stream_start: u64,
    /// The offset of the first byte in the capture's file.
    pub capture_offset: u64,
    /// The packet's name, as in `packets --format jsonl` of the command.
    pub name: *const c_char,
    /// The packet's bytes.
    pub bytes: *const u8,
    /// The number of bytes.
    pub byte_count: usize,
    /// The packet's fields.
    pub fields: *const tracewalk_field,
    /// The number of fields.
    pub field_count: usize,
}

/// Receives a packet, which is valid only during the call, as are its texts. A result other than 0 ends the work. The
/// callback must not use the handle that calls it, and must not leave by an exception or `longjmp`.
pub type tracewalk_on_packet =
    Option<unsafe extern "C" fn(user: *mut c_void, packet: *const tracewalk_packet) -> c_int>;

/// Gives a source's packets to a program's callback.
#[derive(Debug)]
pub(crate) struct PacketCallback {
    callback: unsafe extern "C" fn(*mut c_void, *const tracewalk_packet) -> c_int,
    user: *mut c_void,
    /// Whether the callback ended the work.
    pub(crate) stopped: bool,
}

impl PacketCallback {
    pub(crate) const fn new(
        callback: unsafe extern "C" fn(*mut c_void, *const tracewalk_packet) -> c_int,
        user: *mut c_void,
    ) -> Self {
        Self { callback, user, stopped: false }
    }

    /// Gives a packet to the callback, unless the callback has ended the work.
    pub(crate) fn give(
        &mut self,
        (item, bytes): (PacketItem<'_>, &[u8]),
        id: Option<TraceId>,
        start: StreamOffset,
        at: Option<CaptureOffset>,
    ) {
        if self.stopped {
            return;
        }
        let (kind, name) = match item {
            PacketItem::Packet(packet) => (tracewalk_packet_kind::Packet, packet.name()),
            PacketItem::Malformed(reason) => (tracewalk_packet_kind::Malformed, reason.name()),
            PacketItem::Unsynchronised => (tracewalk_packet_kind::Unsynchronised, "unsynced"),
        };
        let mut texts = Vec::<(CString, CString)>::new();
        let mut values = Vec::new();
        if let PacketItem::Packet(packet) = item {
            packet.fields(&mut |name, field| {
                let (kind, value, text) = match field {
                    Field::Number(value) | Field::Bits(value) => (tracewalk_field_kind::Number, value, ""),
                    Field::Flag(value) => (tracewalk_field_kind::Number, value.into(), ""),
                    Field::Address(address) => (tracewalk_field_kind::Address, address.get(), ""),
                    Field::Text(text) => (tracewalk_field_kind::Text, 0, text),
                };
                texts.push((c_text(name), c_text(text)));
                values.push((kind, value));
            });
        }
        let field = |((name, text), (kind, value)): (&(CString, CString), (tracewalk_field_kind, u64))| {
            let (name, text) = (name.as_ptr(), text.as_ptr());
            tracewalk_field { name, text, value, kind, reserved: 0 }
        };
        let fields = texts.iter().zip(values).map(field).collect::<Vec<_>>();
        let name = c_text(name);
        let packet = tracewalk_packet {
            size: size_field::<tracewalk_packet>(),
            kind,
            has: if at.is_some() { TRACEWALK_HAS_CAPTURE_OFFSET } else { 0 },
            trace_id: id.map_or(0, |id| id.get().into()),
            stream_start: start.0,
            capture_offset: at.map_or(0, |at| at.0),
            name: name.as_ptr(),
            bytes: bytes.as_ptr(),
            byte_count: bytes.len(),
            fields: fields.as_ptr(),
            field_count: fields.len(),
        };
        // SAFETY: `callback` and `user` come from the program, which passed them together; the packet's pointers are
        // valid until the call returns.
        self.stopped = unsafe { (self.callback)(self.user, &raw const packet) } != 0;
    }
}
