//! `view`: its answers to the page, the requests it refuses, and the page itself in Chromium.

mod cache;
mod cores;
mod figures;
mod page;
mod server;
mod speed;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::Value;

/// A command that serves a page until it is dropped.
pub(crate) struct Served {
    child: Child,
    /// The page's address and port.
    host: String,
    token: String,
    /// Whether everything was counted at the last question.
    is_counted: AtomicBool,
}

/// An answer of the server.
struct Answer {
    status: u16,
    headers: String,
    body: Vec<u8>,
}

impl Served {
    /// Starts without a cache, so that tests do not depend on each other.
    pub(crate) fn start<A: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self::with(&["--cache", "none"], arguments)
    }

    fn with<A: AsRef<std::ffi::OsStr>>(options: &[&str], arguments: impl IntoIterator<Item = A>) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("tracewalk"));
        command.args(["view", "--no-open", "--quiet"]).args(options).args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("http://").expect("the page's address");
        let (host, token) = rest.split_once("/#token=").expect("a token");
        let is_counted = AtomicBool::new(false);
        Self { child, host: host.to_owned(), token: token.to_owned(), is_counted }
    }

    fn of(example: &str) -> Self {
        Self::start([crate::support::example(example).join("capture.toml")])
    }

    /// Waits until everything is counted, and so cached.
    fn counted(&self) {
        while !self.is_counted.load(Relaxed) {
            self.is_counted.store(self.ask_at_once("status")["counted"] == true, Relaxed);
            if !self.is_counted.load(Relaxed) {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    }

    fn url(&self) -> String {
        format!("http://{}/#token={}", self.host, self.token)
    }

    /// Sends a request with these header lines besides `Host`.
    fn request(&self, path: &str, headers: &[&str]) -> Answer {
        let host = format!("Host: {}", self.host);
        self.send(&format!("GET {path} HTTP/1.1"), &[&[host.as_str()], headers].concat())
    }

    fn send(&self, first: &str, headers: &[&str]) -> Answer {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let lines = [&[first], headers, &["Connection: close", "", ""]].concat();
        stream.write_all(lines.join("\r\n").as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer with headers");
        let headers = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, headers, body: bytes[end + 4..].to_vec() }
    }

    /// The server's answer once everything is counted.
    pub(crate) fn ask(&self, question: &str) -> Value {
        self.counted();
        self.ask_at_once(question)
    }

    /// The server's answer as soon as the page can be shown.
    fn ask_at_once(&self, question: &str) -> Value {
        let token = format!("x-tracewalk-token: {}", self.token);
        loop {
            let answer = self.request(&format!("/api/{question}"), &[&token]);
            let value = serde_json::from_slice::<Value>(&answer.body).unwrap();
            if answer.status == 200 {
                return value;
            }
            assert_eq!(value["error"], "not_ready", "{question}: {}", answer.status);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A capture of an example's trace, repeated, with a description.
fn repeated(example: &str, bytes: usize, folder: &Path) -> std::path::PathBuf {
    crate::support::copied_example(example, folder);
    let trace = std::fs::read(folder.join("trace.bin")).unwrap();
    let mut file = std::io::BufWriter::new(std::fs::File::create(folder.join("trace.bin")).unwrap());
    for _ in 0..bytes.div_ceil(trace.len()) {
        file.write_all(&trace).unwrap();
    }
    file.flush().unwrap();
    folder.join("capture.toml")
}
