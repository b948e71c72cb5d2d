//! The page's own files. They stand in the binary: nothing is fetched from elsewhere.

/// The page as it is served.
pub(crate) const HTML: &str = include_str!("page/page.html");
/// What makes it go.
pub(crate) const SCRIPTS: [(&str, &str); 6] = [
    ("data.js", include_str!("page/data.js")),
    ("state.js", include_str!("page/state.js")),
    ("timeline.js", include_str!("page/timeline.js")),
    ("list.js", include_str!("page/list.js")),
    ("panes.js", include_str!("page/panes.js")),
    ("page.js", include_str!("page/page.js")),
];
/// What it looks like.
pub(crate) const STYLE: &str = include_str!("page/page.css");

/// What the served page may do: nothing but ask the server that it comes from.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                                 base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What the exported page may do: nothing but run what stands in it.
pub(crate) const EXPORTED_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
                                          base-uri 'none'; form-action 'none'";

/// Where the page loads its files, and where the exported one has them.
pub(crate) const HEAD: (&str, &str) = ("<!-- head -->", "<!-- data -->");
