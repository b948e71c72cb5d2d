// The timeline: functions by depth of call; tasks, exceptions, gaps and texts above them.
"use strict";

const ROW = 18, LANE = 14, GAP = 3;
const timeline = { answer: null, all: null, cores: null, boxes: [], asked: 0, drag: null };

const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The same function has the same colour everywhere.
function hue(name) {
  let hash = 2166136261;
  for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), 16777619);
  return (hash >>> 0) % 360;
}

function fill(name, exception) {
  if (exception) return style("--exception-bar");
  const dark = style("--is-dark") === "1";
  return `hsl(${hue(name)} ${dark ? "34% 36%" : "56% 80%"})`;
}

function canvas(id, height) {
  const target = $(id), width = target.clientWidth, scale = window.devicePixelRatio || 1;
  target.style.height = `${height}px`;
  target.width = Math.round(width * scale);
  target.height = Math.round(height * scale);
  const context = target.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = `11.5px ${style("--sans")}`;
  context.textBaseline = "middle";
  return { context, width, height };
}

async function load_timeline() {
  const mine = ++timeline.asked;
  const width = Math.max(100, $("lanes").clientWidth);
  try {
    const answer = await ask("timeline", { from: state.from, to: state.to, width });
    if (mine !== timeline.asked) return;
    timeline.answer = answer;
    draw_timeline();
    if (state.capture.sources.length < 2) return;
    const cores = await ask("cores", { from: state.from, to: state.to, width });
    if (mine !== timeline.asked) return;
    timeline.cores = cores;
    draw_timeline();
  } catch (error) { went(error); }
}

async function load_strip() {
  const { from, to } = bounds();
  try {
    timeline.all = await ask("timeline", { from, to, width: Math.max(100, $("strip").clientWidth) });
    draw_strip();
  } catch (error) { went(error); }
}

function draw_strip() {
  const height = 34, answer = timeline.all;
  const { context, width } = canvas("strip", height);
  if (!answer) return;
  const { from, to } = bounds();
  const x = step => (step - from) / Math.max(1, to - from) * width;
  const deepest = Math.max(1, ...answer.bars.map(bar => bar[0] + 1));
  const unit = (height - 4) / deepest;
  for (const [depth, start, end, name, exception] of answer.bars) {
    context.fillStyle = name < 0 ? style("--many") : fill(answer.names[name], exception);
    context.fillRect(x(start), height - 2 - (depth + 1) * unit, Math.max(0.75, x(end) - x(start)), Math.max(1, unit));
  }
  for (const [at] of answer.gaps) { context.fillStyle = style("--bad"); context.fillRect(x(at), 0, 1.5, height); }
  context.fillStyle = style("--veil");
  context.fillRect(0, 0, x(state.from), height);
  context.fillRect(x(state.to), 0, width, height);
  context.strokeStyle = style("--link");
  context.lineWidth = 1.5;
  context.strokeRect(x(state.from) + 0.75, 0.75, Math.max(3, x(state.to) - x(state.from) - 1.5), height - 1.5);
  context.fillStyle = style("--cursor");
  context.fillRect(x(state.step) - 0.75, 0, 1.5, height);
}

function ticks(from, to, width) {
  const least = (to - from) / Math.max(2, width / 110);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  const unit = [1, 2, 5, 10].map(times => times * power).find(step => step >= least) ?? power * 10;
  const found = [];
  for (let at = Math.ceil(from / unit) * unit; at < to; at += unit) found.push(at);
  return found;
}

function draw_timeline() {
  const answer = timeline.answer;
  if (!answer) return;
  const lanes = [];
  if (answer.tasks.length) lanes.push(["tasks", answer.tasks]);
  if (answer.exceptions.length) lanes.push(["exceptions", answer.exceptions]);
  if (answer.texts.length) lanes.push(["ITM text", answer.texts]);
  if (answer.gaps.length) lanes.push(["gaps", answer.gaps]);
  const cores = timeline.cores?.lanes ?? [];
  const deepest = Math.max(1, ...answer.bars.map(bar => bar[0] + 1));
  const top = 20, cores_top = top + lanes.length * (LANE + GAP), bars_top = cores_top + cores.length * (LANE + GAP) + 4;
  const room = Math.max(140, Math.min(window.innerHeight * 0.34, 340));
  const row = Math.max(5, Math.min(ROW, (room - bars_top) / deepest));
  const { context, width, height } = canvas("lanes", Math.ceil(bars_top + deepest * row + 4));
  const x = step => (step - state.from) / Math.max(1, state.to - state.from) * width;
  timeline.boxes = [];
  context.fillStyle = style("--quiet");
  for (const at of ticks(state.from, state.to, width)) {
    context.globalAlpha = 0.35;
    context.fillRect(x(at), top - 4, 1, height);
    context.globalAlpha = 1;
    context.fillText(show(at), x(at) + 4, 8);
  }
  lanes.forEach(([kind, marks], index) => draw_lane(context, kind, marks, top + index * (LANE + GAP), x, width));
  cores.forEach((core, index) => draw_core(context, core, cores_top + index * (LANE + GAP), x, width));
  for (const [depth, start, end, name, exception] of answer.bars) {
    const [left, right] = [Math.max(-2, x(start)), Math.min(width + 2, x(end))];
    const wide = Math.max(0.8, right - left), y = bars_top + depth * row;
    const label = name < 0 ? "several short calls" : answer.names[name];
    context.fillStyle = name < 0 ? style("--many") : fill(label, exception);
    context.fillRect(left, y, Math.max(0.8, wide - (wide > 3 ? 1 : 0)), row - 1);
    timeline.boxes.push([left, y, wide, row, `${label} · ${show(end - start)} steps from ${show(start)}`, start]);
    if (wide > 26 && row >= 11 && name >= 0) write_label(context, label, Math.max(0, left) + 4, y + row / 2 - 0.5, right - Math.max(0, left) - 8, exception);
  }
  context.fillStyle = style("--cursor");
  context.fillRect(x(state.step) - 1, 0, 2, height);
  const followed = summary().followed ?? summary().steps;
  const notice = followed < state.to ? ` · calls are followed up to step ${show(followed)}` : answer.exact ? "" : " · each bar shows the function at its beginning; zoom in for all";
  const beside = timeline.cores?.ruler && cores.length ? ` · other sources by ${timeline.cores.ruler}` : "";
  $("range").textContent = `steps ${show(state.from)} to ${show(state.to)} of ${show(summary().steps)}${notice}${beside}`;
  $("lanes").dataset.cores = cores.length;
  $("lanes").dataset.exact = answer.exact;
  $("lanes").dataset.bars = answer.bars.length;
}

function write_label(context, text, x, y, room, exception) {
  context.fillStyle = exception ? style("--exception-ink") : style("--bar-ink");
  let label = text;
  if (context.measureText(label).width > room) {
    const letters = Math.floor(room / 6.2);
    if (letters < 3) return;
    label = `${text.slice(0, letters - 1)}…`;
  }
  if (context.measureText(label).width <= room + 3) context.fillText(label, x, y);
}

function draw_lane(context, kind, marks, y, x, width) {
  const colours = { exceptions: "--exception", gaps: "--bad", "ITM text": "--text-mark", tasks: "--task" };
  for (const mark of marks) {
    if (kind === "tasks") {
      const [start, end, name] = mark, left = Math.max(0, x(start)), wide = Math.min(width, x(end)) - left;
      context.fillStyle = `hsl(${hue(name)} 45% ${style("--is-dark") === "1" ? 32 : 84}%)`;
      context.fillRect(left, y, Math.max(1, wide - 1), LANE);
      timeline.boxes.push([left, y, wide, LANE, `${name} · ${show(end - start)} steps`, start]);
      if (wide > 40) write_label(context, name, left + 4, y + LANE / 2, wide - 8);
      continue;
    }
    const [at, count, text] = mark;
    context.fillStyle = style(colours[kind]);
    context.beginPath();
    context.roundRect(x(at) - 1.5, y + 1, 3, LANE - 2, 1.5);
    context.fill();
    const what = count > 1 ? `${show(count)} ${kind}` : text || kind;
    timeline.boxes.push([x(at) - 4, y, 8, LANE, `${what} at ${show(at)}`, at]);
  }
  if (kind !== "tasks") write_kind(context, kind, y);
}

// The lane of another source: the function that ran there at the beginning of each part.
function draw_core(context, core, y, x, width) {
  for (const [from, to, name, step] of core.bars) {
    const left = Math.max(0, x(from)), wide = Math.min(width, x(to)) - left;
    context.fillStyle = name == null ? style("--bad") : fill(name, false);
    context.fillRect(left, y, Math.max(0.8, wide - (wide > 3 ? 1 : 0)), LANE);
    const what = name ?? "gap";
    const box = [left, y, wide, LANE, `${core.name} · ${what} at its step ${show(step)}`, from];
    box.source = core.source;
    box.step = step;
    timeline.boxes.push(box);
    if (wide > 40) write_label(context, what, left + 4, y + LANE / 2, wide - 8, name == null);
  }
  write_kind(context, short_name(core.source), y);
}

// The core's name, unless another source has the same.
function short_name(source) {
  const names = state.capture.sources.map(other => other.name.split(",")[0]);
  return names.filter(name => name === names[source]).length > 1 ? state.capture.sources[source].name : names[source];
}

function write_kind(context, kind, y) {
  context.fillStyle = style("--paper");
  context.globalAlpha = 0.85;
  context.fillRect(0, y, context.measureText(kind).width + 8, LANE);
  context.globalAlpha = 1;
  context.fillStyle = style("--quiet");
  context.fillText(kind, 3, y + LANE / 2 + 0.5);
}

function box_at(event) {
  const [x, y] = [event.offsetX, event.offsetY];
  return timeline.boxes.findLast(([left, top, wide, high]) => x >= left && x < left + Math.max(2, wide) && y >= top && y < top + high);
}

const step_at = event => state.from + event.offsetX / $("lanes").clientWidth * (state.to - state.from);

function listen_timeline() {
  const lanes = $("lanes"), strip = $("strip");
  lanes.addEventListener("wheel", event => {
    event.preventDefault();
    const width = state.to - state.from;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const by = (event.deltaX || event.deltaY) / lanes.clientWidth * width;
      return set_window(state.from + by, state.to + by);
    }
    zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 240))), step_at(event));
  }, { passive: false });
  lanes.addEventListener("pointerdown", event => {
    timeline.drag = { x: event.offsetX, from: state.from, to: state.to, moved: false };
    lanes.setPointerCapture(event.pointerId);
  });
  lanes.addEventListener("pointermove", event => {
    $("hover").textContent = box_at(event)?.[4] ?? "";
    const drag = timeline.drag;
    if (!drag) return;
    drag.moved ||= Math.abs(event.offsetX - drag.x) > 4;
    const by = (drag.x - event.offsetX) / lanes.clientWidth * (drag.to - drag.from);
    if (drag.moved) set_window(drag.from + by, drag.to + by);
  });
  lanes.addEventListener("pointerup", event => {
    const drag = timeline.drag;
    timeline.drag = null;
    if (drag?.moved) return;
    const box = box_at(event);
    if (box?.source != null) return switch_to(box.source, box.step);
    go(Math.floor(step_at(event)), { keep: true });
  });
  lanes.addEventListener("dblclick", event => {
    const box = box_at(event);
    if (box) zoom(1 / 4, step_at(event));
  });
  const center = event => {
    const { from, to } = bounds(), width = state.to - state.from;
    const at = from + event.offsetX / strip.clientWidth * (to - from);
    set_window(at - width / 2, at + width / 2);
  };
  strip.addEventListener("pointerdown", event => { strip.setPointerCapture(event.pointerId); center(event); });
  strip.addEventListener("pointermove", event => { if (event.buttons & 1) center(event); });
  let waiting = 0;
  on("window", () => { draw_strip(); clearTimeout(waiting); waiting = setTimeout(load_timeline, 25); });
  on("place", () => { draw_strip(); draw_timeline(); });
  on("source", () => { timeline.cores = null; load_strip(); });
  new ResizeObserver(() => { draw_strip(); draw_timeline(); }).observe($("time"));
}
