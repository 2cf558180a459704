/* The mouse on the lanes: seek, choose, add, zoom; a box next to it describes the segment under it. */

import { byId, el } from "./dom.js";
import { addSegment, moveTo } from "./edits.js";
import { timeAt } from "./edges.js";
import { clock } from "./format.js";
import { choose, laneWindow, segmentAt } from "./lanes.js";
import { duration, frameSeconds, playSegment, seek } from "./player.js";
import { factsOf, place, titleOf } from "./segments.js";
import { emit, on, state } from "./state.js";
import { pan, seconds, shown, showPart, zoom } from "./view.js";

const A_DRAG = 4; // pixels
const A_TIME = 5e-4; // seconds: times are kept in milliseconds

/* ---- seek, add and move ---- */

const DRAWING =
  "Draw: a drag in any lane adds a segment, also over others. Escape ends it.";
const WHY_NOT =
  "Nothing was changed: only corrected segments are moved by a drag. Hold Shift, or turn on Draw, to add a segment here.";
const NO_ROOM =
  "Not moved: it is at the start or the end of the video, or was dragged by less than half a frame.";
let dragged = false; // the click at the end of a drag selects nothing

function say(text) {
  byId("lanes-note").textContent = text;
}

/** Let each drag add a segment, or no longer. */
export function setDrawing(drawing) {
  state.drawing = drawing;
  byId("draw").setAttribute("aria-pressed", String(drawing));
  byId("lanes").classList.toggle("drawing", drawing);
  say(drawing ? DRAWING : "");
}

function press(event) {
  if (event.button !== 0 || !state.video) return;
  if (event.target.closest(".lane-name, .scroll-lane")) return;
  const drawing = state.drawing || event.shiftKey;
  if (event.target.closest(".handle") && !drawing) return;
  const box = laneWindow().getBoundingClientRect();
  if (event.clientX < box.left || event.clientX > box.right) return;
  const node = event.target.closest(".segment");
  if (node && !drawing) dragSegment(event, node);
  else seekOrAdd(event, drawing || event.target.closest(".own-lane") !== null);
}

/**
 * Follow the pointer: `move` is called with each time once it is dragged, `finish` with the last
 * one, or with null where it was not dragged or the browser broke it off.
 */
function follow(event, move, finish) {
  const root = byId("lanes");
  dragged = false;
  const heard = (moved) => {
    if (moved.pointerId !== event.pointerId) return;
    if (!dragged && Math.abs(moved.clientX - event.clientX) <= A_DRAG) return;
    // not before: a captured pointer clicks on no segment
    if (!dragged) root.setPointerCapture(event.pointerId);
    dragged = true;
    move(timeAt(moved, laneWindow()));
  };
  const end = (last) => {
    if (last.pointerId !== event.pointerId) return;
    removeEventListener("pointermove", heard);
    removeEventListener("pointerup", end);
    removeEventListener("pointercancel", end);
    say(state.drawing ? DRAWING : ""); // not before: the pressed segment must not move
    finish(dragged && last.type === "pointerup" ? timeAt(last, laneWindow()) : null, last);
    setTimeout(() => {
      dragged = false; // a click of a screen reader has no pointer
    });
  };
  addEventListener("pointermove", heard);
  addEventListener("pointerup", end);
  addEventListener("pointercancel", end);
}

function seekOrAdd(event, adding) {
  event.preventDefault();
  const from = timeAt(event, laneWindow());
  let ghost = null;
  seek(from);
  const move = (at) => {
    if (adding) {
      ghost ??= drawGhost();
      place(ghost, Math.min(from, at), Math.max(from, at), duration());
    }
    seek(at);
  };
  follow(event, move, (at, last) => {
    ghost?.remove();
    if (adding && at !== null) addBetween(from, at);
    else if (!adding && last.type === "pointerup") choose(null);
  });
}

function drawGhost() {
  const ghost = el("div", { class: "segment own ghost" });
  document.querySelector(".own-lane .content").append(ghost);
  return ghost;
}

/** Move a correction by whole frames; the found segment stays. */
function dragSegment(event, node) {
  const segment = segmentAt(node);
  const from = timeAt(event, laneWindow());
  const own = segment.kind === "own";
  const length = segment.end - segment.start;
  const startAt = (at) => {
    const by = Math.round((at - from) / frameSeconds()) * frameSeconds();
    return Math.min(Math.max(segment.start + by, 0), Math.max(duration() - length, 0));
  };
  const move = (at) => {
    if (!own) return;
    byId("lanes").classList.add("moving");
    place(node, startAt(at), startAt(at) + length, duration());
    seek(startAt(at));
  };
  follow(event, move, (at) => {
    byId("lanes").classList.remove("moving");
    if (own && at !== null && Math.abs(startAt(at) - segment.start) > A_TIME) {
      choose(moveTo(segment, startAt(at), startAt(at) + length), { focus: true });
      return;
    }
    if (own && dragged) emit("chosen", state.chosen); // back to where it was
    if (at !== null) say(own ? NO_ROOM : WHY_NOT);
  });
}

/** Add a segment with its edges on frames. */
export function addBetween(one, other) {
  const frame = frameSeconds();
  const last = Math.max(duration() - frame, 0);
  const start = Math.min(Math.round(Math.min(one, other) / frame) * frame, last);
  const end = Math.min(
    Math.max(Math.round(Math.max(one, other) / frame) * frame, start + frame),
    duration(),
  );
  const more = state.lastSubject ? { subject: state.lastSubject } : {};
  choose(addSegment(start, end, state.lastLabel, more), { focus: true });
}

/* ---- choose and hear more ---- */

function clicked(event) {
  const segment = segmentAt(event.target.closest(".segment"));
  if (!segment || dragged) return;
  choose(segment, { focus: true });
  seek(segment.start);
}

function tell(event) {
  const node = event.target.closest?.(".segment");
  const segment = segmentAt(node);
  const tip = byId("tip");
  // the chosen one is described next to the player; under the mouse here too
  tip.hidden = !segment || (event.type === "focusin" && segment.key === state.chosen?.key);
  if (tip.hidden) return;
  tip.replaceChildren(
    el("strong", {}, titleOf(segment)),
    el(
      "dl",
      {},
      ...factsOf(segment).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
    ),
  );
  const box = node.getBoundingClientRect();
  const centre = event.clientX || (Math.max(box.left, 0) + Math.min(box.right, innerWidth)) / 2;
  const left = Math.min(
    Math.max(centre - tip.offsetWidth / 2, 8),
    innerWidth - tip.offsetWidth - 8,
  );
  const above = box.top - tip.offsetHeight - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 0 ? above : box.bottom + 8}px`;
}

/** The tab key chooses the segment that it reaches. */
function reach(event) {
  if (!event.target.matches(".segment:focus-visible")) return;
  const segment = segmentAt(event.target);
  if (segment && segment.key !== state.chosen?.key) choose(segment, { focus: true });
}

function hideTip() {
  byId("tip").hidden = true;
}

function hover(event) {
  const root = byId("lanes");
  const box = laneWindow().getBoundingClientRect();
  const share = (event.clientX - box.left) / box.width;
  const inside = share >= 0 && share <= 1 && event.type !== "pointerleave";
  root.classList.toggle("hovered", inside);
  const at = shown().from + share * seconds();
  if (inside) {
    root.style.setProperty("--hover", share);
    byId("hover-time").textContent = clock(at, seconds() < 60 ? 2 : 1);
  }
  emit("hover", inside ? at : null);
}

/* ---- zoom ---- */

function wheel(event) {
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 250), timeAt(event, laneWindow()));
    return;
  }
  const sideways = event.shiftKey ? event.deltaY : event.deltaX;
  if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
    event.preventDefault();
    pan((sideways / laneWindow().clientWidth) * seconds());
  }
}

/** Keep the scroll bar and the shown part together. */
function linkScroll() {
  const bar = byId("scroll");
  const spacer = bar.firstElementChild;
  let set = 0;
  const follow = () => {
    const factor = duration() / seconds();
    bar.hidden = factor < 1.001;
    spacer.style.width = `${100 * factor}%`;
    set = Math.round((shown().from / duration()) * bar.scrollWidth);
    bar.scrollLeft = set;
  };
  on("view", follow);
  new ResizeObserver(follow).observe(bar);
  bar.addEventListener("scroll", () => {
    // a browser that lays the page out again scrolls too
    if (Math.abs(bar.scrollLeft - set) < 2 || !bar.matches(":hover")) return;
    const from = (bar.scrollLeft / bar.scrollWidth) * duration();
    showPart(from, from + seconds());
  });
}

export function startGestures() {
  const root = byId("lanes");
  root.addEventListener("pointerdown", press);
  root.addEventListener("click", clicked);
  root.addEventListener("dblclick", (event) => {
    const segment = segmentAt(event.target.closest(".segment"));
    if (segment) playSegment(segment);
  });
  root.addEventListener("pointermove", hover);
  root.addEventListener("pointerleave", hover);
  root.addEventListener("pointerover", tell);
  root.addEventListener("focusin", tell);
  root.addEventListener("focusin", reach);
  root.addEventListener("pointerleave", hideTip);
  root.addEventListener("focusout", hideTip);
  root.addEventListener("wheel", wheel, { passive: false });
  linkScroll();
}
