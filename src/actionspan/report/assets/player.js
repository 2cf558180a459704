/* The video and its clock; the clock runs on without a visible video. */

import { announce, byId, setIcon } from "./dom.js";
import { clock, placeOf } from "./format.js";
import { emit, on, state } from "./state.js";

const video = byId("video");
const FRAME = 0.04; // seconds, where the rate is not known
const LATEST = 0.5; // seconds from a press until it is heard
const INSIDE = 0.001; // seconds past a frame's start: players show the frame before otherwise

let now = 0;
let wanted = null; // where a seek under way goes
let stopAt = null; // end of the segment that plays
let ready = false;
let chosenFile = null;

export const time = () => now;
export const duration = () => state.entry?.duration ?? 0;
export const frameSeconds = () => (state.entry?.rate ? 1 / state.entry.rate : FRAME);

export const clamp = (seconds) => Math.min(Math.max(seconds, 0), duration());

function show(seconds) {
  now = clamp(seconds);
  byId("now").textContent = clock(now, 2);
  byId("place").textContent = state.entry ? placeOf(state.entry, now) : "";
  emit("time", now);
}

/** Whether time goes by, how fast, and the time that is shown, or was when something was pressed. */
export const playing = () => ready && !video.paused && !video.ended;
export const speed = () => video.playbackRate;
export function timeOf(event = null) {
  const late = event ? Math.min(Math.max(performance.now() - event.timeStamp, 0) / 1000, LATEST) : 0;
  return clamp(video.currentTime - late * video.playbackRate);
}

/** Go to a time; a seek that is under way is ended first, so that dragging stays smooth. */
export function seek(seconds) {
  emit("jump");
  stopAt = null;
  show(seconds);
  if (!ready) return;
  if (video.seeking && wanted !== null) {
    wanted = now;
    return;
  }
  wanted = now;
  video.currentTime = Math.min(now + INSIDE, video.duration || now);
}

video.addEventListener("seeked", () => {
  const aim = wanted;
  wanted = null;
  if (
    aim !== null &&
    Math.abs(video.currentTime - aim) > 2 * INSIDE &&
    aim < video.duration - INSIDE
  ) {
    wanted = aim;
    video.currentTime = aim + INSIDE;
  }
});

/** Go a number of frames on, or back. */
export function step(frames) {
  video.pause();
  const place = Math.round(now / frameSeconds());
  seek((place + frames) * frameSeconds());
}

export function toggle() {
  if (!ready) return;
  if (video.paused) play();
  else video.pause();
}

function play() {
  if (now >= duration() - frameSeconds()) seek(0);
  video.play().catch(() => {});
}

/** Play a segment and stop at its end. */
export function playSegment(segment) {
  seek(segment.start);
  if (!ready) return;
  stopAt = segment.end;
  video.play().catch(() => {});
}

function follow() {
  if (video.paused || video.ended) return;
  if (stopAt !== null && video.currentTime >= stopAt) {
    const end = stopAt;
    video.pause();
    seek(end);
    return;
  }
  if (wanted === null) show(video.currentTime);
  requestAnimationFrame(follow);
}

function showPlaying() {
  const playing = !video.paused && !video.ended;
  setIcon(byId("toggle"), playing ? "pause" : "play");
  byId("toggle").setAttribute("aria-label", playing ? "Pause" : "Play");
  if (playing) follow();
}

/** Play faster by a number of steps of the list of speeds, or slower. */
export function changeSpeed(by) {
  const list = byId("speed");
  list.selectedIndex = Math.min(Math.max(list.selectedIndex + by, 0), list.length - 1);
  list.dispatchEvent(new Event("change"));
  announce(list.selectedOptions[0].text);
}

export function mute() {
  video.muted = !video.muted;
}

export function fullscreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else byId("player").requestFullscreen?.();
}

/* ---- without a video ---- */

function withoutVideo(reason) {
  ready = false;
  video.hidden = true;
  byId("no-video").hidden = false;
  byId("no-video-reason").textContent = reason;
  for (const id of ["toggle", "speed", "mute", "fullscreen"]) byId(id).disabled = true;
  showStill();
}

function withVideo() {
  ready = true;
  video.hidden = false;
  byId("no-video").hidden = true;
  for (const id of ["toggle", "speed", "mute", "fullscreen"]) byId(id).disabled = false;
  video.playbackRate = Number(byId("speed").value);
  seek(now);
}

function reasonFor(entry) {
  if (entry.note) return entry.note;
  if (!entry.file) return "The video file is missing. The timeline works without it.";
  return "The video cannot be played: the file was moved, or this browser does not support its format.";
}

/** Show the frame nearest to the playhead instead of the video. */
function showStill() {
  const pictures = state.video?.thumbnails ?? [];
  const still = byId("still");
  still.hidden = ready || pictures.length === 0;
  if (still.hidden) return;
  let nearest = pictures[0];
  for (const picture of pictures) {
    if (Math.abs(picture[0] - now) < Math.abs(nearest[0] - now)) nearest = picture;
  }
  const address = `data:image/jpeg;base64,${nearest[1]}`;
  if (still.src !== address) still.src = address;
}

function load(address) {
  ready = false;
  wanted = null;
  stopAt = null;
  video.hidden = false;
  byId("no-video").hidden = true;
  video.src = address;
  video.load();
}

function chooseFile(event) {
  const [file] = event.target.files;
  if (!file) return;
  if (chosenFile) URL.revokeObjectURL(chosenFile);
  chosenFile = URL.createObjectURL(file);
  load(chosenFile);
}

function openVideo(entry) {
  video.pause();
  byId("length").textContent = clock(entry.duration, 2);
  byId("choose-file").value = "";
  show(0);
  if (entry.file) {
    load(entry.file);
  } else {
    video.removeAttribute("src");
    video.load();
    withoutVideo(reasonFor(entry));
  }
}

export function startPlayer() {
  on("video", openVideo);
  on("time", () => ready || showStill());
  video.addEventListener("loadedmetadata", () => {
    // sound without a frame: the browser knows the container but not the video's format
    if (video.videoWidth) withVideo();
    else withoutVideo(reasonFor(state.entry));
  });
  video.addEventListener("error", () => {
    if (video.getAttribute("src")) withoutVideo(reasonFor(state.entry));
  });
  for (const name of ["play", "pause", "ended"]) video.addEventListener(name, showPlaying);
  video.addEventListener("volumechange", () => {
    setIcon(byId("mute"), video.muted ? "silent" : "sound");
    byId("mute").setAttribute("aria-pressed", String(video.muted));
  });
  video.addEventListener("click", toggle);
  byId("toggle").addEventListener("click", toggle);
  byId("step-back").addEventListener("click", () => step(-1));
  byId("step-on").addEventListener("click", () => step(1));
  byId("mute").addEventListener("click", mute);
  byId("fullscreen").addEventListener("click", fullscreen);
  byId("choose-file").addEventListener("change", chooseFile);
  byId("speed").addEventListener("change", (event) => {
    video.playbackRate = Number(event.target.value);
  });
}
