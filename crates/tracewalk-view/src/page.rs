//! The page's own files, which are in the binary: nothing is fetched from elsewhere.

/// The page as it is served.
pub(crate) const HTML: &str = include_str!("page/page.html");
/// The page's scripts, in the order in which they are loaded.
pub(crate) const SCRIPTS: [(&str, &str); 6] = [
    ("data.js", include_str!("page/data.js")),
    ("state.js", include_str!("page/state.js")),
    ("timeline.js", include_str!("page/timeline.js")),
    ("list.js", include_str!("page/list.js")),
    ("panes.js", include_str!("page/panes.js")),
    ("page.js", include_str!("page/page.js")),
];
/// The page's style sheet.
pub(crate) const STYLE: &str = include_str!("page/page.css");

/// The permissions of the served page: it may only send requests to the server that it comes from.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                                 base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The permissions of the exported page: it may only run its own scripts.
pub(crate) const EXPORTED_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
                                          base-uri 'none'; form-action 'none'";

/// The places for links to the page's files, and for the data of an exported page.
pub(crate) const HEAD: (&str, &str) = ("<!-- head -->", "<!-- data -->");
