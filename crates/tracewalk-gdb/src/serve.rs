//! Connections: one debugger at a time.
//!
//! Threads only read bytes and accept connections; everything else happens in the thread that called [`serve`].

use std::io::{self, Read, Write};
use std::net::{AddrParseError, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, Builder};
use std::time::Duration;

use tracewalk_analysis::values::Near;
use tracewalk_session::{At, Observer, Session};

use crate::core::{Core, Halted};
use crate::dialogue::Dialogue;
use crate::error::GdbError;
use crate::prepare::{Options, Pass, halted, prepare};
use crate::walk::Direction;
use tracewalk_target::packet::Parser;

/// How debuggers connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Debuggers connect to this address.
    Tcp(SocketAddr),
    /// A debugger started this process, and uses its standard input and output.
    Streams,
}

impl Listen {
    /// An address and a port to listen on.
    ///
    /// # Errors
    ///
    /// If the text is not an address with a port.
    pub fn tcp(text: &str) -> Result<Self, AddrParseError> {
        text.parse().map(Self::Tcp)
    }
}

/// Something that happened to the server.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The server accepts debuggers at this address.
    Listening(SocketAddr),
    /// A debugger has connected.
    Connected(SocketAddr),
    /// Another debugger tried to connect, and was refused.
    Refused(SocketAddr),
    /// The debugger ended the session.
    Left(SocketAddr),
    /// The connection to the debugger was lost.
    Vanished(SocketAddr),
}

/// Messages from the threads.
enum Incoming {
    Client(TcpStream, SocketAddr),
    /// Bytes from the client with this number.
    Bytes(u64, Vec<u8>),
    /// The client with this number sends no more.
    End(u64),
}

/// A client that is served.
struct Client<W> {
    number: u64,
    writer: W,
}

/// How a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Goodbye,
    Gone,
}

/// The most messages that wait in the queue.
const WAITING: usize = 16;

/// How long a client may take to receive an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most bytes that are read at once.
const PIECE: usize = 1 << 12;

/// Follows the sources of a session and serves debuggers, to which each source is a thread: over TCP until the process
/// ends, over standard streams until the debugger leaves.
///
/// # Errors
///
/// If a source cannot be followed, or the server cannot listen on the address.
pub fn serve(
    session: &mut Session,
    options: &Options<'_>,
    listen: Listen,
    observer: &dyn Observer,
    say: &mut dyn FnMut(&Event),
) -> Result<(), GdbError> {
    // Listens first, so that an error is reported before the long work.
    let listener = match listen {
        Listen::Tcp(address) => {
            Some(TcpListener::bind(address).map_err(|error| GdbError::Listen { address, error })?)
        }
        Listen::Streams => None,
    };
    let prepared = prepare(session, options, observer)?;
    let session = &*session;
    let passes = prepared.iter().map(|prepared| Pass::of(session, &prepared.source, observer));
    let passes = passes.collect::<Vec<_>>();
    let indexes = prepared.iter().zip(&passes).map(|(prepared, pass)| prepared.index(session, pass, options));
    let indexes = indexes.collect::<Result<Vec<_>, _>>()?;
    let mut cores = Vec::new();
    // A debugger's dump is of one core; with several cores, it is unknown which.
    let halted = if indexes.len() == 1 { halted(session, options)? } else { Halted::default() };
    for (prepared, index) in prepared.iter().zip(&indexes) {
        let parts = (index, &prepared.kept, &prepared.unwinder);
        cores.extend(Core::new(
            prepared.name.clone(),
            prepared.code.clone(),
            parts,
            prepared.variables.clone(),
            (halted.clone(), Near::new(prepared.values.clone(), prepared.code.clone(), index)),
        ));
    }
    begin(&mut cores, options.at)?;
    match listener {
        Some(listener) => over_tcp(&mut cores, listener, say),
        None => over_streams(&mut cores),
    }
}

/// Puts all recordings at the place at which the debugger starts.
fn begin(cores: &mut [Core<'_>], at: At) -> Result<(), GdbError> {
    if cores.is_empty() {
        return Err(GdbError::Nothing);
    }
    for core in cores {
        let found = match at {
            At::First => core.go_to_end(Direction::Backward),
            At::Last => core.go_to_end(Direction::Forward),
            At::Step(step) => core.seek_step(step),
        };
        if let (false, At::Step(step)) = (found, at) {
            return Err(GdbError::NoStep { step, steps: core.steps() });
        }
    }
    Ok(())
}

fn over_tcp(
    cores: &mut [Core<'_>],
    listener: TcpListener,
    say: &mut dyn FnMut(&Event),
) -> Result<(), GdbError> {
    let address = listener.local_addr().map_err(GdbError::Streams)?;
    let (sender, receiver) = sync_channel(WAITING);
    let to_clients = sender.clone();
    Builder::new().spawn(move || accept(&listener, &to_clients)).map_err(GdbError::Streams)?;
    say(&Event::Listening(address));
    for number in 0.. {
        let (stream, peer) = loop {
            match receiver.recv() {
                Ok(Incoming::Client(stream, peer)) => break (stream, peer),
                // From a client that is gone.
                Ok(Incoming::Bytes(..) | Incoming::End(_)) => {}
                Err(_) => return Ok(()),
            }
        };
        say(&Event::Connected(peer));
        let Ok(reader) = stream.try_clone() else { continue };
        // A peer that does not read must not block the server forever.
        let _ = stream.set_write_timeout(Some(PATIENCE));
        // Packets are small, and each waits for the one before.
        let _ = stream.set_nodelay(true);
        let from_client = sender.clone();
        // A client that cannot be read from is turned away.
        if Builder::new().spawn(move || read(reader, number, &from_client)).is_err() {
            continue;
        }
        let mut client = Client { number, writer: stream };
        let ended = converse(cores, &mut client, &receiver, say);
        // Ends the client's reader.
        let _ = client.writer.shutdown(Shutdown::Both);
        say(&match ended {
            Ended::Goodbye => Event::Left(peer),
            Ended::Gone => Event::Vanished(peer),
        });
    }
    Ok(())
}

fn over_streams(cores: &mut [Core<'_>]) -> Result<(), GdbError> {
    let (sender, receiver) = sync_channel(WAITING);
    Builder::new().spawn(move || read(io::stdin(), 0, &sender)).map_err(GdbError::Streams)?;
    converse(cores, &mut Client { number: 0, writer: io::stdout() }, &receiver, &mut |_| {});
    Ok(())
}

/// Accepts connections, and passes them on.
fn accept(listener: &TcpListener, to: &SyncSender<Incoming>) {
    loop {
        match listener.accept() {
            Ok((stream, peer)) => {
                if to.send(Incoming::Client(stream, peer)).is_err() {
                    return;
                }
            }
            // If one connection fails (or too many files are open), others may not.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Passes on the bytes of a client.
fn read(mut from: impl Read, number: u64, to: &SyncSender<Incoming>) {
    let mut piece = vec![0; PIECE];
    loop {
        let incoming = match from.read(&mut piece) {
            Ok(bytes @ 1..) => Incoming::Bytes(number, piece.iter().take(bytes).copied().collect()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => Incoming::End(number),
        };
        let is_last = matches!(incoming, Incoming::End(_));
        if to.send(incoming).is_err() || is_last {
            return;
        }
    }
}

/// Serves a client until it leaves.
fn converse<W: Write>(
    cores: &mut [Core<'_>],
    client: &mut Client<W>,
    receiver: &Receiver<Incoming>,
    say: &mut dyn FnMut(&Event),
) -> Ended {
    let Some(mut dialogue) = Dialogue::new(cores) else { return Ended::Gone };
    let mut parser = Parser::default();
    loop {
        let incoming = match dialogue.is_running() {
            false => receiver.recv().ok(),
            true => match receiver.try_recv() {
                Ok(incoming) => Some(incoming),
                Err(TryRecvError::Disconnected) => None,
                Err(TryRecvError::Empty) => {
                    let out = dialogue.run();
                    if out.is_some_and(|out| send(client, &out).is_err()) {
                        return Ended::Gone;
                    }
                    continue;
                }
            },
        };
        match incoming {
            None => return Ended::Gone,
            Some(Incoming::End(number)) if number == client.number => return Ended::Gone,
            Some(Incoming::Client(stream, peer)) => {
                let _ = stream.shutdown(Shutdown::Both);
                say(&Event::Refused(peer));
            }
            Some(Incoming::Bytes(number, bytes)) if number == client.number => {
                for byte in bytes {
                    let Some(request) = parser.byte(byte) else { continue };
                    if send(client, &dialogue.request(request)).is_err() {
                        return Ended::Gone;
                    }
                    if dialogue.is_over() {
                        return Ended::Goodbye;
                    }
                }
            }
            Some(Incoming::Bytes(..) | Incoming::End(_)) => {}
        }
    }
}

fn send<W: Write>(client: &mut Client<W>, bytes: &[u8]) -> io::Result<()> {
    client.writer.write_all(bytes)?;
    client.writer.flush()
}
