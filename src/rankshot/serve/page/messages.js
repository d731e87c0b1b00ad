// Two lines at the foot of the page: what was done, and what went wrong.

import { Problem } from "./api.js";
import { byId, write } from "./nodes.js";

const SHOWN = 8000; // milliseconds; then it lies in the way
let timer = 0;

export function say(text, { stays = false } = {}) {
  write(byId("status"), text);
  clearTimeout(timer);
  if (!stays) timer = setTimeout(() => write(byId("status"), ""), SHOWN);
}

export function complain(error) {
  if (error?.name === "AbortError") return;
  if (!(error instanceof Problem)) console.error(error);
  write(byId("alert"), error instanceof Problem ? error.message : "Something went wrong on this page.");
}

export function calm() {
  write(byId("alert"), "");
}

// Something the person asked for: the last complaint goes, and a new one is shown where it fails.
export async function attempt(act) {
  calm();
  try {
    return await act();
  } catch (error) {
    complain(error);
    return undefined;
  }
}

byId("alert-close").addEventListener("click", calm);
