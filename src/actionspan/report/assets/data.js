/* The data in the page: the index at once, a video's own when it is chosen. */

import { bestTruth, chance, decimalsOf, score } from "./format.js";

const parse = (id) => JSON.parse(document.getElementById(id).textContent || "null");

export const index = parse("index-data");

index.videos.forEach((entry, place) => {
  entry.place = place;
});

export const readSummary = () => parse("summary-data");

const KINDS = { truth: "truth", events: "event", gone: "event", proposals: "proposal" };
const parsed = new Map();

/** Return a video's segments, curves and frames. */
export function readVideo(entry) {
  if (!parsed.has(entry.place)) parsed.set(entry.place, prepare(parse(`video-${entry.place}`)));
  return parsed.get(entry.place);
}

function prepare(video) {
  for (const [name, kind] of Object.entries(KINDS)) {
    video[name] = video[name].map(([start, end, label, score, more], place) => {
      const [subject, zone] = kind === "truth" ? [more] : [undefined, more];
      const key = `${kind} ${start} ${end} ${label}${subject ? ` ${subject}` : ""}`;
      return { kind, key, rank: place + 1, start, end, label, score, subject, zone };
    });
  }
  for (const list of [video.events, video.proposals]) {
    const decimals = decimalsOf(list);
    for (const segment of list) {
      segment.best = bestTruth(segment, video.truth);
      const ranked = index.scale === "rank" || (index.scale === "chance" && list !== video.events);
      const said = index.scale === "chance" ? chance(segment.score) : score(segment.score, decimals);
      segment.shownScore = ranked ? `no. ${segment.rank}` : said;
      segment.scale = ranked ? "rank" : index.scale;
    }
  }
  for (const segment of video.gone) {
    // its score is another model's
    Object.assign(segment, { gone: true, score: null, shownScore: "no longer proposed" });
    segment.best = bestTruth(segment, video.truth);
  }
  video.truth.sort((one, other) => one.start - other.start);
  return video;
}
