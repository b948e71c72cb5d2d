// Shows a coverage report: the tree of files, a file's source with its counts, its copies and instructions on demand.
//
// The data is the document of `tracewalk coverage --format json`, the text of each available source file, and the text of
// each instruction. The page contains the data, compressed, and loads nothing.
"use strict";

(async () => {
  const $ = (id) => document.getElementById(id);
  const { report, sources, changes, disassembly } = await readData();
  const STATES = { covered: "✓", partly: "◐", skipped: "↷", unreached: "✗", unrecorded: "?" };
  const MEANINGS = {
    covered: "every instruction of it ran",
    partly: "it ran, but never all of it",
    skipped: "execution came past it, and its conditions failed",
    unreached: "no trace came here",
    unrecorded: "execution came past it; whether its conditions passed is not observable",
  };
  const NOT_COVERED = ["partly", "skipped", "unreached"];
  /** Whether the line, or an outcome of a condition in it, is not covered. */
  const isGap = ({ state, branches = [] }) => NOT_COVERED.includes(state) || branches.some(({ taken, not_taken }) => taken === 0 || not_taken === 0);
  let current = null; // the index of the file that is shown
  let allOpen = false; // whether the instructions of all lines are shown

  async function readData() {
    const bytes = Uint8Array.from(atob($("data").textContent), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream).json();
  }

  // ---- small things ----

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "text") made.textContent = value;
      else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  const permille = ({ found, covered }) => (found ? Math.floor((covered * 1000) / found) : null);
  const percent = (tally) => {
    const rate = permille(tally);
    return rate === null ? "–" : `${Math.floor(rate / 10)}.${rate % 10}%`;
  };
  const grade = (tally) => {
    const rate = permille(tally);
    return rate === null ? "none" : rate >= 900 ? "good" : rate >= 500 ? "middling" : "bad";
  };
  const bar = (tally) => {
    const fill = element("i");
    fill.style.width = `${(permille(tally) ?? 0) / 10}%`;
    return element("span", { class: "bar" }, fill);
  };
  const value = (tally) => element("span", { class: "value", text: percent(tally) });
  const number = (count) => count.toLocaleString("en").replaceAll(",", "\u202f");
  const times = (count) => (count === null ? "not observable" : count === 0 ? "never" : `${number(count)}×`);

  // ---- the tree ----

  function buildTree() {
    const root = { folders: new Map(), files: [] };
    report.files.forEach((file, index) => {
      const parts = file.name.split("/").filter((part) => part);
      const name = parts.pop() ?? file.name;
      let folder = root;
      for (const part of parts) {
        if (!folder.folders.has(part)) folder.folders.set(part, { folders: new Map(), files: [] });
        folder = folder.folders.get(part);
      }
      folder.files.push({ name, index });
    });
    $("tree").append(...branches(root, 1));
    const first = $("tree").querySelector("[role=treeitem]");
    if (first) first.tabIndex = 0;
  }

  function branches(folder, level) {
    const items = [];
    for (let [name, inner] of folder.folders) {
      // A folder that contains only one folder shares its row.
      while (inner.files.length === 0 && inner.folders.size === 1) {
        const [[next, innermost]] = inner.folders;
        name += `/${next}`;
        inner = innermost;
      }
      const children = branches(inner, level + 1);
      const lines = sum(inner);
      const group = element("ul", { role: "group" }, ...children);
      items.push(treeItem(name, lines, level, { "aria-expanded": "true" }, group));
    }
    for (const { name, index } of folder.files) {
      items.push(treeItem(name, report.files[index].totals.lines, level, { "data-file": index, "aria-selected": "false" }, null));
    }
    return items;
  }

  const STALE = {
    checksum: "The source shown is not the one that was compiled: its checksum is another than the program's. Lines and counts need not belong together.",
    shorter: "The source shown is not the one that was compiled: the program has line numbers beyond its end. Lines and counts need not belong together.",
    newer: "The source shown may not be the one that was compiled: it is newer than the capture or the program. Lines and counts may not belong together.",
  };

  function sum(folder) {
    const total = { found: 0, covered: 0 };
    const add = ({ found, covered }) => {
      total.found += found;
      total.covered += covered;
    };
    folder.files.forEach(({ index }) => add(report.files[index].totals.lines));
    for (const inner of folder.folders.values()) add(sum(inner));
    return total;
  }

  function treeItem(name, lines, level, attributes, group) {
    const rate = element("span", { class: `rate ${grade(lines)}` }, bar(lines), value(lines));
    const mark = element("span", { class: "mark", "aria-hidden": "true", text: group ? "▾" : "" });
    const node = element("div", { class: "node" }, mark, element("span", { class: "name", text: name, title: name }), rate);
    const item = element("li", { role: "treeitem", tabindex: -1, "aria-level": level, ...attributes }, node, group);
    node.addEventListener("click", () => activate(item));
    return item;
  }

  function activate(item) {
    focusItem(item);
    if (item.dataset.file !== undefined) open({ file: report.files[item.dataset.file].name });
    else expand(item, item.getAttribute("aria-expanded") !== "true");
  }

  function expand(item, wanted) {
    item.setAttribute("aria-expanded", wanted);
    item.querySelector(".mark").textContent = wanted ? "▾" : "▸";
  }

  function focusItem(item) {
    $("tree").querySelectorAll("[role=treeitem]").forEach((other) => (other.tabIndex = -1));
    item.tabIndex = 0;
    item.focus();
  }

  function treeKeys(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    const visible = [...$("tree").querySelectorAll("[role=treeitem]")].filter((other) => other.offsetParent !== null);
    const index = visible.indexOf(item);
    const expanded = item.getAttribute("aria-expanded");
    const parent = item.parentElement.closest("[role=treeitem]");
    const actions = {
      ArrowDown: () => visible[index + 1] && focusItem(visible[index + 1]),
      ArrowUp: () => visible[index - 1] && focusItem(visible[index - 1]),
      ArrowRight: () => (expanded === "false" ? expand(item, true) : visible[index + 1] && focusItem(visible[index + 1])),
      ArrowLeft: () => (expanded === "true" ? expand(item, false) : parent && focusItem(parent)),
      Home: () => focusItem(visible[0]),
      End: () => focusItem(visible[visible.length - 1]),
      Enter: () => activate(item),
      " ": () => activate(item),
    };
    if (actions[event.key]) {
      event.preventDefault();
      event.stopPropagation();
      actions[event.key]();
    }
  }

  // ---- the overview ----

  // Many rows make a page slow, and nobody reads them all.
  const MOST_FUNCTIONS = 400;
  const functions = report.functions.filter((found) => found.name !== null);
  let shownFunctions = MOST_FUNCTIONS;

  const placeOf = (found) => (found.file === null ? "" : `${report.files[found.file].name}${found.line ? `:${found.line}` : ""}`);
  const rateOf = (metric) => (found) => permille(found.totals[metric]) ?? -1;
  const FUNCTION_KEYS = [(found) => found.name, placeOf, (found) => found.entered, rateOf("instructions"), null, rateOf("branches"), null];

  function listFunctions() {
    const rows = functions.slice(0, shownFunctions).map((found) => {
      const link = found.file === null ? found.name : element("a", { href: address(report.files[found.file].name, found.line), text: found.name });
      const row = element("tr", {}, element("td", {}, link), element("td", { text: placeOf(found) }));
      row.append(element("td", { class: "number", "data-value": found.entered, text: number(found.entered) }));
      for (const tally of [found.totals.instructions, found.totals.branches]) {
        const rate = element("td", { class: `rate ${grade(tally)}` }, bar(tally), value(tally));
        const counts = tally.found ? `${tally.covered}/${tally.found}` : "";
        row.append(rate, element("td", { class: "number counts", text: counts }));
      }
      return row;
    });
    $("functions").tBodies[0].replaceChildren(...rows);
    $("functions").hidden = $("functions-title").hidden = rows.length === 0;
    $("more-functions").hidden = functions.length <= shownFunctions;
    $("more-functions").textContent = `Show all ${number(functions.length)} functions`;
  }

  function showAllFunctions() {
    shownFunctions = Infinity;
    listFunctions();
  }

  /** Names as people sort them, `rev1-2` before `rev1-10`. */
  const collator = new Intl.Collator("en", { numeric: true });
  const order = (a, b) => (typeof a === "string" ? collator.compare(a, b) : a - b);

  function sortFunctions(column, ascending) {
    const key = FUNCTION_KEYS[column];
    functions.sort((a, b) => (ascending ? order(key(a), key(b)) : order(key(b), key(a))));
    listFunctions();
  }

  function sortFiles(column, ascending) {
    const body = $("files").tBodies[0];
    const key = (row) => (column === 0 ? row.cells[0].textContent : Number(row.cells[column].dataset.value));
    body.append(...[...body.rows].sort((a, b) => (ascending ? order(key(a), key(b)) : order(key(b), key(a)))));
  }

  /** A click on a column's head sorts by that column. */
  function makeSortable(table, sortRows) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (head.dataset.sort === undefined) return;
      head.tabIndex = 0;
      head.setAttribute("role", "columnheader");
      const sort = () => {
        const ascending = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sortRows(column, ascending);
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => event.key === "Enter" && sort());
    });
  }

  // ---- a file ----

  const address = (file, line) => `#file=${encodeURIComponent(file)}${line ? `&line=${line}` : ""}`;

  function open({ file, line }) {
    const wanted = address(file, line);
    if (location.hash === wanted) route();
    else location.hash = wanted;
  }

  function route() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const index = report.files.findIndex((file) => file.name === wanted.get("file"));
    $("overview").hidden = index >= 0;
    $("file").hidden = index < 0;
    $("tree").querySelectorAll("[data-file]").forEach((item) => {
      const selected = Number(item.dataset.file) === index;
      item.setAttribute("aria-selected", selected);
      if (selected) item.scrollIntoView({ block: "nearest" });
    });
    if (index < 0) {
      current = null;
      return;
    }
    if (current !== index) show(index);
    const line = wanted.get("line");
    if (line) goTo(Number(line));
  }

  function show(index) {
    current = index;
    allOpen = false;
    const file = report.files[index];
    document.title = `${file.name} – coverage`;
    const tallies = ["lines", "branches", "functions", "instructions"].map((metric) => {
      const tally = file.totals[metric];
      const unrecorded = tally.unrecorded ? `, ${tally.unrecorded} not observable` : "";
      const rate = element("b", { class: `rate ${grade(tally)}`, text: percent(tally) });
      return element("span", { class: "tally", "data-metric": metric }, rate, ` ${metric} ${tally.covered}/${tally.found}${unrecorded}`);
    });
    const disassemble = element("button", { id: "disassemble", type: "button", "aria-pressed": "false", title: "Instructions of all lines (d)", text: "Instructions", onclick: toggleAll });
    const next = element("button", { type: "button", title: "Next line that is not covered, or whose conditions never had both outcomes (n)", text: "Next gap", onclick: () => step(1, isGap) });
    const tools = element("span", { class: "tools" }, next, disassemble);
    const stale = file.stale ? element("p", { class: "stale", role: "note", text: STALE[file.stale] }) : "";
    $("file-head").replaceChildren(element("h1", { text: file.name }), ...tallies, tools, stale);
    $("code").firstElementChild.tBodies[0].replaceChildren(...sourceRows(index));
    $("code").scrollTop = 0;
    drawStrip(file);
  }

  function sourceRows(index) {
    const file = report.files[index];
    const text = sources[index]?.split(/\r?\n/);
    if (text && text[text.length - 1] === "") text.pop();
    const lines = new Map(file.lines.map((line) => [line.line, line]));
    const marks = changes?.[index];
    const mark = new Map([...(marks?.new_uncovered ?? []).map((line) => [line, "new"]), ...(marks?.lost_branches ?? []).map((line) => [line, "lost-outcome"]), ...(marks?.lost ?? []).map((line) => [line, "lost"])]);
    const last = Math.max(text?.length ?? 0, ...lines.keys());
    const colour = highlighter(file.name);
    const rows = [];
    if (!text) rows.push(element("tr", { class: "missing" }, element("td", { colspan: "4", text: "the source file is not at hand; --src-dir says where it is" })));
    for (let line = 1; line <= last; line++) {
      const found = lines.get(line);
      // Without the source, the page shows only lines with code.
      if (!text && !found) continue;
      rows.push(sourceRow(line, found, text ? colour(text[line - 1] ?? "") : [], mark.get(line)));
    }
    return rows;
  }

  function sourceRow(line, found, text, change) {
    if (!found) return element("tr", { class: "source", id: `L${line}` }, element("td", { text: line }), element("td"), element("td"), element("td", {}, ...text));
    const count = found.state === "unrecorded" ? "" : `${atLeast(found) ? "≥" : ""}${number(found.count)}`;
    const mark = element("span", { class: "state", role: "img", "aria-label": found.state, title: MEANINGS[found.state], text: STATES[found.state] });
    const attributes = {
      class: `source ${found.state}${change ? ` ${change}` : ""}`,
      id: `L${line}`,
      "data-line": line,
      "data-count": found.count,
      "data-state": found.state,
      "aria-expanded": "false",
      onclick: () => getSelection().isCollapsed && (setCursor(line), toggle(line)),
    };
    return element("tr", attributes, element("td", { text: line }), element("td", {}, count, mark), element("td", {}, ...marks(found)), element("td", {}, ...text));
  }

  /** Whether a line may have run more often than counted: the trace may not show whether a condition passed. */
  const atLeast = (line) => line.count > 0 && (line.branches ?? []).some(({ jump, taken, not_taken }) => !jump && (taken === null || not_taken === null));

  function marks(line) {
    const branches = line.branches ?? [];
    if (branches.length === 0) return [];
    if (branches.length > 4) {
      const told = branches.flatMap(({ taken, not_taken }) => [taken, not_taken]).filter((count) => count !== null);
      const seen = told.filter((count) => count > 0).length;
      return [element("span", { class: "outcomes", title: `${seen} of ${told.length} outcomes of conditions`, text: `${seen}/${told.length}` })];
    }
    return branches.map((branch) => {
      const tick = (count) => element("i", { class: count === null ? "none" : count > 0 ? "seen" : "" });
      const title = `${branch.address}: ${outcomes(branch)}`;
      return element("span", { class: "branch", title }, tick(branch.taken), tick(branch.not_taken));
    });
  }

  function outcomes({ jump, taken, not_taken }) {
    const [yes, no] = jump ? ["taken", "not taken"] : ["condition passed", "failed"];
    return `${yes} ${times(taken)}, ${no} ${times(not_taken)}`;
  }

  // ---- a line's copies and instructions ----

  const known = new Map();

  /** Instructions of a function by address, each with its text. */
  function instructionsOf(index) {
    if (!known.has(index)) {
      const texts = disassembly[index];
      known.set(index, new Map(report.functions[index].instructions.map((found, at) => [found.address, { ...found, text: texts[at] ?? "" }])));
    }
    return known.get(index);
  }

  function detail(line) {
    const branches = new Map((line.branches ?? []).map((branch) => [branch.address, branch]));
    const cell = element("td", { colspan: 4 });
    if (line.runs !== undefined) cell.append(runsOf(report.run_sets[line.runs]));
    for (const copy of line.copies) {
      const name = report.functions[copy.function].name ?? "code in no function";
      const calls = (copy.inlined ?? []).map((call) => `, ${call.function ?? "?"} inlined at ${call.file ?? "?"}:${call.line ?? "?"}`);
      const count = copy.state === "unrecorded" ? "not observable" : copy.count === 0 ? copy.state : `${number(copy.count)}×`;
      cell.append(element("p", { class: "copy", "data-count": copy.count }, "in ", element("b", { text: name }), `${calls.join("")}: ${count}`));
      const rows = copy.instructions.map((at) => instructionRow(instructionsOf(copy.function).get(at), branches.get(at)));
      cell.append(element("table", { class: "instructions" }, element("tbody", {}, ...rows)));
    }
    return element("tr", { class: "detail", "data-of": line.line }, cell);
  }

  /** The runs in which a line ran; a long list is collapsed. */
  function runsOf(set) {
    const MOST_NAMES = 8;
    const names = set.map((run) => report.runs[run].name).sort(order);
    const all = `${names.length} of ${report.runs.length} runs`;
    if (names.length === 0) return element("p", { class: "ran-in", "data-runs": 0, text: `ran in none of ${report.runs.length} runs` });
    const list = element("span", { text: names.join(", ") });
    if (names.length <= MOST_NAMES) return element("p", { class: "ran-in", "data-runs": names.length }, `ran in ${all}: `, list);
    return element("details", { class: "ran-in", "data-runs": names.length }, element("summary", { text: `ran in ${all}` }), list);
  }

  function instructionRow(found, branch) {
    const { executed, skipped = 0, unrecorded = 0 } = found;
    const parts = [];
    if (branch) parts.push(outcomes(branch));
    if (unrecorded) parts.push(`passed ${number(unrecorded)}×, not observable whether its condition did`);
    const decided = executed + (branch?.jump ? skipped : 0);
    const attributes = { class: decided ? "" : unrecorded ? "open" : "never", "data-address": found.address };
    return element(
      "tr",
      attributes,
      element("td", { class: "count", text: decided || !unrecorded ? number(decided) : "?" }),
      element("td", { text: found.address.slice(2) }),
      element("td", { class: "text", text: found.text }),
      element("td", { class: "what", text: parts.join("; ") }),
    );
  }

  const row = (line) => document.getElementById(`L${line}`);
  const lineOf = (line) => report.files[current].lines.find((found) => found.line === line);

  function toggle(line, wanted) {
    const source = row(line);
    const found = source && lineOf(line);
    if (!found) return;
    const isOpen = source.getAttribute("aria-expanded") === "true";
    if (isOpen === wanted) return;
    source.setAttribute("aria-expanded", !isOpen);
    if (isOpen) source.nextElementSibling.remove();
    else source.after(detail(found));
  }

  function toggleAll() {
    allOpen = !allOpen;
    $("disassemble").setAttribute("aria-pressed", allOpen);
    report.files[current].lines.forEach(({ line }) => toggle(line, allOpen));
  }

  // ---- navigation ----

  let cursor = 0;

  function setCursor(line) {
    document.querySelector("tr.cursor")?.classList.remove("cursor");
    cursor = line;
    row(line)?.classList.add("cursor");
  }

  function goTo(line) {
    setCursor(line);
    row(line)?.scrollIntoView({ block: "center" });
  }

  /** Moves to the next line of this kind, and wraps at the end. */
  function step(direction, wanted) {
    const lines = report.files[current].lines.filter(wanted).map(({ line }) => line);
    if (lines.length === 0) return;
    const ahead = direction > 0 ? lines.find((line) => line > cursor) : lines.findLast((line) => line < cursor);
    goTo(ahead ?? (direction > 0 ? lines[0] : lines[lines.length - 1]));
  }

  function drawStrip(file) {
    const last = Math.max(sources[current]?.split("\n").length ?? 0, ...file.lines.map(({ line }) => line));
    const height = $("strip").clientHeight;
    const marks = file.lines.map(({ line, state }) => {
      const mark = element("i", { class: state, onclick: () => goTo(line) });
      mark.style.top = `${((line - 1) / last) * height}px`;
      mark.style.height = `${Math.max(2, height / last)}px`;
      return mark;
    });
    $("strip").replaceChildren(...marks);
  }

  // ---- search ----

  const MOST_RESULTS = 60;

  function search(words) {
    const wanted = words.trim().toLowerCase();
    $("results").hidden = wanted === "";
    $("tree").hidden = wanted !== "";
    if (wanted === "") return;
    const results = [];
    report.files.forEach((file) => {
      if (file.name.toLowerCase().includes(wanted)) {
        results.push(result(address(file.name), [marked(file.name, wanted)], `${percent(file.totals.lines)} of lines`));
      }
    });
    report.functions.forEach((found) => {
      if (found.name?.toLowerCase().includes(wanted)) {
        const file = found.file === null ? null : report.files[found.file].name;
        const where = file ? `${file}:${found.line ?? ""}` : "in no file";
        const href = file ? address(file, found.line) : "#";
        results.push(result(href, [marked(found.name, wanted), "()"], `${where}, entered ${times(found.entered)}`));
      }
    });
    for (const [index, text] of sources.entries()) {
      if (results.length >= MOST_RESULTS || wanted.length < 2) break;
      (text ?? "").split(/\r?\n/).forEach((line, at) => {
        if (results.length < MOST_RESULTS && line.toLowerCase().includes(wanted)) {
          const name = report.files[index].name;
          const words = element("span", { class: "line-text" }, marked(line.trim(), wanted));
          results.push(result(address(name, at + 1), [words], `${name}:${at + 1}`));
        }
      });
    }
    const found = results.slice(0, MOST_RESULTS);
    $("results").replaceChildren(...(found.length ? found : [element("p", { text: "Nothing found" })]));
    select(0);
  }

  function result(href, words, where) {
    return element("li", {}, element("a", { href, tabindex: -1, onclick: leaveSearch }, ...words, element("small", { text: where })));
  }

  function marked(text, wanted) {
    const at = text.toLowerCase().indexOf(wanted);
    const found = element("mark", { text: text.slice(at, at + wanted.length) });
    return element("span", {}, text.slice(0, at), found, text.slice(at + wanted.length));
  }

  function select(index) {
    const links = [...$("results").querySelectorAll("a")];
    links.forEach((link, at) => link.setAttribute("aria-selected", at === index));
    links[index]?.scrollIntoView({ block: "nearest" });
  }

  function leaveSearch() {
    $("search").value = "";
    $("search").blur();
    search("");
  }

  function searchKeys(event) {
    const links = [...$("results").querySelectorAll("a")];
    const selected = links.findIndex((link) => link.getAttribute("aria-selected") === "true");
    const actions = {
      ArrowDown: () => select(Math.min(selected + 1, links.length - 1)),
      ArrowUp: () => select(Math.max(selected - 1, 0)),
      Enter: () => links[selected]?.click(),
      Escape: leaveSearch,
    };
    event.stopPropagation();
    if (actions[event.key]) {
      event.preventDefault();
      actions[event.key]();
    }
  }

  // ---- colours of the source text ----

  const KEYWORDS = {
    c: "alignas alignof auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern false float for friend goto if inline int int16_t int32_t int64_t int8_t long mutable namespace new noexcept nullptr operator override private protected public register restrict return short signed size_t sizeof static struct switch template this throw true try typedef typename uint16_t uint32_t uint64_t uint8_t uintptr_t union unsigned using virtual void volatile while",
    rust: "as async await bool break char const continue crate dyn else enum extern f32 f64 false fn for i16 i32 i64 i8 if impl in isize let loop match mod move mut pub ref return self Self static str struct super trait true type u16 u32 u64 u8 unsafe use usize where while",
  };

  /** A function that turns a file's lines, in order, into coloured text. */
  function highlighter(name) {
    const assembly = /\.(s|asm|sx)$/i.test(name);
    const words = new Set((/\.rs$/.test(name) ? KEYWORDS.rust : assembly ? "" : KEYWORDS.c).split(" "));
    const token = assembly
      ? /(\/\*)|((?:\/\/|@|;).*)|("(?:[^"\\]|\\.)*"?)|(\b(?:0[xX][\da-fA-F]+|\d+)\b)|(^\s*#\s*\w+|\.[a-zA-Z_]\w*)|([A-Za-z_$][\w$]*)/g
      : /(\/\*)|(\/\/.*)|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)+')|(\b(?:0[xX][\da-fA-F]+|\d[\d.]*)[uUlLfF\d_]*)|(^\s*#\s*\w+)|([A-Za-z_]\w*)/g;
    let inComment = false;
    return (line) => {
      const parts = [];
      let at = 0;
      const add = (text, kind) => text && parts.push(kind ? element("span", { class: kind, text }) : text);
      const comment = (from) => {
        const end = line.indexOf("*/", from);
        inComment = end < 0;
        add(line.slice(at, inComment ? line.length : end + 2), "co");
        at = inComment ? line.length : end + 2;
      };
      if (inComment) comment(0);
      token.lastIndex = at;
      for (let found; at < line.length && (found = token.exec(line)); ) {
        add(line.slice(at, found.index));
        at = found.index;
        if (found[1]) comment(at + 2);
        else {
          const kind = found[2] ? "co" : found[3] ? "st" : found[4] ? "nu" : found[5] ? "pp" : words.has(found[0]) ? "kw" : null;
          add(found[0], kind);
          at += found[0].length;
        }
        token.lastIndex = at;
      }
      add(line.slice(at));
      return parts;
    };
  }

  // ---- light and dark ----

  const store = {
    // If a browser denies storage to a page from a file, the choice lasts as long as the page.
    get: (name) => { try { return localStorage.getItem(name); } catch { return null; } },
    set: (name, value) => { try { localStorage.setItem(name, value); } catch { /* as above */ } },
  };

  function toggleTheme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    store.set("tracewalk-theme", root.dataset.theme);
  }

  // ---- keys ----

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    const inFile = current !== null;
    const hasCode = () => true;
    const actions = {
      "/": () => $("search").focus(),
      "?": () => $("help").showModal(),
      t: toggleTheme,
      h: () => (location.hash = ""),
      f: () => $("tree").querySelector("[tabindex='0']")?.focus(),
      n: () => inFile && step(1, isGap),
      p: () => inFile && step(-1, isGap),
      j: () => inFile && step(1, hasCode),
      k: () => inFile && step(-1, hasCode),
      d: () => inFile && toggleAll(),
      Enter: () => inFile && event.target.closest("button, a, th") === null && toggle(cursor),
    };
    if (actions[event.key]) {
      if (event.key !== "Enter") event.preventDefault();
      actions[event.key]();
    }
  }

  const theme = store.get("tracewalk-theme");
  if (theme) document.documentElement.dataset.theme = theme;
  buildTree();
  listFunctions();
  makeSortable($("files"), sortFiles);
  makeSortable($("functions"), sortFunctions);
  $("more-functions").addEventListener("click", showAllFunctions);
  $("tree").addEventListener("keydown", treeKeys);
  $("search").addEventListener("input", () => search($("search").value));
  $("search").addEventListener("keydown", searchKeys);
  $("theme").addEventListener("click", toggleTheme);
  $("help-button").addEventListener("click", () => $("help").showModal());
  addEventListener("keydown", keys);
  addEventListener("hashchange", route);
  addEventListener("resize", () => current !== null && drawStrip(report.files[current]));
  route();
  document.documentElement.dataset.ready = "true";
})();
