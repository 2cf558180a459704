/* The summary: charts and tables of all videos together. */

import { drawBars } from "./bars.js";
import { readSummary } from "./data.js";
import { byId, el } from "./dom.js";
import { drawLines, number } from "./lines.js";
import { on } from "./state.js";

let summary = null;
let redraw = [];

function table(columns, rows, caption) {
  const numeric = columns.map((_, place) =>
    rows.every((row) => /^[\s\d.,%–−+±()-]*$/.test(row[place] ?? "")),
  );
  const cell = (tag, text, place, more = {}) =>
    el(tag, { ...more, class: numeric[place] ? "number" : false }, text);
  return el(
    "div",
    { class: "scrolling", tabindex: "0", role: "region", "aria-label": caption },
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el("tr", {}, ...columns.map((name, place) => cell("th", name, place, { scope: "col" }))),
      ),
      el(
        "tbody",
        {},
        ...rows.map((row) => el("tr", {}, ...row.map((text, place) => cell("td", text, place)))),
      ),
    ),
  );
}

/** The numbers of a chart, for who cannot see it or wants to copy them. */
function numbersOf(chart) {
  const columns = [chart.xLabel];
  for (const series of chart.series)
    columns.push(series.name, ...(series.low.length ? [`${series.name}, interval`] : []));
  const rows = chart.x.map((x, place) => {
    const cells = [typeof x === "string" ? x : number(x)];
    for (const { values, low, high } of chart.series) {
      cells.push(number(values[place]));
      if (low.length) cells.push(`${number(low[place])}–${number(high[place])}`);
    }
    return cells;
  });
  return el(
    "details",
    {},
    el("summary", {}, "Numbers"),
    table(columns, rows, `Numbers of ${chart.title}`),
  );
}

function note(text) {
  return text ? el("p", { class: "quiet" }, text) : "";
}

function draw() {
  redraw = [];
  const charts = summary.charts.map((chart) => {
    const frame = el("div", {
      class: "frame",
      role: "img",
      "aria-label": `${chart.title}: ${chart.yLabel} over ${chart.xLabel}`,
    });
    return {
      chart,
      frame,
      card: el(
        "section",
        { class: "card" },
        el("h2", {}, chart.title),
        note(chart.note),
        frame,
        numbersOf(chart),
      ),
    };
  });
  const tables = summary.tables.map(({ title, columns, rows, note: said }) =>
    el(
      "section",
      { class: "card wide" },
      el("h2", {}, title),
      note(said),
      table(columns, rows, title),
    ),
  );
  byId("summary").replaceChildren(...charts.map(({ card }) => card), ...tables);
  for (const { chart, frame } of charts) {
    redraw.push((chart.kind === "bars" ? drawBars : drawLines)(chart, frame));
  }
}

/** Show the summary, or the videos. */
export function showTab(name) {
  for (const tab of ["videos", "summary"]) {
    const chosen = tab === name;
    byId(tab).hidden = !chosen;
    const button = byId(`tab-${tab}`);
    button.setAttribute("aria-selected", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
  }
  if (name !== "summary") return;
  if (redraw.length) for (const again of redraw) again();
  else draw();
}

export const summaryShown = () => !byId("summary").hidden;

export function startSummary() {
  summary = readSummary();
  if (!summary) return;
  byId("tabs").hidden = false;
  byId("videos").setAttribute("role", "tabpanel");
  byId("videos").setAttribute("aria-labelledby", "tab-videos");
  for (const tab of ["videos", "summary"])
    byId(`tab-${tab}`).addEventListener("click", () => showTab(tab));
  byId("tabs").addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    event.stopPropagation();
    const other = summaryShown() ? "videos" : "summary";
    showTab(other);
    byId(`tab-${other}`).focus();
  });
  on("theme", () => {
    if (summaryShown()) draw();
    else redraw = [];
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    if (summaryShown()) for (const again of redraw) again();
  });
}
