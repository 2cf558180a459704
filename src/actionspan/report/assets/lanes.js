/* The lanes under the player: frames, truth, corrections, events, proposals, curves. */

import { byId, el } from "./dom.js";
import { shownEvents } from "./chances.js";
import { asSegment, correctionsOf, owned } from "./edits.js";
import { drawCurves } from "./curves.js";
import { edgeHandles } from "./edges.js";
import { clock, outOf, plural } from "./format.js";
import { duration, time } from "./player.js";
import { drawRuler } from "./ruler.js";
import { labelColours, segmentButton, shareOfEvent, sharesOf } from "./segments.js";
import { arrange } from "./subjects.js";
import { emit, on, state } from "./state.js";
import { shownProposals } from "./threshold.js";
import { shown } from "./view.js";

const LANES = [
  ["pictures", "Frames"],
  ["ruler", "Time"],
  ["truth", "Truth"],
  ["own", "Corrected"],
  ["event", "Events"],
  ["proposal", "Proposals"],
];
const MOST_LISTED = 12; // segments in the text of a lane
const lanes = new Map();
const nodes = new Map(); // of segments and handles, by their name in dataset.focus

function build() {
  const root = byId("lanes");
  for (const [kind, name] of LANES) {
    const count = el("span", { class: "count" });
    const content = el("div", { class: "content" });
    const frame = el("div", { class: "window" }, content);
    const lane = el(
      "div",
      { class: `lane ${kind}-lane` },
      el("div", { class: "lane-name" }, el("span", {}, name), count),
      frame,
    );
    if (kind !== "pictures" && kind !== "ruler") {
      content.setAttribute("role", "group");
      content.setAttribute("aria-label", name);
    } else {
      lane.setAttribute("aria-hidden", "true");
    }
    // the view alone moves lanes sideways, not the focus
    frame.addEventListener("scroll", () => {
      frame.scrollLeft = 0;
    });
    lane.dataset.kind = kind;
    root.append(lane);
    lanes.set(kind, { lane, content, count, frame });
  }
  const head = el("div", { class: "playhead" });
  const hover = el("div", { class: "hover" }, el("span", { id: "hover-time" }));
  root.append(el("div", { class: "lane curves-lane", id: "curves" }), head, hover);
  root.append(
    el(
      "div",
      { class: "lane scroll-lane" },
      el(
        "div",
        { class: "scroll", id: "scroll", tabindex: "-1", "aria-hidden": "true" },
        el("div", { class: "spacer" }),
      ),
    ),
  );
}

export const laneWindow = () => lanes.get("ruler").frame;

/** Return the segments of a lane in the order in which keys go through them. */
export function segmentsOf(kind) {
  if (!state.video) return [];
  if (kind === "truth") return state.video.truth;
  if (kind === "event")
    return [...shownEvents(), ...state.video.gone].toSorted((one, other) => one.start - other.start);
  if (kind === "proposal") return shownProposals();
  const kept = correctionsOf(state.entry).segments.filter((segment) => !segment.rejected);
  return kept.map(asSegment).toSorted((one, other) => one.start - other.start);
}

/** Draw all segments again; a handle keeps the focus, and a segment hands it to the chosen one. */
function draw() {
  if (!state.video) return;
  const focused = document.activeElement?.dataset?.focus;
  nodes.clear();
  const colours = labelColours();
  for (const kind of ["truth", "own", "event", "proposal"]) drawLane(kind, colours);
  drawHandles();
  if (!focused) return;
  const handle = focused.startsWith("handle ") ? nodes.get(focused) : null;
  (handle ?? nodes.get(state.chosen?.key) ?? nodes.get(focused))?.focus({ preventScroll: true });
}

function drawLane(kind, colours) {
  const { lane, content, count } = lanes.get(kind);
  const segments = segmentsOf(kind);
  const { events, gone } = state.video;
  const ranked = kind === "event" ? [...events, ...gone] : segments;
  const { rows, names } = arrange(ranked);
  const all =
    kind === "own"
      ? null
      : state.video[{ truth: "truth", event: "events", proposal: "proposals" }[kind]];
  lane.hidden = kind !== "own" && all.length === 0 && segments.length === 0;
  const left = kind === "event" ? gone.length : 0;
  const number = segments.length - left;
  count.textContent = all && all.length > number ? outOf(number, all.length) : number;
  if (left) count.textContent += ` + ${left} no longer proposed`;
  content.setAttribute("aria-label", textOf(kind, segments));
  content.style.setProperty("--rows", Math.max(1, ...[...rows.values()].map((row) => row + 1)));
  const shares = kind === "proposal" ? sharesOf(segments) : [];
  const buttons = segments.map((segment, here) => {
    const button = segmentButton(segment, rows.get(segment.key), duration(), colours);
    if (kind === "proposal") shade(button, shares[here]);
    if (kind === "event" && !segment.gone) shade(button, shareOfEvent(segment, events));
    button.setAttribute("aria-pressed", String(segment.key === state.chosen?.key));
    nodes.set(segment.key, button);
    return button;
  });
  // one stop of the tab key for each lane
  const stop = segments.findIndex((segment) => segment.key === state.chosen?.key);
  buttons[Math.max(stop, 0)]?.setAttribute("tabindex", "0");
  content.replaceChildren(...names, ...buttons);
}

function shade(button, share) {
  button.style.setProperty("--share", share);
  // where black on the shade gets harder to read than white: by day, and at night
  button.classList.toggle("dark-by-day", share > 0.63);
  button.classList.toggle("dark-at-night", share < 0.49);
}

/** Describe the content of a lane. */
function textOf(kind, segments) {
  const name = { truth: "truth", own: "corrected", event: "events", proposal: "proposals" }[kind];
  const listed = segments
    .slice(0, MOST_LISTED)
    .map(({ start, end, label, subject, gone }) => {
      const who = subject ? ` (${subject})` : "";
      const then = gone ? ", no longer proposed" : "";
      return `${label}${who} ${clock(start, 1)} to ${clock(end, 1)}${then}`.trim();
    });
  const more = segments.length > listed.length ? `; and ${segments.length - listed.length} more` : "";
  return `Lane ${name}: ${plural(segments.length, "segment")}${listed.length ? ": " : ""}${listed.join("; ")}${more}`;
}

function drawHandles() {
  for (const handle of byId("lanes").querySelectorAll(".handle")) handle.remove();
  const { chosen } = state;
  const button = chosen && nodes.get(chosen.key);
  if (!button) return;
  for (const handle of edgeHandles(chosen, button)) {
    nodes.set(handle.dataset.focus, handle);
    lanes.get(chosen.kind).content.append(handle);
  }
}

function drawPictures() {
  const { lane, content } = lanes.get("pictures");
  const { thumbnails } = state.video;
  lane.hidden = thumbnails.length === 0;
  const length = duration();
  content.replaceChildren(
    ...thumbnails.map(([at, jpeg], place) => {
      const left = place ? (thumbnails[place - 1][0] + at) / 2 : 0;
      const right = place + 1 < thumbnails.length ? (thumbnails[place + 1][0] + at) / 2 : length;
      const picture = el("div", { class: "picture" });
      picture.style.backgroundImage = `url("data:image/jpeg;base64,${jpeg}")`;
      picture.style.setProperty("--start", left / length);
      picture.style.setProperty("--length", (right - left) / length);
      return picture;
    }),
  );
}

function drawPlayhead() {
  const { from, to } = shown();
  const share = (time() - from) / (to - from);
  const root = byId("lanes");
  root.style.setProperty("--playhead", share);
  root.classList.toggle("playhead-outside", share < 0 || share > 1);
}

function drawView() {
  const { content, frame } = lanes.get("ruler");
  drawRuler(content, frame.clientWidth);
  drawPlayhead();
}

/** Choose a segment, or null for none; with the focus, keys start from there. */
export function choose(segment, { focus = false } = {}) {
  state.chosen = segment;
  if (focus && segment) state.lane = segment.kind;
  emit("chosen", segment);
  if (focus && segment) nodes.get(segment.key)?.focus({ preventScroll: true });
}

/** Return the segment of a button as it is now. */
export function segmentAt(node) {
  const key = node?.dataset?.focus;
  if (!key) return null;
  if (key.startsWith("own ")) return owned(key);
  const { truth, events, gone, proposals } = state.video;
  return [...truth, ...events, ...gone, ...proposals].find((segment) => segment.key === key) ?? null;
}

export const nodeOf = (key) => nodes.get(key);

export function startLanes() {
  build();
  on("video", () => {
    drawPictures();
    draw();
    drawCurves(byId("curves"));
  });
  on("chosen", draw);
  on("edits", () => {
    if (state.chosen?.kind === "own") state.chosen = owned(state.chosen.key);
    draw();
  });
  on("threshold", draw);
  on("view", drawView);
  on("time", drawPlayhead);
  new ResizeObserver(() => state.video && drawView()).observe(laneWindow());
}
