/* Which events are shown: for each label, the events of at least a chance. */

import { index } from "./data.js";
import { byId, el } from "./dom.js";
import { percent } from "./format.js";
import { emit, state } from "./state.js";
import { store } from "./store.js";

const KEY = JSON.stringify(["chances", location.pathname, index.title]);
const ROUNDED = 5e-5; // the points have four decimals
const bars = new Map(); // by label the least chance that is shown; of no other label events are left out

/** Return the events of the chosen video that are shown, best first. */
export function shownEvents() {
  const bar = ({ label }) => bars.get(label) ?? bars.get("") ?? 0;
  return state.video.events.filter((event) => event.score >= bar(event) - ROUNDED);
}

/** Return the place of the first point that shows no less likely events than were shown before. */
function placeOf(points, kept) {
  if (typeof kept !== "number") return 0; // nothing was chosen
  const place = points.findIndex(([least]) => least >= kept - ROUNDED);
  return place < 0 ? points.length - 1 : place;
}

function row([label, falling], kept) {
  const points = falling.toReversed(); // from the lowest chance on
  const said = el("span", { class: "quiet" });
  const slider = el("input", {
    type: "range",
    min: 0,
    max: points.length - 1,
    value: placeOf(points, kept),
    "aria-label": `Least chance of ${label || "events"}`,
    oninput() {
      apply();
      store.write(KEY, Object.fromEntries(bars));
      emit("threshold");
    },
  });
  function apply() {
    const [least, precision, recall] = points[slider.value];
    if (Number(slider.value)) bars.set(label, least);
    else bars.delete(label); // all are shown
    said.textContent =
      `${percent(least)} or more: ${percent(precision)} of them are right, ` +
      `and ${percent(recall)} of what happens is found`;
    slider.setAttribute("aria-valuetext", said.textContent);
  }
  apply();
  return el("li", {}, el("span", {}, label || "Events"), slider, said);
}

export function startChances() {
  const kept = new Map(Object.entries(store.read(KEY) ?? {}));
  const labels = Object.entries(index.thresholds);
  byId("chances").hidden = labels.length === 0;
  byId("chance-rows").append(...labels.map((each) => row(each, kept.get(each[0]))));
}
