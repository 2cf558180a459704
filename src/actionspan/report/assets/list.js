/* The list of videos: search, subset, order. */

import { index, readVideo } from "./data.js";
import { byId, el } from "./dom.js";
import { correctionsOf, touched } from "./edits.js";
import { chance, clock, percent, plural, score } from "./format.js";
import { served } from "./server.js";
import { emit, on, state } from "./state.js";

const names = new Intl.Collator("en", { numeric: true });

/** Compare by a number, lowest first; what has none comes last. */
const by = (number) => (one, other) =>
  (number(one) ?? Number.POSITIVE_INFINITY) - (number(other) ?? Number.POSITIVE_INFINITY) || 0;

const ORDERS = {
  name: (one, other) => names.compare(one.id, other.id),
  recall: by((entry) => entry.recall),
  score: by((entry) => entry.score && -entry.score),
  duration: by((entry) => -entry.duration),
};
const items = new Map(); // by place in the index
let listed = [];

/** Return the part of the page's address that names a video; half of a character is replaced. */
const addressOf = (entry) => `#${encodeURIComponent(entry.id.toWellFormed())}`;

/** Open a video. */
export function open(entry, { focus = false } = {}) {
  if (state.entry === entry) return;
  emit("jump");
  state.chosen = null;
  state.lastLabel = state.lastSubject = ""; // of another video
  state.entry = entry;
  state.video = readVideo(entry);
  byId("video-name").textContent = entry.id;
  byId("video-facts").textContent = factsOf(entry).join(" · ");
  history.replaceState(null, "", addressOf(entry));
  emit("video", entry);
  mark(focus);
}

function factsOf(entry) {
  const facts = [clock(entry.duration, 1)];
  if (entry.subset) facts.push(entry.subset);
  if (entry.rate) facts.push(`${Number(entry.rate.toFixed(2))} frames/s`);
  if (entry.truths) facts.push(plural(entry.truths, "true instance"));
  facts.push(entry.events === null ? plural(entry.proposals, "proposal") : countOf(entry));
  if (entry.gone) facts.push(`${entry.gone} no longer proposed`);
  if (entry.recall !== null) facts.push(`recall ${percent(entry.recall)}`);
  return facts;
}

/** Go to the next video of the list, or the one before. */
export function openNext(by) {
  const place = listed.indexOf(state.entry);
  const entry = listed[place + by];
  if (entry) open(entry);
}

/** How many events are listed, and how many there were before the last round of learning. */
const countOf = ({ events, before }) =>
  (events ? plural(events, "event") : "no event") + (before === null ? "" : `, ${before} before`);

/** How much was found, and how sure it is. */
function saidOf({ events, before, score: best }) {
  if (events === null) return best === null ? "" : `score ${score(best)}`;
  if (best === null) return countOf({ events, before });
  return `${countOf({ events, before })}, ${index.scale === "chance" ? chance(best) : score(best)}`;
}

function item(entry) {
  const facts = el("span", { class: "facts-line" }, el("span", {}, clock(entry.duration, 0)));
  if (entry.recall !== null) {
    const bar = el("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", entry.recall);
    facts.append(bar, el("span", {}, `recall ${percent(entry.recall)}`));
  } else if (saidOf(entry)) {
    facts.append(el("span", {}, saidOf(entry)));
  }
  const button = el(
    "button",
    { class: "entry", tabindex: "-1", onclick: () => open(entry) },
    el("span", { class: "entry-name" }, entry.id),
    facts,
    el("span", { class: "state" }),
  );
  return el("li", {}, button);
}

function update() {
  const words = byId("search").value.trim().toLowerCase();
  const subset = byId("subset").value;
  listed = index.videos
    .filter(
      (entry) => entry.id.toLowerCase().includes(words) && (!subset || entry.subset === subset),
    )
    .toSorted((one, other) => ORDERS[byId("order").value](one, other) || ORDERS.name(one, other));
  byId("list").replaceChildren(...listed.map((entry) => items.get(entry.place)));
  byId("none-found").hidden = listed.length > 0;
  const all = index.videos.length;
  byId("index-title").textContent =
    listed.length < all ? `${listed.length} of ${plural(all, "video")}` : plural(all, "video");
  mark();
}

/** Show which video is open, and let the tab key stop there only. */
function mark(focus = false) {
  const at = listed.includes(state.entry) ? state.entry : listed[0];
  for (const [place, node] of items) {
    const button = node.firstElementChild;
    const open = place === state.entry?.place;
    if (open) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
    button.tabIndex = place === at?.place ? 0 : -1;
  }
  const chosen = items.get(state.entry?.place)?.firstElementChild;
  if (chosen?.isConnected) {
    const list = byId("list");
    const box = chosen.getBoundingClientRect();
    const frame = list.getBoundingClientRect();
    if (box.top < frame.top || box.bottom > frame.bottom)
      list.scrollTop += box.top - frame.top - frame.height / 3;
    if (focus) chosen.focus({ preventScroll: true });
  }
}

function markTouched(entry) {
  const { segments, done } = correctionsOf(entry);
  const text = done ? "done" : segments.length ? `${segments.length} corrected, not Done` : "";
  const note = items.get(entry.place).querySelector(".state");
  note.textContent = text;
  note.classList.toggle("is-done", done);
}

function arrows(event) {
  const steps = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
  if (!(event.key in steps)) return;
  event.preventDefault();
  event.stopPropagation();
  const here = listed.indexOf(
    index.videos.find((entry) => items.get(entry.place).contains(event.target)),
  );
  const next = Math.min(Math.max(here + steps[event.key], 0), listed.length - 1);
  items.get(listed[next].place).firstElementChild.focus();
}

function fillSubsets() {
  const subsets = [...new Set(index.videos.map((entry) => entry.subset))]
    .filter(Boolean)
    .sort(names.compare);
  byId("subset").append(
    el("option", { value: "" }, "all"),
    ...subsets.map((name) => el("option", { value: name }, name)),
  );
  byId("subset-choice").hidden = subsets.length < 2;
  byId("order").querySelector('[value="recall"]').hidden = index.videos.every(
    (entry) => entry.recall === null,
  );
  byId("order").querySelector('[value="score"]').hidden = index.scale === "rank";
}

/** Show how many events the lists have, and had before, so that none gets shorter unseen. */
function sayListed() {
  const learned = index.videos.filter((entry) => entry.before !== null);
  if (!served || !learned.length) return;
  const total = (name) => learned.reduce((sum, entry) => sum + entry[name], 0);
  const gone = total("gone");
  const kept = `; ${gone} no longer proposed stay in the page, dimmed (events.csv has none of them)`;
  byId("listed").textContent =
    `Events listed in ${plural(learned.length, "video")}: ${total("events")} now, ` +
    `${total("before")} before${gone ? kept : ""}.`;
  byId("listed").hidden = false;
}

export function startList() {
  sayListed();
  for (const entry of index.videos) {
    items.set(entry.place, item(entry));
    if (touched(entry)) markTouched(entry);
  }
  fillSubsets();
  document.body.classList.toggle("one-video", index.videos.length < 2);
  byId("index-fold").open = matchMedia("(min-width: 900px)").matches;
  byId("search").addEventListener("input", update);
  byId("subset").addEventListener("change", update);
  byId("order").addEventListener("change", update);
  byId("list").addEventListener("keydown", arrows);
  on("edits", () => markTouched(state.entry));
  on("edits elsewhere", markTouched);
  update();
  const first = index.videos.find((entry) => addressOf(entry) === location.hash) ?? listed[0];
  if (first) open(first);
}
