// The metadata that a hit must have, as it is typed: colour=red, size=3.

import { Problem } from "./api.js";

const PAIR = /\s*([^=,"]+?)\s*=\s*("[^"]*"|[^,"]*[^,"\s])\s*(?:,|$)/y;

// What looks like a number, true or false may have been kept as text too: either counts. Between quotation marks, only text.
function valueOf(text) {
  if (text.startsWith('"')) return text.slice(1, -1);
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text))) return [Number(text), text];
  return { true: [true, text], false: [false, text] }[text] ?? text;
}

// An object; null: nothing is asked for.
export function whereOf(text) {
  const whole = text.trim().replace(/,$/, "");
  if (!whole) return null;
  const pairs = [];
  for (PAIR.lastIndex = 0; PAIR.lastIndex < whole.length; ) {
    const found = PAIR.exec(whole);
    if (!found) throw new Problem("The filter cannot be read: give NAME=VALUE, and commas between several.");
    if (pairs.some(([name]) => name === found[1])) throw new Problem(`The filter has ${found[1]} twice.`);
    pairs.push([found[1], valueOf(found[2])]);
  }
  return Object.fromEntries(pairs);
}
