/* The edges of the chosen segment, to be moved by mouse, touch or keys. */

import { el } from "./dom.js";
import { asSegment, correctionOf, moveTo } from "./edits.js";
import { clock } from "./format.js";
import { clamp, duration, frameSeconds, seek } from "./player.js";
import { place } from "./segments.js";
import { emit, state } from "./state.js";
import { seconds, shown } from "./view.js";

/** Return the segment to move: the correction of the chosen segment, or the segment itself. */
function movable() {
  const made = state.chosen && correctionOf(state.chosen);
  return made && !made.rejected ? asSegment(made) : state.chosen;
}

/** Return start and end of a segment with one edge at a time; it keeps the length of a frame. */
function withEdge(segment, edge, at) {
  const least = Math.min(frameSeconds(), duration());
  if (edge === "start") return [Math.min(clamp(at), segment.end - least), segment.end];
  return [segment.start, Math.max(clamp(at), segment.start + least)];
}

/** Move an edge of the chosen segment to a time. */
export function moveEdge(edge, at) {
  const segment = movable();
  if (!segment) return;
  const [start, end] = withEdge(segment, edge, at);
  seek(edge === "start" ? start : end);
  state.chosen = moveTo(segment, start, end);
  emit("chosen", state.chosen);
}

/** Move an edge by whole frames: from the frame that it is nearest to. */
export function moveEdgeByFrames(edge, frames) {
  const segment = movable();
  if (!segment) return;
  const frame = frameSeconds();
  moveEdge(edge, (Math.round(segment[edge] / frame) + frames) * frame);
}

export function timeAt(event, frame) {
  const box = frame.getBoundingClientRect();
  const share = (event.clientX - box.left) / box.width;
  return clamp(shown().from + share * seconds());
}

/** Make the two handles of a segment; its button shows where they are dragged to. */
export function edgeHandles(segment, button) {
  return ["start", "end"].map((edge) => {
    const handle = el("div", {
      class: `handle ${edge}`,
      role: "slider",
      tabindex: "0",
      "aria-label": `${edge === "start" ? "Start" : "End"} of the selected segment`,
      "aria-valuemin": "0",
      "aria-valuemax": duration(),
      "aria-valuenow": segment[edge],
      "aria-valuetext": clock(segment[edge]),
      title: "Drag, or use the arrow keys: one frame, or ten with shift",
    });
    handle.dataset.focus = `handle ${edge}`;
    handle.style.setProperty("--start", segment[edge] / duration());
    handle.style.setProperty("--row", button.style.getPropertyValue("--row"));
    handle.addEventListener("pointerdown", (event) => drag(event, edge, handle, button));
    handle.addEventListener("keydown", (event) => press(event, edge));
    return handle;
  });
}

function press(event, edge) {
  const steps = {
    ArrowLeft: -1,
    ArrowDown: -1,
    ArrowRight: 1,
    ArrowUp: 1,
    PageDown: -10,
    PageUp: 10,
  };
  const frames = steps[event.key];
  if (!frames || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  moveEdgeByFrames(edge, event.shiftKey ? 10 * frames : frames);
}

function drag(event, edge, handle, button) {
  if (event.button !== 0 || event.shiftKey || state.drawing) return; // it adds a segment
  event.preventDefault();
  event.stopPropagation();
  handle.focus({ preventScroll: true });
  handle.setPointerCapture(event.pointerId);
  const segment = movable();
  const frame = handle.closest(".window");
  const frameOf = (at) => Math.round(at / frameSeconds()) * frameSeconds();
  let at = null;
  const move = (moved) => {
    const [start, end] = withEdge(segment, edge, frameOf(timeAt(moved, frame)));
    at = edge === "start" ? start : end;
    place(button, start, end, duration());
    handle.style.setProperty("--start", at / duration());
    seek(at);
  };
  const finish = (last) => {
    handle.removeEventListener("pointermove", move);
    if (last.type === "pointerup" && at !== null) moveEdge(edge, at);
    else emit("chosen", state.chosen);
  };
  handle.addEventListener("pointermove", move);
  handle.addEventListener("pointerup", finish, { once: true });
  handle.addEventListener("pointercancel", finish, { once: true });
}
