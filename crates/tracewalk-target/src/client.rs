//! The client's side of GDB's remote serial protocol: one request, one reply.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::packet::{LONGEST, Parser, Request as Event, hex, packet, unhex};
use crate::problem::Problem;

/// How long a reply is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most bytes without a packet before the server is taken for another one.
const MOST_NOISE: usize = 1 << 16;

/// The packet size of a server that states none (GDB manual, "Overview").
const USUAL_PACKET: usize = 400;

/// A client of a GDB server.
#[derive(Debug)]
pub struct Client<C> {
    connection: C,
    parser: Parser,
    /// Bytes that arrived and were not looked at.
    arrived: VecDeque<u8>,
    /// The last packet, for a server that asks for it again.
    sent: Vec<u8>,
    acknowledges: bool,
    /// The most bytes of a packet.
    packet_size: usize,
    /// What resumes the target.
    resume: &'static str,
    patience: Duration,
}

/// Why a target stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It stopped, with this signal.
    Signal(u8),
    /// It is gone.
    Gone,
}

/// The core registers of M profile: r0 to r15, and xPSR if the server has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// r0 to r15.
    pub general: [u32; 16],
    /// The program status register.
    pub xpsr: Option<u32>,
}

impl<C: Connection> Client<C> {
    /// A client on a connection; agrees with the server on the packets' size and acknowledgements.
    ///
    /// # Errors
    ///
    /// If the server does not answer as one of GDB does.
    pub fn new(connection: C) -> Result<Self, Problem> {
        let mut client = Self {
            connection,
            parser: Parser::of_replies(),
            arrived: VecDeque::new(),
            sent: Vec::new(),
            acknowledges: true,
            packet_size: USUAL_PACKET,
            resume: "c",
            patience: PATIENCE,
        };
        let supported = client.request("qSupported:hwbreak+;swbreak+")?;
        let features = String::from_utf8_lossy(&supported).into_owned();
        for feature in features.split(';') {
            if let Some(size) = feature.strip_prefix("PacketSize=") {
                let size = usize::from_str_radix(size, 16).unwrap_or(USUAL_PACKET);
                client.packet_size = size.clamp(64, LONGEST);
            }
        }
        if features.split(';').any(|feature| feature == "QStartNoAckMode+")
            && client.request("QStartNoAckMode")? == b"OK"
        {
            client.acknowledges = false;
        }
        Ok(client)
    }

    /// Looks for the target, which most servers stop with this; attaches to it where the server waits to be asked.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn attach(&mut self) -> Result<(), Problem> {
        if !is_gone(&self.request("?")?) {
            return self.learn_to_resume();
        }
        // Black Magic looks for targets on request.
        self.monitor("swdp_scan")?;
        if is_gone(&self.request("vAttach;1")?) {
            return Err(Problem::NoTarget);
        }
        self.learn_to_resume()
    }

    fn learn_to_resume(&mut self) -> Result<(), Problem> {
        let ways = self.request("vCont?")?;
        let has_continue = String::from_utf8_lossy(&ways).split(';').any(|way| way == "c");
        self.resume = if has_continue { "vCont;c" } else { "c" };
        Ok(())
    }

    /// Reads one word, in one access.
    ///
    /// # Errors
    ///
    /// If the server refuses.
    pub fn read_word(&mut self, address: u32) -> Result<u32, Problem> {
        let bytes = self.read_piece(address, 4)?;
        let word = bytes.as_slice().try_into().map(u32::from_le_bytes);
        word.map_err(|_| Problem::Access { address, written: false, answer: "a part of a word".to_owned() })
    }

    /// Writes one word, in one access.
    ///
    /// # Errors
    ///
    /// If the server refuses.
    pub fn write_word(&mut self, address: u32, value: u32) -> Result<(), Problem> {
        let answer = self.request(&format!("M{address:x},4:{}", hex(&value.to_le_bytes())))?;
        if answer == b"OK" {
            return Ok(());
        }
        Err(Problem::Access { address, written: true, answer: text(&answer) })
    }

    /// Reads memory, in packets as large as the server takes them.
    ///
    /// # Errors
    ///
    /// If the server refuses.
    pub fn read(&mut self, address: u32, bytes: u32) -> Result<Vec<u8>, Problem> {
        let most = u32::try_from((self.packet_size - 4) / 2 / 4 * 4).unwrap_or(u32::MAX);
        let (mut found, mut left) = (Vec::new(), bytes);
        while left > 0 {
            let at = address.wrapping_add(bytes - left);
            let piece = self.read_piece(at, left.min(most))?;
            match u32::try_from(piece.len()) {
                Ok(read @ 1..) if read <= left => left -= read,
                _ => {
                    return Err(Problem::Access {
                        address: at,
                        written: false,
                        answer: "other bytes".to_owned(),
                    });
                }
            }
            found.extend(piece);
        }
        Ok(found)
    }

    fn read_piece(&mut self, address: u32, bytes: u32) -> Result<Vec<u8>, Problem> {
        let answer = self.request(&format!("m{address:x},{bytes:x}"))?;
        let is_error = answer.len() == 3 && answer.first() == Some(&b'E');
        let found = if is_error { None } else { unhex(&answer) };
        found.ok_or_else(|| Problem::Access { address, written: false, answer: text(&answer) })
    }

    /// The core registers.
    ///
    /// # Errors
    ///
    /// If the server does not give them.
    pub fn registers(&mut self) -> Result<Registers, Problem> {
        let answer = self.request("g")?;
        let word = |at: usize| {
            let bytes = unhex(answer.get(8 * at..8 * at + 8)?)?;
            bytes.as_slice().try_into().map(u32::from_le_bytes).ok()
        };
        let mut general = [0; 16];
        for (at, register) in general.iter_mut().enumerate() {
            *register = word(at)
                .ok_or_else(|| Problem::Refused { request: "g".to_owned(), answer: text(&answer) })?;
        }
        // GDB's own numbering has the program status register after eight registers of an old floating-point unit.
        let xpsr = match answer.len() {
            136 => word(16),
            336 => word(41),
            _ => match self.register(0x19)? {
                None => self.register(0x10)?,
                known => known,
            },
        };
        Ok(Registers { general, xpsr })
    }

    fn register(&mut self, number: u8) -> Result<Option<u32>, Problem> {
        let answer = unhex(&self.request(&format!("p{number:x}"))?);
        Ok(answer.and_then(|bytes| bytes.as_slice().try_into().map(u32::from_le_bytes).ok()))
    }

    /// Sets a breakpoint at an instruction of T32; returns its type, to remove it.
    ///
    /// # Errors
    ///
    /// If the server has no more.
    pub fn set_breakpoint(&mut self, address: u32) -> Result<u8, Problem> {
        let mut answer = Vec::new();
        // Some servers choose the kind themselves, by the memory.
        for kind in [1, 0] {
            answer = self.request(&format!("Z{kind},{address:x},2"))?;
            if answer == b"OK" {
                return Ok(kind);
            }
        }
        Err(Problem::Refused { request: format!("Z1,{address:x},2"), answer: text(&answer) })
    }

    /// Removes a breakpoint of this type.
    ///
    /// # Errors
    ///
    /// If the server refuses.
    pub fn remove_breakpoint(&mut self, kind: u8, address: u32) -> Result<(), Problem> {
        let request = format!("z{kind},{address:x},2");
        let answer = self.request(&request)?;
        if answer == b"OK" { Ok(()) } else { Err(Problem::Refused { request, answer: text(&answer) }) }
    }

    /// Lets the target run.
    ///
    /// # Errors
    ///
    /// If the connection is broken.
    pub fn resume(&mut self) -> Result<(), Problem> {
        self.send(self.resume.as_bytes())
    }

    /// Executes one instruction.
    ///
    /// # Errors
    ///
    /// If the target does not stop after it.
    pub fn step(&mut self) -> Result<Stop, Problem> {
        let request = if self.resume == "c" { "s" } else { "vCont;s" };
        self.send(request.as_bytes())?;
        self.wait(self.patience)?.ok_or_else(|| self.silent(request))
    }

    /// Waits for the target to stop; `None` if it still runs after the time `patience`.
    ///
    /// # Errors
    ///
    /// If the connection is broken.
    pub fn wait(&mut self, patience: Duration) -> Result<Option<Stop>, Problem> {
        match self.reply(patience)? {
            None => Ok(None),
            Some(answer) if is_gone(&answer) => Ok(Some(Stop::Gone)),
            Some(answer) => {
                let signal = answer.get(1..3).and_then(unhex).and_then(|bytes| bytes.first().copied());
                let is_stop = matches!(answer.first(), Some(b'T' | b'S'));
                let signal = signal.filter(|_| is_stop);
                let refused = || Problem::Refused { request: self.resume.to_owned(), answer: text(&answer) };
                Ok(Some(Stop::Signal(signal.ok_or_else(refused)?)))
            }
        }
    }

    /// Stops a target that runs.
    ///
    /// # Errors
    ///
    /// If it does not stop.
    pub fn interrupt(&mut self) -> Result<Stop, Problem> {
        self.transmit(&[0x03])?;
        self.wait(self.patience)?.ok_or_else(|| self.silent("interrupt"))
    }

    /// Passes a command on to the server; returns what it printed.
    ///
    /// # Errors
    ///
    /// If the server does not answer.
    pub fn monitor(&mut self, command: &str) -> Result<String, Problem> {
        self.send(format!("qRcmd,{}", hex(command.as_bytes())).as_bytes())?;
        let mut printed = Vec::new();
        loop {
            let answer = self.packet(self.patience)?.ok_or_else(|| self.silent(command))?;
            match output(&answer) {
                Some(part) => printed.extend(part),
                None => {
                    // Some servers answer with the text itself.
                    if answer != b"OK" {
                        printed.extend(unhex(&answer).unwrap_or_default());
                    }
                    return Ok(String::from_utf8_lossy(&printed).into_owned());
                }
            }
        }
    }

    /// Sends a request, and returns the reply; an empty one says that the server does not know the request.
    ///
    /// # Errors
    ///
    /// If no reply comes.
    pub fn request(&mut self, request: &str) -> Result<Vec<u8>, Problem> {
        self.send(request.as_bytes())?;
        self.reply(self.patience)?.ok_or_else(|| self.silent(request))
    }

    /// A server that was silent once is not waited for as long again.
    fn silent(&mut self, request: &str) -> Problem {
        const ONCE_MORE: Duration = Duration::from_millis(200);
        let after = self.patience;
        self.patience = after.min(ONCE_MORE);
        Problem::Silent { request: request.to_owned(), after }
    }

    fn send(&mut self, contents: &[u8]) -> Result<(), Problem> {
        self.sent = packet(contents);
        let bytes = self.sent.clone();
        self.transmit(&bytes)
    }

    fn transmit(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        self.connection.send(bytes).map_err(|_| Problem::Closed)
    }

    /// The next packet that is no console output.
    fn reply(&mut self, patience: Duration) -> Result<Option<Vec<u8>>, Problem> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.packet(left)? {
                Some(answer) if output(&answer).is_some() => {}
                other => return Ok(other),
            }
        }
    }

    /// The next packet; `None` if none comes within the time `patience`.
    fn packet(&mut self, patience: Duration) -> Result<Option<Vec<u8>>, Problem> {
        let until = Instant::now() + patience;
        let mut noise = 0;
        loop {
            while let Some(byte) = self.arrived.pop_front() {
                noise += 1;
                match self.parser.byte(byte) {
                    Some(Event::Packet(contents)) => {
                        if self.acknowledges {
                            self.transmit(b"+")?;
                        }
                        return Ok(Some(contents));
                    }
                    Some(Event::Damaged) if self.acknowledges => self.transmit(b"-")?,
                    Some(Event::Damaged) => return Err(Problem::NotGdb),
                    Some(Event::Again) if self.acknowledges => {
                        let again = self.sent.clone();
                        self.transmit(&again)?;
                    }
                    _ if noise > MOST_NOISE.max(4 * self.packet_size) => return Err(Problem::NotGdb),
                    _ => {}
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            match self.connection.receive(left) {
                // A signal may have ended the waiting early.
                Ok(None) => {}
                Ok(Some(bytes)) if bytes.is_empty() => return Err(Problem::Closed),
                Ok(Some(bytes)) => self.arrived.extend(bytes),
                Err(_) => return Err(Problem::Closed),
            }
        }
    }
}

/// The console output in a packet: `O` and hexadecimal digits. OpenOCD says with no digits that the target still runs.
fn output(contents: &[u8]) -> Option<Vec<u8>> {
    let (first, digits) = contents.split_first()?;
    if *first == b'O' { unhex(digits) } else { None }
}

/// Whether a stop reply says that there is no target.
fn is_gone(answer: &[u8]) -> bool {
    matches!(answer.first(), Some(b'W' | b'X' | b'E') | None)
}

/// An answer, in a message.
fn text(answer: &[u8]) -> String {
    match answer {
        [] => "not supported".to_owned(),
        _ => String::from_utf8_lossy(answer.get(..40).unwrap_or(answer)).escape_default().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use proptest::prelude::*;

    use super::*;

    /// A server that sends these pieces whatever it is asked, and then closes the connection.
    #[derive(Debug)]
    struct Scripted(VecDeque<Vec<u8>>);

    impl Connection for Scripted {
        fn send(&mut self, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn receive(&mut self, _: Duration) -> io::Result<Option<Vec<u8>>> {
            Ok(Some(self.0.pop_front().unwrap_or_default()))
        }
    }

    fn replies(replies: &[&str]) -> Scripted {
        Scripted(replies.iter().map(|reply| packet(reply.as_bytes())).collect())
    }

    const HELLO: [&str; 2] = ["PacketSize=400;QStartNoAckMode+", "OK"];

    fn client(further: &[&str]) -> Client<Scripted> {
        Client::new(replies(&[&HELLO, further].concat())).expect("it greets")
    }

    #[test]
    fn a_server_prints_and_refuses_in_several_ways() {
        assert_eq!(client(&["O68690a", "OK"]).monitor("help"), Ok("hi\n".to_owned()));
        assert_eq!(client(&["68690a"]).monitor("help"), Ok("hi\n".to_owned()));
        assert_eq!(client(&["O68690a", "2a000000"]).read_word(0x100), Ok(42));
        for refusal in ["E0e", "", "2a"] {
            let refused = client(&[refusal]).read_word(0x100).map_err(|problem| problem.name());
            assert_eq!(refused, Err("access_failed"), "{refusal}");
        }
        assert_eq!(client(&["W00", "OK", "E01"]).attach(), Err(Problem::NoTarget));
        assert_eq!(client(&["E01", "OK"]).set_breakpoint(0x100), Ok(0));
        assert_eq!(client(&["O", "T05thread:1;"]).wait(PATIENCE), Ok(Some(Stop::Signal(5))));
        assert_eq!(client(&[]).read_word(0), Err(Problem::Closed));
    }

    #[test]
    fn registers_of_both_layouts_are_read() {
        let words = |count: u32| (0..count).map(|word| format!("{word:02x}000000")).collect::<String>();
        let general = std::array::from_fn(|index| u32::try_from(index).expect("a small number"));
        let new = client(&[&words(17)]).registers();
        assert_eq!(new, Ok(Registers { general, xpsr: Some(16) }));
        let old = client(&[&words(42)]).registers();
        assert_eq!(old, Ok(Registers { general, xpsr: Some(41) }));
        let short = client(&[&words(16), "", "10000000"]).registers();
        assert_eq!(short, Ok(Registers { general, xpsr: Some(16) }));
    }

    proptest! {
        #[test]
        fn any_server_is_survived(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..60), 0..20)) {
            if let Ok(mut client) = Client::new(Scripted(pieces.into())) {
                let _ = (client.attach(), client.registers(), client.read(0, 1000), client.wait(Duration::ZERO));
            }
        }

        #[test]
        fn any_replies_are_survived(replies in prop::collection::vec("[EOKTW0-9a-f*#$}:;]{0,40}", 0..20)) {
            let pieces = replies.iter().map(|reply| packet(reply.as_bytes())).collect();
            if let Ok(mut client) = Client::new(Scripted(pieces)) {
                let _ = (client.attach(), client.read(0, 100), client.monitor("x"), crate::rom::units(&mut client, None));
            }
        }
    }
}
