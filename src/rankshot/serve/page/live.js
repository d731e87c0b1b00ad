// What is taught, always of this moment: other tabs, and other people, change it too.

import * as api from "./api.js";
import { say } from "./messages.js";

const SLOWEST = 3000; // milliseconds between attempts to reach a server that is gone
const watchers = [];
let current = null;
let isLost = false;

export const now = () => current;
export const hasExamples = () => Boolean(current?.classes.some((each) => each.examples.length));
export const classOf = (id) => current?.classes.find((each) => each.id === id);

export function watch(watcher) {
  watchers.push(watcher);
}

function take(state) {
  if (current && state.revision < current.revision) return; // answers may overtake one another
  if (state.revision === current?.revision && state.gallery === current.gallery) return; // a gallery has no revision
  current = state;
  for (const watcher of watchers) watcher(state);
}

export async function refresh() {
  take(await api.state());
}

// A browser has few connections to one server: a tab that nobody sees gives its own back, and asks again when it is seen.
function seen() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true })).then(seen);
}

const pause = (wait) => new Promise((resolve) => setTimeout(resolve, wait));

async function next() {
  const hidden = new AbortController();
  const stop = () => document.hidden && hidden.abort();
  document.addEventListener("visibilitychange", stop);
  try {
    return current && !isLost ? await api.changes(current.revision, hidden.signal) : await api.state(hidden.signal);
  } finally {
    document.removeEventListener("visibilitychange", stop);
  }
}

export async function follow() {
  let wait = 500;
  for (;;) {
    await seen();
    const began = performance.now();
    try {
      const state = await next();
      if (isLost) {
        isLost = false;
        if (state.revision < current?.revision) current = null; // another workspace than before
        say("Connected again.");
      }
      const isOld = state.revision === current?.revision;
      take(state);
      wait = 500;
      if (isOld && performance.now() - began < 1000) await pause(wait); // never in a rush
    } catch (error) {
      if (error.name === "AbortError") continue;
      isLost = true;
      say(`Connection lost: ${error.message} Trying again…`, { stays: true });
      await pause(wait);
      wait = Math.min(SLOWEST, wait * 2);
    }
  }
}
