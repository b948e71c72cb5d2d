//! The page as one file, with the data of a window inside.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::deflate::compress_to_vec;
use serde_json::{Value, json};
use tracewalk_session::{At, Observer, Session};

use crate::answer::View;
use crate::coming::{Coming, Watching};
use crate::cores;
use crate::error::ViewError;
use crate::figures::Figures;
use crate::names::address;
use crate::options::Options;
use crate::page::{EXPORTED_POLICY, HEAD, HTML, SCRIPTS, STYLE};
use crate::prepare::prepare;
use crate::query::Query;
use crate::recording::Recording;
use crate::shown::Row;
use crate::source::{file_named, function_at};
use crate::timeline;

/// The part of each source to write.
#[derive(Clone, Copy, Debug)]
pub struct Excerpt {
    /// The step in the middle, which is shown first.
    pub at: At,
    /// The number of steps of each source.
    pub steps: u64,
}

/// The most steps that are written: a browser has to hold them.
const MOST_STEPS: u64 = 1 << 20;
/// The level, of 10. Higher levels take much longer and gain little.
const COMPRESSION: u8 = 6;

impl Excerpt {
    /// The steps to write, of `steps`: first and last.
    fn of(self, steps: u64) -> (u64, u64) {
        let wanted = self.steps.min(MOST_STEPS).min(steps);
        let from = self.at.step(steps).saturating_sub(wanted / 2).min(steps - wanted);
        (from, from + wanted)
    }
}

/// Writes a window of a capture as a self-contained page.
///
/// # Errors
///
/// If the capture contains no execution, a source cannot be followed, or the page cannot be written.
pub fn write_page(
    session: &mut Session,
    options: &Options<'_>,
    excerpt: Excerpt,
    observer: &dyn Observer,
    out: &mut dyn Write,
) -> Result<(), ViewError> {
    let coming = Coming::default();
    let mut prepared = prepare(session, options, &coming, observer)?;
    let uncounted = prepared.take_uncounted();
    let session = &*session;
    let indexes = prepared.sources.iter().map(|source| source.index(session, options, &coming));
    let indexes = indexes.collect::<Vec<_>>();
    if indexes.iter().all(|index| index.totals().steps == 0) {
        return Err(ViewError::Nothing);
    }
    let watching = Watching { observer, coming: &coming };
    let figures = OnceLock::from(prepared.finish(uncounted, session, options, &watching)?);
    let recordings = prepared.sources.iter().zip(&indexes);
    let recordings = recordings.map(|(source, index)| Recording::new(source, index)).collect();
    let mut view = View { name: options.name.clone(), recordings, figures: &figures, at: excerpt.at };
    let data = data(&mut view, excerpt);
    Ok(write(&options.name, &data, out)?)
}

fn data(view: &mut View<'_>, excerpt: Excerpt) -> Value {
    let capture = view.answer("capture", &Query::default()).unwrap_or_default();
    let Some(Figures { costs, counts }) = view.figures.get() else { return Value::Null };
    let (mut sources, mut files) = (Vec::new(), BTreeSet::new());
    for (source, costs) in costs.iter().enumerate() {
        let window = view.recordings.get(source).map(|recording| excerpt.of(recording.totals().steps));
        let Some((from, to)) = window else { continue };
        let cores =
            cores::of(&mut view.recordings, &Query { source, from, to, width: u64::MAX, ..Query::default() });
        let Some(recording) = view.recordings.get_mut(source) else { continue };
        let mut rows = Vec::<Row>::new();
        recording.each_row(from, to - from, &mut |row| rows.push(row));
        files.extend(rows.iter().filter_map(|row| row.file.as_deref()).map(str::to_owned));
        let mut functions = BTreeMap::<String, Value>::new();
        let mut known = BTreeSet::new();
        for row in &rows {
            let Some(at) = row.address.as_deref().filter(|at| known.insert((*at).to_owned())) else {
                continue;
            };
            let Some(here) = address(at) else { continue };
            let found = function_at(here, &recording.code, counts);
            let Some(function) = found else { continue };
            for instruction in function["instructions"].as_array().into_iter().flatten() {
                known.extend(instruction["address"].as_str().map(str::to_owned));
                files.extend(instruction["file"].as_str().map(str::to_owned));
            }
            functions.insert(function["start"].as_str().unwrap_or_default().to_owned(), function);
        }
        sources.push(json!({
            "from": from,
            "to": to,
            "rows": rows,
            "timeline": timeline::of(recording, from, to, u64::MAX),
            "cores": cores,
            "costs": costs,
            "texts": recording.texts(),
            "functions": functions.into_values().collect::<Vec<_>>(),
        }));
    }
    let files = files.into_iter().filter_map(|name| Some((file_named(&name, counts)?, name)));
    let files = files.map(|(file, name)| (name, file)).collect::<serde_json::Map<_, _>>();
    json!({ "capture": capture, "sources": sources, "files": files })
}

fn write(name: &str, data: &Value, out: &mut dyn Write) -> io::Result<()> {
    let data = STANDARD.encode(compress_to_vec(&serde_json::to_vec(data)?, COMPRESSION));
    let policy = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{EXPORTED_POLICY}\">\n");
    let head = format!("{policy}<style>\n{STYLE}</style>\n");
    // Base64 has no character with a meaning in HTML.
    let data = format!("<script type=\"application/octet-stream\" id=\"data\">{data}</script>\n");
    let scripts = SCRIPTS.iter().map(|(_, script)| format!("<script>\n{script}</script>\n"));
    let body = std::iter::once(data).chain(scripts).collect::<String>();
    let title = format!("<title>{} · tracewalk</title>", escaped(name));
    let page = HTML.replace("<title>tracewalk</title>", &title).replace(HEAD.0, &head);
    let (before, after) = page.split_once(HEAD.1).unwrap_or((&page, ""));
    out.write_all(before.as_bytes())?;
    out.write_all(body.as_bytes())?;
    out.write_all(after.as_bytes())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
