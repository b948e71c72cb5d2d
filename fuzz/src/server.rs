//! A GDB server that lies.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use tracewalk_target::chip::{Chip, KNOWN};
use tracewalk_target::client::Client;
use tracewalk_target::connection::Connection;
use tracewalk_target::halted;
use tracewalk_target::packet::packet;
use tracewalk_target::record::{Keep, Request, Session, Until};
use tracewalk_target::script::{Dialect, script};

/// The inputs' bytes choose how each request is answered: like a server whose memory has any contents, or with anything.
struct Lying<'a> {
    data: &'a [u8],
    answers: VecDeque<u8>,
}

impl Lying<'_> {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let (taken, rest) = self.data.split_at(count.min(self.data.len()));
        self.data = rest;
        taken.to_vec()
    }
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

/// The bytes of CoreSight's identification, so that tables and units are found.
const IDENTIFICATION: [u8; 4] = [0x0d, 0x90, 0x05, 0xb1];

impl Connection for Lying<'_> {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(choice) = self.take(1).first().copied() else { return Ok(()) };
        let request = String::from_utf8_lossy(bytes.get(1..).unwrap_or_default()).into_owned();
        let reply = match (choice, request.as_bytes().first()) {
            (0..=0xbf, Some(b'm')) => {
                let address = request.get(1..).and_then(|text| text.split(',').next());
                let address = address.and_then(|text| u32::from_str_radix(text, 16).ok()).unwrap_or_default();
                let word = match address & 0xfff {
                    at @ (0xff0 | 0xff4 | 0xff8 | 0xffc) if choice < 0xb0 => {
                        vec![IDENTIFICATION[(at as usize >> 2) & 3], 0, 0, 0]
                    }
                    _ => self.take(4),
                };
                packet(&hex(&word))
            }
            (0..=0xbf, Some(b'g')) => packet(&hex(&self.take(68))),
            (0..=0xbf, Some(b'?' | b'c')) => packet(b"T05thread:1;"),
            (0..=0xbf, Some(b'v')) => {
                packet(if request.starts_with("vCont?") { b"vCont;c;s" } else { b"S05" })
            }
            (0..=0xbf, _) => packet(b"OK"),
            (0xc0..=0xdf, _) => {
                let count = usize::from(choice & 0x1f);
                packet(&self.take(count))
            }
            _ => self.take(usize::from(choice & 0x1f)),
        };
        self.answers.extend(b"+");
        self.answers.extend(reply);
        Ok(())
    }

    fn receive(&mut self, _: Duration) -> io::Result<Option<Vec<u8>>> {
        Ok(Some(self.answers.drain(..).collect()))
    }
}

/// A recording, and a halted processor, with any server.
pub fn server(data: &[u8]) {
    let Some(([choice, chip], data)) = data.split_first_chunk() else { return };
    let lying = || Client::new(Lying { data, answers: VecDeque::new() });
    if choice & 1 != 0 {
        if let Ok(mut client) = lying() {
            let found = halted::read(&mut client, None, &[0x2000_0000..0x2000_0100]);
            assert!(found.is_err() || found.is_ok_and(|found| !found.log().is_empty()));
        }
        return;
    }
    let Some(mut session) = lying().ok().and_then(|client| Session::new(client).ok()) else { return };
    let known = KNOWN.get(usize::from(*chip)).and_then(|(_, text)| Chip::parse(text).ok());
    let until = if choice & 2 != 0 { Until::Address(0x100) } else { Until::Time(Duration::ZERO) };
    let request = Request {
        buffer: (choice & 4 != 0).then_some((0x2000_0000, 0x400)),
        chip: known,
        keep: if choice & 8 != 0 { Keep::Fills(2) } else { Keep::Newest },
        itm: choice & 16 != 0,
        ..Request::new(until)
    };
    if let Ok(setup) = session.plan(&request, choice & 32 != 0) {
        for dialect in [Dialect::Gdb, Dialect::OpenOcd, Dialect::PyOcd] {
            assert!(script(dialect, &setup, until).contains("tw_begin"));
        }
        if let Ok(recording) = session.record(&setup, until, &|| true) {
            assert!(recording.left || !recording.bytes.is_empty());
        }
    }
    let _ = session.leave();
}
