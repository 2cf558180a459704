/* Zones of a fixed camera, drawn on a frame: only what happens inside them counts. */

import { announce, byId, el, svg } from "./dom.js";
import { ask, served, whyNot } from "./server.js";
import { state } from "./state.js";

const STEP = 0.005; // of the frame that an arrow key moves a point; ten times as much with shift
const CLICK = 0.02; // of the frame: a shorter drag is a click
const FEWEST = 3; // points
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
let zones = []; // each with its name and points, [x, y] from 0 to 1
let chosen = null;

const share = (number) => Math.round(Math.min(Math.max(number, 0), 1) * 1e4) / 1e4;
const percent = (number) => Math.round(number * 1e3) / 10;
const corners = (points) => points.map((point) => point.join(",")).join(" ");
const rectangle = ([left, top], [right, end]) => [[left, top], [right, top], [right, end], [left, end]];
const far = (one, other) => Math.hypot(one[0] - other[0], one[1] - other[1]);

function say(text) {
  byId("zone-said").textContent = text;
  byId("zone-said").hidden = text === "";
}

function add(points = rectangle([0.25, 0.25], [0.75, 0.75])) {
  let number = 1;
  while (zones.some(({ name }) => name === `zone ${number}`)) number += 1;
  chosen = { name: `zone ${number}`, points };
  zones.push(chosen);
  draw("name");
}

function keep(some) {
  zones = some;
  if (!zones.includes(chosen)) chosen = zones.at(-1) ?? null;
  draw("add");
}

/** Add a point to the chosen zone, on the side that it lengthens least. */
function insert(point) {
  const { points } = chosen;
  const longer = points.map((one, place) => {
    const next = points[(place + 1) % points.length];
    return far(one, point) + far(point, next) - far(one, next);
  });
  const place = longer.indexOf(Math.min(...longer)) + 1;
  points.splice(place, 0, point);
  draw(`point ${place}`);
}

function removePoint(place) {
  if (chosen.points.length <= FEWEST) return say(`A zone has ${FEWEST} points or more.`);
  chosen.points.splice(place, 1);
  draw(`point ${Math.min(place, chosen.points.length - 1)}`);
}

function moveTo(place, x, y, focus) {
  chosen.points[place] = [share(x), share(y)];
  draw(focus);
}

function placeOf({ clientX, clientY }) {
  const box = byId("zone-picture").getBoundingClientRect();
  return [share((clientX - box.left) / box.width), share((clientY - box.top) / box.height)];
}

/** Follow a drag that begins on a node; `finish` gets where it ended, null if it broke off. */
function follow(event, node, move, finish) {
  if (event.button !== 0) return;
  event.preventDefault();
  node.setPointerCapture(event.pointerId);
  const listening = new AbortController();
  const on = (name, act) => node.addEventListener(name, act, { signal: listening.signal });
  const end = (last) => {
    listening.abort();
    finish(last.type === "pointerup" ? placeOf(last) : null);
  };
  on("pointermove", (later) => move(placeOf(later)));
  on("pointerup", end);
  on("pointercancel", end);
}

/** A drag across the frame draws a zone; a click adds a point to the chosen one. */
function dragPicture(event) {
  const from = placeOf(event);
  const sketch = svg("polygon", { class: "chosen" });
  byId("zone-shapes").append(sketch);
  const move = (to) => sketch.setAttribute("points", corners(rectangle(from, to)));
  follow(event, byId("zone-shapes"), move, (to) => {
    sketch.remove();
    const sides = to ? [0, 1].map((axis) => Math.abs(to[axis] - from[axis])) : [0, 0];
    if (Math.min(...sides) > CLICK) add(rectangle(from, to));
    else if (to && chosen && Math.max(...sides) <= CLICK) insert(to);
  });
}

function put(node, [x, y], focus) {
  node.style.setProperty("--x", x);
  node.style.setProperty("--y", y);
  node.dataset.focus = focus;
  return node;
}

function pointButton(point, place) {
  const [focus, [x, y]] = [`point ${place}`, point];
  const node = el("button", {
    class: "zone-point",
    "aria-label": `Point ${place + 1} of ${chosen.name}: ${percent(x)} % across, ${percent(y)} % down`,
    title: "Drag, or use the arrow keys (shift: further); delete removes it",
    onpointerdown(event) {
      node.focus();
      const move = (to) => {
        chosen.points[place] = to;
        put(node, to, focus);
        drawShapes();
      };
      follow(event, node, move, (to) => moveTo(place, ...(to ?? point), focus));
    },
    onkeydown(event) {
      const [right, down] = ARROWS[event.key] ?? [];
      const step = event.shiftKey ? 10 * STEP : STEP;
      if (event.key in ARROWS) moveTo(place, x + step * right, y + step * down, focus);
      else if (event.key === "Delete" || event.key === "Backspace") removePoint(place);
      else return;
      event.preventDefault();
    },
  });
  return put(node, point, focus);
}

function drawShapes() {
  const shape = (zone) =>
    svg("polygon", { class: zone === chosen ? "chosen" : "", points: corners(zone.points) });
  byId("zone-shapes").replaceChildren(...zones.map(shape));
}

/** Draw the frame that the player shows, or the image in its place. */
function drawFrame() {
  const [video, still, frame] = ["video", "still", "zone-frame"].map(byId);
  const shown = video.videoWidth ? video : still;
  frame.width = shown.videoWidth || shown.naturalWidth || 640;
  frame.height = shown.videoHeight || shown.naturalHeight || 360;
  byId("zone-picture").style.setProperty("--ratio", frame.width / frame.height);
  if (shown.videoWidth || shown.naturalWidth) frame.getContext("2d").drawImage(shown, 0, 0);
}

function typed(place, axis) {
  const input = el("input", {
    type: "number",
    step: "any",
    value: percent(chosen.points[place][axis]),
    "aria-label": `Point ${place + 1}, % ${axis ? "down" : "across"}`,
    onchange() {
      const point = [...chosen.points[place]];
      if (Number.isFinite(input.valueAsNumber)) point[axis] = input.valueAsNumber / 100;
      moveTo(place, ...point, input.dataset.focus);
    },
  });
  input.dataset.focus = `typed ${place} ${axis}`;
  return input;
}

function line(zone) {
  const name = el("input", {
    "aria-label": "Name of the zone",
    value: zone.name,
    onfocus() {
      if (chosen === zone) return;
      chosen = zone;
      draw("name");
    },
    onchange() {
      zone.name = name.value.trim() || zone.name;
      draw();
    },
  });
  const button = (text, act) => el("button", { "aria-label": `${text}: ${zone.name}`, onclick: act }, text);
  const row = el("div", { class: "row" }, name, button("Delete", () => keep(zones.filter((one) => one !== zone))));
  if (zone !== chosen) return el("li", {}, row);
  name.dataset.focus = "name";
  const [first, second] = zone.points;
  row.append(button("Add a point", () => insert([0, 1].map((axis) => share((first[axis] + second[axis]) / 2)))));
  const points = zone.points.map((_, place) => el("span", {}, typed(place, 0), typed(place, 1)));
  return el("li", {}, row, el("div", { class: "row" }, ...points));
}

/** Draw everything again; the focus stays, or goes to what has this name. */
function draw(focus = document.activeElement?.dataset.focus) {
  say("");
  drawShapes();
  byId("zone-points").replaceChildren(...(chosen?.points.map(pointButton) ?? []));
  byId("zone-list").replaceChildren(...zones.map(line));
  byId("zones").querySelector(`[data-focus="${focus}"]`)?.focus();
}

const pathOf = () => `zones/${encodeURIComponent(state.entry.id)}`;

async function open() {
  const answer = state.entry && (await ask(pathOf()));
  if (!answer?.ok) return announce("actionspan does not answer");
  const kept = await answer.json();
  byId("zone-pattern").value = kept.pattern;
  const own = el("option", { value: kept.own }, "this video");
  byId("zone-patterns").replaceChildren(el("option", { value: "*" }, "all videos"), own);
  byId("video").pause();
  drawFrame();
  byId("zones").showModal();
  keep(kept.zones);
}

async function save() {
  const body = JSON.stringify({ pattern: byId("zone-pattern").value.trim(), zones });
  const headers = { "Content-Type": "application/json" };
  const answer = await ask(pathOf(), { method: "PUT", body, headers });
  if (!answer?.ok)
    return say(`Not saved: ${await whyNot(answer)}`);
  byId("zones").close();
  announce("Saved. Videos with other zones than before are looked at again.");
}

export function startZones() {
  if (!served) return;
  byId("open-zones").addEventListener("click", open);
  byId("zone-shapes").addEventListener("pointerdown", dragPicture);
  byId("zone-add").addEventListener("click", () => add());
  byId("zone-clear").addEventListener("click", () => keep([]));
  byId("zone-save").addEventListener("click", save);
}
