// The panel: what is chosen with its evidence, the findings, the entries, and what the page was made from. All of it text.

/** A text in which what is searched for is marked. */
function marked(text) {
  const query = state.query.toLowerCase();
  const at = query ? text.toLowerCase().indexOf(query) : -1;
  if (at < 0) return [text];
  return [text.slice(0, at), el("mark", {}, text.slice(at, at + query.length)), text.slice(at + query.length)];
}

const surely = { seen: "seen: a line says it", derived: "derived: it was inferred from several lines", absent: "absent: nothing was seen although it should have been" };
const when = (e, digits = 6) => e.at === undefined ? "when listed" : told(e.at, digits);

function stepTo(i) {
  const e = entries[i];
  return el("button", { class: "step", type: "button", onclick: () => chooseEntry(i) },
    el("time", {}, when(e)), el("span", { class: "what" }, e.text),
    el("span", { class: "where" }, `${fullName(e.lane)} · ${place(e)}`, e.sure === "seen" ? "" : ` · ${e.sure}`));
}

function pairs(list) {
  return el("dl", {}, list.filter(([, value]) => value !== undefined && value !== "").flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function head(title) {
  return el("div", { class: "head" }, el("h2", {}, title),
    el("button", { class: "close", type: "button", "aria-label": "Close", title: "Close (Esc)", onclick: () => choose({}) }, "×"));
}

function fullTime(e) {
  if (e.at === undefined) return "it has no time of its own";
  if (data.relative) return `${told(e.at, 6)} · ${dateOf(e.at)} ${clockOf(e.at)} UTC`;
  return `${dateOf(e.at)} ${told(e.at, 6)} UTC`;
}
const clockOf = (t) => new Date((data.origin + t) / 1000).toISOString().slice(11, 23);

function entryDetail(i) {
  const e = entries[i];
  const parts = [head(e.text), pairs([
    ["when", fullTime(e)],
    ["where", place(e)],
    ["who says it", e.who],
    ["confidence", surely[e.sure]],
    ["about", fullName(e.lane)],
    ["id", e.life],
    ["why", e.why],
  ])];
  if (e.raw) parts.push(el("pre", { class: "raw", "aria-label": data.unit === "record" ? "The record" : "The line as it was written" }, ...marked(e.raw)));
  else if (data.unit === "line") parts.push(el("p", {}, "The line's text is not here: its input could not be read a second time."));
  if (e.from?.length) parts.push(el("h3", {}, "derived from"), ...e.from.map((from) => stepTo(from)));
  const led = ledTo.get(i) || [];
  if (led.length) parts.push(el("h3", {}, "led to"), ...led.slice(0, 12).map((to) => stepTo(to)), led.length > 12 ? el("p", {}, `and ${led.length - 12} more`) : "");
  const moves = begins.get(i) || [];
  if (moves.length) {
    parts.push(el("h3", {}, "so"));
    for (const { lane, span, how } of moves.slice(0, 12)) {
      parts.push(el("button", { class: "step", type: "button", onclick: () => chooseSpan(lane, span) },
        el("span", {}, how === "begins" ? "▸" : "▪"), el("span", { class: "what" }, `${fullName(lane)}: ${span.stage} “${span.word}” ${how}`)));
    }
  }
  for (const f of proves.get(i) || []) {
    parts.push(el("h3", {}, "proves"), el("button", { class: "step", type: "button", onclick: () => chooseFinding(f) },
      el("span", {}, "◆"), el("span", { class: "what" }, findings[f].kind)));
  }
  const list = entriesOf[e.lane];
  const at = list.indexOf(i);
  parts.push(el("div", { class: "nav" },
    el("button", { type: "button", disabled: at <= 0, onclick: () => chooseEntry(list[at - 1]) }, "← before it in its lane"),
    el("button", { type: "button", disabled: at < 0 || at >= list.length - 1, onclick: () => chooseEntry(list[at + 1]) }, "after it →")));
  return parts;
}

function spanDetail(l, span) {
  const parts = [head(`${fullName(l)}: ${span.word}`), pairs([
    ["stage", span.stage],
    ["phase", PHASES[span.phase] ?? span.phase],
    ["from", told(span.from, 6)],
    ["to", span.to === undefined ? "the end of what is known" : told(span.to, 6)],
    ["lasts", span.to === undefined ? `${lasting(end - span.from)} or more` : lasting(span.to - span.from)],
  ])];
  if (span.by !== undefined) parts.push(el("h3", {}, "its beginning was derived from"), stepTo(span.by));
  if (span.until !== undefined) parts.push(el("h3", {}, "its end was derived from"), stepTo(span.until));
  return parts;
}

function findingDetail(f) {
  const finding = findings[f];
  const said = [finding.count > 1 ? `${finding.count} times` : "", finding.resolved ? "resolved later" : "", finding.sure].filter(Boolean).join(", ");
  return [head(finding.kind), el("p", { class: "strong" }, finding.explanation), el("p", {}, `That means: ${finding.meaning}.`), pairs([
    ["invariant", finding.invariant],
    ["where", fullName(finding.lane)],
    ["instance", finding.instance],
    ["provable", finding.at === undefined ? undefined : told(finding.at, 6)],
    ["confidence", said],
    ["seen before", finding.race],
  ]), el("h3", {}, "proof"), ...(finding.evidence.length ? finding.evidence.map((e) => stepTo(e)) : [el("p", {}, "Nothing was seen: that is the finding.")]),
  el("div", { class: "nav" },
    el("button", { type: "button", disabled: f === 0, onclick: () => chooseFinding(f - 1) }, "← finding before"),
    el("button", { type: "button", disabled: f === findings.length - 1, onclick: () => chooseFinding(f + 1) }, "next finding →"))];
}

function laneDetail(l) {
  const lane = lanes[l];
  return [head(fullName(l)), pairs([...(lane.about || []),
    ["entries", plural(entriesOf[l].length, "entry", "entries")],
    ["lanes in it", inside[l].length ? String(inside[l].length) : undefined],
    ...STAGES.map((stage, s) => [stage, spansOf[l][s].length ? spansOf[l][s].map((q) => q.word).slice(-6).join(" → ") : "the evidence does not say"])])];
}

function drawDetail() {
  const parts = state.entry !== undefined ? entryDetail(state.entry)
    : state.span !== undefined ? spanDetail(state.lane, state.span)
    : state.finding !== undefined ? findingDetail(state.finding)
    : state.lane !== undefined && lanes[state.lane].kind !== "node" ? laneDetail(state.lane) : undefined;
  $("detail").replaceChildren(...(parts ? [el("div", { class: "in" }, ...parts.filter((p) => p !== ""))] : []));
  $("detail").scrollTop = 0;
}

const TABS = ["findings", "entries", "about"];
function drawTabs() {
  const counts = { findings: findings.length, entries: listed().length };
  const names = { findings: "Findings", entries: "Entries", about: "Sources" };
  for (const tab of TABS) {
    const button = $(`tab-${tab}`);
    button.replaceChildren(names[tab], counts[tab] === undefined ? "" : el("span", { class: "n" }, counts[tab].toLocaleString("en")));
    button.setAttribute("aria-selected", String(state.tab === tab));
    button.tabIndex = state.tab === tab ? 0 : -1;
    $(tab).hidden = state.tab !== tab;
  }
}

function drawFindings() {
  const cards = findings.map((finding, f) => el("button", { class: "card", type: "button", "data-finding": String(f), onclick: () => chooseFinding(f) },
    el("span", { class: "kind" }, "◆ ", finding.kind, finding.invariant ? el("span", { class: "inv" }, finding.invariant) : "",
      el("span", { class: "sure" }, [finding.at === undefined ? "" : told(finding.at), finding.sure, finding.count > 1 ? `×${finding.count}` : ""].filter(Boolean).join(" · "))),
    el("div", { class: "who" }, fullName(finding.lane)), el("div", { class: "says" }, finding.explanation)));
  $("findings").replaceChildren(...(cards.length ? cards : [el("div", { class: "none" }, el("b", {}, "✓ No finding"), "Nothing in this evidence breaks an invariant. How far it reaches is told under Sources.")]));
}

function markFinding() {
  for (const card of $("findings").querySelectorAll(".card")) {
    const chosen = Number(card.dataset.finding) === state.finding;
    card.classList.toggle("chosen", chosen);
    if (chosen) { card.setAttribute("aria-current", "true"); card.scrollIntoView({ block: "nearest" }); } else card.removeAttribute("aria-current");
  }
}

/** The entries that the list holds: all, those of a lane and its pod's, those that match. */
let listedNow;
function listed() {
  if (listedNow) return listedNow;
  let list = state.matches ?? entries.map((_, i) => i);
  if (state.onlyLane && state.lane !== undefined) {
    const own = new Set([state.lane, ...inside[state.lane]]);
    list = list.filter((i) => own.has(entries[i].lane));
  }
  listedNow = list;
  return list;
}

const ROW = 44;
function drawEntries() {
  const box = $("entries");
  if (state.tab !== "entries") return;
  const list = listed();
  let filter = box.querySelector(".filter"), holder = box.querySelector(".rows-holder");
  if (!filter) {
    filter = el("div", { class: "filter" });
    holder = el("div", { class: "rows-holder", role: "list" });
    holder.style.position = "relative";
    box.replaceChildren(filter, holder);
  }
  const what = state.onlyLane && state.lane !== undefined ? fullName(state.lane) : state.matches ? `matching “${state.query}”` : "all lanes";
  const toggle = state.onlyLane ? el("button", { class: "link", type: "button", onclick: () => showOnlyLane(false) }, "show all")
    : state.lane !== undefined ? el("button", { class: "link", type: "button", onclick: () => showOnlyLane(true) }, "only the chosen lane") : "";
  filter.replaceChildren(el("b", {}, what), el("span", {}, plural(list.length, "entry", "entries")), toggle);
  holder.style.height = `${list.length * ROW}px`;
  if (list.length === 0) {
    holder.replaceChildren(el("div", { class: "none" }, el("b", {}, "No entry"), state.query ? `None matches “${state.query}”.` : "This lane has none of its own."));
    return;
  }
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 4);
  const last = Math.min(list.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + 4);
  const made = [];
  for (let n = first; n < last; n++) {
    const i = list[n], e = entries[i];
    const row = el("div", { class: `row${e.quiet ? " quiet" : ""}${e.bad ? " bad" : ""}${i === state.entry ? " chosen" : ""}`, role: "listitem", "data-entry": String(i), "aria-setsize": String(list.length), "aria-posinset": String(n + 1), "aria-current": i === state.entry, onclick: () => chooseEntry(i, true) },
      el("div", { class: "a" }, el("time", {}, when(e, 3)), el("span", { class: "t" }, proves.has(i) ? "◆ " : e.bad ? "× " : "", ...marked(e.text))),
      el("div", { class: "b" }, el("span", { class: "p" }, fullName(e.lane)), el("span", { class: "l" }, `${e.sure === "seen" ? "" : `${e.sure} · `}${place(e)}`)));
    row.style.top = `${n * ROW}px`;
    made.push(row);
  }
  holder.replaceChildren(...made);
}

/** Brings the chosen entry into the list's view. */
function showInList() {
  if (state.tab !== "entries" || state.entry === undefined) return;
  const n = listed().indexOf(state.entry);
  const box = $("entries");
  if (n >= 0 && (n * ROW < box.scrollTop || (n + 2) * ROW > box.scrollTop + box.clientHeight)) box.scrollTop = n * ROW - box.clientHeight / 2;
  drawEntries();
}

function drawAbout() {
  const span = data.relative ? `It lasts ${lasting(end)} and begins at ${dateOf(0)} ${clockOf(0)} UTC.` : `From ${dateOf(0)} ${told(0)} to ${dateOf(end)} ${told(end)} UTC.`;
  $("about").replaceChildren(el("div", { class: "about" },
    el("h3", {}, "Read"), el("ul", {}, files.map((f) => el("li", {}, el("span", { class: "file" }, f.name), el("small", {}, `${plural(f.lines, data.unit, `${data.unit}s`)}${f.who.length ? `: ${f.who.join(", ")}` : ""}`)))),
    el("h3", {}, "Time"), el("p", {}, span),
    data.notes.length ? el("h3", {}, "Worth knowing") : "",
    data.notes.length ? el("ul", {}, data.notes.map((note) => el("li", {}, note))) : ""));
}
