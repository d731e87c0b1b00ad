// Teach and Recognise: tabs by mouse and arrow keys, and the address remembers which.

import { byId } from "./nodes.js";

const NAMES = ["teach", "recognise"];
const watchers = [];

export const view = () => (location.hash === "#recognise" ? "recognise" : "teach");

export function whenShown(watcher) {
  watchers.push(watcher);
}

function show() {
  for (const name of NAMES) {
    const tab = byId(`tab-${name}`);
    const is = name === view();
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
    byId(name).hidden = !is;
  }
  for (const watcher of watchers) watcher(view());
}

function choose(name) {
  history.replaceState(null, "", `#${name}`); // an assignment to the hash would scroll
  show();
}

export function start() {
  NAMES.forEach((name, place) => {
    const tab = byId(`tab-${name}`);
    tab.addEventListener("click", () => choose(name));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: -1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const chosen = NAMES.at(to % NAMES.length);
      choose(chosen);
      byId(`tab-${chosen}`).focus();
    });
  });
  window.addEventListener("hashchange", show);
  show();
}
