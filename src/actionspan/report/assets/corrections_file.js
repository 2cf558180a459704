/* The corrections as a CSV file: video, start, end, label, status, and subject where one is set. */

import { index, readVideo } from "./data.js";
import { el } from "./dom.js";
import { correctionsOf, replaces, statusOf, touched } from "./edits.js";

const COLUMNS = ["video", "start", "end", "label", "status"];
const FORMULA = /^'*[=+\-@\t\r]/;
const NUMBER = /^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|nan)$/i;

/** Return a cell that a spreadsheet does not take for a formula, in quotes where needed. */
function cell(text) {
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function row(entry, segment, status) {
  const values = [entry.id, segment.start.toFixed(3), segment.end.toFixed(3), segment.label, status];
  return segment.subject ? [...values, segment.subject] : values;
}

const differs = (made, instance) =>
  !made.rejected &&
  (statusOf(made) === "moved" ||
    made.label !== instance.label ||
    (made.subject ?? "") !== (instance.subject ?? ""));

/** Return the rows of a video: all that happens in it, and all rejected segments. */
export function rowsOf(entry) {
  const { segments, done } = correctionsOf(entry);
  const rows = [];
  const written = new Set(); // an event is one of the proposals, too
  for (const segment of segments) {
    const values = row(entry, segment, statusOf(segment));
    const what = JSON.stringify([...values.slice(1, 4), segment.subject, segment.rejected]);
    if (!written.has(what)) rows.push(values);
    written.add(what);
  }
  // a moved or replaced annotation has left its place; any other stays
  const origins = new Map(segments.map((segment) => [segment.origin?.key, segment]));
  for (const instance of entry.truths ? readVideo(entry).truth : []) {
    const made = origins.get(instance.key);
    if (!made) {
      const gone = segments.some((segment) => replaces(segment, instance));
      rows.push(row(entry, instance, gone ? "rejected" : "accepted"));
    } else if (differs(made, instance)) {
      rows.push(row(entry, instance, "rejected"));
    }
  }
  rows.sort((one, other) => one[1] - other[1] || one[2] - other[2]);
  const empty = rows.every((values) => values[4] === "rejected");
  if (done && empty) rows.push([entry.id, "", "", "", "none"]);
  return rows;
}

export const touchedVideos = () => index.videos.filter(touched);

export function correctionsText() {
  const rows = touchedVideos().flatMap(rowsOf);
  const columns = rows.some((values) => values.length > COLUMNS.length)
    ? [...COLUMNS, "subject"]
    : COLUMNS;
  const padded = rows.map((values) => columns.map((_, place) => values[place] ?? ""));
  return [columns, ...padded].map((values) => `${values.map(cell).join(",")}\n`).join("");
}

export const saveCorrections = () => saveFile("corrections.csv", correctionsText(), "text/csv");

export function saveFile(name, text, type) {
  const file = new Blob([text], { type });
  const address = URL.createObjectURL(file);
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
