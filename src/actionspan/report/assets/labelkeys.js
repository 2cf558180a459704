/* The keys of labels: set in the page, kept by its server or in the browser. */

import { saveFile } from "./corrections_file.js";
import { index } from "./data.js";
import { byId, el, icon } from "./dom.js";
import { tidy } from "./edits.js";
import { ask, served, whyNot } from "./server.js";
import { emit } from "./state.js";
import { store } from "./store.js";

const KEY = /^[\p{L}\p{N}]$/u;
const PLACE = JSON.stringify(["keys", location.pathname, index.title]);

let keys = [];
let saving = Promise.resolve(); // one after another: else an earlier change may come last

/** Each has key, label, subject and point: whether it makes events of an instant. */
export const labelKeys = () => keys;

/** Return the kept keys; null if the server does not answer. */
async function read() {
  if (!served) return store.read(PLACE) ?? [];
  const answer = await ask("keys");
  return answer?.ok ? (await answer.json()).keys : null;
}

/** Keep the keys, and report what went wrong. */
async function keep() {
  if (!served) return store.write(PLACE, keys) ? "" : "This browser does not keep the keys.";
  const body = JSON.stringify(keys);
  const headers = { "Content-Type": "application/json" };
  const answer = await ask("keys", { method: "PUT", body, headers });
  if (answer?.ok) return "Saved.";
  return `Not saved: ${await whyNot(answer)}.`;
}

const rows = () => [...byId("key-rows").children];

const valuesOf = (row) => {
  const [key, label, subject] = [...row.querySelectorAll("input")].map(({ value }) => tidy(value));
  return { key, label, subject, point: row.querySelector("[type=checkbox]").checked };
};

/** Return why a row is not a key yet, or an empty text. */
function problem({ key, label }, others) {
  if (!key && !label) return "";
  if (!KEY.test(key)) return "A key is one letter or digit.";
  if (others.some((other) => other.key === key)) return `${key} is the key of another label.`;
  return label ? "" : `${key} needs a label.`;
}

/** Take over the rows that are keys; the others are marked, and the first fault is named. */
async function take() {
  const found = [];
  const faults = [];
  for (const row of rows()) {
    const values = valuesOf(row);
    const fault = problem(values, found);
    row.querySelector("input").setAttribute("aria-invalid", String(fault !== ""));
    if (fault) faults.push(fault);
    else if (values.key) found.push(values);
  }
  keys = found;
  emit("keys");
  byId("keys-note").textContent = faults[0] ?? "";
  const own = saving.then(keep);
  saving = own;
  const kept = await own;
  // a later change is not saved yet, and reports itself
  if (own === saving && !faults.length) byId("keys-note").textContent = kept;
}

function makeRow({ key = "", label = "", subject = "", point = false } = {}) {
  const field = (name, attributes) =>
    el("label", { class: "field" }, el("span", {}, name), el("input", attributes));
  const given = { autocomplete: "off", onchange: take };
  const remove = el("button", { class: "plain", "aria-label": "Remove the key" }, icon("cross"));
  const row = el(
    "li",
    {},
    field("Key", { ...given, type: "text", maxlength: "1", autocapitalize: "off", value: key }),
    field("Label", { ...given, list: "labels", value: label }),
    field("Subject", { ...given, list: "subjects", value: subject }),
    el("label", { class: "tick" }, el("input", { ...given, type: "checkbox", checked: point }), "Point"),
    remove,
  );
  remove.addEventListener("click", () => {
    row.remove();
    take();
    byId("add-key").focus();
  });
  return row;
}

function draw() {
  byId("key-rows").replaceChildren(...keys.map(makeRow));
}

/** Show the keys as they are kept, unless the person is changing some. */
async function follow() {
  const own = saving;
  const kept = await read();
  const same = (some) => JSON.stringify(some) === JSON.stringify(keys);
  if (kept === null || own !== saving || same(kept) || !same(rows().map(valuesOf))) return;
  keys = kept;
  draw();
  emit("keys");
}

export async function startLabelKeys() {
  byId("add-key").addEventListener("click", () => {
    byId("key-rows").append(makeRow());
    rows().at(-1).querySelector("input").focus();
  });
  byId("save-keys")?.addEventListener("click", () =>
    saveFile("keys.json", `${JSON.stringify(keys, null, 1)}\n`, "application/json"),
  );
  addEventListener("focus", follow); // another window may have changed them
  await follow();
}
