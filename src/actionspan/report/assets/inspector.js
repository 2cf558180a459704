/* The chosen segment as sentences, and what can be done with it. */

import { shownEvents } from "./chances.js";
import { byId, el, icon } from "./dom.js";
import {
  accept,
  canRedo,
  canUndo,
  correctionOf,
  correctionsOf,
  forget,
  nameIt,
  reject,
  setDone,
  touched,
  undo,
} from "./edits.js";
import { index } from "./data.js";
import { moveEdge, moveEdgeByFrames } from "./edges.js";
import { addBetween, setDrawing } from "./gestures.js";
import { choose, nodeOf, segmentAt } from "./lanes.js";
import { clock } from "./format.js";
import { duration, playSegment, seek, time } from "./player.js";
import { served } from "./server.js";
import { factsOf, sentenceOf, titleOf } from "./segments.js";
import { on, state } from "./state.js";
import { leaveByTab, subjectField } from "./subjects.js";

const NEW_SECONDS = 2; // of a segment that is added at the playhead
const MOST_LISTED = 8;
const BEGIN = "Watch the video, accept, move or add what happens, then tick Done.";
const MISSING = "Where an event is missing, one of the proposals may fit.";
const HINT =
  "Click a segment, or step through them with n and p. Drag across the Corrected lane to add one; over other segments with Shift held or with Draw.";
const UNSURE = "No event is likely enough to be shown; these may be some.";
const FLAT = "The model is unsure on this video (a flat curve).";
const RISE = 0.15; // of the probability that something happens, above its median
const RANKS = "No. 1 is the first in order, not a chance.";

/* ---- actions on the chosen segment ---- */

export const commands = {
  accept() {
    if (state.chosen) choose(accept(state.chosen));
  },
  reject() {
    if (!state.chosen) return;
    const rejected = reject(state.chosen);
    choose(rejected ? segmentAt({ dataset: { focus: rejected.origin.key } }) : null);
  },
  forget() {
    if (!state.chosen) return;
    const key = correctionOf(state.chosen)?.origin?.key;
    forget(state.chosen);
    choose(key ? segmentAt({ dataset: { focus: key } }) : null);
  },
  add() {
    if (state.video) addBetween(time(), Math.min(time() + NEW_SECONDS, duration()));
  },
  draw: () => setDrawing(!state.drawing),
  leave() {
    setDrawing(false);
    choose(null);
  },
  start: () => moveEdge("start", time()),
  end: () => moveEdge("end", time()),
  play() {
    if (state.chosen) playSegment(state.chosen);
  },
  name() {
    byId("segment-label")?.focus();
    byId("segment-label")?.select();
  },
  done() {
    if (state.entry) setDone(!correctionsOf(state.entry).done);
  },
  undo: () => state.entry && undo(true),
  redo: () => state.entry && undo(false),
};

/* ---- how it looks ---- */

function button(name, command, key, symbol, more = {}) {
  const children = symbol ? [icon(symbol)] : [];
  return el(
    "button",
    { ...more, onclick: command, title: `${name} (${key})` },
    ...children,
    el("span", {}, name),
  );
}

function nudges(edge) {
  const name = edge === "start" ? "Start" : "End";
  const nudge = (frames) =>
    el(
      "button",
      {
        class: "small",
        "aria-label": `${name} one frame ${frames < 0 ? "earlier" : "later"}`,
        onclick: () => moveEdgeByFrames(edge, frames),
      },
      frames < 0 ? "−" : "+",
    );
  const here = el(
    "button",
    {
      class: "small",
      title: `${name} at the playhead ( ${edge === "start" ? "[" : "]"} )`,
      onclick: commands[edge],
    },
    "to playhead",
  );
  return el(
    "div",
    { class: "nudges", role: "group", "aria-label": name },
    el("span", {}, name),
    nudge(-1),
    nudge(1),
    here,
  );
}

/** Take over a label that is being typed before the mouse does anything else. */
function endTyping(event) {
  const field = document.activeElement;
  if (!field?.closest("#inspector .field") || field === event.target) return;
  const pressed = event.target.closest("button, .handle, .segment, .field input");
  field.blur();
  if (!pressed || pressed.isConnected) return;
  event.preventDefault();
  event.stopPropagation(); // it was drawn again: press what took its place
  const like = ({ title, textContent }) => `${title} ${textContent}`;
  const again =
    nodeOf(pressed.dataset.focus) ??
    [...byId("inspector").querySelectorAll("button")].find((one) => like(one) === like(pressed)) ??
    byId(pressed.id);
  if (!again) return;
  const act = () => (again.matches("input") ? again.focus() : again.click());
  addEventListener("pointerup", act, { once: true });
  again.dispatchEvent(new PointerEvent(event.type, event)); // a drag may begin here
}

function labelField(segment) {
  const made = correctionOf(segment);
  const input = el("input", {
    id: "segment-label",
    list: "labels",
    autocomplete: "off",
    value: made ? made.label : segment.label,
    onchange(event) {
      state.lastLabel = event.target.value.trim();
      choose(nameIt(segment, event.target.value));
    },
    onkeydown(event) {
      leaveByTab(event);
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault(); // else the segment that gets the focus is pressed, too
      if (event.key === "Escape") event.target.value = made ? made.label : segment.label;
      event.target.blur();
      nodeOf(state.chosen?.key)?.focus({ preventScroll: true });
    },
  });
  return el("label", { class: "field" }, el("span", {}, "Label"), input);
}

function drawSegment(segment) {
  // label and subject have their fields: another line while typing would move the next target of a click
  const facts = factsOf(segment)
    .filter(([name]) => name !== "label" && name !== "subject")
    .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
  const correction = correctionOf(segment);
  const rejected = correction?.rejected === true;
  const accepted = correction !== undefined && !rejected;
  const row = el("div", { class: "row" });
  if (segment.kind !== "own") {
    row.append(
      button("Accept", commands.accept, "a", "tick", { "aria-pressed": String(accepted) }),
    );
  }
  const added = segment.kind === "own" && !segment.origin;
  if (!added)
    row.append(
      button("Reject", commands.reject, "x", "cross", { "aria-pressed": String(rejected) }),
    );
  row.append(button("Play", commands.play, "enter", "play"));
  if (correction) {
    row.append(button(added ? "Delete" : "Remove correction", commands.forget, "delete", "undo"));
  }
  byId("inspector").replaceChildren(
    el("h3", {}, titleOf(segment)),
    el("dl", { class: "facts" }, ...facts),
    row,
    labelField(segment),
    subjectField(segment, choose),
    nudges("start"),
    nudges("end"),
  );
}

/** Return whether the curve of what happens is about the same everywhere. */
function isFlat() {
  const curve = state.video.curves.actionness?.toSorted((one, other) => one - other);
  return Boolean(curve?.length) && curve.at(-1) - curve[curve.length >> 1] < RISE;
}

/** List the events, or without events the best proposals. */
function drawNothing() {
  const { gone, proposals } = state.video;
  const events = shownEvents();
  // an empty list of what moves is an answer
  const nothing = index.scale === "rank" && state.entry.events !== null;
  const found = events.length || nothing ? events : proposals;
  const decimals = duration() < 3600 ? 1 : 0;
  const line = (segment) =>
    el(
      "button",
      {
        "aria-label": sentenceOf(segment),
        onclick() {
          choose(segment, { focus: true });
          seek(segment.start);
        },
      },
      el("span", {}, segment.label || titleOf(segment).split(/,| of /)[0], segment.zone ? `, ${segment.zone}` : ""),
      el("span", {}, `${clock(segment.start, decimals)} – ${clock(segment.end, decimals)}`),
      el("span", { class: "quiet" }, segment.gone ? "" : segment.shownScore),
    );
  const list = (segments) => {
    const lines = segments.slice(0, MOST_LISTED).map((segment) => el("li", {}, line(segment)));
    return el("ol", { class: "found" }, ...lines);
  };
  const none = el("p", { class: "quiet" }, "Nothing was found in this video.");
  const more = events.length && proposals.length ? ` ${MISSING}` : "";
  const notes = [isFlat() && found.length && FLAT, events[0]?.scale === "rank" && RANKS];
  const note = notes.filter(Boolean).join(" ");
  byId("inspector").replaceChildren(
    el("p", {}, BEGIN + more),
    el("h3", {}, events.length ? "Events found" : "Best proposals"),
    found.length && !events.length ? el("p", { class: "quiet" }, UNSURE) : "",
    note ? el("p", { class: "quiet" }, note) : "",
    found.length ? list(found) : none,
    ...(gone.length ? [el("h3", {}, "No longer proposed"), list(gone)] : []),
    el("p", { class: "quiet" }, HINT),
  );
}

function draw() {
  if (!state.entry) return;
  const typing = document.activeElement?.closest("#inspector .field") && document.activeElement.id;
  if (state.chosen) drawSegment(state.chosen);
  else drawNothing();
  if (typing) byId(typing)?.focus();
  byId("undo-edit").disabled = !canUndo();
  byId("redo-edit").disabled = !canRedo();
  const { done } = correctionsOf(state.entry);
  byId("done").checked = done;
  if (served) byId("not-done").hidden = done || !touched(state.entry);
}

/** Scroll a narrow screen to the part that a tap has opened; a drawing reader stays at the lanes. */
function showChosen(segment) {
  if (segment && !state.drawing && matchMedia("(max-width: 899px)").matches)
    byId("inspector").scrollIntoView({ block: "nearest" });
}

export function startInspector() {
  for (const name of ["video", "chosen", "edits", "threshold"]) on(name, draw);
  on("chosen", showChosen);
  document.addEventListener("pointerdown", endTyping, true);
  byId("add-segment").addEventListener("click", commands.add);
  byId("draw").addEventListener("click", commands.draw);
  byId("undo-edit").addEventListener("click", commands.undo);
  byId("redo-edit").addEventListener("click", commands.redo);
  byId("done").addEventListener("change", commands.done);
}
