// Source, instructions of the function, call stack, costs and texts.
"use strict";

const panes = { file: null, function: null, asked: 0, costs: 0, lines: new Map(), code: new Map(), trail: [] };

// The rows of instructions shortly before and after the cursor.
async function trail() {
  const from = Math.max(bounds().from, state.step - 64);
  const { rows } = await ask("rows", { from, count: 128 });
  return rows.filter(row => row.address);
}

async function load_panes() {
  const mine = ++panes.asked, { row } = state.here;
  const near = await trail().catch(() => []);
  const at = row.address ? row : near.findLast(other => other.step < state.step);
  if (!document.body.dataset.counted && !panes.file && !panes.function) say_counting(at);
  const [file, code] = await Promise.all([
    at?.file ? ask("file", { file: at.file }).catch(() => null) : null,
    at ? ask("function", { step: at.step }).catch(() => null) : null,
  ]);
  if (mine !== panes.asked) return;
  draw_file(at, file);
  draw_code(at, code);
  mark(at, near, !row.address);
}

// Source and instructions are shown with their counts, which are not ready yet.
function say_counting(at) {
  for (const box of [$("lines"), $("instructions")]) box.replaceChildren(element("p", { class: "empty" }, "Counting what ran …"));
  $("file").textContent = at?.file ?? "";
  $("function").textContent = at?.function ?? "";
}

function count(value, state_) {
  const made = element("span", { class: `count ${state_ ?? ""}` }, value == null ? "" : show_short(value));
  const meaning = { covered: "ran", partly: "ran in part", skipped: "its conditions failed", unreached: "never ran", unrecorded: "unknown from the trace" }[state_];
  made.title = [value >= 1e6 ? show(value) : "", meaning ?? ""].filter(part => part).join(": ");
  return made;
}

function draw_file(at, file) {
  const name = file?.name ?? null;
  if (panes.file === name && name) return;
  panes.file = name;
  panes.lines = new Map();
  $("file").textContent = at?.file ?? "";
  $("file").title = at?.file ?? "";
  if (!file) return $("lines").replaceChildren(element("p", { class: "empty" }, at?.file ? "This file is not in the program's coverage." : "No line of the source is known here."));
  const counts = new Map(file.counts.map(([line, times, of]) => [line, [times, of]]));
  if (!file.lines) $("lines").replaceChildren(element("p", { class: "empty" }, "The source file is not at hand: name its folder with --src-dir. Its lines that have code:"));
  else $("lines").replaceChildren();
  const texts = file.lines ?? [];
  const numbers = file.lines ? texts.map((_, index) => index + 1) : [...counts.keys()];
  $("lines").append(...numbers.map(number => {
    const [times, of] = counts.get(number) ?? [];
    const made = element("div", { class: `line ${of ?? ""}` }, element("span", { class: "n" }, number), count(times, of), element("span", { class: "text" }, texts[number - 1] ?? ""));
    made.dataset.line = number;
    panes.lines.set(number, made);
    return made;
  }));
}

function draw_code(at, code) {
  const start = code?.start ?? null;
  if (panes.function === start && start && !code.cut) return;
  panes.function = start;
  panes.code = new Map();
  $("function").textContent = code?.name ?? at?.function ?? "";
  $("function").title = code?.name ?? "";
  if (!code) return $("instructions").replaceChildren(element("p", { class: "empty" }, "No image has code here."));
  let line = null;
  $("instructions").replaceChildren(...code.instructions.flatMap(instruction_ => {
    const made = element("div", { class: `line ${instruction_.count ? "covered" : "unreached"}` },
      element("span", { class: "n" }, instruction_.address.slice(2)), count(instruction_.count), instruction(instruction_));
    made.dataset.address = instruction_.address;
    panes.code.set(instruction_.address, made);
    const place = instruction_.line ? `${instruction_.file.split(/[\\/]/).at(-1)}:${instruction_.line}` : null;
    const head = place && place !== line ? element("div", { class: "place" }, place) : null;
    line = place ?? line;
    return head ? [head, made] : [made];
  }));
}

function mark(at, near, is_before) {
  for (const made of document.querySelectorAll(".code .current, .code .past, .code .next")) made.classList.remove("current", "past", "next");
  for (const row of near) {
    const how = row.step < state.step ? "past" : "next";
    panes.code.get(row.address)?.classList.add(how);
    if (row.file === panes.file) panes.lines.get(row.line)?.classList.add(how);
  }
  if (!at) return;
  for (const made of [panes.code.get(at.address), at.file === panes.file ? panes.lines.get(at.line) : null]) {
    made?.classList.add(is_before ? "past" : "current");
    const box = made?.closest(".code");
    if (!box) continue;
    const [top, bottom] = [made.offsetTop, made.offsetTop + made.offsetHeight];
    if (top < box.scrollTop + 30 || bottom > box.scrollTop + box.clientHeight - 30) box.scrollTop = top - box.clientHeight / 2;
  }
}

function draw_stack() {
  const { row, task, context, offset, before } = state.here, frames = state.here.frames ?? [];
  $("task").textContent = context ?? task ?? "";
  if (!state.here.frames) $("frames").replaceChildren(element("li", { class: "empty" }, "Calls are not followed up to here yet."));
  else $("frames").replaceChildren(...frames.map((frame, index) => {
    const place = index === 0 ? row : frames[index - 1];
    const line = place?.line ? `${place.file.split(/[\\/]/).at(-1)}:${place.line}` : "";
    const button = element("button", { title: "Go to where it began" },
      element("span", { class: "function" }, frame.function), element("span", { class: "quiet" }, frame.exception ?? line));
    button.addEventListener("click", () => go(frame.began));
    return element("li", { class: frame.kind }, button);
  }));
  const facts = [
    ["Address", row.address], ["Function", row.function && `${row.function}${row.offset ? `+0x${row.offset.toString(16)}` : ""}`],
    ["Instructions before", before.instructions], ["Exceptions before", before.exceptions], ["Cycles before", summary().cycles ? before.cycles : null],
    ["Timestamp", before.time || null], ["Byte of the capture", offset], ["Context", context],
  ];
  $("facts").replaceChildren(...facts.filter(([, value]) => value != null).flatMap(([name, value]) => [
    element("dt", {}, name), element("dd", {}, typeof value === "number" ? show(value) : value)]));
}

// What the step does, and the registers before it. A click goes to what wrote the value.
async function load_values() {
  const step = state.step, values = await ask("values", { step }).catch(() => null);
  if (step !== state.step) return;
  $("values-part").hidden = !values;
  if (!values) return;
  const fact = (name, value, asked) => {
    const button = element("button", { title: "Go to what wrote this" }, value ?? "unknown");
    button.addEventListener("click", () => to_writer(asked));
    return [element("dt", {}, name), element("dd", { class: value ? "" : "quiet" }, asked ? button : value ?? "unknown")];
  };
  $("values").replaceChildren(
    ...values.writes.flatMap(({ register, value }) => fact(`${register} ←`, value)),
    ...values.accesses.flatMap(({ store, address, name, bytes, value }) => fact(`${store ? "stores" : "loads"} ${name ?? address ?? "?"}`, value, address && { address, count: bytes })),
    ...values.registers.flatMap(({ register, value }) => fact(register, value, { what: register })));
}

async function to_writer(asked) {
  const { step, certain } = await ask("writer", { step: state.step, ...asked }).catch(() => ({}));
  if (step == null) return say("No store or write of this is proven near here.");
  say(certain ? "" : "A store to an unknown address came later, and may have written it.");
  await go(step);
}

async function load_costs() {
  const mine = ++panes.costs;
  $("unit").textContent = "counting …";
  $("costs").tBodies[0].replaceChildren();
  try {
    const costs = await ask("costs");
    if (mine !== panes.costs) return;
    $("unit").textContent = `${costs.unit} · ${show(costs.total)} in all`;
    const most = Math.max(1, costs.functions[0]?.self ?? 1);
    $("costs").tBodies[0].replaceChildren(...costs.functions.slice(0, 300).map(cost => {
      const name = element("button", { title: `${cost.name}: go to the next time that it is entered` }, cost.name);
      name.addEventListener("click", () => { $("what").value = cost.address ?? cost.name; find(false); });
      const cell = (value, kind) => element("td", { class: kind, title: show(value) }, show_short(value, 1e4));
      const self = cell(cost.self, "n self");
      self.style.setProperty("--part", `${100 * cost.self / most}%`);
      return element("tr", {}, element("td", {}, name), self, cell(cost.total, "n"), cell(cost.calls, "n"));
    }));
    $("functions").replaceChildren(...costs.functions.slice(0, 1000).map(cost => element("option", { value: cost.name })));
  } catch (error) { went(error); }
}

async function load_texts() {
  $("texts-part").hidden = !summary().texts;
  if (!summary().texts) return;
  try {
    const { texts } = await ask("texts");
    $("texts").replaceChildren(...texts.slice(0, 2000).map(([step, port, text]) => {
      const button = element("button", { title: `port ${port}, step ${show(step)}` }, text || "(an empty line)");
      button.dataset.step = step;
      button.addEventListener("click", () => go(step));
      return element("li", {}, button);
    }));
  } catch (error) { went(error); }
}

function mark_text() {
  let last = null;
  for (const button of $("texts").querySelectorAll("button")) {
    button.removeAttribute("aria-current");
    if (Number(button.dataset.step) <= state.step) last = button;
  }
  last?.setAttribute("aria-current", "true");
}

function listen_panes() {
  on("place", () => { draw_stack(); mark_text(); load_values(); load_panes(); });
  on("source", () => { panes.file = panes.function = null; load_costs(); load_texts(); });
  $("lines").addEventListener("dblclick", event => {
    const line = event.target.closest(".line")?.dataset.line;
    if (line) { $("what").value = `${panes.file}:${line}`; find(false); }
  });
  $("instructions").addEventListener("dblclick", event => {
    const address = event.target.closest(".line")?.dataset.address;
    if (address) { $("what").value = address; find(false); }
  });
}
