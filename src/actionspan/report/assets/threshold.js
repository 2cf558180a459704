/* How many proposals are shown: those with at least a score. */

import { byId } from "./dom.js";
import { decimalsOf, outOf, score } from "./format.js";
import { emit, on, state } from "./state.js";

const AT_FIRST = 15; // proposals
const STEPS = 200;

/** Return the least score that is shown. */
function least() {
  if (state.least !== null) return state.least;
  const { proposals } = state.video;
  return proposals[Math.min(AT_FIRST, proposals.length) - 1]?.score ?? 0;
}

/** Return the proposals that are shown, best first. */
export const shownProposals = () =>
  state.video.proposals.filter((proposal) => proposal.score >= least());

function describe() {
  const { proposals } = state.video;
  const number = shownProposals().length;
  const lowest = Math.max(least(), proposals.at(-1).score);
  byId("threshold-value").textContent = score(lowest, decimalsOf(proposals));
  byId("shown-number").textContent = outOf(number, proposals.length);
}

function fit() {
  const { proposals } = state.video;
  byId("threshold-tool").hidden = proposals.length === 0;
  if (!proposals.length) return;
  const slider = byId("threshold");
  const scores = proposals.map((proposal) => proposal.score);
  const low = Math.min(...scores);
  const high = Math.max(...scores);
  slider.min = low;
  slider.max = high;
  slider.step = (high - low) / STEPS || 1;
  slider.value = least();
  describe();
}

export function startThreshold() {
  on("video", fit);
  byId("threshold").addEventListener("input", (event) => {
    const slider = event.target;
    // the first place shows all, whatever rounding does to its value
    state.least = slider.value === slider.min ? Number.NEGATIVE_INFINITY : Number(slider.value);
    const { proposals } = state.video;
    if (proposals.length && state.least > proposals[0].score) state.least = proposals[0].score;
    describe();
    emit("threshold");
  });
}
