// Sources of answers: the server of the page, or the data inside an exported page.
"use strict";

class Remote {
  constructor(token) { this.token = token; this.known = new Map(); }

  // Repeats a question until the server has counted the answer.
  async get(question, parameters = {}) {
    for (;;) {
      try { return await this.once(question, parameters); } catch (error) { if (error.kind !== "not_ready") throw error; }
      await new Promise(done => setTimeout(done, 250));
    }
  }

  async once(question, parameters) {
    const answer = await fetch(`api/${question}?${new URLSearchParams(parameters)}`, { headers: { "x-tracewalk-token": this.token }, cache: "no-store" });
    const body = await answer.json();
    if (answer.ok) return body;
    throw Object.assign(new Error(body.error), { status: answer.status, kind: body.error });
  }

  // Asks each question only once, because the recording does not change.
  ask(question, parameters = {}) {
    const key = question + JSON.stringify(parameters);
    if (!this.known.has(key)) {
      if (this.known.size > 400) this.known.delete(this.known.keys().next().value);
      const answer = this.get(question, parameters);
      answer.catch(() => this.known.delete(key));
      this.known.set(key, answer);
    }
    return this.known.get(key);
  }

  // Drops all known answers: later ones may have more.
  forget() { this.known.clear(); }

  // Waits until the page can be shown ("ready"), or everything is counted ("counted").
  async until(what, show) {
    for (;;) {
      const status = await this.once("status", {});
      if (status[what]) return;
      show(status.all ? status.done / status.all : 0, status);
      await new Promise(done => setTimeout(done, 100));
    }
  }
}

// Answers from the window inside an exported page.
class Inside {
  constructor(data) { this.data = data; }

  static async read(text) {
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Inside(JSON.parse(await new Response(stream).text()));
  }

  async until() {}

  async ask(question, query = {}) {
    if (question === "capture") return this.data.capture;
    const part = this.data.sources[query.source ?? 0];
    const answer = this[question]?.(part, query);
    if (answer == null) throw Object.assign(new Error("nothing"), { kind: "nothing" });
    return answer;
  }

  window(source) { const { from, to } = this.data.sources[source]; return { from, to }; }

  rows(part, { from, count }) { return { rows: part.rows.slice(Math.max(0, from - part.from), Math.max(0, from + count - part.from)) }; }

  frames(part, step) {
    return part.timeline.bars.filter(bar => bar[1] <= step && step < bar[2]).sort((a, b) => b[0] - a[0])
      .map(([, began, , name, exception]) => ({ function: part.timeline.names[name], kind: exception ? "exception" : "call", began }));
  }

  here(part, { step }) {
    const row = part.rows[step - part.from];
    return row && { row, frames: this.frames(part, step), task: "", before: { instructions: row.number } };
  }

  timeline(part, { from, to }) {
    const inside = list => list.filter(mark => mark[0] >= from && mark[0] < to);
    const { names, bars, exceptions, gaps, texts, tasks } = part.timeline;
    return { from, to, exact: true, names, exceptions: inside(exceptions), gaps: inside(gaps), texts: inside(texts), tasks,
      bars: bars.filter(bar => bar[2] > from && bar[1] < to) };
  }

  cores(part, { from, to }) {
    const { ruler, lanes } = part.cores;
    return { ruler, lanes: lanes.map(lane => ({ ...lane, bars: lane.bars.filter(bar => bar[1] > from && bar[0] < to) })) };
  }

  costs(part) { return part.costs; }
  texts(part) { return part.texts; }
  file(part, { file }) { return this.data.files[file]; }

  function(part, { step, address }) {
    const at = Number(address ?? part.rows[step - part.from]?.address ?? NaN);
    return part.functions.find(function_ => Number(function_.start) <= at && at < Number(function_.end));
  }

  move(part, { step, what, back }) {
    const key = { line: row => row.address && `${row.function} ${row.file} ${row.line}`, function: row => row.address && (row.function ?? row.address) }[what];
    if (what === "call") {
      const began = this.frames(part, step)[0]?.began ?? 0;
      return began > part.from ? this.move(part, { step: began, what: "instruction", back: true }) : { end: true };
    }
    const old = key?.(part.rows[step - part.from] ?? {});
    return this.look(part, step, back, row => key ? row.kind === "gap" || (key(row) && key(row) !== old)
      : what === "instruction" ? row.kind !== "event" : row.kind === what);
  }

  find(part, { step, what, back }) {
    const wanted = what.trim().toLowerCase();
    if (/^#\d+$/.test(wanted)) return { step: Number(wanted.slice(1)) };
    if (/^\d+$/.test(wanted)) return this.look(part, part.from - 1, false, row => row.number === Number(wanted));
    if (wanted.startsWith("exception:")) return this.look(part, step, back, row => row.kind === "exception" && row.text.toLowerCase().includes(wanted.slice(10)));
    if (wanted.startsWith("0x")) return this.look(part, step, back, row => Number(row.address) === Number(wanted));
    const line = /^(.+):(\d+)$/.exec(wanted);
    if (line) {
      const is = row => row?.line === Number(line[2]) && row.file.toLowerCase().endsWith(line[1]);
      return this.look(part, step, back, row => is(row) && !is(part.rows[row.step - part.from - 1]));
    }
    if (part.rows.some(row => row.function?.toLowerCase().includes(wanted))) {
      return this.look(part, step, back, row => row.offset === 0 && row.function.toLowerCase().includes(wanted));
    }
    const text = part.texts.texts.filter(([at]) => back ? at < step : at > step).filter(([, , said]) => said.toLowerCase().includes(wanted));
    return text.length ? { step: text.at(back ? -1 : 0)[0] } : { unknown: what };
  }

  look(part, step, back, is) {
    for (let at = step - part.from + (back ? -1 : 1); at >= 0 && at < part.rows.length; at += back ? -1 : 1) {
      if (is(part.rows[at])) return { step: part.rows[at].step };
    }
    return { end: true };
  }
}
