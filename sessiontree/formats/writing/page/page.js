"use strict";
// The outline, the siblings, keys and search of an exported page. It reads the rows from
// #data and moves the articles that are there already in and out of sight; whatever it shows
// of a message goes in as text. Rows are in display order: each before those that follow it.
document.documentElement.classList.add("js");
document.addEventListener("DOMContentLoaded", () => {
  const HEIGHT = 26;
  const byId = (id) => document.getElementById(id);
  const outline = byId("outline"), box = byId("rows"), status = byId("status");
  const search = byId("search"), filter = byId("filter");
  const data = JSON.parse(byId("data").textContent);
  const rows = data.rows.map(([id, parent, level, role, preview, labels], at) => ({
    at, id, parent, level, role, preview, labels, children: [], end: at + 1, article: byId("m" + id),
  }));
  const roots = [];
  const placeOf = new Map(rows.map((row) => [row.id, row.at]));
  for (const row of rows) (row.parent < 0 ? roots : rows[row.parent].children).push(row.at);
  for (const list of [roots, ...rows.map((row) => row.children)]) list.sort((a, b) => rows[a].id - rows[b].id);
  for (let at = rows.length - 1; at >= 0; at--) {
    const up = rows[at].parent;
    if (up >= 0) rows[up].end = Math.max(rows[up].end, rows[at].end);
  }

  // --- The path that is shown -------------------------------------------------------------
  const chosen = new Map(); // row or -1 -> the one of its children that the path goes through
  let path = [], onPath = new Set();
  const siblings = (row) => (row.parent < 0 ? roots : rows[row.parent].children);

  function show(at) {
    for (let here = at; here >= 0; here = rows[here].parent) chosen.set(rows[here].parent, here);
    const next = [];
    for (let list = roots, up = -1; list.length; ) {
      const here = chosen.get(up) ?? list[list.length - 1];
      next.push(here);
      up = here;
      list = rows[here].children;
    }
    const now = new Set(next);
    for (const here of path) if (!now.has(here)) rows[here].article.classList.add("off");
    for (const here of next) if (!onPath.has(here)) rows[here].article.classList.remove("off");
    path = next;
    onPath = now;
  }

  // --- The row that is picked ---------------------------------------------------------------
  let picked = -1;

  function pick(at, scroll = true, name = true) {
    if (!(at >= 0 && at < rows.length)) return;
    if (picked >= 0) rows[picked].article.classList.remove("picked");
    picked = at;
    if (!onPath.has(at)) show(at);
    unfoldTo(at);
    const { article, id } = rows[at];
    article.classList.add("picked");
    if (scroll) {
      article.scrollIntoView({ block: "start" });
      requestAnimationFrame(() => article.scrollIntoView({ block: "start" })); // heights are known now
    }
    try { if (name) history.replaceState(null, "", "#m" + id); } catch { /* viewers may refuse */ }
    reveal(at);
    draw();
  }

  function step(row, by) {
    const among = siblings(row), place = among.indexOf(row.at) + by;
    if (place < 0 || place >= among.length) return;
    pick(among[place]);
    status.textContent = `sibling ${place + 1} of ${among.length}`;
  }

  // A message that has no siblings stands for the nearest above it that has some.
  function branching(at) {
    while (at >= 0 && siblings(rows[at]).length < 2) at = rows[at].parent;
    return at;
  }

  // --- The outline: rows of one height, of which only those in sight exist --------------------
  const folded = new Set();
  let seen = [], seenAt = new Map();
  const shows = {
    all: () => true,
    talk: (row) => row.role === "user" || row.role === "assistant",
    user: (row) => row.role === "user",
    label: (row) => row.labels.length > 0,
  };

  function list() {
    seen = [];
    for (let at = 0; at < rows.length; at = folded.has(at) ? rows[at].end : at + 1) {
      if (shows[filter.value](rows[at])) seen.push(at);
    }
    seenAt = new Map(seen.map((at, place) => [at, place]));
    box.style.height = seen.length * HEIGHT + "px";
    draw();
  }

  function unfoldTo(at) {
    let changed = false;
    for (let up = rows[at].parent; up >= 0; up = rows[up].parent) changed = folded.delete(up) || changed;
    if (changed) list();
  }

  function reveal(at) {
    if (!seenAt.has(at)) return;
    const top = seenAt.get(at) * HEIGHT;
    if (top < outline.scrollTop) outline.scrollTop = top;
    const below = top + HEIGHT - outline.clientHeight;
    if (below > outline.scrollTop) outline.scrollTop = below;
  }

  function draw() {
    const first = Math.max(0, Math.floor(outline.scrollTop / HEIGHT) - 5);
    const last = Math.min(seen.length, first + Math.ceil(outline.clientHeight / HEIGHT) + 10);
    box.replaceChildren(...seen.slice(first, last).map((at, n) => line(rows[at], first + n)));
    if (picked >= 0) outline.setAttribute("aria-activedescendant", "r" + rows[picked].id);
  }

  function line(row, place) {
    const made = document.createElement("div"), among = siblings(row);
    made.className = "row" + (row.at === picked ? " picked" : "") + (onPath.has(row.at) ? "" : " aside");
    made.id = "r" + row.id;
    made.dataset.at = row.at;
    made.style.top = place * HEIGHT + "px";
    made.style.paddingLeft = Math.min(row.level, 14) * 12 + 4 + "px";
    made.setAttribute("role", "treeitem");
    made.setAttribute("aria-level", row.level + 1);
    made.setAttribute("aria-posinset", among.indexOf(row.at) + 1);
    made.setAttribute("aria-setsize", among.length);
    made.setAttribute("aria-selected", row.at === picked);
    if (row.children.length) made.setAttribute("aria-expanded", !folded.has(row.at));
    const fold = among.length > 1 && row.children.length;
    made.append(piece("i", fold ? (folded.has(row.at) ? "▸" : "▾") : row.at === data.head ? "●" : ""));
    made.append(piece("b", row.role + " ", row.role), piece("bdi", row.preview));
    if (among.length > 1) made.append(piece("s", ` ${among.indexOf(row.at) + 1}/${among.length}`));
    for (const label of row.labels) made.append(piece("em", " ⚑ " + label));
    return made;
  }

  function piece(tag, text, name = "") {
    const made = document.createElement(tag);
    made.textContent = text;
    made.className = name;
    return made;
  }

  function fold(at, wish) {
    if (wish) folded.add(at);
    else folded.delete(at);
    list();
  }

  // --- Search in all that is said ---------------------------------------------------------------
  let texts = null, hits = [], hit = -1;

  function find() {
    const wanted = search.value.trim().toLowerCase();
    texts ??= rows.map((row) => row.article.textContent.toLowerCase());
    hits = wanted ? rows.filter((row) => texts[row.at].includes(wanted)).map((row) => row.at) : [];
    hit = -1;
    status.textContent = wanted ? `${hits.length} message${hits.length === 1 ? "" : "s"} found` : "";
  }

  function goTo(by) {
    if (!hits.length) return;
    hit = (hit + by + hits.length) % hits.length;
    pick(hits[hit]);
    status.textContent = `hit ${hit + 1} of ${hits.length}`;
  }

  // --- Keys and clicks ----------------------------------------------------------------------------
  const along = (by, wanted = () => true) => {
    let place = path.indexOf(picked) + by;
    while (path[place] !== undefined && !wanted(rows[path[place]])) place += by;
    pick(path[place]);
  };
  const isUser = (row) => row.role === "user";
  const keys = {
    j: () => along(1), k: () => along(-1), ArrowDown: () => along(1), ArrowUp: () => along(-1),
    J: () => along(1, isUser), K: () => along(-1, isUser),
    "[": () => branching(picked) >= 0 && step(rows[branching(picked)], -1),
    "]": () => branching(picked) >= 0 && step(rows[branching(picked)], 1),
    ArrowLeft: () => {
      const row = rows[picked];
      if (siblings(row).length > 1 && row.children.length && !folded.has(picked)) fold(picked, true);
      else pick(row.parent);
    },
    ArrowRight: () => (folded.has(picked) ? fold(picked, false) : along(1)),
    g: () => pick(path[0]), Home: () => pick(path[0]),
    G: () => pick(path[path.length - 1]), End: () => pick(path[path.length - 1]),
    H: () => pick(data.head < 0 ? path[path.length - 1] : data.head),
    n: () => goTo(1), N: () => goTo(-1),
    f: () => { filter.selectedIndex = (filter.selectedIndex + 1) % filter.length; list(); },
    o: () => {
      const inside = [...rows[picked].article.querySelectorAll("details")];
      const open = inside.some((each) => !each.open);
      for (const each of inside) each.open = open;
    },
    "/": () => search.focus(),
    "?": () => byId("help").click(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target === search) {
      if (event.key === "Enter") goTo(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") { search.value = ""; find(); outline.focus(); }
      return;
    }
    if (event.target === filter || picked < 0 || !Object.hasOwn(keys, event.key)) return;
    if (event.target.closest("main") && event.key.startsWith("Arrow")) return; // it scrolls
    event.preventDefault();
    keys[event.key]();
  });
  search.addEventListener("input", find);
  filter.addEventListener("change", list);
  outline.addEventListener("scroll", draw, { passive: true });
  addEventListener("resize", draw);
  byId("home").addEventListener("click", keys.H);
  byId("help").addEventListener("click", () => {
    byId("keys").hidden = !byId("keys").hidden;
    byId("help").setAttribute("aria-expanded", !byId("keys").hidden);
    draw();
  });
  box.addEventListener("click", (event) => {
    const made = event.target.closest(".row");
    if (!made) return;
    const at = Number(made.dataset.at);
    if (event.target.textContent === "▾" || event.target.textContent === "▸") fold(at, !folded.has(at));
    else pick(at);
  });
  document.querySelector("main").addEventListener("click", (event) => {
    const article = event.target.closest("article");
    if (!article) return;
    const row = rows[placeOf.get(Number(article.id.slice(1)))];
    const button = event.target.closest("[data-step]");
    if (button) step(row, Number(button.dataset.step));
    else if (row.at !== picked && !getSelection().toString()) pick(row.at, false);
  });

  // --- Paper: what is folded is printed open ------------------------------------------------------
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = path.flatMap((at) => [...rows[at].article.querySelectorAll("details:not([open])")]);
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of opened) each.open = false; });

  function follow() {
    const at = placeOf.get(Number(location.hash.slice(2)));
    if (at !== undefined && at !== picked) pick(at);
    return at !== undefined;
  }
  addEventListener("hashchange", follow);
  if (rows.length) {
    const leaf = data.head < 0 ? rows.length - 1 : data.head;
    onPath = new Set(rows.filter((row) => !row.article.classList.contains("off")).map((row) => row.at));
    path = [...onPath];
    show(leaf);
    list();
    if (!follow()) pick(path[0], false, false);
  }
});
