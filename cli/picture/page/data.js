// The data as they came, and what is looked up in them. Draws nothing, changes nothing.

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const { lanes, entries, findings, files } = data;
const STAGES = ["desired", "allocated", "actuated", "actual"];
const end = Math.max(data.end, 1);

/** Of each lane its timed entries, in order of time. */
const entriesOf = lanes.map(() => []);
entries.forEach((e, i) => { if (e.at !== undefined) entriesOf[e.lane].push(i); });
entriesOf.forEach((list) => list.sort((a, b) => entries[a].at - entries[b].at || a - b));

/** Of each lane its spans, by stage. */
const spansOf = lanes.map((lane) => STAGES.map((stage) => (lane.spans || []).filter((s) => s.stage === stage)));

/** Of each lane the lanes in it: a pod's containers and volumes. */
const inside = lanes.map(() => []);
lanes.forEach((lane, i) => { if (lane.pod !== undefined && lane.pod !== i) inside[lane.pod].push(i); });

/** Which findings an entry proves, and which a lane has. */
const proves = new Map();
const foundIn = lanes.map(() => new Set());
findings.forEach((finding, f) => {
  foundIn[finding.lane].add(f);
  for (const e of finding.evidence) {
    if (!proves.has(e)) proves.set(e, []);
    proves.get(e).push(f);
    foundIn[entries[e].lane].add(f);
  }
});

/** Which spans begin or end with an entry. */
const begins = new Map();
lanes.forEach((lane, l) => (lane.spans || []).forEach((span) => {
  for (const [e, how] of [[span.by, "begins"], [span.until, "ends"]]) {
    if (e === undefined) continue;
    if (!begins.has(e)) begins.set(e, []);
    begins.get(e).push({ lane: l, span, how });
  }
}));

/** Which entries an entry led to. */
const ledTo = new Map();
entries.forEach((e, i) => (e.from || []).forEach((from) => {
  if (!ledTo.has(from)) ledTo.set(from, []);
  ledTo.get(from).push(i);
}));

const base = (name) => name.slice(name.lastIndexOf("/") + 1) || name;
const place = (e) => data.unit === "record" ? `record ${e.line}` : `${base(files[e.file]?.name ?? "?")}:${e.line}`;

/** A lane by its name and its pod's. */
function fullName(l) {
  const lane = lanes[l];
  if (lane.kind === "node") return "the node";
  if (lane.kind === "pod") return lane.name;
  const own = lane.name === "sandbox" ? "sandbox" : `${lane.kind} ${lane.name}`;
  return lane.pod === undefined ? own : `${own} of ${lanes[lane.pod].name}`;
}

const texts = [];
/** What a search of an entry looks through. */
function textOf(i) {
  texts[i] ??= `${entries[i].text}\n${entries[i].raw ?? ""}\n${place(entries[i])}\n${entries[i].who}\n${entries[i].life ?? ""}`.toLowerCase();
  return texts[i];
}

const plural = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** An element with attributes and children; text is only ever text. */
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((c) => c !== undefined && c !== false && c !== ""));
  return made;
}
