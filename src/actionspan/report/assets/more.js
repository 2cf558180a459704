/* Proposals and curves: hidden next to events until a reader asks for them. */

import { byId } from "./dom.js";
import { emit, on, state } from "./state.js";
import { store } from "./store.js";

const box = () => byId("show-more");

function apply() {
  const events = state.entry?.events !== null; // else proposals are all there is
  box().parentElement.hidden = !events;
  document.body.classList.toggle("events-alone", events && !box().checked);
  emit("theme"); // a hidden part has no size to be drawn at
}

/** Show them, or hide them again. */
export function toggleMore() {
  box().checked = !box().checked;
  box().dispatchEvent(new Event("change"));
}

export function startMore() {
  box().checked = store.read("more") === true;
  box().addEventListener("change", () => {
    store.write("more", box().checked);
    apply();
  });
  on("video", apply);
}
