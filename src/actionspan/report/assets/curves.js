/* The curves of a video on the time axis of the lanes. */

import { colour, el } from "./dom.js";
import { duration, time } from "./player.js";
import { on, state } from "./state.js";
import { seconds, shown } from "./view.js";

const HEIGHT = 110; // pixels
const CURVES = {
  actionness: { colour: "actionness", width: 1.2, fill: true },
  motion: { colour: "actionness", width: 1.2, fill: true },
  start: { colour: "starts", width: 1.6 },
  end: { colour: "ends", width: 1.6, dash: [6, 3] },
  loudness: { colour: "sound", width: 1, scale: "sound", unit: " dB" },
  change: { colour: "sound", width: 1, dash: [2, 3], scale: "change", unit: " dB" },
};
// dB: silence of 16 bits to full scale, and a change that is heard as very large
const SCALES = { sound: { range: [-90, 0] }, change: { range: [-60, 60] } };
let plot = null;
let root = null;
let values = [];
let hovered = null;

const unit = () => ("motion" in state.video.curves ? "pixels a frame" : "probability");

/** Return the names of the curves, those that are filled first. */
const names = () => Object.keys(CURVES).filter((name) => name in state.video.curves);

/** Draw the curves of the chosen video into their lane. */
export function drawCurves(lane) {
  root = lane;
  plot?.destroy();
  plot = null;
  lane.hidden = names().length === 0;
  if (lane.hidden) return;
  const parts = Math.max(...names().map((name) => state.video.curves[name].length));
  const centres = Array.from({ length: parts }, (_, part) => ((part + 0.5) * duration()) / parts);
  const shared = (curve) => centres.map((_, part) => curve[Math.floor((part * curve.length) / parts)]);
  values = names().map((name) => shared(state.video.curves[name]));
  const legend = names().map((name) =>
    el("li", { class: `curve-${name}` }, el("i"), `${name} `, el("output", { "aria-live": "off" })),
  );
  const name = el(
    "div",
    { class: "lane-name" },
    el("span", {}, "Curves"),
    el("span", { class: "count" }, unit()),
    el("ul", { class: "curve-legend" }, ...legend),
  );
  const frame = el("div", { class: "window", role: "img", "aria-label": describe() });
  lane.replaceChildren(name, frame);
  plot = new uPlot(options(frame.clientWidth), [centres, ...values], frame);
  showValues();
}

function describe() {
  const parts = names().map((name) => {
    const curve = state.video.curves[name];
    const peak = curve.indexOf(Math.max(...curve.filter((value) => value !== null)));
    return `${name} is highest at ${(((peak + 0.5) * duration()) / curve.length).toFixed(1)} s`;
  });
  return `Curves over time, ${unit()}: ${parts.join("; ")}`;
}

function options(width) {
  const line = (name) => {
    const look = CURVES[name];
    const stroke = colour(look.colour);
    return {
      stroke,
      width: look.width,
      dash: look.dash,
      scale: look.scale ?? "y",
      fill: look.fill && colour("actionness-fill"),
      points: { show: false },
    };
  };
  const most = "motion" in state.video.curves ? Math.max(...values[0]) * 1.06 || 1 : 1.02;
  return {
    width,
    height: HEIGHT,
    padding: [4, 0, 4, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false, min: shown().from, max: shown().to }, y: { range: [0, most] }, ...SCALES },
    axes: [{ show: false }, { show: false }],
    hooks: { drawClear: [grid] },
    series: [{}, ...names().map(line)],
  };
}

/** Mark three heights, each with its number at the left edge. */
function grid(chart) {
  const { ctx, bbox } = chart;
  const top = chart.scales.y.max;
  const marks = top <= 1.02 && unit() === "probability" ? [0, 0.5, 1] : [0, top / 2];
  ctx.save();
  ctx.strokeStyle = colour("rule");
  ctx.fillStyle = colour("quiet");
  ctx.font = `${10 * devicePixelRatio}px sans-serif`;
  ctx.lineWidth = devicePixelRatio;
  for (const mark of marks) {
    const y = Math.round(chart.valToPos(mark, "y", true)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.textBaseline = mark ? "top" : "bottom";
    ctx.fillText(
      Number(mark.toPrecision(2)),
      bbox.left + 3 * devicePixelRatio,
      y + (mark ? 2 : -2) * devicePixelRatio,
    );
  }
  ctx.restore();
}

/** Write the curves' values at the mouse, else at the playhead. */
function showValues() {
  if (!plot) return;
  const at = hovered ?? time();
  root.querySelectorAll("output").forEach((output, place) => {
    const curve = values[place];
    const part = Math.min(Math.floor((at / duration()) * curve.length), curve.length - 1);
    const value = curve[Math.max(part, 0)];
    const { unit: own = "" } = CURVES[names()[place]];
    output.textContent = value === null || value === undefined ? "" : value.toFixed(own ? 0 : 2) + own;
  });
}

export function startCurves() {
  on("view", ({ from, to }) => plot?.setScale("x", { min: from, max: to }));
  on("theme", () => state.video && drawCurves(root));
  on("time", showValues);
  on("hover", (at) => {
    hovered = at;
    showValues();
  });
  new ResizeObserver(() => {
    const frame = root?.querySelector(".window");
    if (plot && frame && frame.clientWidth !== plot.width) {
      plot.setSize({ width: frame.clientWidth, height: HEIGHT });
      plot.setScale("x", { min: shown().from, max: shown().from + seconds() });
    }
  }).observe(document.getElementById("lanes"));
}
