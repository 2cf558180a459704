/* Times, scores and names as they are read by people. */

/** 83.456 → "1:23.456"; hours only where there are some. */
export function clock(seconds, decimals = 3) {
  const units = 10 ** decimals;
  const whole = Math.round(Math.max(seconds, 0) * units);
  const total = Math.floor(whole / units);
  const rest = decimals ? `.${String(whole % units).padStart(decimals, "0")}` : "";
  const pair = (value) => String(value).padStart(2, "0");
  const hours = Math.floor(total / 3600);
  const minutes = Math.floor(total / 60) % 60;
  const lead = hours ? `${hours}:${pair(minutes)}` : String(minutes);
  return `${lead}:${pair(total % 60)}${rest}`;
}

/** Return the file of a recording and the clock time at some seconds, where they are known. */
export function placeOf(entry, seconds) {
  const files = entry.files ?? [];
  const found = files.findLast(([start]) => start <= seconds + 0.0005);
  if (!found) return "";
  const [start, name, began] = found;
  const at = began && new Date(Date.parse(`${began}Z`) + 1000 * (seconds - start));
  const read = at && at.toISOString().slice(0, 19).replace("T", " ");
  return [files.length > 1 && name, read].filter(Boolean).join(", ");
}

/** 0.71834 → "0.72"; small ones keep two digits, and more decimals distinguish equal ones. */
export function score(value, decimals = 2) {
  if (value === null || value === undefined) return "–";
  if (value !== 0 && Math.abs(value) < 10 ** -decimals) return value.toPrecision(2);
  return value.toFixed(decimals);
}

/** 0.304 → "30 %". */
export const chance = (value) => (value < 0.01 ? "below 1 %" : percent(value));

/** Return the number of decimals that distinguishes scores. */
export function decimalsOf(segments) {
  const scores = segments.map((segment) => segment.score);
  const range = Math.max(...scores) - Math.min(...scores);
  return range > 0 ? Math.min(Math.max(2 + Math.ceil(-Math.log10(range * 20)), 2), 5) : 2;
}

export const percent = (share) => `${(100 * share).toFixed(0)} %`;

/** "15 of 1,000". */
export const outOf = (part, all) => `${part.toLocaleString("en")} of ${all.toLocaleString("en")}`;

export const plural = (count, word) =>
  `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

/** Overlap of two segments divided by their union. */
export function tiou(one, other) {
  const shared = Math.min(one.end, other.end) - Math.max(one.start, other.start);
  const hull = Math.max(one.end, other.end) - Math.min(one.start, other.start);
  return hull > 0 ? Math.max(shared, 0) / hull : 0;
}

/** Return the true instance that a segment fits best, and how well; null without any overlap. */
export function bestTruth(segment, truth) {
  let best = null;
  for (const instance of truth) {
    const value = tiou(segment, instance);
    if (value > 0 && (!best || value > best.tiou)) best = { tiou: value, instance };
  }
  return best;
}
