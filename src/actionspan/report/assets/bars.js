/* Bars of the summary, in groups, each with its interval, as SVG. */

import { el, svg } from "./dom.js";
import { CHART_HEIGHT, number, seriesColour } from "./lines.js";

const LEFT = 66; // pixels to the first group
const RIGHT = 6;
const TOP = 10;
const LETTER = 7.2; // pixels, about
const LONGEST = 24; // letters of a name

/** Draw bars into a frame; return a function that draws them again at another width. */
export function drawBars(chart, frame) {
  const draw = () =>
    frame.replaceChildren(drawing(chart, Math.max(frame.clientWidth, 240)), legend(chart));
  draw();
  return draw;
}

function legend(chart) {
  if (chart.series.length < 2) return "";
  const entries = chart.series.map((series, place) =>
    el("li", { class: seriesColour(place) }, el("i"), series.name),
  );
  return el("ul", { class: "bar-legend" }, ...entries);
}

const isNumber = (value) => typeof value === "number";

/** Return the marks of the axis: round numbers from below the lowest value, or 0, to the highest. */
function marksOf(chart) {
  const values = chart.series
    .flatMap(({ values: middle, low, high }) => [...middle, ...low, ...high])
    .filter(isNumber);
  const low = Math.min(...values, 0);
  const high = Math.max(...values, low === 0 ? 1e-9 : 0);
  const unit = 10 ** Math.floor(Math.log10((high - low) / 4));
  const step = unit * [1, 2, 2.5, 5, 10].find((size) => size * unit >= ((high - low) / 5) * 0.999);
  const first = Math.floor((low / step) * 0.999);
  const last = Math.ceil((high / step) * 0.999);
  return Array.from({ length: last - first + 1 }, (_, place) => (first + place) * step);
}

function short(name, most) {
  const letters = [...String(name)];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : letters.join("");
}

function drawing(chart, width) {
  const group = (width - LEFT - RIGHT) / Math.max(chart.x.length, 1);
  // slanted, the first name must not pass the left edge
  const most = Math.min(LONGEST, Math.floor((LEFT + group / 2) / LETTER));
  const names = chart.x.map((name) => short(name, most));
  const longest = Math.max(...names.map((name) => name.length), 0) * LETTER;
  const slanted = longest > group - 4;
  const below = slanted ? 44 + 0.53 * longest : 44;
  const floor = CHART_HEIGHT - 44;
  const height = floor + below;
  const marks = marksOf(chart);
  const y = (value) => TOP + ((marks.at(-1) - value) / (marks.at(-1) - marks[0])) * (floor - TOP);
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    class: "bars",
    "aria-hidden": "true",
  });
  for (const mark of marks) {
    picture.append(
      svg("line", { x1: LEFT, x2: width - RIGHT, y1: y(mark), y2: y(mark), class: "grid" }),
      svg("text", { x: LEFT - 8, y: y(mark) + 4, class: "end" }, number(mark)),
    );
  }
  names.forEach((name, column) => {
    const centre = LEFT + group * (column + 0.5);
    picture.append(...groupOf(chart, column, centre, group, y));
    const turn = slanted ? " rotate(-32)" : "";
    const attributes = {
      transform: `translate(${centre} ${floor + 18})${turn}`,
      class: slanted ? "end" : "middle",
    };
    picture.append(svg("text", attributes, name, svg("title", {}, chart.x[column])));
  });
  const middle = LEFT + (width - LEFT - RIGHT) / 2;
  const upwards = `translate(12 ${(TOP + floor) / 2}) rotate(-90)`;
  picture.append(
    svg("text", { transform: upwards, class: "middle" }, chart.yLabel),
    svg("text", { x: middle, y: height - 4, class: "middle" }, chart.xLabel),
  );
  return picture;
}

/** Return the bars of one group, and their intervals. */
function groupOf(chart, column, centre, group, y) {
  const thick = Math.min((group * 0.78) / chart.series.length, 46);
  return chart.series.flatMap((series, place) => {
    const value = series.values[column];
    if (!isNumber(value)) return [];
    const x = centre + (place - chart.series.length / 2) * thick;
    const box = {
      x: x + 1,
      y: Math.min(y(value), y(0)),
      width: Math.max(thick - 2, 1),
      height: Math.abs(y(0) - y(value)),
      class: seriesColour(place),
    };
    const told = `${chart.x[column]}, ${series.name}: ${number(value)}`;
    const bar = svg("rect", box, svg("title", {}, told));
    const [low, high] = [series.low[column], series.high[column]];
    if (!isNumber(low) || !isNumber(high)) return [bar];
    const at = x + thick / 2;
    return [bar, svg("line", { x1: at, x2: at, y1: y(low), y2: y(high), class: "interval" })];
  });
}
