//! The connection to a GDB server.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use crate::problem::Problem;

/// A connection that carries bytes in both directions.
pub trait Connection {
    /// Sends all bytes.
    ///
    /// # Errors
    ///
    /// If the connection is broken.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// The bytes that arrive within the time `patience`: `None` if none does, an empty vector if none ever will.
    ///
    /// # Errors
    ///
    /// If the connection is broken.
    fn receive(&mut self, patience: Duration) -> io::Result<Option<Vec<u8>>>;
}

/// The timeout for connecting to each of a server's addresses.
const CONNECTING: Duration = Duration::from_secs(5);

/// Connects to a server.
///
/// # Errors
///
/// If nothing answers there.
pub fn connect(host: &str, port: u16) -> Result<TcpStream, Problem> {
    let failed = |error: io::Error| Problem::NoServer { why: error.to_string() };
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (host, port).to_socket_addrs().map_err(failed)? {
        match TcpStream::connect_timeout(&address, CONNECTING) {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(failed)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}

impl Connection for TcpStream {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn receive(&mut self, patience: Duration) -> io::Result<Option<Vec<u8>>> {
        self.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
        let mut bytes = vec![0; 1 << 14];
        match self.read(&mut bytes) {
            Ok(count) => {
                bytes.truncate(count);
                Ok(Some(bytes))
            }
            Err(error)
                if [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut, io::ErrorKind::Interrupted]
                    .contains(&error.kind()) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
