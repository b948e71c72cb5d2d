// The list of steps, of any number: only the visible rows are requested.
"use strict";

const HEIGHT = 20, CHUNK = 256;
const list = { top: 0, chunks: new Map(), asked: 0, shows_place: false };

const seen = () => Math.max(1, Math.floor($("rows").clientHeight / HEIGHT));

async function chunk(index) {
  const from = index * CHUNK;
  const { rows } = await ask("rows", { from, count: CHUNK });
  return rows;
}

async function load_rows() {
  const mine = ++list.asked, all = bounds();
  list.top = Math.max(all.from, Math.min(list.top, all.to - seen()));
  const top = Math.floor(list.top), wanted = seen() + 1;
  const numbers = [];
  for (let at = Math.floor(top / CHUNK); at * CHUNK < top + wanted && at * CHUNK < all.to; at += 1) numbers.push(at);
  try {
    const rows = (await Promise.all(numbers.map(chunk))).flat().filter(row => row.step >= top && row.step < top + wanted);
    if (mine === list.asked) draw_rows(rows);
  } catch (error) { went(error); }
}

function instruction(row) {
  const text = element("span", { class: "text" });
  text.append(element("b", {}, row.text), " ");
  const parts = row.operands?.split(/(<[^>]*>)/) ?? [];
  for (const part of parts) text.append(part.startsWith("<") ? element("i", {}, part) : part);
  return text;
}

function draw_rows(rows) {
  const box = $("rows");
  const least = Math.min(...rows.map(row => row.depth), 40);
  let before = null;
  box.replaceChildren(...rows.map(row => {
    const current = row.step === state.step;
    const made = element("div", { class: `row ${row.kind}${row.failed ? " failed" : ""}`, role: "option", id: `step-${row.step}` });
    made.dataset.step = row.step;
    made.setAttribute("aria-selected", current);
    const place = row.function && (row.inlined ? `${row.function} › ${row.inlined}` : row.function);
    const text = row.address ? instruction(row) : element("span", { class: "text" }, row.text);
    text.style.paddingInlineStart = `${Math.min(12, row.depth - least) * 10}px`;
    made.append(
      element("span", { class: "n" }, row.number == null ? "" : show(row.number)),
      element("span", { class: "address" }, row.address?.slice(2) ?? ""), text,
      element("span", { class: "function" }, place && place !== before ? place : ""),
      element("span", { class: "line" }, row.line ? `${row.file.split(/[\\/]/).at(-1)}:${row.line}` : ""));
    before = place ?? before;
    return made;
  }));
  list.shows_place = rows.some(row => row.step === state.step);
  // One row more than fits is drawn, and the browser would scroll to the row with the focus.
  box.scrollTop = 0;
  box.setAttribute("aria-activedescendant", `step-${state.step}`);
  const all = bounds(), count = Math.max(1, all.to - all.from), high = $("scroll").clientHeight;
  const thumb = Math.max(24, Math.min(high, high * seen() / count));
  $("thumb").style.height = `${thumb}px`;
  const part = (list.top - all.from) / Math.max(1, count - seen());
  $("thumb").style.transform = `translateY(${Math.max(0, Math.min(1, part)) * (high - thumb)}px)`;
}

function scroll_to(step) {
  if (step < list.top + 2) list.top = step - Math.min(3, seen() / 3);
  else if (step > list.top + seen() - 3) list.top = step - seen() + Math.min(4, seen() / 3);
  if (step < list.top || step > list.top + seen()) list.top = step - seen() / 2;
  load_rows();
}

function listen_list() {
  const rows = $("rows"), bar = $("scroll");
  rows.addEventListener("wheel", event => {
    event.preventDefault();
    list.top += event.deltaMode === 1 ? event.deltaY : event.deltaY / HEIGHT;
    load_rows();
  }, { passive: false });
  rows.addEventListener("scroll", () => { rows.scrollTop = 0; });
  rows.addEventListener("click", event => {
    const row = event.target.closest(".row");
    if (row) go(Number(row.dataset.step));
  });
  const drag = event => {
    const all = bounds(), part = event.offsetY / bar.clientHeight;
    list.top = Math.round(all.from + Math.max(0, Math.min(1, part)) * (all.to - all.from - seen()));
    load_rows();
  };
  bar.addEventListener("pointerdown", event => { bar.setPointerCapture(event.pointerId); drag(event); });
  bar.addEventListener("pointermove", event => { if (event.buttons & 1) drag(event); });
  on("place", () => {
    const { row } = state.here;
    $("where").textContent = `step ${show(state.step)} of ${show(summary().steps)}` + (row.number == null ? "" : ` · instruction ${show(row.number)}`);
    scroll_to(state.step);
  });
  on("source", () => { list.top = 0; });
  new ResizeObserver(() => {
    if (!state.here) return;
    // Keeps a visible place visible.
    if (list.shows_place) scroll_to(state.step);
    else load_rows();
  }).observe(rows);
}
