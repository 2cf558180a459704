/* The segments of the lanes as buttons, with a description of each. */

import { index } from "./data.js";
import { el } from "./dom.js";
import { correctionOf, correctionsOf, replaced, statusOf } from "./edits.js";
import { clock, placeOf } from "./format.js";
import { labelKeys } from "./labelkeys.js";
import { seriesColour } from "./lines.js";
import { state } from "./state.js";

const NAMES = { truth: "Truth", event: "Event", proposal: "Proposal", own: "Corrected" };
const SCALES = { rank: "rank", chance: "chance to be right", score: "score" };

export function titleOf(segment) {
  if (segment.kind === "own" || segment.kind === "truth") return NAMES[segment.kind];
  if (segment.gone) return "Event, no longer proposed";
  const list = segment.kind === "event" ? state.video.events : state.video.proposals;
  return `${NAMES[segment.kind]} ${segment.rank} of ${list.length}`;
}

/** What became of a segment in the hands of the reader; empty: nothing. */
export function fateOf(segment) {
  const correction = correctionOf(segment);
  if (correction) return statusOf(correction);
  return replaced(segment) ? "replaced" : "";
}

/** Return the lines about a segment, each with its name. */
export function factsOf(segment) {
  const facts = [
    ["start", clock(segment.start)],
    ["end", clock(segment.end)],
    ["length", `${(segment.end - segment.start).toFixed(3)} s`],
  ];
  const began = placeOf(state.entry, segment.start);
  if (began) facts.push(["begins in", began], ["ends in", placeOf(state.entry, segment.end)]);
  if (segment.label) facts.push(["label", segment.label]);
  if (segment.subject) facts.push(["subject", segment.subject]);
  if (segment.zone) facts.push(["zone", segment.zone]);
  if (segment.score !== null) facts.push([SCALES[segment.scale], segment.shownScore]);
  if (state.video.truth.length && segment.kind !== "truth" && segment.kind !== "own") {
    const { best } = segment;
    const match = best
      ? `${best.tiou.toFixed(2)} ${best.instance.label && `(${best.instance.label})`}`
      : "0";
    facts.push(["tIoU with the best truth", match.trim()]);
  }
  const fate = fateOf(segment);
  if (fate) facts.push(["corrected", fate]);
  return facts;
}

export const sentenceOf = (segment) =>
  [titleOf(segment), ...factsOf(segment).map(([name, value]) => `${name} ${value}`)].join(", ");

/** Place an element at the time of a segment, as a share of the video. */
export function place(node, start, end, duration) {
  node.style.setProperty("--start", start / duration);
  node.style.setProperty("--length", (end - start) / duration);
}

/** Put each segment into the first row where it overlaps none before it; return their rows. */
export function pack(segments) {
  const rows = [];
  return segments.map((segment) => {
    const free = (row) => row.every((one) => one.end <= segment.start || segment.end <= one.start);
    let row = rows.findIndex(free);
    if (row < 0) row = rows.push([]) - 1;
    rows[row].push(segment);
    return row;
  });
}

/** Return how strong the shade of an event is: of a chance to be right, the chance. */
export const shareOfEvent = (event, events) =>
  Math.max(event.score, 0) / Math.max(1, events[0].score);

/**
 * Return how strong the shade of each proposal is, of those shown, best first: half by its score
 * and half by its place, as scores may be nearly equal or cover powers of ten.
 */
export function sharesOf(proposals) {
  const high = proposals[0]?.score;
  const low = proposals.at(-1)?.score;
  let place = 0;
  return proposals.map(({ score }, here) => {
    if (here && score < proposals[here - 1].score) place = here;
    if (high === low) return 1;
    return ((score - low) / (high - low) + 1 - place / (proposals.length - 1)) / 2;
  });
}

/** Return the colours of the labels, in the order of all labels; an only label has none. */
export function labelColours() {
  const { events, gone } = state.video;
  const typed = [...events, ...gone, ...labelKeys(), ...correctionsOf(state.entry).segments];
  const labels = [...new Set([...index.labels, ...typed.map(({ label }) => label)])].filter(Boolean);
  return new Map(labels.length > 1 ? labels.map((label, here) => [label, seriesColour(here)]) : []);
}

/** Make the button of a segment. */
export function segmentButton(segment, row, duration, colours) {
  const fate = fateOf(segment);
  const name = el("span", { class: "name" }, nameOf(segment));
  const button = el(
    "button",
    {
      class: `segment ${segment.kind} ${segment.gone ? "gone" : ""} ${fate} ${colours.get(segment.label) ?? ""}`,
      tabindex: "-1",
      "aria-label": sentenceOf(segment),
    },
    name,
  );
  button.dataset.focus = segment.key;
  place(button, segment.start, segment.end, duration);
  button.style.setProperty("--row", row);
  return button;
}

function nameOf(segment) {
  if (segment.kind === "proposal" || segment.kind === "event") {
    const label = segment.label && segment.kind === "event" ? `${segment.label} ` : "";
    return `${label}${segment.shownScore}`;
  }
  return segment.label || "—";
}
