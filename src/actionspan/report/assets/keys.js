/* The keyboard, and the list of its keys. */

import { byId, el } from "./dom.js";
import { commands } from "./inspector.js";
import { choose, nodeOf, segmentsOf } from "./lanes.js";
import { openNext } from "./list.js";
import { changeSpeed, duration, fullscreen, mute, seek, step, time, toggle } from "./player.js";
import { toggleMore } from "./more.js";
import { state } from "./state.js";
import { summaryShown } from "./summary.js";
import { showAll, zoom } from "./view.js";

/** Choose the next segment of the lane where one was chosen, else of the events or proposals. */
function nextSegment(by) {
  const lanes = [state.lane, "event", "proposal", "truth", "own"].filter(Boolean);
  const segments = lanes.map(segmentsOf).find((list) => list.length);
  if (!segments) return;
  // a moved segment stays in the lane where it was found
  const { key, origin } = state.chosen ?? {};
  const here = segments.findIndex((segment) => segment.key === key || segment.key === origin?.key);
  const place = here < 0 ? 0 : Math.min(Math.max(here + by, 0), segments.length - 1);
  choose(segments[place], { focus: true });
  seek(segments[place].start);
  nodeOf(segments[place].key)?.scrollIntoView({ block: "nearest" });
}

const focusEdge = (edge) => nodeOf(`handle ${edge}`)?.focus({ preventScroll: true });

function search() {
  byId("index-fold").open = true;
  byId("search").focus();
}

/** Keys, their actions, and their text in the help; a key without a text has it elsewhere. */
const KEYS = [
  [
    "Look",
    [
      [[" "], toggle, "space", "play or pause"],
      [
        ["ArrowLeft"],
        (event) => seek(time() - (event.shiftKey ? 5 : 1)),
        "← →",
        "one second back or forward; five with shift",
      ],
      [["ArrowRight"], (event) => seek(time() + (event.shiftKey ? 5 : 1))],
      [[","], () => step(-1), ", .", "one frame back or forward"],
      [["."], () => step(1)],
      [["<"], () => changeSpeed(-1), "< >", "slower or faster, from ¼× to 8×"],
      [[">"], () => changeSpeed(1)],
      [["Home"], () => seek(0), "home end", "go to the start or the end"],
      [["End"], () => seek(duration())],
      [["n"], () => nextSegment(1), "n p", "next or previous segment of the lane"],
      [["p"], () => nextSegment(-1)],
      [["Enter"], commands.play, "enter", "play the selected segment"],
      [["j"], () => openNext(1), "j k", "next or previous video"],
      [["k"], () => openNext(-1)],
      [["+", "="], () => zoom(2), "+ − 0", "zoom in, zoom out, show all"],
      [["-", "−"], () => zoom(0.5)],
      [["0"], showAll],
      [["v"], toggleMore, "v", "show or hide proposals and curves"],
      [["m"], mute, "m f", "sound, full screen"],
      [["f"], fullscreen],
      [["/"], search, "/", "search the videos"],
      [["?"], () => byId("help").showModal(), "?", "this help"],
    ],
  ],
  [
    "Correct",
    [
      [["a"], commands.accept, "a x", "accept or reject the selected segment"],
      [["x"], commands.reject],
      [["["], commands.start, "[ ]", "move its start or end to the playhead"],
      [["]"], commands.end],
      [
        ["s"],
        () => focusEdge("start"),
        "s e",
        "select its start or end; ← → then move it by one frame, or ten with shift",
      ],
      [["e"], () => focusEdge("end")],
      [["l"], commands.name, "l", "edit its label"],
      [["i"], commands.add, "i", "add a segment at the playhead"],
      [["w"], commands.draw, "w", "Draw: each drag adds a segment, also over others, as with Shift held"],
      [["Delete", "Backspace"], commands.forget, "delete", "remove the correction"],
      [["z"], commands.undo, "z", "undo; redo with shift"],
      [["Z"], commands.redo],
      [["d"], commands.done, "d", "mark the video as done or not done"],
      [["Escape"], commands.leave, "escape", "clear the selection, and end Draw"],
    ],
  ],
];

const actions = new Map(
  KEYS.flatMap(([, keys]) => keys.flatMap(([names, act]) => names.map((name) => [name, act]))),
);

/** Whether a key is meant for what has the focus: text that is typed, a button that is pressed. */
export function belongsTo(node, key) {
  if (node.closest("dialog[open]")) return true;
  if (node.matches("input[type=search], input[type=text], input[list], textarea")) return true;
  if (node.matches("select, input[type=range], input[type=checkbox]"))
    return key === " " || /^(Arrow|Home|End)/.test(key);
  if (node.matches(".segment")) return false;
  return node.matches("button, summary, a, [role=tab]") && (key === " " || key === "Enter");
}

function press(event) {
  const control = event.ctrlKey || event.metaKey;
  if (event.altKey || event.defaultPrevented) return;
  if (summaryShown() && event.key !== "?") return;
  if (belongsTo(event.target, event.key)) return;
  let act = control ? null : actions.get(event.key);
  if (control && event.key.toLowerCase() === "z")
    act = event.shiftKey ? commands.redo : commands.undo;
  if (control && event.key === "y") act = commands.redo;
  if (!act || (!state.video && event.key !== "?")) return;
  event.preventDefault();
  act(event);
}

export function startKeys() {
  document.addEventListener("keydown", press);
  byId("show-help").addEventListener("click", () => byId("help").showModal());
  for (const [title, keys] of KEYS) {
    const told = keys.filter(([, , shown]) => shown);
    const lines = told.flatMap(([, , shown, words]) => [
      el("dt", {}, ...shown.split(" ").map((key) => el("kbd", {}, key))),
      el("dd", {}, words),
    ]);
    byId("help-keys").append(el("section", {}, el("h3", {}, title), el("dl", {}, ...lines)));
  }
}
