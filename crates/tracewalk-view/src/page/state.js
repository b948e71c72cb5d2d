// The place that all panes show, and the listeners to its changes.
"use strict";

const state = {
  data: null, capture: null, source: 0, step: 0, here: null,
  // The steps that the timeline shows.
  from: 0, to: 1,
  listeners: { place: [], window: [], source: [] },
};

const $ = id => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const show = value => number.format(value);
// For little room: three digits of a large number.
const rounded = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const show_short = (value, large = 1e6) => value < large ? show(value) : rounded.format(value);

function on(what, listener) { state.listeners[what].push(listener); }
function tell(what) { for (const listener of state.listeners[what]) listener(); }

const summary = () => state.capture.sources[state.source];
// The steps that can be shown: all, or the window of an exported page.
const bounds = () => state.data.window?.(state.source) ?? { from: 0, to: summary().steps };

function ask(question, parameters = {}) { return state.data.ask(question, { source: state.source, ...parameters }); }

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") made.className = value;
    else if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter(child => child != null));
  return made;
}

function say(text) { $("said").textContent = text; }

function went(error) {
  if (error?.kind === "busy") return say("The server is busy; try again.");
  if (error?.kind === "token") return say("This page does not know the server's token: open the address that tracewalk printed.");
  if (error?.kind === "nothing") return;
  say("The server has ended: start tracewalk view again.");
  document.body.dataset.ended = "true";
}

let going = 0;
// Goes to a step. Reads its data first, so that all panes change together.
async function go(step, { keep = false } = {}) {
  const { from, to } = bounds();
  const wanted = Math.max(from, Math.min(to - 1, step));
  const mine = ++going;
  try {
    const here = await ask("here", { step: wanted });
    if (mine !== going) return;
    state.step = wanted;
    state.here = here;
    if (!keep) follow();
    write_link();
    tell("place");
  } catch (error) { went(error); }
}

// Shifts the timeline if the place is outside.
function follow() {
  const width = state.to - state.from;
  if (state.step >= state.from + width * 0.02 && state.step < state.to - width * 0.02) return;
  if (state.step >= state.from && state.step < state.to && (state.from === bounds().from || state.to === bounds().to)) return;
  set_window(state.step - width / 2, state.step + width / 2);
}

function set_window(from, to) {
  const all = bounds();
  const width = Math.max(16, Math.min(to - from, all.to - all.from));
  const start = Math.max(all.from, Math.min(Math.round(from), all.to - width));
  state.from = start;
  state.to = Math.min(all.to, Math.round(start + width));
  tell("window");
}

function zoom(factor, around = state.step) {
  const width = state.to - state.from;
  const part = Math.max(0, Math.min(1, (around - state.from) / width));
  set_window(around - width * factor * part, around + width * factor * (1 - part));
  write_link();
}

async function select(source, step) {
  state.source = source;
  const all = bounds();
  [state.from, state.to] = [all.from, Math.max(all.to, all.from + 1)];
  tell("source");
  tell("window");
  await go(step ?? all.from, { keep: true });
}

async function move(what, back) {
  say("");
  let [step, began] = [state.step, state.step];
  try {
    for (;;) {
      const answer = await ask("move", { step, what, back: !!back, from: began, count: step === began ? 0 : 1 });
      if (answer.step != null) return await go(answer.step);
      if (answer.unfinished == null) return say(back ? `No ${what} before.` : `No ${what} after.`);
      step = answer.unfinished;
      say(`Looking for a ${what} … ${show(step)}`);
    }
  } catch (error) { went(error); }
}

async function find(back) {
  const what = $("what").value.trim();
  if (!what) return;
  say("");
  let step = state.step;
  try {
    for (;;) {
      const answer = await ask("find", { step, what, back: !!back });
      if (answer.step != null) return await go(answer.step);
      if (answer.unknown != null) return say(`Nothing is called “${answer.unknown}”.`);
      if (answer.unfinished == null) return say(back ? `No “${what}” before.` : `No “${what}” after.`);
      step = answer.unfinished;
      say(`Looking for “${what}” … ${show(step)}`);
    }
  } catch (error) { went(error); }
}

// The link has the place, and the window of the timeline.
function read_link() { return new URLSearchParams(location.hash.slice(1)); }

function write_link() {
  const link = new URLSearchParams();
  const token = state.data.token;
  if (token) link.set("token", token);
  link.set("source", state.source);
  link.set("step", state.step);
  link.set("window", `${state.from}-${state.to}`);
  history.replaceState(null, "", `#${link}`);
}

async function follow_link() {
  const link = read_link();
  const source = Number(link.get("source") ?? state.capture.source);
  const step = Number(link.get("step") ?? state.capture.step);
  if (!state.capture.sources[source] || !Number.isFinite(step)) return;
  const [from, to] = (link.get("window") ?? "").split("-").map(Number);
  await select(source, step);
  if (to > from) set_window(from, to);
}
