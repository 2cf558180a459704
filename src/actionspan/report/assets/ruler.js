/* The marks of the time axis. */

import { el } from "./dom.js";
import { clock } from "./format.js";
import { duration } from "./player.js";
import { seconds, shown } from "./view.js";

const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200];
const APART = 74; // pixels, at least

/** Draw the marks of the part that is shown. */
export function drawRuler(content, pixels) {
  const least = (seconds() * APART) / Math.max(pixels, 1);
  const step = STEPS.find((candidate) => candidate >= least) ?? Math.ceil(least / 3600) * 3600;
  const decimals = step < 1 ? 1 : 0;
  const marks = [];
  const first = Math.ceil(shown().from / step - 1e-9);
  for (let place = first; place * step <= shown().to + 1e-9; place += 1) {
    const mark = el("span", { class: "mark" }, clock(place * step, decimals));
    mark.style.setProperty("--at", (place * step) / duration());
    marks.push(mark);
  }
  content.replaceChildren(...marks);
}
