/* Start of the page: each part of it, then the first video. */

import { startChances } from "./chances.js";
import { saveCorrections, touchedVideos } from "./corrections_file.js";
import { startCurves } from "./curves.js";
import { index } from "./data.js";
import { announce, byId, el } from "./dom.js";
import { correctionsOf } from "./edits.js";
import { plural } from "./format.js";
import { startGestures } from "./gestures.js";
import { startHolding } from "./holding.js";
import { startInspector } from "./inspector.js";
import { startKeys } from "./keys.js";
import { startLabelKeys } from "./labelkeys.js";
import { startLanes } from "./lanes.js";
import { startMore } from "./more.js";
import { startList } from "./list.js";
import { startPlayer } from "./player.js";
import { startReaction } from "./reaction.js";
import { on, state } from "./state.js";
import { store } from "./store.js";
import { startSession } from "./session.js";
import { served } from "./server.js";
import { startSubjects } from "./subjects.js";
import { startSummary } from "./summary.js";
import { startTheme } from "./theme.js";
import { startThreshold } from "./threshold.js";
import { startView } from "./view.js";
import { startZones } from "./zones.js";

const FORGETS =
  "This browser keeps no data for this page: save your corrections before you close it.";
const NEXT = "To learn from it: actionspan learn VIDEOS --annotations corrections.csv";

function countCorrections(kept = true) {
  const number = touchedVideos().length;
  const button = byId("save-corrections");
  button.disabled = number === 0;
  button.querySelector("span").textContent = number
    ? `Save corrections (${plural(number, "video")})`
    : "Save corrections";
  const note = byId("storage-note");
  note.hidden = store.works && kept;
  byId("saved-note").hidden = true; // there is more to save
  if (!note.hidden) note.textContent = FORGETS;
}

function startSaving() {
  if (served) return;
  on("edits", countCorrections);
  countCorrections();
  byId("save-corrections").addEventListener("click", () => {
    saveCorrections();
    const open = touchedVideos().filter((entry) => !correctionsOf(entry).done).length;
    const whole = open ? ` ${open} not Done: tick it where all that happens is corrected.` : "";
    const said = `${plural(touchedVideos().length, "video")} saved as corrections.csv.${whole} ${NEXT}`;
    byId("saved-note").textContent = said;
    byId("saved-note").hidden = false;
    announce(said);
  });
  addEventListener("beforeunload", (event) => {
    if (!byId("storage-note").hidden && touchedVideos().length) event.preventDefault();
  });
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the video
  byId("stage").focus();
});
byId("labels").append(...index.labels.map((label) => el("option", { value: label })));
startTheme();
startPlayer();
startView();
startThreshold();
startChances();
startCurves();
startLanes();
startMore();
startGestures();
startInspector();
startHolding();
startLabelKeys();
startReaction();
startSubjects();
startSaving();
startKeys();
startSummary();
startList();
startSession();
startZones();
document.body.classList.toggle("without-videos", state.entry === null);
