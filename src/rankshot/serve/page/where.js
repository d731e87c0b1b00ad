// The metadata that a hit must have, as it is typed: colour=red, year=1998.

import { Problem } from "./api.js";

const PAIR = /\s*([^=,"]+?)\s*=\s*("[^"]*"|[^,"]*[^,"\s])\s*(?:,|$)/y;

// Numbers, true and false are such; between quotation marks anything is text.
function valueOf(text) {
  if (text.startsWith('"')) return text.slice(1, -1);
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text))) return Number(text);
  return { true: true, false: false }[text] ?? text;
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
