/* The shown state, and the listeners to its changes. */

export const state = {
  entry: null, // of the index: the chosen video
  video: null, // its data
  chosen: null, // the chosen segment: one of the video's, or of the corrections
  drawing: false, // whether a drag adds a segment wherever it begins
  lane: null, // where the reader chose last
  least: null, // the least score that is shown; null: the score of the 15th proposal
  lastLabel: "", // the last given label: the next segment gets it
  lastSubject: "", // the same of who does it
};

const listeners = new Map();

/**
 * Events: jump (before a seek or another video), video, chosen, edits, edits elsewhere (in another
 * tab), keys (of labels), threshold, time, view, theme.
 */
export function on(name, listener) {
  listeners.set(name, [...(listeners.get(name) ?? []), listener]);
}

export function emit(name, value) {
  for (const listener of listeners.get(name) ?? []) listener(value);
}
