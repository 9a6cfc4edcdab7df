// Time to place and back, and how times are told. A place is a number on the line that the view is a window of:
// microseconds since the origin, or, on the even scale, how many moments came before.

const MIN = 60e6, HOUR = 3600e6, DAY = 86400e6;

/** Every moment at which something happened, each once. */
const moments = (() => {
  const all = [0, end];
  for (const e of entries) if (e.at !== undefined) all.push(e.at);
  for (const lane of lanes) for (const s of lane.spans || []) { all.push(s.from); if (s.to !== undefined) all.push(s.to); }
  all.sort((a, b) => a - b);
  return Float64Array.from(all.filter((t, i) => i === 0 || t !== all[i - 1]));
})();

const scale = { even: false };

/** The index of the last moment not after t; -1 if there is none. */
function momentBefore(t) {
  let low = 0, high = moments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (moments[middle] <= t) low = middle + 1; else high = middle;
  }
  return low - 1;
}

function toPlace(t) {
  if (!scale.even) return t;
  const i = momentBefore(t);
  if (i < 0) return 0;
  if (i >= moments.length - 1) return moments.length - 1;
  return i + (t - moments[i]) / (moments[i + 1] - moments[i]);
}

function toTime(u) {
  if (!scale.even) return u;
  // Before the first moment and after the last no time passes on this scale.
  if (u <= 0) return moments[0];
  if (u >= moments.length - 1) return moments[moments.length - 1];
  const i = Math.floor(u);
  return moments[i] + (u - i) * (moments[i + 1] - moments[i]);
}

/** Whether what happens keeps to a small part of the time: less than a third of a hundred equal parts has any of it. */
function unevenly() {
  const full = new Set(Array.from(moments, (t) => Math.min(99, Math.floor(t / end * 100))));
  return moments.length > 30 && full.size < 33;
}

/** All of it, with a margin. */
function whole() {
  const last = scale.even ? Math.max(1, moments.length - 1) : end;
  const margin = last * 0.025;
  return [-margin, last + margin];
}
const closest = () => scale.even ? 1.5 : 20;

const pad = (n, width) => String(Math.floor(n)).padStart(width, "0");

/** A time to so many digits of a second. */
function told(t, digits = 3) {
  const fraction = (micros) => digits === 0 ? "" : "." + pad(micros % 1e6, 6).slice(0, digits);
  if (data.relative) {
    const sign = t < 0 ? "−" : "";
    const micros = Math.round(Math.abs(t));
    if (micros >= HOUR) return `${sign}${Math.floor(micros / HOUR)}:${pad(micros / MIN % 60, 2)}:${pad(micros / 1e6 % 60, 2)}${fraction(micros)}`;
    if (micros >= MIN) return `${sign}${Math.floor(micros / MIN)}:${pad(micros / 1e6 % 60, 2)}${fraction(micros)}`;
    return `${sign}${Math.floor(micros / 1e6)}${fraction(micros)}s`;
  }
  const micros = data.origin + Math.round(t);
  const day = ((micros % DAY) + DAY) % DAY;
  return `${pad(day / HOUR, 2)}:${pad(day / MIN % 60, 2)}:${pad(day / 1e6 % 60, 2)}${fraction(day)}`;
}

const dateOf = (t) => new Date((data.origin + t) / 1000).toISOString().slice(0, 10);

/** A length of time. */
function lasting(micros) {
  if (micros < 1000) return `${Math.round(micros)} µs`;
  if (micros < 1e6) return `${(micros / 1000).toFixed(micros < 1e5 ? 1 : 0)} ms`;
  if (micros < MIN) return `${(micros / 1e6).toFixed(micros < 1e7 ? 2 : 1)} s`;
  if (micros < HOUR) return `${Math.floor(micros / MIN)} min ${pad(micros / 1e6 % 60, 1)} s`;
  if (micros < DAY) return `${Math.floor(micros / HOUR)} h ${pad(micros / MIN % 60, 1)} min`;
  return `${Math.floor(micros / DAY)} d ${pad(micros / HOUR % 24, 1)} h`;
}

const STEPS = (() => {
  const steps = [];
  for (let ten = 1; ten < 1e6; ten *= 10) steps.push(ten, 2 * ten, 5 * ten);
  for (const s of [1, 2, 5, 10, 15, 30]) steps.push(s * 1e6);
  for (const m of [1, 2, 5, 10, 15, 30]) steps.push(m * MIN);
  for (const h of [1, 2, 3, 6, 12]) steps.push(h * HOUR);
  for (let d = 1; d < 4000; d *= 2) steps.push(d * DAY);
  return steps;
})();

/** Where the axis has its ticks: places and labels. */
function ticks(from, to, width) {
  const out = [];
  if (scale.even) {
    const count = Math.max(1, Math.floor(width / 110));
    const step = Math.max(1, Math.ceil((to - from) / count));
    const digits = data.relative ? 3 : 3;
    for (let i = Math.max(0, Math.ceil(from / step) * step); i <= Math.min(to, moments.length - 1); i += step) {
      out.push({ u: i, label: told(moments[i], digits) });
    }
    return out;
  }
  const wanted = (to - from) / Math.max(1, width / 104);
  const step = STEPS.find((s) => s >= wanted) ?? STEPS[STEPS.length - 1];
  const digits = step >= 1e6 ? 0 : step >= 1000 ? 3 : 6;
  const base = data.relative ? 0 : data.origin;
  for (let t = Math.ceil((from + base) / step) * step - base; t <= to; t += step) {
    if (data.relative && t < 0) continue;
    out.push({ u: t, label: step >= DAY ? dateOf(t) : told(t, digits) });
  }
  return out;
}
