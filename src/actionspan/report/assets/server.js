/* The server of the page, where there is one: its content for each video, and requests to it. */

import { byId } from "./dom.js";

export const served = byId("save-corrections") === null;

/** Ask the server; return the answer, or null where there is none. */
export async function ask(path, more = {}) {
  try {
    return await fetch(path, { cache: "no-store", ...more });
  } catch {
    return null;
  }
}

/** Return the reason of a refusal, an answer of `ask`. */
export async function whyNot(answer) {
  if (!answer) return "actionspan does not answer";
  const said = await answer.json().catch(() => null); // an error of the server has no JSON
  return said?.error ?? answer.statusText;
}

/** Return all corrections by video, each with its version. */
export async function readAll() {
  const answer = await ask("corrections");
  return answer?.ok ? await answer.json() : null;
}

/** The kept state of each video: its version, and the state that the page works with. */
export const serverKept = new Map(served ? Object.entries((await readAll()) ?? {}) : []);
