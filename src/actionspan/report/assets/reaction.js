/* A person's reaction time, learned from their corrections of events by held keys. */

import { index } from "./data.js";
import { byId } from "./dom.js";
import { correctionsOf } from "./edits.js";
import { plural } from "./format.js";
import { labelKeys } from "./labelkeys.js";
import { on } from "./state.js";

const FEWEST = 5; // corrected edges from which a median counts
const LONGEST = 3; // seconds: an edge that is further off was moved for another reason
const A_TIME = 5e-4; // seconds: times are kept in milliseconds
const lags = { start: 0, end: 0 };

/** Seconds that pass between an edge and its press, by a clock, whatever the speed of the video. */
export const lag = (edge) => lags[edge];

/** Return by how many seconds the presses of an event were late, of each edge that was corrected. */
function latenessOf({ held, rejected, ...segment }) {
  if (!held || rejected) return {};
  const found = {};
  for (const edge of ["start", "end"]) {
    const { made, pressed, speed } = held[edge] ?? {};
    if (made === undefined || Math.abs(segment[edge] - made) < A_TIME) continue;
    const late = (pressed - segment[edge]) / speed;
    if (Math.abs(late) <= LONGEST) found[edge] = late;
  }
  return found;
}

function median(values) {
  const sorted = values.toSorted((one, other) => one - other);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

function learn() {
  const segments = index.videos.flatMap((entry) => correctionsOf(entry).segments);
  const late = segments.map(latenessOf).filter((found) => Object.keys(found).length);
  for (const edge of ["start", "end"]) {
    const known = late.map((found) => found[edge]).filter((value) => value !== undefined);
    lags[edge] = known.length < FEWEST ? 0 : median(known);
  }
  const line = byId("reaction");
  line.hidden = !labelKeys().length;
  const text = sentence(late.length);
  if (line.textContent !== text) line.textContent = text;
}

function sentence(corrected) {
  const events = plural(corrected, "corrected event");
  if (!lags.start && !lags.end)
    return `Reaction time: learned from ${FEWEST} corrected events of held keys (${corrected} so far).`;
  const [start, end] = ["start", "end"].map((edge) => `${lags[edge].toFixed(2)} s at its ${edge}`);
  return `Your reaction time is taken off each new event: ${start}, ${end} (median of ${events}).`;
}

export function startReaction() {
  for (const name of ["edits", "edits elsewhere", "keys"]) on(name, learn);
  learn();
}
