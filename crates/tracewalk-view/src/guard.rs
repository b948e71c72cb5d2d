//! Access control: only the page that this server sent, on this machine, gets answers.
//!
//! Another site that is open in the same browser can send requests to this server. But the site does not know the
//! token; the browser states the site in its requests (`Origin`, `Sec-Fetch-Site`); and if the site's own name resolves
//! to this machine, `Host` has that name.

use std::net::SocketAddr;

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};

/// The header with the token. No form and no simple request of another site can set it.
pub(crate) const TOKEN: &str = "x-tracewalk-token";

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// The request is for another server's name.
    Host,
    /// Another site made it.
    Origin,
    /// The token is missing or wrong.
    Token,
}

impl Denial {
    /// A short name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Origin => "origin",
            Self::Token => "token",
        }
    }
}

/// Decides which requests a server answers.
#[derive(Debug)]
pub(crate) struct Guard {
    hosts: [String; 2],
    token: String,
}

impl Guard {
    pub(crate) fn new(address: SocketAddr, token: String) -> Self {
        Self { hosts: [address.to_string(), format!("localhost:{}", address.port())], token }
    }

    /// Whether a request may get the page itself, which contains nothing of the capture.
    pub(crate) fn page(&self, headers: &HeaderMap) -> Result<(), Denial> {
        let host = one(headers, HOST.as_str()).filter(|host| self.hosts.iter().any(|own| own == host));
        host.map(|_| ()).ok_or(Denial::Host)
    }

    /// Whether a request may get answers.
    pub(crate) fn answers(&self, headers: &HeaderMap) -> Result<(), Denial> {
        self.page(headers)?;
        let is_own = |origin: &str| {
            let host = origin.strip_prefix("http://");
            host.is_some_and(|host| self.hosts.iter().any(|own| own == host))
        };
        if headers.contains_key(ORIGIN) && !one(headers, ORIGIN.as_str()).is_some_and(is_own) {
            return Err(Denial::Origin);
        }
        let site = "sec-fetch-site";
        let is_same = |site: &str| matches!(site, "same-origin" | "none");
        if headers.contains_key(site) && !one(headers, site).is_some_and(is_same) {
            return Err(Denial::Origin);
        }
        let token = one(headers, TOKEN).ok_or(Denial::Token)?;
        if is_equal(token.as_bytes(), self.token.as_bytes()) { Ok(()) } else { Err(Denial::Token) }
    }
}

/// The only value of a header.
fn one<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

/// Whether two texts are equal, in constant time.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other));
    one.len() == other.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(headers: &[(&str, &str)]) -> Result<(), Denial> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = name.parse::<axum::http::HeaderName>().unwrap();
            map.append(name, value.parse().unwrap());
        }
        Guard::new("127.0.0.1:4000".parse().unwrap(), "secret".to_owned()).answers(&map)
    }

    #[test]
    fn only_the_own_page_is_answered() {
        let host = ("host", "127.0.0.1:4000");
        let token = (TOKEN, "secret");
        let own = ("origin", "http://127.0.0.1:4000");
        for (headers, expected) in [
            (vec![host, token], Ok(())),
            (vec![("host", "localhost:4000"), token, own], Ok(())),
            (vec![host, token, ("sec-fetch-site", "same-origin")], Ok(())),
            (vec![token], Err(Denial::Host)),
            (vec![("host", "evil.example:4000"), token], Err(Denial::Host)),
            (vec![("host", "127.0.0.1:4001"), token], Err(Denial::Host)),
            (vec![host, host, token], Err(Denial::Host)),
            (vec![host, token, ("origin", "http://evil.example")], Err(Denial::Origin)),
            (vec![host, token, ("origin", "http://127.0.0.1:4001")], Err(Denial::Origin)),
            (vec![host, token, ("origin", "null")], Err(Denial::Origin)),
            (vec![host, token, ("sec-fetch-site", "cross-site")], Err(Denial::Origin)),
            (vec![host], Err(Denial::Token)),
            (vec![host, (TOKEN, "secreT")], Err(Denial::Token)),
            (vec![host, (TOKEN, "secret1")], Err(Denial::Token)),
            (vec![host, token, token], Err(Denial::Token)),
        ] {
            assert_eq!(asked(&headers), expected, "{headers:?}");
        }
    }
}
