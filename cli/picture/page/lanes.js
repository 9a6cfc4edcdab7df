// The lanes: which are shown, where each is, and how a frame is drawn. Reads the state; asks for nothing but the next frame.

const state = {
  a: 0, b: 1,
  width: 1, height: 1,
  kinds: { pod: true, container: true, volume: true, found: false },
  folded: new Set(),
  query: "", matches: undefined, matching: undefined, matchLanes: undefined,
  lane: undefined, entry: undefined, span: undefined, finding: undefined,
  hover: undefined,
  tab: findings.length > 0 ? "findings" : "entries",
  onlyLane: false,
};
/** How long each of the last frames took to draw, in milliseconds. */
const frames = [];

const HEIGHT = { node: 30, pod: 38, container: 34, volume: 34 };
const OPEN = 92;
let rows = [];
let total = 0;
const rowOf = new Map();

const toX = (t) => (toPlace(t) - state.a) / (state.b - state.a) * state.width;
const fromX = (x) => toTime(state.a + x / state.width * (state.b - state.a));

/** Which lanes there are now, and where. */
function layOut() {
  rows = [];
  rowOf.clear();
  let y = 0;
  const wanted = (l) => {
    const lane = lanes[l];
    const kind = lane.kind === "node" || state.kinds[lane.kind];
    const matches = !state.matchLanes || state.matchLanes.has(l);
    return kind && matches && (!state.kinds.found || foundIn[l].size > 0);
  };
  const add = (l) => {
    const h = l === state.lane && lanes[l].kind !== "node" ? OPEN : HEIGHT[lanes[l].kind];
    rowOf.set(l, rows.length);
    rows.push({ l, y, h });
    y += h;
  };
  lanes.forEach((lane, l) => {
    if (lane.pod !== undefined && lane.pod !== l) return;
    const within = inside[l].filter(wanted);
    if (lane.kind === "pod" ? !(wanted(l) || within.length > 0) : !wanted(l)) return;
    add(l);
    if (!state.folded.has(l)) within.forEach(add);
  });
  total = y;
  $("spacer").style.height = `${total}px`;
  const empty = $("empty");
  empty.hidden = rows.length > 0;
  if (rows.length === 0) {
    const nothing = lanes.length === 0;
    empty.replaceChildren(
      el("b", {}, nothing ? "Nothing happened here" : "No lane is left"),
      nothing ? "The input was understood, but it tells of no pod, container or volume." : state.query ? `Nothing matches “${state.query}”. ` : "The filters leave nothing. ",
      nothing ? "" : el("button", { class: "link", type: "button", onclick: () => clearFilters() }, "Show all"));
    empty.style.pointerEvents = "auto";
  }
}

/** The first row that ends below y. */
function firstRow(y) {
  let low = 0, high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle].y + rows[middle].h > y) high = middle; else low = middle + 1;
  }
  return low;
}

/** The index in a sorted list of the first entry at or after t. */
function firstEntry(list, t) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[list[middle]].at >= t) high = middle; else low = middle + 1;
  }
  return low;
}

/** Where in a lane's row its parts are. */
function parts(row) {
  if (row.h === OPEN) return { threads: [8, 27, 46], thread: 4, bar: 62, height: 17, marks: row.h - 7, words: true };
  if (lanes[row.l].kind === "node") return { threads: [], thread: 0, bar: 0, height: 0, marks: row.h / 2, words: false };
  const tall = row.h > 36 ? 2 : 0;
  return { threads: [4, 7.5, 11].map((y) => y + tall), thread: 2, bar: 15 + tall, height: 12, marks: row.h - 4.5, words: false };
}

const lanesCanvas = $("lanes");
const c = lanesCanvas.getContext("2d");

/** Draws what is in view. */
function drawLanes() {
  const began = performance.now();
  const top = $("scroller").scrollTop;
  const gutter = state.gutter, width = state.width, height = state.height;
  fit(lanesCanvas, gutter + width, height);
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, gutter + width, height);
  c.textBaseline = "middle";
  const first = firstRow(top);
  let last = first;
  while (last < rows.length && rows[last].y < top + height) last += 1;

  c.save();
  c.translate(gutter, -top);
  c.beginPath();
  c.rect(0, top, width, height);
  c.clip();
  for (let r = first; r < last; r++) {
    const { l, y, h } = rows[r];
    if (lanes[l].kind === "pod" || lanes[l].kind === "node") { c.fillStyle = colour.bg; c.fillRect(0, y, width, h); }
    if (l === state.lane) { c.fillStyle = colour["accent-soft"]; c.globalAlpha = 0.45; c.fillRect(0, y, width, h); c.globalAlpha = 1; }
    c.fillStyle = colour["line-2"];
    c.fillRect(0, y + h - 1, width, 1);
  }
  c.fillStyle = colour.line;
  for (const tick of ticks(state.a, state.b, width)) {
    c.fillRect(Math.round((tick.u - state.a) / (state.b - state.a) * width), top, 1, height);
  }
  for (let r = first; r < last; r++) drawLane(rows[r]);
  drawLinks(first, last);
  if (state.hover) {
    c.fillStyle = colour["ink-3"];
    c.globalAlpha = 0.6;
    c.fillRect(Math.round(state.hover.x), top, 1, height);
    c.globalAlpha = 1;
  }
  c.restore();
  drawLabels(first, last, top);
  frames.push(performance.now() - began);
  if (frames.length > 600) frames.shift();
}

function drawLane(row) {
  const { l, y } = row;
  const at = parts(row);
  const width = state.width;
  STAGES.forEach((stage, s) => {
    if (at.height === 0) return;
    for (const span of spansOf[l][s]) {
      const x0 = toX(span.from);
      if (x0 > width) break;
      const x1 = span.to === undefined ? Math.max(toX(end), x0 + 2) : toX(span.to);
      if (x1 < -1) continue;
      const from = Math.max(x0, -20), to = Math.min(x1, width + 20);
      if (stage === "actual") {
        c.font = `500 ${at.words ? 11.5 : 10}px ${sans}`;
        drawBar(c, span.phase, from, to, y + at.bar, at.height, span.word, span.to === undefined);
      } else {
        drawThread(c, stage, span.phase, from, to, y + at.threads[s], at.thread);
        if (at.words) {
          c.font = `10.5px ${sans}`;
          const wide = widthOf(c, span.word);
          if (to - Math.max(from, 0) > wide + 8) { c.fillStyle = colour["ink-2"]; c.fillText(span.word, Math.max(from, 0) + 1, y + at.threads[s] + at.thread + 7); }
        }
      }
      if (state.span === span) {
        c.strokeStyle = colour.accent;
        c.lineWidth = 2;
        const [top, h] = stage === "actual" ? [y + at.bar, at.height] : [y + at.threads[s], at.thread];
        c.strokeRect(from - 1, top - 1.5, Math.max(to - from, 2) + 2, h + 3);
      }
    }
  });
  drawMarks(l, y + at.marks);
}

/** Entries that share a pixel share a sign: the one that nobody should miss. */
function drawMarks(l, y) {
  const list = entriesOf[l];
  const width = state.width;
  const until = fromX(width + 6);
  let column = -1e9, best, bestX = 0, found;
  const flush = () => {
    if (best === undefined) return;
    if (found) { c.beginPath(); c.arc(bestX, y, 5, 0, 7); c.fillStyle = colour.match; c.fill(); }
    c.globalAlpha = state.matching && !found && RANK[markOf(best)] < 3 ? 0.3 : 1;
    drawMark(c, bestX, y, markOf(best));
    c.globalAlpha = 1;
  };
  for (let i = firstEntry(list, fromX(-6)); i < list.length && entries[list[i]].at <= until; i++) {
    const e = list[i];
    const x = toX(entries[e].at);
    if (x - column >= 3) {
      flush();
      column = x; best = e; bestX = x; found = false;
    } else if (RANK[markOf(e)] > RANK[markOf(best)]) { best = e; bestX = x; }
    found ||= state.matching?.has(e) ?? false;
  }
  flush();
  if (state.entry !== undefined && entries[state.entry].lane === l && entries[state.entry].at !== undefined) {
    const x = toX(entries[state.entry].at);
    drawMark(c, x, y, markOf(state.entry));
    c.beginPath();
    c.arc(x, y, 6.5, 0, 7);
    c.strokeStyle = colour.accent;
    c.lineWidth = 2;
    c.stroke();
  }
}

/** Where an entry is, if its lane is shown. */
function spot(e) {
  const at = entries[e].at;
  const r = rowOf.get(entries[e].lane);
  if (at === undefined || r === undefined) return undefined;
  return { x: toX(at), y: rows[r].y + parts(rows[r]).marks };
}

/** The chosen finding's proof, and what the chosen entry came from and led to, joined by lines. */
function drawLinks() {
  const join = (from, to, name) => {
    const [p, q] = [spot(from), spot(to)];
    if (!p || !q) return;
    c.strokeStyle = colour[name];
    c.lineWidth = 1.5;
    c.setLineDash(name === "bad" ? [] : [4, 3]);
    c.beginPath();
    c.moveTo(p.x, p.y);
    const bend = Math.max(24, Math.abs(q.x - p.x) / 2);
    c.bezierCurveTo(p.x + bend, p.y, q.x - bend, q.y, q.x, q.y);
    c.stroke();
    c.setLineDash([]);
    for (const e of [from, to]) { const at = spot(e); drawMark(c, at.x, at.y, markOf(e)); }
  };
  if (state.finding !== undefined) {
    const proof = findings[state.finding].evidence.filter((e) => entries[e].at !== undefined);
    for (let i = 1; i < proof.length; i++) join(proof[i - 1], proof[i], "bad");
  }
  if (state.entry !== undefined) {
    for (const from of entries[state.entry].from || []) join(from, state.entry, "accent");
    for (const to of (ledTo.get(state.entry) || []).slice(0, 40)) join(state.entry, to, "accent");
  }
}

const SVG = document.querySelector("svg").namespaceURI;
const SORTS = { container: "M6.5 1.5 12 4v5l-5.5 2.5L1 9V4zM1 4l5.5 2.5L12 4M6.5 6.5v5", volume: "M1.5 3.2c0-2.2 10-2.2 10 0v6.6c0 2.2-10 2.2-10 0zM1.5 3.2c0 2.2 10 2.2 10 0" };
function sortOf(kind) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "sort");
  svg.setAttribute("viewBox", "0 0 13 13");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", SORTS[kind]);
  svg.append(path);
  return svg;
}

const shownLabels = new Map();
/** The names at the left: elements, so that they can be read and clicked; only those in view exist. */
function drawLabels(first, last, top) {
  const holder = $("labels");
  holder.style.height = `${state.height}px`;
  const now = new Set();
  for (let r = first; r < last; r++) {
    const { l, y, h } = rows[r];
    const folded = state.folded.has(l);
    const key = `${l}|${h}|${folded}|${l === state.lane}`;
    now.add(key);
    let label = shownLabels.get(key);
    if (!label) {
      label = makeLabel(l, h, folded);
      shownLabels.set(key, label);
      holder.append(label);
    }
    label.style.transform = `translateY(${y - top}px)`;
  }
  for (const [key, label] of shownLabels) if (!now.has(key)) { label.remove(); shownLabels.delete(key); }
}

function makeLabel(l, h, folded) {
  const lane = lanes[l];
  const found = foundIn[l].size;
  const hidden = folded ? inside[l].reduce((n, i) => n + foundIn[i].size, 0) : 0;
  const label = el("div", { class: `label ${lane.kind}${l === state.lane ? " chosen" : ""}${h === OPEN ? " open" : ""}`, title: fullName(l), onclick: () => chooseLane(l) },
    lane.kind === "pod" ? el("button", { class: "fold", type: "button", tabindex: "-1", "aria-label": folded ? `Unfold ${lane.name}` : `Fold ${lane.name}`, "aria-expanded": String(!folded), onclick: (event) => { event.stopPropagation(); fold(l); } }, folded ? "▶" : "▼") : "",
    lane.kind === "container" || lane.kind === "volume" ? sortOf(lane.kind) : "",
    el("span", { class: "text" }, lane.name),
    found + hidden > 0 ? el("span", { class: "found", title: plural(found + hidden, "finding", "findings") }, String(found + hidden)) : "");
  label.style.height = `${h}px`;
  if (h === OPEN) {
    STAGES.forEach((stage, s) => {
      const row = el("span", { class: "rows" }, stage);
      row.style.top = `${[6, 25, 44, 63][s]}px`;
      label.append(row);
    });
  }
  return label;
}

/** What is under a point of the lanes: a row, and an entry or a span in it. */
function hit(x, y) {
  const r = firstRow(y);
  if (r >= rows.length) return undefined;
  const row = rows[r];
  const at = parts(row);
  const list = entriesOf[row.l];
  const near = Math.abs(y - row.y - at.marks) < 8 || at.height === 0;
  let entry, least = near ? 8 : 0, rank = -1;
  if (near) {
    for (let i = firstEntry(list, fromX(x - 8)); i < list.length; i++) {
      const d = Math.abs(toX(entries[list[i]].at) - x);
      if (toX(entries[list[i]].at) > x + 8) break;
      const own = RANK[markOf(list[i])];
      if (d < 4 && own > rank) { entry = list[i]; rank = own; least = d; } else if (d < least && own >= rank) { entry = list[i]; least = d; rank = own; }
    }
  }
  let span;
  if (entry === undefined && at.height > 0) {
    const inBar = y - row.y >= at.bar - 1;
    const stage = inBar ? 3 : at.threads.findIndex((top, s) => y - row.y < (at.threads[s + 1] ?? at.bar) - 1);
    const order = stage >= 0 ? [stage, 3] : [3];
    for (const s of order) {
      span = spansOf[row.l][s].findLast((q) => toX(q.from) - 2 <= x && (q.to === undefined ? toX(end) : Math.max(toX(q.to), toX(q.from) + 2)) + 2 >= x);
      if (span) break;
    }
  }
  return { row, lane: row.l, entry, span };
}
