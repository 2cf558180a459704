/* Corrections of each video, with undo: kept in the browser at every change. */

import { index } from "./data.js";
import { tiou } from "./format.js";
import { serverKept, served } from "./server.js";
import { emit, state } from "./state.js";
import { onKept, store } from "./store.js";

const SAME = 0.5; // least tIoU of a correction with the annotation that it replaces
const NOTHING = { segments: [], done: false };
const histories = new Map();
// pages of two folders may have the same title and videos of the same names
const storageKey = (entry) =>
  JSON.stringify(["corrections", location.pathname, index.title, entry.id, entry.duration]);

function history(entry) {
  if (!histories.has(entry.place)) {
    const kept = served ? serverKept.get(entry.id)?.state : store.read(storageKey(entry));
    histories.set(entry.place, { now: sound(kept), past: [], future: [] });
  }
  return histories.get(entry.place);
}

const sound = (kept) => (Array.isArray(kept?.segments) ? kept : NOTHING);

/**
 * Return {segments, done} of a video; each segment has id, start, end, label, rejected, origin, a
 * subject if somebody does it, and `held` if it was made by a held key (holding.js).
 */
export const correctionsOf = (entry) => history(entry).now;

export function touched(entry) {
  const { segments, done } = correctionsOf(entry);
  return done || segments.length > 0;
}

export const canUndo = () => state.entry !== null && history(state.entry).past.length > 0;
export const canRedo = () => state.entry !== null && history(state.entry).future.length > 0;

/** Corrections of another window count here. */
export function takeOver(entry, kept) {
  histories.set(entry.place, { now: sound(kept), past: [], future: [] });
  if (entry === state.entry && state.chosen?.kind === "own") state.chosen = null;
  emit("edits elsewhere", entry);
  if (entry === state.entry) emit("edits");
}

// the same page in another tab
onKept((key) => {
  const entry = index.videos.find((video) => storageKey(video) === key);
  if (entry && !served) takeOver(entry, store.read(key));
});

function keep(entry) {
  const { now } = history(entry);
  const kept = served || store.write(storageKey(entry), touched(entry) ? now : null);
  emit("edits", kept);
}

function change(make) {
  const steps = history(state.entry);
  const next = structuredClone(steps.now);
  make(next);
  steps.past.push(steps.now);
  steps.future.length = 0;
  steps.now = next;
  keep(state.entry);
}

/** Go a step back (or forward) in the chosen video. */
export function undo(backward = true) {
  const steps = history(state.entry);
  const [from, to] = backward ? [steps.past, steps.future] : [steps.future, steps.past];
  if (!from.length) return;
  to.push(steps.now);
  steps.now = from.pop();
  if (state.chosen?.kind === "own" && !owned(state.chosen.key)) state.chosen = null;
  keep(state.entry);
}

/** Return the correction with this key as a segment of the lane. */
export function owned(key) {
  const found = correctionsOf(state.entry).segments.find((segment) => ownKey(segment) === key);
  return found ? asSegment(found) : null;
}

const ownKey = (segment) => `own ${segment.id}`;

export function asSegment(segment) {
  return { ...segment, kind: "own", key: ownKey(segment), score: null };
}

/** Return the correction of a segment, or undefined. */
export function correctionOf(segment) {
  const { segments } = correctionsOf(state.entry);
  if (segment.kind === "own") return segments.find((other) => other.id === segment.id);
  return segments.find((other) => other.origin?.key === segment.key);
}

/** accepted, moved, added or rejected. */
export function statusOf(correction) {
  if (correction.rejected) return "rejected";
  const { origin, start, end } = correction;
  if (!origin) return "added";
  return start === origin.start && end === origin.end ? "accepted" : "moved";
}

/** Whether an annotation that was left alone gives way to a correction that means the same. */
export function replaced(instance) {
  if (instance.kind !== "truth" || correctionOf(instance)) return false;
  const { segments } = correctionsOf(state.entry);
  return segments.some((segment) => replaces(segment, instance));
}

/**
 * A correction of an annotation replaces that one alone: others may share its time. A segment
 * added with another label happens at the same time.
 */
export const replaces = (segment, instance) =>
  !segment.rejected &&
  segment.origin?.kind !== "truth" &&
  (segment.origin || !segment.label || !instance.label || segment.label === instance.label) &&
  (!segment.subject || !instance.subject || segment.subject === instance.subject) &&
  tiou(segment, instance) >= SAME;

export const tidy = (text) => text.replace(/\s+/g, " ").trim();

export const milliseconds = (seconds) => Math.round(seconds * 1000) / 1000;

function newSegment(draft, values) {
  const id = 1 + Math.max(0, ...draft.segments.map((segment) => segment.id));
  const segment = { id, rejected: false, origin: null, ...values };
  draft.segments.push(segment);
  return segment;
}

/** Change the correction of a segment, which is made if there is none; return it. */
function correct(segment, alter) {
  let made = null;
  change((draft) => {
    const old = correctionOf(segment);
    made = old && draft.segments.find((other) => other.id === old.id);
    if (!made) {
      const { key, kind, start, end, label, subject } = segment;
      const origin = { key, kind, start, end, label, subject };
      made = newSegment(draft, { start, end, label, subject, origin });
    }
    alter(made);
  });
  return asSegment(made);
}

export const accept = (segment) =>
  correct(segment, (made) => {
    made.rejected = false;
  });

/** Reject a segment that was found; one that was added is removed. */
export function reject(segment) {
  if (segment.kind === "own" && !segment.origin) {
    forget(segment);
    return null;
  }
  return correct(segment, (made) => {
    made.rejected = true;
    const { start, end, label, subject } = made.origin;
    Object.assign(made, { start, end, label, subject });
  });
}

export const moveTo = (segment, start, end) =>
  correct(segment, (made) => {
    made.rejected = false;
    made.start = milliseconds(start);
    made.end = milliseconds(end);
  });

export const nameIt = (segment, label) =>
  correct(segment, (made) => {
    made.rejected = false;
    made.label = tidy(label);
  });

export const setSubject = (segment, subject) =>
  correct(segment, (made) => {
    made.rejected = false;
    made.subject = tidy(subject) || undefined;
  });

export function addSegment(start, end, label, more = {}) {
  let made = null;
  change((draft) => {
    const times = { start: milliseconds(start), end: milliseconds(end) };
    made = newSegment(draft, { ...times, label, ...more });
  });
  return asSegment(made);
}

/** Take a correction back, as if it had never been made. */
export function forget(segment) {
  const old = correctionOf(segment);
  if (!old) return;
  change((draft) => {
    draft.segments = draft.segments.filter((other) => other.id !== old.id);
  });
}

export const setDone = (done) =>
  change((draft) => {
    draft.done = done;
  });
