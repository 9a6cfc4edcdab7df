// Colours and patterns, read from the style sheet; no phase is told by its colour alone.

const PHASES = {
  waiting: "waits", coming: "being made", up: "up", going: "being undone", failing: "in error", unknown: "unknown", over: "ended",
};
const COLOURS = ["bg", "surface", "sunken", "raised", "ink", "ink-2", "ink-3", "line", "line-2", "accent", "accent-soft", "bad", "bad-soft",
  "good", "match", "desired", "allocated", "actuated",
  ...Object.keys(PHASES).flatMap((p) => [p, `${p}-edge`, `${p}-ink`])];
const colour = {};
const pattern = {};
let ratio = 1;
let sans = "sans-serif";

/** Reads the colours as they are now, in light or dark. */
function readLook() {
  const probe = el("span", { class: "hidden" });
  document.body.append(probe);
  for (const name of COLOURS) {
    probe.style.color = `var(--${name})`;
    colour[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  sans = getComputedStyle(document.body).fontFamily;
  ratio = Math.max(1, window.devicePixelRatio || 1);
  const tile = (size, paint) => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = Math.round(size * ratio);
    const c = canvas.getContext("2d");
    c.scale(ratio, ratio);
    paint(c, size);
    const made = c.createPattern(canvas, "repeat");
    made.setTransform(new DOMMatrix([1 / ratio, 0, 0, 1 / ratio, 0, 0]));
    return made;
  };
  const stripes = (rising) => (c, s) => {
    c.lineWidth = 1.3;
    c.beginPath();
    for (const d of [-s, 0, s]) {
      if (rising) { c.moveTo(d - 1, s + 1); c.lineTo(d + s + 1, -1); } else { c.moveTo(d - 1, -1); c.lineTo(d + s + 1, s + 1); }
    }
    c.stroke();
  };
  const of = (name, alpha, paint) => (c, s) => {
    c.strokeStyle = c.fillStyle = colour[name];
    c.globalAlpha = alpha;
    paint(c, s);
  };
  pattern.coming = tile(6, of("coming-edge", 0.5, stripes(true)));
  pattern.going = tile(6, of("going-edge", 0.5, stripes(false)));
  pattern.failing = tile(6, of("failing-edge", 0.42, (c, s) => { stripes(true)(c, s); stripes(false)(c, s); }));
  pattern.unknown = tile(5, of("unknown-edge", 0.7, (c, s) => { c.beginPath(); c.arc(s / 2, s / 2, 0.9, 0, 7); c.fill(); }));
}

/** Sizes a canvas to its place; true if it changed. */
function fit(canvas, width, height) {
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width === w && canvas.height === h) return false;
  canvas.width = w;
  canvas.height = h;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  return true;
}

const widths = new Map();
/** How wide a word is; words recur. */
function widthOf(c, text) {
  const key = `${c.font}|${text}`;
  if (!widths.has(key)) {
    if (widths.size > 5000) widths.clear();
    widths.set(key, c.measureText(text).width);
  }
  return widths.get(key);
}

/** The bar of a phase. */
function drawBar(c, phase, x0, x1, y, h, word, open) {
  const w = Math.max(x1 - x0, 1.5);
  const radius = Math.min(3, w / 2, h / 2);
  const thin = phase === "over";
  const top = thin ? y + h * 0.28 : y, height = thin ? h * 0.44 : h;
  c.beginPath();
  c.roundRect(x0, top, w, height, open ? [radius, 0, 0, radius] : thin ? 1.5 : radius);
  c.fillStyle = colour[phase];
  c.fill();
  if (pattern[phase] && w > 3) { c.fillStyle = pattern[phase]; c.fill(); }
  c.strokeStyle = colour[`${phase}-edge`];
  c.lineWidth = 1;
  if (w > 3) {
    if (phase === "waiting") c.setLineDash([2, 2]);
    c.beginPath();
    c.roundRect(x0 + 0.5, top + 0.5, w - 1, height - 1, open ? [radius, 0, 0, radius] : thin ? 1.5 : radius);
    c.stroke();
    c.setLineDash([]);
  } else { c.fillStyle = colour[`${phase}-edge`]; c.fillRect(x0, top, w, height); }
  if (!word || h < 11) return;
  const from = Math.max(x0, 0) + 6, room = x1 - from - 5;
  const wide = widthOf(c, word);
  if (room < wide) return;
  if (thin || pattern[phase]) {
    c.fillStyle = colour[thin ? "surface" : phase];
    c.fillRect(from - 3, y + 1.5, wide + 6, h - 3);
  }
  c.fillStyle = colour[`${phase}-ink`];
  c.fillText(word, from, y + h / 2 + 0.5);
}

/** The thread of a stage: solid while it is wanted, dashed once it is to go. */
function drawThread(c, stage, phase, x0, x1, y, h) {
  const w = Math.max(x1 - x0, 1.5);
  c.fillStyle = colour[stage];
  if (phase === "going" && w > 5) {
    for (let x = x0; x < x1; x += 6) c.fillRect(x, y, Math.min(3.5, x1 - x), h);
  } else {
    c.fillRect(x0, y, w, h);
  }
}

/** The sign of an entry. */
function drawMark(c, x, y, kind) {
  c.lineWidth = 1.4;
  c.beginPath();
  if (kind === "proof") {
    c.moveTo(x, y - 5.5); c.lineTo(x + 5.5, y); c.lineTo(x, y + 5.5); c.lineTo(x - 5.5, y); c.closePath();
    c.fillStyle = colour.bad; c.fill();
    c.strokeStyle = colour.surface; c.stroke();
  } else if (kind === "bad") {
    c.moveTo(x - 2.6, y - 2.6); c.lineTo(x + 2.6, y + 2.6); c.moveTo(x + 2.6, y - 2.6); c.lineTo(x - 2.6, y + 2.6);
    c.strokeStyle = colour.bad; c.lineWidth = 1.7; c.stroke();
  } else if (kind === "derived") {
    c.arc(x, y, 2.1, 0, 7); c.strokeStyle = colour["ink-2"]; c.lineWidth = 1.2; c.stroke();
  } else {
    c.arc(x, y, kind === "quiet" ? 1.1 : 2.1, 0, 7); c.fillStyle = colour[kind === "quiet" ? "ink-3" : "ink-2"]; c.fill();
  }
}

const RANK = { quiet: 0, derived: 1, seen: 1, bad: 2, proof: 3 };
function markOf(i) {
  const e = entries[i];
  if (proves.has(i)) return "proof";
  if (e.bad) return "bad";
  if (e.quiet) return "quiet";
  return e.sure === "seen" ? "seen" : "derived";
}
