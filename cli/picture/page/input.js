// What people do: wheel, drag, keys. Turns it into the few verbs of main.js.

const scroller = $("scroller");
const inLanes = (event) => {
  const box = scroller.getBoundingClientRect();
  return { x: event.clientX - box.left - state.gutter, y: event.clientY - box.top + scroller.scrollTop };
};

function onWheel(event) {
  const { x } = inLanes(event);
  const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
  const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
  const sideways = event.shiftKey ? dy || dx : Math.abs(dx) > Math.abs(dy) ? dx : 0;
  const overflows = scroller.scrollHeight > scroller.clientHeight + 1;
  const overTime = event.currentTarget !== scroller;
  if (sideways) { event.preventDefault(); pan(sideways); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || overTime || !overflows) {
    event.preventDefault();
    zoom(Math.exp(Math.max(-240, Math.min(240, dy)) * (event.ctrlKey ? 0.01 : 0.003)), event.currentTarget === strip ? state.width / 2 : x);
  }
}

function listenToLanes() {
  for (const place of [scroller, axis, strip]) place.addEventListener("wheel", onWheel, { passive: false });
  let drag;
  lanesCanvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    drag = { x: event.clientX, y: event.clientY, top: scroller.scrollTop, moved: false };
    lanesCanvas.setPointerCapture(event.pointerId);
  });
  lanesCanvas.addEventListener("pointermove", (event) => {
    if (!drag) { hover(event); return; }
    const dx = event.clientX - drag.x;
    if (!drag.moved && Math.hypot(dx, event.clientY - drag.y) < 4) return;
    drag.moved = true;
    lanesCanvas.classList.add("drag");
    hideTip();
    pan(-dx);
    drag.x = event.clientX;
    if (event.pointerType === "mouse") scroller.scrollTop = drag.top - (event.clientY - drag.y);
  });
  const done = (event) => {
    if (drag && !drag.moved && event.type === "pointerup") click(event);
    drag = undefined;
    lanesCanvas.classList.remove("drag");
  };
  lanesCanvas.addEventListener("pointerup", done);
  lanesCanvas.addEventListener("pointercancel", done);
  lanesCanvas.addEventListener("pointerleave", () => { state.hover = undefined; hideTip(); redraw(); });
  lanesCanvas.addEventListener("dblclick", (event) => zoom(0.35, inLanes(event).x, true));
  scroller.addEventListener("scroll", () => { hideTip(); redraw(); });
  scroller.addEventListener("keydown", onLaneKey);
  $("entries").addEventListener("scroll", drawEntries, { passive: true });
}

function click(event) {
  const { x, y } = inLanes(event);
  const under = hit(x, y);
  scroller.focus({ preventScroll: true });
  if (!under) choose({});
  else if (under.entry !== undefined) chooseEntry(under.entry, true);
  else if (under.span) chooseSpan(under.lane, under.span);
  else chooseLane(under.lane);
}

function hover(event) {
  const { x, y } = inLanes(event);
  state.hover = { x };
  const under = hit(x, y);
  if (!under || (under.entry === undefined && !under.span)) { hideTip(); redraw(); return; }
  if (under.entry !== undefined) {
    const e = entries[under.entry];
    showTip(event, el("b", {}, e.text), el("div", { class: "q" }, `${when(e)} · ${place(e)} · ${e.sure}`));
  } else {
    const s = under.span;
    showTip(event, el("b", {}, `${s.stage}: ${s.word}`), el("div", { class: "q" }, `${told(s.from)} – ${s.to === undefined ? "…" : told(s.to)} · ${lasting((s.to ?? end) - s.from)}`));
  }
  redraw();
}

function showTip(event, ...children) {
  const tip = $("tip");
  tip.replaceChildren(...children);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(innerWidth - box.width - 8, event.clientX + 14))}px`;
  tip.style.top = `${event.clientY + 20 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18}px`;
}
function hideTip() { $("tip").hidden = true; }

/** The strip: a drag moves the window, at its edges resizes it, a click centres it. */
function listenToStrip() {
  let drag;
  const at = (event) => event.clientX - strip.getBoundingClientRect().left;
  strip.addEventListener("pointerdown", (event) => {
    const x = at(event), [a, b] = [stripX(state.a), stripX(state.b)];
    const edge = Math.abs(x - a) < 7 ? "a" : Math.abs(x - b) < 7 ? "b" : undefined;
    if (!edge && (x < a || x > b)) { const half = (state.b - state.a) / 2, u = stripPlace(x); look(u - half, u + half); }
    drag = { edge, from: stripPlace(x), a: state.a, b: state.b };
    strip.setPointerCapture(event.pointerId);
  });
  strip.addEventListener("pointermove", (event) => {
    const x = at(event);
    if (!drag) { const near = Math.min(Math.abs(x - stripX(state.a)), Math.abs(x - stripX(state.b))) < 7; strip.style.cursor = near ? "ew-resize" : "grab"; return; }
    const u = stripPlace(x);
    if (drag.edge === "a") look(Math.min(u, drag.b - closest()), drag.b);
    else if (drag.edge === "b") look(drag.a, Math.max(u, drag.a + closest()));
    else look(drag.a + u - drag.from, drag.b + u - drag.from);
  });
  for (const end of ["pointerup", "pointercancel"]) strip.addEventListener(end, () => { drag = undefined; });
  strip.addEventListener("keydown", (event) => { if (timeKey(event)) event.preventDefault(); });
  let pulled;
  axis.addEventListener("pointerdown", (event) => { pulled = event.clientX; axis.setPointerCapture(event.pointerId); });
  axis.addEventListener("pointermove", (event) => { if (pulled !== undefined) { pan(pulled - event.clientX); pulled = event.clientX; } });
  for (const end of ["pointerup", "pointercancel"]) axis.addEventListener(end, () => { pulled = undefined; });
}

function listenToSash() {
  const sash = $("sash");
  const wide = (width) => { document.documentElement.style.setProperty("--panel", `${Math.round(Math.max(260, Math.min(innerWidth * 0.6, width)))}px`); resized(); };
  let pulled = false;
  sash.addEventListener("pointerdown", (event) => { pulled = true; sash.setPointerCapture(event.pointerId); });
  sash.addEventListener("pointermove", (event) => { if (pulled) wide(innerWidth - event.clientX); });
  for (const end of ["pointerup", "pointercancel"]) sash.addEventListener(end, () => { pulled = false; });
  sash.addEventListener("keydown", (event) => {
    const now = $("panel").getBoundingClientRect().width;
    if (event.key === "ArrowLeft") wide(now + 24); else if (event.key === "ArrowRight") wide(now - 24); else return;
    event.preventDefault();
  });
}

/** Keys that move through time, wherever the focus is in the picture. */
function timeKey(event) {
  const middle = state.width / 2;
  switch (event.key) {
    case "+": case "=": zoom(0.7, middle, true); return true;
    case "-": case "_": zoom(1 / 0.7, middle, true); return true;
    case "ArrowLeft": pan(-state.width / 8); return true;
    case "ArrowRight": pan(state.width / 8); return true;
    default: return false;
  }
}

function onLaneKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const list = state.lane === undefined ? [] : entriesOf[state.lane];
  const at = state.entry === undefined ? -1 : list.indexOf(state.entry);
  switch (event.key) {
    case "ArrowUp": case "ArrowDown": {
      const now = rowOf.get(state.lane) ?? (event.key === "ArrowDown" ? -1 : rows.length);
      const next = rows[now + (event.key === "ArrowDown" ? 1 : -1)];
      if (next) chooseLane(next.l);
      break;
    }
    case "ArrowLeft": case "ArrowRight": {
      if (event.shiftKey || state.lane === undefined || list.length === 0) { timeKey(event); break; }
      const step = event.key === "ArrowRight" ? 1 : -1;
      const next = at >= 0 ? at + step : step > 0 ? firstEntry(list, fromX(0)) : firstEntry(list, fromX(state.width)) - 1;
      if (list[next] !== undefined) chooseEntry(list[next]);
      break;
    }
    case "Home": if (list.length) chooseEntry(list[0]); break;
    case "End": if (list.length) chooseEntry(list[list.length - 1]); break;
    case "PageDown": scroller.scrollTop += state.height * 0.9; break;
    case "PageUp": scroller.scrollTop -= state.height * 0.9; break;
    case "Enter": $("panel").focus(); break;
    case " ": if (state.lane !== undefined) fold(lanes[state.lane].pod ?? state.lane); break;
    case "+": case "=": case "-": case "_": timeKey(event); break;
    default: return;
  }
  event.preventDefault();
}

/** Keys that work everywhere but in a text field. */
function onKey(event) {
  const typing = event.target instanceof HTMLInputElement;
  if (event.key === "Escape" && !$("keys").open) {
    if (typing && state.query) { search(""); $("query").value = ""; } else if (typing) event.target.blur(); else choose({});
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || typing || $("keys").open) return;
  switch (event.key) {
    case "/": $("query").focus(); $("query").select(); break;
    case "f": nextFinding(1); break;
    case "F": nextFinding(-1); break;
    case "n": nextMatch(1); break;
    case "N": nextMatch(-1); break;
    case "t": setScale(!scale.even); break;
    case "0": look(...whole(), true); break;
    case "z": zoomToChosen(); break;
    case "?": showKeys(); break;
    default: return;
  }
  event.preventDefault();
}

function showKeys() {
  const k = (...keys) => keys.map((key) => el("kbd", {}, key));
  const list = [
    [k("wheel"), "scrolls the lanes; with Ctrl, or over the axis, zooms"], [["drag"], "moves in time; in the strip it moves or resizes the window"],
    [k("+", "−"), "zoom"], [k("Shift", "← →"), "move in time"], [k("0"), "all of it"], [k("z"), "zoom to what is chosen"],
    [k("↑", "↓"), "choose a lane"], [k("←", "→"), "the entry before or after in that lane"], [k("Home", "End"), "its first or last"], [k("Enter"), "go to the evidence"], [k("Space"), "fold the pod"],
    [k("f", "F"), "next or former finding"], [k("/"), "search"], [k("n", "N"), "next or former match"], [k("t"), "scale: time, or every moment alike"], [k("Esc"), "let go"],
  ];
  $("keys").replaceChildren(el("button", { class: "close", type: "button", "aria-label": "Close", onclick: () => $("keys").close() }, "×"),
    el("h2", { id: "keys-title" }, "Keys"), el("dl", {}, list.flatMap(([keys, what]) => [el("dt", {}, ...keys), el("dd", {}, what)])));
  $("keys").showModal();
}
