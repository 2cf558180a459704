/* How many proposals are shown: those with at least a score. */

import { index } from "./data.js";
import { byId } from "./dom.js";
import { decimalsOf, outOf, score } from "./format.js";
import { emit, on, state } from "./state.js";

const AT_FIRST = 15; // proposals
const PLACES = 1000; // of the slider: the left end shows all, the right end the best

/** Return the least score that is shown. */
function least() {
  if (state.least !== null) return state.least;
  const { proposals } = state.video;
  return proposals[Math.min(AT_FIRST, proposals.length) - 1]?.score ?? 0;
}

/** Return the proposals that are shown, best first: one at least. */
export function shownProposals() {
  const { proposals } = state.video;
  const bar = Math.min(least(), proposals[0]?.score);
  return proposals.filter((proposal) => proposal.score >= bar);
}

/* Scores may be dense or cover powers of ten, so the slider goes by their ranks, most of its length
   by the first of them. */
const placeOf = (number, all) => PLACES * (1 - Math.log(number) / Math.log(all));
const numberAt = (place, all) => Math.round(all ** (1 - place / PLACES));

/** Show how it is set, and how many proposals that are. */
function describe() {
  const { proposals } = state.video;
  byId("threshold-tool").hidden = proposals.length < 2;
  if (proposals.length < 2) return;
  const shown = shownProposals();
  const slider = byId("threshold");
  slider.value = placeOf(shown.length, proposals.length);
  const scored = index.scale === "score";
  const value = scored ? score(shown.at(-1).score, decimalsOf(proposals)) : "";
  const number = outOf(shown.length, proposals.length);
  byId("threshold-name").textContent = scored ? "Proposals with a score of at least" : "Best proposals";
  slider.setAttribute("aria-valuetext", `${value && `${value}: `}${number} proposals`);
  byId("threshold-value").textContent = value;
  byId("shown-number").textContent = number;
}

function show(number) {
  const { proposals } = state.video;
  // in another video, too, all are shown where all are wanted
  state.least = number >= proposals.length ? Number.NEGATIVE_INFINITY : proposals[number - 1].score;
  describe();
  emit("threshold");
}

/** A key is a proposal more or less. */
function press(event) {
  const steps = { ArrowLeft: 1, ArrowDown: 1, ArrowRight: -1, ArrowUp: -1 };
  const step = steps[event.key];
  if (!step) return;
  event.preventDefault();
  show(Math.max(shownProposals().length + step, 1));
}

export function startThreshold() {
  const slider = byId("threshold");
  slider.min = 0;
  slider.max = PLACES;
  slider.step = "any";
  on("video", describe);
  slider.addEventListener("keydown", press);
  slider.addEventListener("input", () => {
    show(numberAt(Number(slider.value), state.video.proposals.length));
  });
}
