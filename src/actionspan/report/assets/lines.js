/* Lines of the summary, with their intervals, by uPlot. */

import { colour } from "./dom.js";

const COLOURS = ["series-1", "series-2", "series-3", "series-4", "series-5", "series-6"];
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
export const CHART_HEIGHT = 260; // pixels
const numbers = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

export const number = (value) =>
  value === null || value === undefined ? "–" : numbers.format(value);
export const seriesColour = (place) => COLOURS[place % COLOURS.length];

/** Let an axis of whole numbers, such as epochs, have no marks between them. */
function wholeMarks(x) {
  const steps = [1, 2, 5].flatMap((step) =>
    [1, 10, 100, 1e3, 1e4, 1e5, 1e6].map((ten) => step * ten),
  );
  return x.every(Number.isInteger) ? { incrs: steps.toSorted((one, other) => one - other) } : {};
}

/** Draw lines into a frame; return a function that draws them again at another width. */
export function drawLines(chart, frame) {
  const data = [chart.x];
  const series = [{ label: chart.xLabel, value: (_, value) => (value === null ? "" : number(value)) }];
  const bands = [];
  chart.series.forEach((line, place) => {
    const stroke = colour(seriesColour(place));
    const dash = DASHES[Math.floor(place / COLOURS.length) % DASHES.length];
    const points = { show: chart.x.length < 25, size: 5, fill: stroke };
    const show = (_, value) => (value === null || value === undefined ? "" : number(value));
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
      height: CHART_HEIGHT,
      series,
      bands,
      scales: { x: { time: false } },
      axes: [
        { ...axis, ...wholeMarks(chart.x), label: chart.xLabel, grid: { show: false }, size: 26 },
        { ...axis, label: chart.yLabel, size: 54 },
      ],
      cursor: { points: { size: 7 }, drag: { x: false, y: false } },
      legend: { live: true },
    },
    data,
    frame,
  );
  return () => plot.setSize({ width: frame.clientWidth, height: CHART_HEIGHT });
}
