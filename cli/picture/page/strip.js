// The overview strip and the axis: all of the time at once, and the part of it that is shown.

const strip = $("strip");
const axis = $("axis");
let histogram;

/** How many entries, and how many troubles, fall into each column of the strip. */
function counted(width) {
  if (histogram && histogram.width === width && histogram.even === scale.even) return histogram;
  const columns = Math.max(1, Math.floor(width / 3));
  const all = new Uint32Array(columns), bad = new Uint32Array(columns);
  const [from, to] = whole();
  for (const e of entries) {
    if (e.at === undefined) continue;
    const i = Math.min(columns - 1, Math.max(0, Math.floor((toPlace(e.at) - from) / (to - from) * columns)));
    all[i] += 1;
    if (e.bad) bad[i] += 1;
  }
  histogram = { width, even: scale.even, columns, all, bad, most: all.reduce((a, b) => Math.max(a, b), 1) };
  return histogram;
}

const stripX = (u) => { const [from, to] = whole(); return (u - from) / (to - from) * state.width; };
const stripPlace = (x) => { const [from, to] = whole(); return from + x / state.width * (to - from); };

function drawStrip() {
  const width = state.width, height = 53;
  fit(strip, width, height);
  const s = strip.getContext("2d");
  s.setTransform(ratio, 0, 0, ratio, 0, 0);
  s.clearRect(0, 0, width, height);
  const h = counted(width);
  const wide = width / h.columns;
  const tall = (n) => n === 0 ? 0 : Math.max(2, Math.sqrt(n / h.most) * (height - 18));
  const [a, b] = [stripX(state.a), stripX(state.b)];
  s.fillStyle = colour.surface;
  s.fillRect(a, 0, b - a, height);
  for (let i = 0; i < h.columns; i++) {
    const x = i * wide;
    const inView = x + wide > a && x < b;
    s.fillStyle = inView ? colour.allocated : colour["ink-3"];
    s.globalAlpha = inView ? 0.85 : 0.45;
    s.fillRect(x, height - 3 - tall(h.all[i]), wide - 0.6, tall(h.all[i]));
    s.globalAlpha = 1;
    if (h.bad[i] > 0) { s.fillStyle = colour.bad; s.fillRect(x, height - 3 - tall(h.bad[i]), wide - 0.6, tall(h.bad[i])); }
  }
  if (state.matching) {
    s.fillStyle = colour.match;
    for (const e of state.matching) if (entries[e].at !== undefined) s.fillRect(stripX(toPlace(entries[e].at)) - 0.5, height - 3, 1.5, 3);
  }
  findings.forEach((finding, f) => {
    if (finding.at === undefined) return;
    const x = stripX(toPlace(finding.at));
    s.beginPath();
    s.moveTo(x, 3); s.lineTo(x + 4.5, 8); s.lineTo(x, 13); s.lineTo(x - 4.5, 8); s.closePath();
    s.fillStyle = colour.bad;
    s.fill();
    if (f === state.finding) { s.strokeStyle = colour.ink; s.lineWidth = 1.5; s.stroke(); }
    s.fillRect(x - 0.5, 13, 1, height - 16);
  });
  s.strokeStyle = colour.accent;
  s.lineWidth = 1.5;
  s.strokeRect(Math.max(0.75, a), 0.75, Math.min(width - 1.5, b) - Math.max(0.75, a), height - 1.5);
  s.fillStyle = colour.accent;
  for (const x of [Math.max(1.5, a), Math.min(width - 1.5, b)]) { s.beginPath(); s.roundRect(x - 2.5, height / 2 - 8, 5, 16, 2.5); s.fill(); }
  const [from, to] = whole();
  strip.setAttribute("aria-valuenow", String(Math.round(((state.a + state.b) / 2 - from) / (to - from) * 100)));
  strip.setAttribute("aria-valuetext", `${told(fromX(0))} to ${told(fromX(width))}`);
}

function drawAxis() {
  const width = state.width, height = 29;
  fit(axis, width, height);
  const s = axis.getContext("2d");
  s.setTransform(ratio, 0, 0, ratio, 0, 0);
  s.clearRect(0, 0, width, height);
  s.textBaseline = "middle";
  s.font = `11px ${sans}`;
  for (const tick of ticks(state.a, state.b, width)) {
    const x = Math.round((tick.u - state.a) / (state.b - state.a) * width);
    s.fillStyle = colour["ink-3"];
    s.fillRect(x, height - 6, 1, 6);
    s.fillStyle = colour["ink-2"];
    if (x + 4 + widthOf(s, tick.label) < width && x > -4) s.fillText(tick.label, x + 4, height / 2);
  }
  if (state.hover) {
    const label = told(fromX(state.hover.x), 6);
    const wide = widthOf(s, label) + 12;
    const x = Math.max(0, Math.min(width - wide, state.hover.x - wide / 2));
    s.fillStyle = colour.ink;
    s.beginPath();
    s.roundRect(x, 4, wide, height - 8, 5);
    s.fill();
    s.fillStyle = colour.surface;
    s.fillText(label, x + 6, height / 2 + 0.5);
  }
  const shown = fromX(width) - fromX(0);
  $("shown").textContent = `${lasting(Math.max(0, shown))} shown`;
}
