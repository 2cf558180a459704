/* Charts of the summary: lines with intervals by uPlot, bars as SVG. */

import { colour, el, svg } from "./dom.js";

const COLOURS = ["series-1", "series-2", "series-3", "series-4", "series-5", "series-6"];
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
const HEIGHT = 260; // pixels
const numbers = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

export const number = (value) =>
  value === null || value === undefined ? "–" : numbers.format(value);
export const seriesColour = (place) => COLOURS[place % COLOURS.length];

/** Draw lines into a frame; return a function that draws them again at another width. */
export function drawLines(chart, frame) {
  const data = [chart.x];
  const series = [{ label: chart.xLabel, value: (_, value) => number(value) }];
  const bands = [];
  chart.series.forEach((line, place) => {
    const stroke = colour(seriesColour(place));
    const dash = DASHES[Math.floor(place / COLOURS.length) % DASHES.length];
    const points = { show: chart.x.length < 25, size: 5, fill: stroke };
    const show = (_, value) => number(value);
    series.push({ label: line.name, stroke, width: 2, dash, points, value: show, spanGaps: true });
    data.push(line.values);
    if (!line.low.length || !line.high.length) return;
    for (const side of [line.high, line.low]) {
      series.push({
        label: `${line.name} interval`,
        stroke: "transparent",
        width: 0,
        points: { show: false },
        class: "u-interval",
      });
      data.push(side);
    }
    bands.push({
      series: [series.length - 2, series.length - 1],
      fill: stroke.replace(/^rgb\((.*)\)$/, "rgba($1, 0.16)"),
    });
  });
  const axis = {
    stroke: colour("quiet"),
    grid: { stroke: colour("rule"), width: 1 },
    ticks: { show: false },
    font: "12px sans-serif",
    labelFont: "12px sans-serif",
    labelSize: 22,
  };
  const plot = new uPlot(
    {
      width: frame.clientWidth,
      height: HEIGHT,
      series,
      bands,
      scales: { x: { time: false } },
      axes: [
        { ...axis, label: chart.xLabel, grid: { show: false }, size: 26 },
        { ...axis, label: chart.yLabel, size: 54 },
      ],
      cursor: { points: { size: 7 }, drag: { x: false, y: false } },
      legend: { live: true },
    },
    data,
    frame,
  );
  return () => plot.setSize({ width: frame.clientWidth, height: HEIGHT });
}

/** Draw groups of bars into a frame, each with its interval. */
export function drawBars(chart, frame) {
  const draw = () =>
    frame.replaceChildren(bars(chart, Math.max(frame.clientWidth, 240)), legend(chart));
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

/** Return a round distance of marks, of which 3 to 6 reach a value. */
function niceStep(most) {
  if (!(most > 0)) return 0.25;
  const unit = 10 ** Math.floor(Math.log10(most / 4));
  return unit * [1, 2, 2.5, 5, 10].find((step) => step * unit >= (most / 5) * 0.999);
}

function bars(chart, width) {
  const values = chart.series
    .flatMap((series) => [...series.values, ...series.high])
    .filter((value) => value !== null);
  const most = Math.max(...values, 0);
  const step = niceStep(most);
  const marks = Math.max(Math.ceil((most / step) * 0.999), 1);
  const top = marks * step;
  const left = 66;
  const slanted =
    chart.x.length * Math.max(...chart.x.map((name) => String(name).length)) * 7.2 > width - left;
  const bottom = slanted ? 92 : 44;
  const height = HEIGHT + (slanted ? 48 : 0);
  const y = (value) => 10 + (1 - value / top) * (height - bottom - 10);
  const group = (width - left - 6) / chart.x.length;
  const bar = Math.min((group * 0.78) / chart.series.length, 46);
  const drawing = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    class: "bars",
    "aria-hidden": "true",
  });
  for (let mark = 0; mark <= marks; mark += 1) {
    const value = step * mark;
    drawing.append(
      svg("line", { x1: left, x2: width - 6, y1: y(value), y2: y(value), class: "grid" }),
      svg("text", { x: left - 8, y: y(value) + 4, class: "mark end" }, number(value)),
    );
  }
  chart.x.forEach((name, column) => {
    const centre = left + group * (column + 0.5);
    chart.series.forEach((series, place) => {
      const value = series.values[column];
      if (value === null || value === undefined) return;
      const x = centre + (place - chart.series.length / 2) * bar;
      drawing.append(
        svg(
          "rect",
          {
            x: x + 1,
            y: y(value),
            width: Math.max(bar - 2, 1),
            height: y(0) - y(value),
            class: seriesColour(place),
          },
          svg("title", {}, `${name}, ${series.name}: ${number(value)}`),
        ),
      );
      const [low, high] = [series.low[column], series.high[column]];
      if (low === null || low === undefined || high === null || high === undefined) return;
      drawing.append(
        svg("line", {
          x1: x + bar / 2,
          x2: x + bar / 2,
          y1: y(low),
          y2: y(high),
          class: "interval",
        }),
      );
    });
    const at = `translate(${centre} ${height - bottom + 18})`;
    drawing.append(
      svg(
        "text",
        {
          transform: slanted ? `${at} rotate(-32)` : at,
          class: `mark ${slanted ? "end" : "middle"}`,
        },
        name,
      ),
    );
  });
  drawing.append(
    svg(
      "text",
      {
        transform: `translate(12 ${(height - bottom) / 2 + 5}) rotate(-90)`,
        class: "axis-label middle",
      },
      chart.yLabel,
    ),
    svg(
      "text",
      { x: left + (width - left) / 2, y: height - 4, class: "axis-label middle" },
      chart.xLabel,
    ),
  );
  return drawing;
}
