use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::fixtures::TemporaryDirectory;

/// The received bytes, the number of quiet events, and the end.
fn everything(stream: &mut Stream) -> (Vec<u8>, u32, End) {
    let (mut bytes, mut quiet) = (Vec::new(), 0);
    loop {
        match stream.next() {
            Event::Bytes(piece) => {
                assert!(!piece.is_empty());
                bytes.extend_from_slice(piece);
            }
            Event::Quiet => quiet += 1,
            Event::End(end) => return (bytes, quiet, end),
        }
    }
}

fn pattern(count: u32) -> Vec<u8> {
    (0..count).map(|index| (index.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0]).collect()
}

#[test]
fn names_say_where_a_capture_comes_from() {
    let of = |name: &str| Place::of(name.as_ref());
    let server = |host: &str, port| Ok(Some(Place::Server { host: host.to_owned(), port }));
    assert_eq!(of("-"), Ok(Some(Place::StandardInput)));
    assert_eq!(of("trace.bin"), Ok(None));
    assert_eq!(of("./tcp:localhost:1"), Ok(None));
    assert_eq!(of("tcp:localhost:3443"), server("localhost", 3443));
    assert_eq!(of("tcp:[::1]:3443"), server("::1", 3443));
    for name in ["tcp:[::1]:3443", "tcp:a.b:1", "-"] {
        assert_eq!(of(name).unwrap().unwrap().to_string(), name);
    }
    for name in ["tcp:", "tcp:localhost", "tcp:localhost:", "tcp::1", "tcp:a:0", "tcp:a:65536", "tcp:[::1:1"]
    {
        let error = of(name).unwrap_err();
        assert_eq!(error.to_string(), format!("{name}: expected tcp:HOST:PORT, found `{name}`"));
        assert!(Place::is_named(name.as_ref()));
    }
}

#[test]
fn a_reader_gives_all_of_its_bytes_and_ends() {
    let bytes = pattern(1_000_000);
    let mut stream = Stream::new(Threaded::new(io::Cursor::new(bytes.clone())), None, Stop::default());
    let (found, _, end) = everything(&mut stream);
    assert!(found == bytes);
    assert_eq!((end, stream.received()), (End::Closed, 1_000_000));
    // The stream stays at its end.
    assert_eq!(stream.next(), Event::End(End::Closed));
}

#[test]
fn a_reader_that_breaks_gives_what_it_had() {
    struct Breaks(u8);
    impl Read for Breaks {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1 => Err(ErrorKind::Interrupted.into()),
                2 => {
                    buffer[..3].copy_from_slice(b"abc");
                    Ok(3)
                }
                _ => Err(io::Error::other("torn off")),
            }
        }
    }
    use std::io::ErrorKind;
    let (found, _, end) = everything(&mut Stream::new(Threaded::new(Breaks(0)), None, Stop::default()));
    assert_eq!(found, b"abc");
    assert_eq!(end, End::Failed(StreamProblem::Broken("torn off".to_owned())));
}

#[test]
fn a_stream_is_read_to_its_end() {
    let mut stream = Stream::new(Threaded::new(io::Cursor::new(pattern(5000))), None, Stop::default());
    let mut bytes = Vec::new();
    Read::read_to_end(&mut stream, &mut bytes).unwrap();
    assert_eq!((bytes, stream.end()), (pattern(5000), Some(&End::Closed)));
}

/// A server that does `work` with its first connection, and its address.
fn server(work: impl FnOnce(TcpListener) + Send + 'static) -> (Place, thread::JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = thread::spawn(move || work(listener));
    (Place::Server { host: "127.0.0.1".to_owned(), port }, thread)
}

#[test]
fn a_server_that_sends_in_odd_pieces_is_heard_to_the_end() {
    let bytes = pattern(3000);
    let sent = bytes.clone();
    let (place, thread) = server(move |listener| {
        let (mut connection, _) = listener.accept().unwrap();
        connection.set_nodelay(true).unwrap();
        for piece in sent.chunks(7 * 31) {
            connection.write_all(piece).unwrap();
            thread::sleep(Duration::from_millis(10));
        }
    });
    let (found, quiet, end) = everything(&mut place.open(None, Stop::default()).unwrap());
    thread.join().unwrap();
    assert!(found == bytes);
    assert_eq!(end, End::Closed);
    // Quiet is reported between slow pieces, so that a caller can print.
    assert!(quiet >= 5, "{quiet}");
}

#[test]
fn what_a_server_had_sent_before_it_is_gone_still_comes() {
    let bytes = pattern(100_000);
    let sent = bytes.clone();
    let (place, thread) = server(move |listener| {
        let (mut connection, _) = listener.accept().unwrap();
        connection.write_all(&sent).unwrap();
        connection.shutdown(Shutdown::Both).unwrap();
    });
    let mut stream = place.open(None, Stop::default()).unwrap();
    thread.join().unwrap();
    let (found, _, end) = everything(&mut stream);
    assert!(found == bytes);
    assert_eq!(end, End::Closed);
}

#[test]
fn where_no_server_is_nothing_is_opened() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let place = Place::Server { host: "127.0.0.1".to_owned(), port };
    let error = place.open(None, Stop::default()).unwrap_err();
    let sentence = error.to_string();
    assert!(sentence.starts_with(&format!("tcp:127.0.0.1:{port}: cannot connect: ")), "{sentence}");
}

#[test]
fn a_silent_server_is_left_after_a_while_or_on_request() {
    let (done, wait) = mpsc::channel::<()>();
    let (place, thread) = server(move |listener| {
        for _ in 0..2 {
            let (mut connection, _) = listener.accept().unwrap();
            connection.write_all(b"trace").unwrap();
            let _ = wait.recv();
        }
    });
    let idle = Duration::from_millis(150);
    let start = Instant::now();
    let (found, quiet, end) = everything(&mut place.open(Some(idle), Stop::default()).unwrap());
    assert_eq!((found.as_slice(), end), (&b"trace"[..], End::Idle));
    assert!(quiet >= 1 && start.elapsed() >= idle);
    done.send(()).unwrap();
    // The stream ends on request.
    let stop = Stop::default();
    let mut stream = place.open(None, stop.clone()).unwrap();
    let mut found = Vec::new();
    loop {
        match stream.next() {
            Event::Bytes(piece) => found.extend_from_slice(piece),
            Event::Quiet if found == b"trace" => stop.request(),
            Event::Quiet => {}
            Event::End(end) => {
                assert_eq!(end, End::Stopped);
                break;
            }
        }
    }
    done.send(()).unwrap();
    thread.join().unwrap();
}

#[test]
fn what_was_received_before_a_stop_still_comes() {
    let bytes = pattern(300_000);
    let stop = Stop::default();
    stop.request();
    let mut stream = Stream::new(Threaded::new(io::Cursor::new(bytes.clone())), None, stop);
    let (found, _, end) = everything(&mut stream);
    assert!(found == bytes);
    assert_eq!(end, End::Closed);
}

#[test]
fn a_stop_ends_even_what_never_ends() {
    #[derive(Debug)]
    struct Endless;
    impl ByteSource for Endless {
        fn read(&mut self, piece: &mut Vec<u8>, _patience: Duration) -> Result<Arrived, StreamProblem> {
            thread::sleep(Duration::from_millis(1));
            *piece = vec![0; 16];
            Ok(Arrived::Bytes)
        }
    }
    let stop = Stop::default();
    stop.request();
    let start = Instant::now();
    let (_, _, end) = everything(&mut Stream::new(Endless, None, stop));
    assert_eq!(end, End::Stopped);
    assert!(start.elapsed() >= LONGEST_DRAIN);
}

#[test]
fn a_file_is_followed_as_it_grows() {
    let directory = TemporaryDirectory::new();
    let path = directory.write("trace.bin", b"first ");
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    let writer = thread::spawn(move || {
        for piece in ["second ", "third ", "last"] {
            thread::sleep(Duration::from_millis(80));
            file.write_all(piece.as_bytes()).unwrap();
        }
    });
    let place = Place::Growing(path);
    let idle = Duration::from_secs(1);
    let (found, quiet, end) = everything(&mut place.open(Some(idle), Stop::default()).unwrap());
    writer.join().unwrap();
    assert_eq!((found.as_slice(), end), (&b"first second third last"[..], End::Idle));
    assert!(quiet >= 2, "{quiet}");
}

#[test]
fn a_file_that_becomes_shorter_is_reported() {
    let directory = TemporaryDirectory::new();
    let path = directory.write("trace.bin", b"0123456789");
    let mut stream = Place::Growing(path.clone()).open(None, Stop::default()).unwrap();
    assert_eq!(stream.next(), Event::Bytes(b"0123456789"));
    std::fs::write(&path, b"new").unwrap();
    let (found, _, end) = everything(&mut stream);
    assert_eq!(found, b"");
    assert_eq!(end, End::Failed(StreamProblem::Shortened { read: 10, found: 3 }));
}

#[test]
fn a_file_that_is_none_is_reported() {
    let directory = TemporaryDirectory::new();
    let sentence = |place: Place| place.open(None, Stop::default()).unwrap_err().to_string();
    assert!(sentence(Place::Growing(directory.path().join("none/trace.bin"))).ends_with(": no such file"));
    assert!(
        sentence(Place::Growing(directory.path().to_owned())).ends_with(": is a directory, expected a file")
    );
}

#[test]
fn a_file_that_loses_its_name_or_its_bytes_is_reported() {
    let directory = TemporaryDirectory::new();
    let follow = |name: &str| {
        let path = directory.write(name, b"0123456789");
        let mut stream = Place::Growing(path.clone()).open(None, Stop::default()).unwrap();
        assert_eq!(stream.next(), Event::Bytes(b"0123456789"));
        (path, stream)
    };
    let (path, mut stream) = follow("anew");
    std::fs::write(&path, b"other bytes, and more").unwrap();
    let (found, _, end) = everything(&mut stream);
    assert_eq!((found.as_slice(), end), (&b""[..], End::Failed(StreamProblem::Overwritten { read: 10 })));
    // Bytes that the writer still adds arrive before the deletion is reported.
    let (path, mut stream) = follow("deleted");
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file.write_all(b"last").unwrap();
    let (found, _, end) = everything(&mut stream);
    assert_eq!((found.as_slice(), end), (&b"last"[..], End::Failed(StreamProblem::Deleted)));
    let (path, mut stream) = follow("rotated");
    std::fs::rename(&path, directory.path().join("rotated.1")).unwrap();
    directory.write("rotated", b"0123456789, and a new file");
    let (found, _, end) = everything(&mut stream);
    assert_eq!((found.as_slice(), end), (&b""[..], End::Failed(StreamProblem::Replaced)));
}

#[test]
fn a_file_is_read_in_pieces_of_any_size_as_it_was_written() {
    let directory = TemporaryDirectory::new();
    let bytes = pattern(300_000);
    let path = directory.write("trace.bin", &bytes[..100_000]);
    let mut stream =
        Place::Growing(path.clone()).open(Some(Duration::from_millis(300)), Stop::default()).unwrap();
    let rest = bytes[100_000..].to_vec();
    let writer = thread::spawn(move || {
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        for piece in rest.chunks(7919) {
            file.write_all(piece).unwrap();
        }
    });
    let (found, _, end) = everything(&mut stream);
    writer.join().unwrap();
    assert!(found == bytes);
    assert_eq!(end, End::Idle);
}

#[test]
fn a_file_that_does_not_exist_yet_is_waited_for() {
    let directory = TemporaryDirectory::new();
    let path = directory.path().join("later.bin");
    let mut stream =
        Place::Growing(path.clone()).open(Some(Duration::from_secs(2)), Stop::default()).unwrap();
    assert_eq!(stream.next(), Event::Quiet);
    let writer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        std::fs::write(path, b"trace").unwrap();
    });
    assert_eq!(stream.next(), Event::Bytes(b"trace"));
    writer.join().unwrap();
    let stop = Stop::default();
    let mut never = Place::Growing(directory.path().join("never.bin")).open(None, stop.clone()).unwrap();
    assert_eq!(never.next(), Event::Quiet);
    stop.request();
    assert_eq!(never.next(), Event::End(End::Stopped));
}
