//! The requests that the server answers, and those that it refuses.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use super::Served;
use crate::support::{example, run_with_kinds};

#[test]
fn another_site_is_answered_nothing() {
    let served = Served::of("m3-etmv3");
    served.ask("capture");
    let token = format!("x-tracewalk-token: {}", served.token);
    let other_host = format!("Host: evil.example:{}", served.host.split(':').nth(1).unwrap());
    let own = format!("Origin: http://{}", served.host);
    let rows = "/api/rows?from=0&count=10";
    for (headers, expected) in [
        (vec![&*token], 200),
        (vec![&*token, &own], 200),
        (vec![&*token, "Sec-Fetch-Site: same-origin"], 200),
        (vec![], 403),
        (vec!["x-tracewalk-token: 00000000000000000000000000000000"], 403),
        (vec![&*token, "Origin: http://evil.example"], 403),
        (vec![&*token, "Origin: null"], 403),
        (vec![&*token, "Sec-Fetch-Site: cross-site"], 403),
    ] {
        let answer = served.request(rows, &headers);
        assert_eq!(answer.status, expected, "{headers:?}");
        // No site may read an answer, and no foreign script runs in it.
        assert!(!answer.headers.contains("access-control-allow"), "{}", answer.headers);
        assert!(answer.headers.contains("content-security-policy: default-src 'none'"), "{}", answer.headers);
        let has_data = answer.body.windows(9).any(|part| part == b"\"address\"");
        assert_eq!(has_data, expected == 200, "{headers:?}");
    }
    // Another site's name that resolves to this machine.
    for path in [rows, "/", "/page/page.js", "/nothing"] {
        assert_eq!(
            served.send(&format!("GET {path} HTTP/1.1"), &[&other_host, &token]).status,
            403,
            "{path}"
        );
    }
    // The server also refuses the preflight request.
    let host = format!("Host: {}", served.host);
    let preflight = served.send(
        &format!("OPTIONS {rows} HTTP/1.1"),
        &[&host, "Origin: http://evil.example", "Access-Control-Request-Headers: x-tracewalk-token"],
    );
    assert!(preflight.status >= 400 && !preflight.headers.contains("access-control-allow"));
    // The page itself contains nothing of the capture, nor the token.
    let page = String::from_utf8(served.request("/", &[]).body).unwrap();
    assert!(page.contains("<script src=\"page/page.js\"") && !page.contains(&served.token));
}

#[test]
fn garbage_and_clients_that_vanish_disturb_nobody() {
    let served = Served::of("m3-etmv3");
    let capture = served.ask("capture");
    let token = format!("x-tracewalk-token: {}", served.token);
    for garbage in [&b"\x00\xff\xfe\x01\x02\r\n\r\n"[..], b"GET", b"GET / HTTP/9.9\r\n\r\n", &[b'A'; 100_000]]
    {
        let mut stream = TcpStream::connect(&served.host).unwrap();
        // The server may close the connection before everything is sent.
        let _ = stream.write_all(garbage);
    }
    // Questions whose clients do not wait for an answer.
    for _ in 0..50 {
        let mut stream = TcpStream::connect(&served.host).unwrap();
        let question = format!(
            "GET /api/timeline?from=0&to=99999999&width=4000 HTTP/1.1\r\nHost: {}\r\n{token}\r\n\r\n",
            served.host
        );
        stream.write_all(question.as_bytes()).unwrap();
    }
    for (path, expected) in [
        ("/api/rows?from=-1", 400),
        ("/api/rows?from=99999999999999999999999", 400),
        ("/api/rows?source=7", 404),
        ("/api/rows?from=18446744073709551615&count=18446744073709551615", 200),
        ("/api/here?step=18446744073709551615", 404),
        ("/api/timeline?from=9&to=3&width=0", 200),
        ("/api/timeline?from=0&to=18446744073709551615&width=18446744073709551615", 200),
        ("/api/file?file=/etc/passwd", 200),
        ("/api/file?file=../../../../etc/passwd", 200),
        ("/api/function?address=nothing", 200),
        ("/api/function?address=0xffffffffffffffff", 200),
        ("/api/move?what=nothing", 200),
        ("/api/find?what=%00%ff", 400),
        ("/api/find?what=", 200),
        ("/api/nothing", 404),
        ("/page/..%2f..%2fCargo.toml", 404),
    ] {
        let answer = served.request(path, &[&token]);
        // Invalid UTF-8 may be treated as a text that is not found.
        assert!(
            answer.status == expected || (expected == 400 && answer.status == 200),
            "{path}: {}",
            answer.status
        );
    }
    for file in ["/etc/passwd", "../../../../etc/passwd"] {
        assert!(served.ask(&format!("file?file={file}")).is_null(), "{file}");
    }
    assert_eq!(served.ask("capture"), capture);
}

#[test]
fn two_pages_are_answered_side_by_side() {
    let served = Served::of("m3-etmv3");
    // An answer has at most this number of rows.
    let steps = served.ask("capture")["sources"][0]["steps"].as_u64().unwrap().min(4096);
    let all = served.ask(&format!("rows?from=0&count={steps}"));
    std::thread::scope(|scope| {
        for client in 0..4_u64 {
            let (served, all) = (&served, &all);
            scope.spawn(move || {
                for number in 0..40 {
                    let step = (client * 997 + number * 331) % steps;
                    let rows = served.ask(&format!("rows?from={step}&count=3"));
                    let here = served.ask(&format!("here?step={step}"));
                    let index = usize::try_from(step).unwrap();
                    assert_eq!(rows["rows"][0], all["rows"][index]);
                    assert_eq!(here["row"]["address"], all["rows"][index]["address"]);
                }
            });
        }
    });
}

#[test]
fn an_address_in_use_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let capture = example("m3-etmv3/capture.toml");
    let capture = capture.to_str().unwrap();
    let outcome = run_with_kinds(["view", capture, "--no-open", "--port", &port]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.contains("error: listen: "), "{}", outcome.stderr);
}

/// A silent connection blocks no other.
#[test]
fn a_silent_client_does_not_block() {
    let served = Served::of("m3-etmv3");
    let mut silent = TcpStream::connect(&served.host).unwrap();
    silent.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    assert!(served.ask("capture")["sources"].is_array());
    silent.set_nonblocking(true).unwrap();
    assert!(silent.read(&mut [0; 8]).is_err());
}
