/* Which part of the video the timeline shows. */

import { byId } from "./dom.js";
import { duration, time } from "./player.js";
import { emit, on } from "./state.js";

const NARROWEST = 1; // second
const view = { from: 0, to: 1 };

export const shown = () => view;
export const seconds = () => view.to - view.from;

/** Show a part, moved so that it lies inside the video. */
export function showPart(from, to) {
  const length = Math.min(Math.max(to - from, Math.min(NARROWEST, duration())), duration()) || 1;
  view.from = Math.max(Math.min(from, duration() - length), 0);
  view.to = view.from + length;
  const lanes = byId("lanes");
  lanes.style.setProperty("--zoom", duration() / length || 1);
  lanes.style.setProperty("--offset", view.from / length);
  byId("zoom-out").disabled = byId("zoom-all").disabled = length >= duration();
  byId("zoom-in").disabled = length <= NARROWEST;
  emit("view", view);
}

export const showAll = () => showPart(0, duration());

/** Zoom about a time, which stays where it is; by default the playhead or the middle. */
export function zoom(factor, about = null) {
  const visible = time() >= view.from && time() <= view.to;
  const centre = about ?? (visible ? time() : (view.from + view.to) / 2);
  const length = Math.min(seconds() / factor, duration());
  const share = (centre - view.from) / seconds();
  showPart(centre - share * length, centre - share * length + length);
}

export const pan = (by) => showPart(view.from + by, view.to + by);

/** Move on so that a time is seen. */
export function reveal(at) {
  if (at < view.from || at > view.to) showPart(at - 0.1 * seconds(), at + 0.9 * seconds());
}

export function startView() {
  on("video", showAll);
  on("time", reveal);
  byId("zoom-in").addEventListener("click", () => zoom(2));
  byId("zoom-out").addEventListener("click", () => zoom(0.5));
  byId("zoom-all").addEventListener("click", showAll);
}
