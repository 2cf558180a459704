/* Which events are shown: by label those of at least a chance, and what that makes of them. */

import { index } from "./data.js";
import { byId, el } from "./dom.js";
import { chance, percent } from "./format.js";
import { emit, state } from "./state.js";
import { store } from "./store.js";

const KEY = JSON.stringify(["chances", location.pathname, index.title]);
const ROUNDED = 5e-5; // the points have four decimals
const labels = Object.keys(index.thresholds);
const kept = store.read(KEY) ?? {}; // by label the least chance that is shown

/** Return the events of the chosen video that are shown, best first. */
export function shownEvents() {
  const bar = ({ label }) => kept[label in index.thresholds ? label : ""] ?? 0;
  return state.video.events.filter((event) => event.score >= bar(event) - ROUNDED);
}

function row(label) {
  const points = index.thresholds[label].toReversed(); // from the lowest chance on
  const place = points.findIndex(([least]) => least >= (kept[label] ?? 0));
  const said = el("span", { class: "quiet", role: "status" });
  const slider = el("input", {
    type: "range",
    min: 0,
    max: points.length - 1,
    value: place < 0 ? points.length - 1 : place,
    "aria-label": `Least chance of ${label || "events"}`,
    oninput() {
      kept[label] = tell();
      store.write(KEY, kept);
      emit("threshold");
    },
  });
  function tell() {
    const [least, precision, recall] = points[slider.value];
    said.textContent =
      `${chance(least)} or more: ${percent(precision)} of them are right, ` +
      `and ${percent(recall)} of what happens is found`;
    slider.setAttribute("aria-valuetext", said.textContent);
    return least;
  }
  tell();
  return el("li", {}, el("span", {}, label || "Events"), slider, said);
}

export function startChances() {
  byId("chances").hidden = labels.length === 0;
  byId("chance-rows").append(...labels.map(row));
}
