// Metadata as it is typed, colour=red, size=3: what a hit must have, or what pictures get that are added.

import { Problem } from "./api.js";

const PAIR = /\s*([^=,"]+?)\s*=\s*("[^"]*"|[^,"]*[^,"\s])\s*(?:,|$)/y;

// A number, true or false where it looks like one; between quotation marks, only text.
function valueOf(text) {
  if (text.startsWith('"')) return text.slice(1, -1);
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text))) return Number(text);
  return { true: true, false: false }[text] ?? text;
}

// An object; null: nothing is typed. `what` it is, for complaints.
function read(text, what, take) {
  const whole = text.trim().replace(/,$/, "");
  if (!whole) return null;
  const pairs = [];
  for (PAIR.lastIndex = 0; PAIR.lastIndex < whole.length; ) {
    const found = PAIR.exec(whole);
    if (!found) throw new Problem(`The ${what} cannot be read: give NAME=VALUE, and commas between several.`);
    if (pairs.some(([name]) => name === found[1])) throw new Problem(`The ${what} has ${found[1]} twice.`);
    pairs.push([found[1], take(found[2])]);
  }
  return Object.fromEntries(pairs);
}

// What pictures get that are added.
export const notesOf = (text) => read(text, "metadata", valueOf);

// What a hit must have. What looks like a number may have been kept as text too: either counts.
export const whereOf = (text) =>
  read(text, "filter", (typed) => {
    const value = valueOf(typed);
    return typeof value === "string" ? value : [value, typed];
  });
