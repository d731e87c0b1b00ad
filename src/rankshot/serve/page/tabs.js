// Teach, Recognise and, where there is a gallery, Search: tabs by mouse and arrow keys, and the address remembers which.

import { now, watch } from "./live.js";
import { byId } from "./nodes.js";

const NAMES = ["teach", "recognise", "search"];
const watchers = [];

// Until the server has said whether there is a gallery, an address that names it is believed.
const isOffered = (name) => name !== "search" || (now() ? now().gallery !== null : location.hash === "#search");

export const view = () => NAMES.find((name) => location.hash === `#${name}` && isOffered(name)) ?? "teach";

export function whenShown(watcher) {
  watchers.push(watcher);
}

function show() {
  for (const name of NAMES) {
    const tab = byId(`tab-${name}`);
    const is = name === view();
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
    tab.hidden = !isOffered(name);
    byId(name).hidden = !is;
  }
  for (const watcher of watchers) watcher(view());
}

function choose(name) {
  history.replaceState(null, "", `#${name}`); // an assignment to the hash would scroll
  show();
}

export function start() {
  for (const name of NAMES) {
    const tab = byId(`tab-${name}`);
    tab.addEventListener("click", () => choose(name));
    tab.addEventListener("keydown", (event) => {
      const offered = NAMES.filter(isOffered);
      const place = offered.indexOf(name);
      const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: -1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const chosen = offered.at(to % offered.length);
      choose(chosen);
      byId(`tab-${chosen}`).focus();
    });
  }
  watch(() => {
    if (byId("tab-search").hidden === isOffered("search")) show();
  });
  window.addEventListener("hashchange", show);
  show();
}
