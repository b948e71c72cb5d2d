// Keys, buttons, and the start of the page.
"use strict";

const MOVES = { i: "instruction", l: "line", f: "function", e: "exception", g: "gap" };

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") {
      // Otherwise the browser would empty the box, and there would be no next match.
      event.preventDefault();
      $("rows").focus();
    }
    return;
  }
  const in_code = event.target.closest?.(".code");
  const lower = event.key.toLowerCase(), width = state.to - state.from;
  const actions = {
    ArrowRight: () => move("instruction", false), ArrowLeft: () => move("instruction", true),
    ArrowDown: () => go(state.step + 1), ArrowUp: () => go(state.step - 1),
    PageDown: () => go(state.step + seen() - 1), PageUp: () => go(state.step - seen() + 1),
    Home: () => go(bounds().from), End: () => go(bounds().to - 1),
    "/": () => $("what").focus(), ".": () => find(false), ",": () => find(true),
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => set_window(bounds().from, bounds().to),
    "[": () => set_window(state.from - width / 3, state.to - width / 3), "]": () => set_window(state.from + width / 3, state.to + width / 3),
    u: () => move("call", true), c: copy_link, t: turn_theme, s: next_source, "?": () => $("keys").showModal(),
  };
  const scrolls = in_code && ["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End"].includes(event.key);
  const action = MOVES[lower] ? () => move(MOVES[lower], event.key !== lower) : actions[event.key];
  if (!action || scrolls) return;
  event.preventDefault();
  action();
}

function next_source() {
  const count = state.capture.sources.length;
  if (count > 1) switch_to((state.source + 1) % count);
}

// Switches to another source at the same time, or at the same byte of the capture.
async function switch_to(source, known = null) {
  const { before, offset } = state.here ?? {}, old = state.source;
  const query = before?.time ? { what: "time", from: before.time } : { what: "byte", from: offset ?? 0 };
  let step = known;
  if (step == null) try { step = (await state.data.ask("move", { source, step: 0, back: false, ...query })).step; } catch { step = null; }
  if (old !== source) await select(source, step ?? 0);
  $("source").value = source;
}

async function copy_link() {
  write_link();
  try { await navigator.clipboard.writeText(location.href); say("The link is copied."); } catch { say(location.href); }
}

function turn_theme() {
  const root = document.documentElement;
  root.dataset.theme = style("--is-dark") === "1" ? "light" : "dark";
  try { localStorage.setItem("tracewalk-theme", root.dataset.theme); } catch { /* nobody keeps it */ }
  draw_strip();
  draw_timeline();
}

function listen_page() {
  document.addEventListener("keydown", key);
  $("find").addEventListener("submit", event => { event.preventDefault(); find(false); });
  $("find-back").addEventListener("click", () => find(true));
  $("link").addEventListener("click", copy_link);
  $("theme").addEventListener("click", turn_theme);
  $("help").addEventListener("click", () => $("keys").showModal());
  $("zoom-in").addEventListener("click", () => zoom(0.5));
  $("zoom-out").addEventListener("click", () => zoom(2));
  $("zoom-all").addEventListener("click", () => set_window(bounds().from, bounds().to));
  for (const button of document.querySelectorAll("[data-move]")) button.addEventListener("click", () => move(button.dataset.move, "back" in button.dataset));
  for (const tab of document.querySelectorAll("[data-tab]")) tab.addEventListener("click", () => {
    for (const other of document.querySelectorAll("[data-tab]")) {
      other.setAttribute("aria-selected", other === tab);
      $(other.dataset.tab).classList.toggle("shown", other === tab);
    }
    tell("place");
  });
  $("source").addEventListener("change", () => switch_to(Number($("source").value)));
  window.addEventListener("hashchange", follow_link);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { draw_strip(); draw_timeline(); });
}

async function begin() {
  try { const theme = localStorage.getItem("tracewalk-theme"); if (theme) document.documentElement.dataset.theme = theme; } catch { /* none is kept */ }
  const inside = $("data");
  state.data = inside ? await Inside.read(inside.textContent.trim()) : new Remote(read_link().get("token") ?? "");
  $("coming").hidden = false;
  try {
    await state.data.until("ready", part => {
      $("coming-bar").value = part;
      $("coming-text").textContent = `Reading the capture … ${Math.floor(part * 100)}%`;
    });
    state.capture = await state.data.ask("capture");
  } catch (error) {
    $("coming-bar").hidden = true;
    $("coming-text").textContent = error.kind === "token" ? "This page does not know the server's token. Open the address that tracewalk printed."
      : "The server has ended, or could not read the capture. See the terminal in which tracewalk was started.";
    return;
  }
  $("coming").hidden = true;
  $("panes").hidden = false;
  const name = state.capture.name.split(/[\\/]/).slice(-2).join("/");
  $("name").textContent = name;
  document.title = `${name} · tracewalk`;
  const sources = state.capture.sources;
  $("source").hidden = sources.length < 2;
  $("source").replaceChildren(...sources.map((source, index) => element("option", { value: index, disabled: !source.steps }, source.name)));
  listen_page(); listen_timeline(); listen_list(); listen_panes();
  await follow_link();
  $("source").value = state.source;
  $("rows").focus();
  document.body.dataset.ready = "true";
  await show_counting();
}

// The page can be used while calls are still followed, and costs and counts are added up.
async function show_counting() {
  let grown = null;
  const show_part = (part, status) => {
    const is_followed = state.capture.sources.every(source => source.followed === source.steps);
    $("counting").textContent = `${is_followed ? "Counting what ran" : "Following calls"} … ${Math.floor(part * 100)}%`;
    if (grown !== status.grown) look_again();
    grown = status.grown;
  };
  try { await state.data.until("counted", show_part); } catch (error) { return went(error); }
  await look_again();
  $("counting").textContent = "";
  document.body.dataset.counted = "true";
}

// Reloads the answers, which may have grown.
async function look_again() {
  if (!state.data.forget) return;
  state.data.forget();
  try { state.capture = await ask("capture"); } catch (error) { return went(error); }
  load_strip();
  load_timeline();
  load_texts();
  await go(state.step, { keep: true });
}

begin();
