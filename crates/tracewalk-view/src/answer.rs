//! Answers the page's questions.

use std::sync::OnceLock;

use serde_json::{Value, json};
use tracewalk_session::At;

use crate::cores;
use crate::figures::Figures;
use crate::find;
use crate::query::{Query, Refusal};
use crate::recording::Recording;
use crate::source;
use crate::timeline;
use crate::values;

/// A capture that answers questions.
pub(crate) struct View<'i> {
    pub(crate) name: String,
    pub(crate) recordings: Vec<Recording<'i>>,
    /// The figures, as soon as they are counted.
    pub(crate) figures: &'i OnceLock<Figures>,
    pub(crate) at: At,
}

impl View<'_> {
    /// Answers a question.
    pub(crate) fn answer(&mut self, question: &str, query: &Query) -> Result<Value, Refusal> {
        self.recordings.iter_mut().for_each(Recording::refresh);
        if question == "capture" {
            return Ok(self.capture());
        }
        if question == "cores" {
            return Ok(cores::of(&mut self.recordings, query));
        }
        let recording = self.recordings.get_mut(query.source).ok_or(Refusal::Nothing)?;
        let is_whole = recording.overview.is_whole;
        let figures = || self.figures.get().ok_or(Refusal::Later);
        match question {
            "rows" => Ok(recording.rows(query.from, query.count)),
            "here" => recording.here(query.step).ok_or(Refusal::Nothing),
            "timeline" => Ok(timeline::of(recording, query.from, query.to, query.width)),
            "move" | "find" => {
                let come = if question == "move" {
                    find::go(recording, query)
                } else {
                    find::find(recording, query)
                };
                // Gaps, calls and texts are known as far as the overview reaches.
                let is_known = is_whole || come.get("step").is_some() || come.get("unfinished").is_some();
                if is_known { Ok(come) } else { Err(Refusal::Later) }
            }
            // Absent things are null: a request for them is not an error.
            "function" => Ok(source::function(recording, &figures()?.counts, query).unwrap_or_default()),
            "file" => Ok(source::file(&figures()?.counts, query).unwrap_or_default()),
            "costs" => {
                let costs = figures()?.costs.get(query.source).ok_or(Refusal::Nothing)?;
                serde_json::to_value(costs).map_err(|_| Refusal::Nothing)
            }
            "texts" => Ok(recording.texts()),
            "values" => Ok(values::of(recording, query.step).unwrap_or_default()),
            "writer" => values::writer(recording, query).ok_or(Refusal::Nothing),
            _ => Err(Refusal::Question),
        }
    }

    /// The contents of the capture.
    fn capture(&self) -> Value {
        let first = self.recordings.iter().position(|recording| recording.totals().steps > 0).unwrap_or(0);
        let steps = self.recordings.get(first).map_or(0, |recording| recording.totals().steps);
        let sources = self.recordings.iter().map(Recording::summary).collect::<Vec<_>>();
        json!({
            "name": self.name,
            "version": env!("CARGO_PKG_VERSION"),
            "sources": sources,
            "source": first,
            "step": self.at.step(steps),
        })
    }
}
