// The verbs: look somewhere, choose something, search, filter. Each changes the state, then asks for a frame.

let wanted = false;
function redraw() {
  if (wanted) return;
  wanted = true;
  requestAnimationFrame(() => { wanted = false; drawAll(); });
}
function drawAll() { drawLanes(); drawStrip(); drawAxis(); }

function resized() {
  readSizes();
  layOut();
  redraw();
  drawEntries();
}
function readSizes() {
  state.gutter = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--gutter")) || 200;
  state.width = Math.max(40, scroller.clientWidth - state.gutter);
  state.height = Math.max(20, scroller.clientHeight);
}

// --- where in time

const still = matchMedia("(prefers-reduced-motion: reduce)");
let moving = 0;
/** Shows the time from place a to place b, at once or by a short move. */
function look(a, b, softly = false) {
  const [from, to] = whole();
  const width = Math.max(closest(), Math.min(to - from, b - a));
  const a1 = Math.max(from, Math.min(to - width, (a + b) / 2 - width / 2));
  const b1 = a1 + width;
  moving += 1;
  if (!softly || still.matches) { state.a = a1; state.b = b1; redraw(); return; }
  const mine = moving, [a0, b0] = [state.a, state.b], began = performance.now();
  const step = () => {
    if (mine !== moving) return;
    const done = Math.min(1, (performance.now() - began) / 200);
    const eased = 1 - (1 - done) ** 3;
    // Widths change by factors, not by sums: so a zoom looks even.
    const w0 = b0 - a0, w1 = b1 - a1, w = w0 * (w1 / w0) ** eased;
    const near = w0 === w1 ? eased : (w - w0) / (w1 - w0);
    state.a = a0 + (a1 - a0) * near;
    state.b = done === 1 ? b1 : state.a + w;
    redraw();
    if (done < 1) requestAnimationFrame(step);
  };
  step();
}
function zoom(factor, x, softly = false) {
  const u = state.a + x / state.width * (state.b - state.a);
  const width = Math.max(closest(), (state.b - state.a) * factor);
  const share = x / state.width;
  look(u - width * share, u + width * (1 - share), softly);
}
function pan(pixels) {
  const d = pixels / state.width * (state.b - state.a);
  look(state.a + d, state.b + d);
}
function setScale(even) {
  const [from, to] = [fromX(0), fromX(state.width)];
  scale.even = even;
  $("scale-time").setAttribute("aria-pressed", String(!even));
  $("scale-even").setAttribute("aria-pressed", String(even));
  if (from <= 0 && to >= end) look(...whole()); else look(toPlace(from), toPlace(to));
}
function showTime(t0, t1) {
  const [u0, u1] = [toPlace(t0), toPlace(t1)];
  const width = state.b - state.a;
  if (u1 - u0 > width * 0.85) { const margin = (u1 - u0) * 0.2; look(u0 - margin, u1 + margin, true); return; }
  const edge = width * 0.06;
  if (u0 < state.a + edge || u1 > state.b - edge) { const middle = (u0 + u1) / 2; look(middle - width / 2, middle + width / 2, true); }
}
function zoomToChosen() {
  let times = [];
  if (state.entry !== undefined) times = [entries[state.entry].at];
  else if (state.span !== undefined) times = [state.span.from, state.span.to ?? end];
  else if (state.finding !== undefined) times = findings[state.finding].evidence.map((e) => entries[e].at);
  else if (state.lane !== undefined) times = [state.lane, ...inside[state.lane]].flatMap((l) => [...entriesOf[l].map((e) => entries[e].at), ...(lanes[l].spans || []).flatMap((s) => [s.from, s.to])]);
  times = times.filter((t) => t !== undefined);
  if (times.length === 0) return;
  const [u0, u1] = [toPlace(times.reduce((a, b) => Math.min(a, b))), toPlace(times.reduce((a, b) => Math.max(a, b)))];
  const margin = Math.max((u1 - u0) * 0.6, u0 === u1 ? (state.b - state.a) / 16 : 0);
  look(u0 - margin, u1 + margin, true);
}

// --- what is chosen

/** Chooses a lane, an entry, a span or a finding, and lets go of what was chosen before. */
function choose({ lane, entry, span, finding }) {
  const opened = lane !== state.lane;
  Object.assign(state, { lane, entry, span, finding });
  if (opened) { listedNow = state.onlyLane ? undefined : listedNow; keepInPlace(layOut); }
  if (lane === undefined) state.onlyLane = false;
  drawDetail();
  drawTabs();
  drawEntries();
  markFinding();
  redraw();
}
/** Lays out anew so that what is in view stays where it is. */
function keepInPlace(change) {
  const first = rows[firstRow(scroller.scrollTop)];
  const offset = first ? first.y - scroller.scrollTop : 0;
  change();
  const r = first ? rowOf.get(first.l) : undefined;
  if (r !== undefined) scroller.scrollTop = rows[r].y - offset;
}
function reveal(l) {
  const pod = lanes[l].pod;
  if (pod !== undefined && pod !== l && state.folded.has(pod)) { state.folded.delete(pod); layOut(); }
  if (!rowOf.has(l)) clearFilters();
  const r = rowOf.get(l);
  if (r === undefined) return;
  const { y, h } = rows[r];
  if (y < scroller.scrollTop + 4 || y + h > scroller.scrollTop + state.height - 4) scroller.scrollTop = y - state.height / 2 + h / 2;
}
const say = (text) => { $("live").textContent = text; };

function chooseLane(lane) {
  choose({ lane });
  reveal(lane);
  say(`${fullName(lane)}, ${plural(entriesOf[lane].length, "entry", "entries")}${foundIn[lane].size ? `, ${plural(foundIn[lane].size, "finding", "findings")}` : ""}`);
}
function chooseEntry(entry, fromList = false) {
  const e = entries[entry];
  choose({ lane: e.lane, entry });
  reveal(e.lane);
  if (e.at !== undefined) showTime(e.at, e.at);
  if (!fromList) showInList(); else drawEntries();
  say(`${when(e)}, ${e.text}, ${fullName(e.lane)}, ${place(e)}`);
}
function chooseSpan(lane, span) {
  choose({ lane, span });
  reveal(lane);
  say(`${fullName(lane)}, ${span.stage} ${span.word}, from ${told(span.from)}`);
}
function chooseFinding(finding) {
  const f = findings[finding];
  if (!f) return;
  if (state.tab !== "findings") showTab("findings");
  choose({ lane: f.lane, finding });
  reveal(f.lane);
  const times = f.evidence.map((e) => entries[e].at).filter((t) => t !== undefined);
  if (times.length) {
    const [t0, t1] = [times.reduce((a, b) => Math.min(a, b)), times.reduce((a, b) => Math.max(a, b))];
    // A proof that would be a few pixels wide is looked at closely.
    if (t1 > t0 && toX(t1) - toX(t0) < state.width / 8) zoomToChosen(); else showTime(t0, t1);
  }
  else if (f.at !== undefined) showTime(f.at, f.at);
  say(`finding ${f.kind}, ${fullName(f.lane)}, ${f.explanation}`);
}
function nextFinding(step) {
  if (findings.length === 0) { say("no finding"); return; }
  const now = state.finding ?? (step > 0 ? -1 : 0);
  chooseFinding((now + step + findings.length) % findings.length);
}
function fold(pod) {
  if (lanes[pod].kind !== "pod") return;
  if (!state.folded.delete(pod)) state.folded.add(pod);
  keepInPlace(layOut);
  redraw();
}

// --- search and filters

function search(text) {
  state.query = text.trim();
  const query = state.query.toLowerCase();
  state.matches = state.matching = state.matchLanes = undefined;
  if (query) {
    const found = [];
    for (let i = 0; i < entries.length; i++) if (textOf(i).includes(query)) found.push(i);
    state.matches = found;
    state.matching = new Set(found);
    state.matchLanes = new Set(found.map((i) => entries[i].lane));
    lanes.forEach((lane, l) => { if (lane.name.toLowerCase().includes(query) || (lane.about || []).some(([, v]) => v.toLowerCase().includes(query))) { state.matchLanes.add(l); inside[l].forEach((i) => state.matchLanes.add(i)); } });
    if (state.tab !== "entries") showTab("entries");
  }
  $("matches").textContent = query ? plural(state.matches.length, "match", "matches") : "";
  document.querySelector(".search").classList.toggle("has", Boolean(query));
  listedNow = undefined;
  $("entries").scrollTop = 0;
  layOut();
  drawTabs();
  drawEntries();
  redraw();
}
function nextMatch(step) {
  const list = state.matches ?? [];
  if (list.length === 0) return;
  const now = state.entry === undefined ? (step > 0 ? -1 : 0) : list.indexOf(state.entry);
  chooseEntry(list[(now + step + list.length) % list.length]);
}
function clearFilters() {
  state.kinds = { pod: true, container: true, volume: true, found: false };
  $("query").value = "";
  drawKinds();
  search("");
}
function drawKinds() {
  const button = (kind, name, title) => el("button", { type: "button", "aria-pressed": String(state.kinds[kind]), title, onclick: () => { state.kinds[kind] = !state.kinds[kind]; drawKinds(); keepInPlace(layOut); redraw(); } }, name);
  $("kinds").replaceChildren(button("pod", "Pods", "Show pods"), button("container", "Containers", "Show containers"), button("volume", "Volumes", "Show volumes"),
    ...(findings.length ? [button("found", "◆ Found", "Only lanes with findings")] : []));
}
function showOnlyLane(only) {
  state.onlyLane = only;
  listedNow = undefined;
  $("entries").scrollTop = 0;
  drawTabs();
  drawEntries();
}
function showTab(tab) {
  state.tab = tab;
  drawTabs();
  drawEntries();
}

// --- the frame around it

function drawHead() {
  const pods = lanes.filter((l) => l.kind === "pod").length;
  $("title").textContent = data.title;
  $("title").title = data.title;
  document.title = `${data.title} · nodefold`;
  $("subtitle").textContent = `${plural(pods, "pod", "pods")}, ${plural(lanes.length, "lane", "lanes")}, ${plural(entries.length, "entry", "entries")} over ${lasting(end)}`;
  const verdict = $("verdict");
  verdict.classList.toggle("bad", findings.length > 0);
  verdict.textContent = findings.length ? `◆ ${plural(findings.length, "finding", "findings")}` : "✓ clean";
  verdict.title = findings.length ? "Go to the next finding (f)" : "Nothing in this evidence breaks an invariant";
  verdict.onclick = () => findings.length ? nextFinding(1) : showTab("findings");
  $("range").textContent = data.relative ? dateOf(0) : `${dateOf(0)}${dateOf(end) === dateOf(0) ? "" : ` – ${dateOf(end)}`}, UTC`;
}

function drawLegend() {
  const item = (name, paint) => {
    const canvas = document.createElement("canvas");
    fit(canvas, 26, 14);
    const k = canvas.getContext("2d");
    k.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint(k);
    canvas.setAttribute("aria-hidden", "true");
    return el("span", { class: "item" }, canvas, name);
  };
  const present = new Set(lanes.flatMap((l) => (l.spans || []).filter((s) => s.stage === "actual").map((s) => s.phase)));
  const marks = [["seen", "seen"], ["derived", "derived"], ["bad", "failure"], ["proof", "proof of a finding"]].filter(([kind]) => kind === "seen" || entries.some((_, i) => markOf(i) === kind));
  $("legend").replaceChildren(
    ...STAGES.slice(0, 3).map((stage) => item(stage, (k) => drawThread(k, stage, "up", 1, 25, 6, 3))),
    item("to go", (k) => drawThread(k, "desired", "going", 1, 25, 6, 3)),
    el("span", { class: "rule" }), el("span", {}, "actual:"),
    ...Object.keys(PHASES).filter((p) => present.has(p)).map((p) => item(PHASES[p], (k) => drawBar(k, p, 1, 25, 1, 12, "", false))),
    el("span", { class: "rule" }),
    ...marks.map(([kind, name]) => item(name, (k) => drawMark(k, 13, 7, kind))));
}

const dark = matchMedia("(prefers-color-scheme: dark)");
function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  repaint();
}
function repaint() {
  readLook();
  for (const canvas of [lanesCanvas, strip, axis]) canvas.width = 0;
  drawLegend();
  redraw();
}
function kept(name, value) {
  // A page from a file may have no storage; then the system's choice holds.
  try { return value === undefined ? localStorage.getItem(name) : localStorage.setItem(name, value); } catch { return undefined; }
}

$("theme").onclick = () => {
  const now = document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  kept("nodefold-theme", next);
  setTheme(next);
};
$("help").onclick = showKeys;
$("whole").onclick = () => look(...whole(), true);
$("scale-time").onclick = () => setScale(false);
$("scale-even").onclick = () => setScale(true);
let typed;
$("query").addEventListener("input", (event) => { clearTimeout(typed); typed = setTimeout(() => search(event.target.value), 90); });
$("query").addEventListener("keydown", (event) => { if (event.key === "Enter") { clearTimeout(typed); if (state.query !== event.target.value.trim()) search(event.target.value); nextMatch(event.shiftKey ? -1 : 1); } });
for (const tab of TABS) {
  $(`tab-${tab}`).onclick = () => showTab(tab);
  $(`tab-${tab}`).addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const next = TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length];
    showTab(next);
    $(`tab-${next}`).focus();
  });
}
$("entries").addEventListener("keydown", (event) => {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  const list = listed();
  if (step === 0 || list.length === 0) return;
  event.preventDefault();
  const now = state.entry === undefined ? -1 : list.indexOf(state.entry);
  const next = list[Math.max(0, Math.min(list.length - 1, now + step))];
  chooseEntry(next);
});
dark.addEventListener("change", repaint);
addEventListener("keydown", onKey);
new ResizeObserver(resized).observe(scroller);
matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", repaint);

setTheme(kept("nodefold-theme") ?? undefined);
drawHead();
drawKinds();
drawTabs();
drawFindings();
drawAbout();
readSizes();
// Many pods begin folded, but those in which something was found: the picture is to be understood first.
if (lanes.length > 400) lanes.forEach((lane, l) => { if (lane.kind === "pod" && !inside[l].some((i) => foundIn[i].size) && !foundIn[l].size) state.folded.add(l); });
// Where most of the time nothing happens, every moment alike shows more.
scale.even = unevenly();
$("scale-time").setAttribute("aria-pressed", String(!scale.even));
$("scale-even").setAttribute("aria-pressed", String(scale.even));
layOut();
[state.a, state.b] = whole();
listenToLanes();
listenToStrip();
listenToSash();
drawEntries();
drawAll();

/** For tests, and for who is curious: the state, and how long frames took. */
window.nodefold = { data, state, frames, drawAll, chooseEntry, chooseFinding, search, look, whole, hit, spot: (e) => spot(e), rows: () => rows };
