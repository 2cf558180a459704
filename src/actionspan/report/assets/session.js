/* A served page: each correction is saved as it is made, and a model learns in the background. */

import { rowsOf } from "./corrections_file.js";
import { index } from "./data.js";
import { announce, byId } from "./dom.js";
import { correctionsOf, takeOver, touched } from "./edits.js";
import { ask, readAll, served, serverKept, whyNot } from "./server.js";
import { on, state } from "./state.js";

const PAUSE = 1500; // milliseconds between two looks at the server
const MOST_NAMED = 8; // videos
const unsaved = new Set(); // videos that were changed since they were last sent
const ELSEWHERE = "This video was changed in another window: that version is shown.";
let sending = false;
let shownPage = null; // version of the page that is open

const say = (id, text) => {
  const node = byId(id);
  if (node.textContent !== text) node.textContent = text;
  node.hidden = text === "";
};

/** Send the changes, one video after another, until nothing is left. */
async function send() {
  if (sending) return;
  sending = true;
  await sendNext();
  sending = false;
}

async function sendNext() {
  const [entry] = unsaved;
  if (!entry) return;
  unsaved.delete(entry);
  const now = correctionsOf(entry);
  const version = serverKept.get(entry.id)?.version ?? 0;
  const body = JSON.stringify({ version, state: touched(entry) ? now : null, rows: rowsOf(entry) });
  const headers = { "Content-Type": "application/json" };
  const path = `corrections/${encodeURIComponent(entry.id)}`;
  const answer = await ask(path, { method: "PUT", body, headers });
  if (!answer?.ok && answer?.status !== 409) {
    unsaved.add(entry);
    say("saving", `Not saved: ${await whyNot(answer)}. Trying again…`);
    return;
  }
  const said = await answer.json();
  if (answer.ok) {
    serverKept.set(entry.id, { version: said.version, state: now });
    say("saving", unsaved.size ? "Saving…" : "Saved");
  } else {
    follow(entry, said);
    say("storage-note", ELSEWHERE);
    announce(ELSEWHERE);
  }
  await sendNext();
}

function follow(entry, one) {
  unsaved.delete(entry);
  serverKept.set(entry.id, one);
  takeOver(entry, one.state);
}

async function look() {
  if (unsaved.size) await send();
  const answer = await ask("status");
  if (answer?.ok) {
    show(await answer.json());
    if (!unsaved.size && byId("saving").textContent.startsWith("Not")) say("saving", "Saved");
  } else {
    say("doing", "actionspan does not answer: start it again, and open the address that it prints.");
  }
  setTimeout(look, PAUSE);
}

async function show(status) {
  shownPage ??= status.page;
  const broken = Object.entries(status.broken).map(([name, why]) => `${name}: ${why}`);
  say("doing", status.doing ? `Now ${status.doing}` : "");
  say("said", [status.said, ...broken].filter(Boolean).join(" "));
  byId("learn").disabled = status.doing !== "" || status.new === 0;
  byId("show-new").hidden = status.page === shownPage;
  // the first videos come by themselves: nothing was begun yet
  if (status.page !== shownPage && index.videos.length === 0) location.reload();
  const changed = index.videos.filter(
    (entry) => (status.versions[entry.id] ?? 0) > (serverKept.get(entry.id)?.version ?? 0),
  );
  if (!changed.length || sending) return;
  const all = await readAll();
  for (const entry of changed) if (all?.[entry.id] && !unsaved.has(entry)) follow(entry, all[entry.id]);
}

/** Show of which videos corrections.csv has the corrections, and of which it has not. */
function sayCounted() {
  const open = index.videos.filter((entry) => touched(entry) && !correctionsOf(entry).done);
  const done = index.videos.filter((entry) => correctionsOf(entry).done).length;
  const names = open.slice(0, MOST_NAMED).map(({ id }) => id);
  if (open.length > MOST_NAMED) names.push(`and ${open.length - MOST_NAMED} more`);
  const left = `Saved, not Done: not counted in corrections.csv: ${names.join(", ")}.`;
  const single = "Their single events are learned from together with Done videos.";
  say("counted", open.length ? `Counted in corrections.csv: ${done} Done. ${left} ${single}` : "");
}

export function startSession() {
  if (!served) return;
  for (const name of ["edits", "edits elsewhere"]) on(name, sayCounted);
  sayCounted();
  on("edits", (own) => {
    if (own === undefined) return; // of another window
    unsaved.add(state.entry);
    say("saving", "Saving…");
    send();
  });
  byId("learn").addEventListener("click", async () => {
    await send();
    await ask("learn", { method: "POST" });
  });
  byId("show-new").addEventListener("click", async () => {
    await send();
    if (!unsaved.size) location.reload();
  });
  addEventListener("beforeunload", (event) => {
    if (unsaved.size || sending) event.preventDefault();
  });
  look();
}
