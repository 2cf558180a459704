/* Who does it: a lane's segments in rows by subject, and the field that sets the subject of one. */

import { byId, el } from "./dom.js";
import { correctionOf, correctionsOf, setSubject, tidy } from "./edits.js";
import { labelKeys } from "./labelkeys.js";
import { pack } from "./segments.js";
import { on, state } from "./state.js";

/**
 * Return the row of each segment by its key, and a name above the rows of each subject. Segments
 * without a subject come first, as if there were no others.
 */
export function arrange(segments) {
  const rows = new Map();
  const names = [];
  let free = 0;
  for (const [subject, own] of bySubject(segments)) {
    if (subject) {
      const name = el("span", { class: "subject-name", "aria-hidden": "true" }, subject);
      name.style.setProperty("--row", free);
      names.push(name);
      free += 1;
    }
    const places = pack(own);
    own.forEach(({ key }, here) => rows.set(key, free + places[here]));
    free += Math.max(...places) + 1;
  }
  return { rows, names };
}

function bySubject(segments) {
  const groups = Map.groupBy(segments, (segment) => segment.subject ?? "");
  return [...groups].toSorted(([one], [other]) => one.localeCompare(other));
}

/** Make the field of a segment's subject; the next segment gets the same subject. */
export function subjectField(segment, then) {
  const value = (correctionOf(segment) ?? segment).subject ?? "";
  const input = el("input", {
    id: "segment-subject",
    list: "subjects",
    autocomplete: "off",
    value,
    onchange(event) {
      state.lastSubject = tidy(event.target.value);
      then(setSubject(segment, state.lastSubject));
    },
    onkeydown(event) {
      leaveByTab(event);
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      if (event.key === "Escape") event.target.value = value;
      event.target.blur();
    },
  });
  return el("label", { class: "field" }, el("span", {}, "Subject"), input);
}

/** Let the tab key leave a field that is drawn again once its text is taken over. */
export function leaveByTab(event) {
  if (event.key !== "Tab") return;
  event.preventDefault();
  event.target.blur();
  const stops = [...byId("inspector").querySelectorAll("button, input")];
  const here = stops.findIndex(({ id }) => id === event.target.id);
  const next = stops[here + (event.shiftKey ? -1 : 1)];
  next?.focus();
  next?.select?.();
}

function offer() {
  if (!state.video) return;
  const known = [...state.video.truth, ...correctionsOf(state.entry).segments, ...labelKeys()];
  const subjects = new Set(known.map(({ subject }) => subject).filter(Boolean));
  byId("subjects").replaceChildren(...[...subjects].map((value) => el("option", { value })));
}

export function startSubjects() {
  for (const name of ["video", "edits", "keys"]) on(name, offer);
}
