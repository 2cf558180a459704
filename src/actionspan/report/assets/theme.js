/* Light or dark: by the system, or by the reader. */

import { byId } from "./dom.js";
import { emit } from "./state.js";
import { store } from "./store.js";

const THEMES = ["system", "light", "dark"];
const NAMES = { system: "same as the system", light: "light", dark: "dark" };
let theme = "system";

function apply(name) {
  theme = THEMES.includes(name) ? name : "system";
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  byId("theme-name").textContent = `Colours: ${NAMES[theme]}`;
  byId("switch-theme").title = `Colours: ${NAMES[theme]} (click to change)`;
}

export function startTheme() {
  apply(store.read("theme"));
  byId("switch-theme").addEventListener("click", () => {
    apply(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]);
    store.write("theme", theme);
    emit("theme");
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => emit("theme"));
}
