/* The mouse on the lanes: seek, choose, add, zoom; what is under it is told beside it. */

import { byId, el } from "./dom.js";
import { addSegment } from "./edits.js";
import { timeAt } from "./edges.js";
import { clock } from "./format.js";
import { choose, laneWindow, segmentAt } from "./lanes.js";
import { duration, frameSeconds, playSegment, seek } from "./player.js";
import { factsOf, place, titleOf } from "./segments.js";
import { emit, on, state } from "./state.js";
import { pan, seconds, shown, showPart, zoom } from "./view.js";

const A_DRAG = 4; // pixels

/* ---- seek and add ---- */

function press(event) {
  if (event.button !== 0 || !state.video) return;
  if (event.target.closest(".segment, .handle, .lane-name, .scroll-lane")) return;
  const frame = laneWindow();
  const box = frame.getBoundingClientRect();
  if (event.clientX < box.left || event.clientX > box.right) return;
  event.preventDefault();
  const adding = event.target.closest(".own-lane") !== null;
  const root = byId("lanes");
  root.setPointerCapture(event.pointerId);
  const from = timeAt(event, frame);
  let ghost = null;
  seek(from);
  const move = (moved) => {
    const at = timeAt(moved, frame);
    if (adding && (ghost || Math.abs(moved.clientX - event.clientX) > A_DRAG)) {
      ghost ??= drawGhost(event.target);
      place(ghost, Math.min(from, at), Math.max(from, at), duration());
    }
    seek(at);
  };
  const finish = (last) => {
    root.removeEventListener("pointermove", move);
    ghost?.remove();
    if (ghost && last.type === "pointerup") addBetween(from, timeAt(last, frame));
    else if (!adding && last.type === "pointerup") choose(null);
  };
  root.addEventListener("pointermove", move);
  root.addEventListener("pointerup", finish, { once: true });
  root.addEventListener("pointercancel", finish, { once: true });
}

function drawGhost(target) {
  const ghost = el("div", { class: "segment own ghost" });
  target.closest(".own-lane").querySelector(".content").append(ghost);
  return ghost;
}

/** Add a segment whose edges lie on frames. */
export function addBetween(one, other) {
  const frame = frameSeconds();
  const last = Math.max(duration() - frame, 0);
  const start = Math.min(Math.round(Math.min(one, other) / frame) * frame, last);
  const end = Math.min(
    Math.max(Math.round(Math.max(one, other) / frame) * frame, start + frame),
    duration(),
  );
  choose(addSegment(start, end, state.lastLabel), { focus: true });
}

/* ---- choose and hear more ---- */

function clicked(event) {
  const segment = segmentAt(event.target.closest(".segment"));
  if (!segment) return;
  choose(segment, { focus: true });
  seek(segment.start);
}

function tell(event) {
  const node = event.target.closest?.(".segment");
  const segment = segmentAt(node);
  const tip = byId("tip");
  // the chosen one is told of beside the player; under the mouse it is told of here too
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

/** What the tab key reaches is chosen. */
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
