/* Label while it plays: an event lasts as long as its key is held. */

import { announce, byId, el, icon } from "./dom.js";
import { addSegment, milliseconds } from "./edits.js";
import { clock } from "./format.js";
import { belongsTo } from "./keys.js";
import { labelKeys } from "./labelkeys.js";
import { duration, frameSeconds, playing, speed, timeOf } from "./player.js";
import { lag } from "./reaction.js";
import { place } from "./segments.js";
import { on } from "./state.js";
import { summaryShown } from "./summary.js";

const PAUSED = "Keys of labels work while the video plays.";
const held = new Map(); // what happens now, by key: its press, and its ghost in the lane
const down = new Map(); // by physical key: the key that it was when it went down

/** Return the edge that a press means: earlier by the reaction time, at the speed of the video. */
function edgeAt(edge, pressed) {
  const frame = frameSeconds();
  return Math.round((pressed - lag(edge) * speed()) / frame) * frame;
}

function begin(key, at) {
  if (key.point) add(key, { pressed: at, speed: speed(), at: edgeAt("start", at) }, null);
  else if (!held.has(key.key)) {
    const start = { pressed: at, speed: speed(), at: edgeAt("start", at) };
    held.set(key.key, { key, start, ghost: el("div", { class: "segment own ghost" }) });
  }
  showHeld();
}

/** End the event that a key began; a pause has no press, and so no reaction time. */
function finish(name, at, press = true) {
  const one = held.get(name);
  if (!one) return;
  held.delete(name);
  one.ghost.remove();
  const end = { pressed: at, speed: speed(), at: press ? edgeAt("end", at) : at };
  add(one.key, one.start, end, press);
  showHeld();
}

function finishAll() {
  for (const name of held.keys()) finish(name, timeOf(), false);
}

/** Add an event, of one frame at least, and note the presses behind its edges. */
function add({ label, subject }, { at, ...first }, last, reacted = false) {
  const frame = Math.min(frameSeconds(), duration());
  const start = milliseconds(Math.min(Math.max(at, 0), duration() - frame));
  const end = milliseconds(Math.min(Math.max(last?.at ?? 0, start + frame), duration()));
  const notes = { start: { ...first, made: start } };
  if (reacted) notes.end = { pressed: last.pressed, speed: last.speed, made: end };
  addSegment(start, end, label, subject ? { subject, held: notes } : { held: notes });
  announce(`${label} ${clock(start, 1)} to ${clock(end, 1)}`);
}

function press(event) {
  if (down.has(event.code)) {
    event.preventDefault(); // it repeats, also after a pause: then it is not a command
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (!playing() || summaryShown() || belongsTo(event.target, event.key)) return;
  const key = labelKeys().find((each) => each.key === event.key);
  if (!key) return;
  event.preventDefault();
  down.set(event.code, key.key);
  begin(key, timeOf(event));
}

function release(event) {
  const name = down.get(event.code);
  down.delete(event.code);
  if (name) finish(name, timeOf(event));
}

/** Show the keys as buttons: a press begins an event, the next one ends it. */
function drawKeys() {
  const buttons = labelKeys().map((key) => {
    const name = key.subject ? `${key.label} (${key.subject})` : key.label;
    const onclick = (event) => {
      if (held.has(key.key)) finish(key.key, timeOf(event));
      else if (playing()) begin(key, timeOf(event));
      else byId("lanes-note").textContent = PAUSED;
    };
    const title = key.point ? "Press at the instant" : "Hold while it happens";
    const pressed = key.point ? {} : { "aria-pressed": "false" };
    const button = el("button", { title, onclick, ...pressed }, el("kbd", {}, key.key), name);
    if (key.point) button.append(icon("point"));
    button.dataset.key = key.key;
    return button;
  });
  byId("label-keys").replaceChildren(...buttons);
}

function showHeld() {
  for (const button of byId("label-keys").querySelectorAll("[aria-pressed]"))
    button.setAttribute("aria-pressed", String(held.has(button.dataset.key)));
}

function grow(now) {
  const lane = document.querySelector(".own-lane .content");
  for (const { start, ghost } of held.values()) {
    if (!ghost.isConnected) lane.append(ghost);
    place(ghost, Math.max(start.at, 0), Math.max(now, start.at), duration());
  }
}

export function startHolding() {
  document.addEventListener("keydown", press, true); // before the commands of the page
  document.addEventListener("keyup", release, true);
  addEventListener("blur", () => {
    down.clear();
    finishAll();
  });
  for (const name of ["pause", "ended"]) byId("video").addEventListener(name, finishAll);
  on("jump", finishAll);
  on("time", grow);
  on("keys", drawKeys);
  drawKeys();
}
