// The view where a gallery is searched: what is like a picture, what is there twice, and more pictures for it.

import * as api from "./api.js";
import * as camera from "./camera.js";
import { Pad } from "./drawing.js";
import { showHits, showPairs } from "./hits.js";
import { now, refresh, watch } from "./live.js";
import { lookable } from "./look.js";
import { attempt, complain, say } from "./messages.js";
import { byId, keyed, make, write } from "./nodes.js";
import { bySize, notAdded, TOO_LARGE, whenChosen, whenDropped, whenPasted } from "./pictures.js";
import { view } from "./tabs.js";
import { thumbnail } from "./thumbs.js";
import { notesOf, whereOf } from "./where.js";

const MOST_SHOWN = 5; // of the pictures that were asked about

// What is on the page, and what was there before. Each is one of
//   { files, urls, where, hits }  what is like all of these files; where is the filter as it was typed
//   { id, name, where, hits }     what is like a picture of the gallery
//   { pairs, count }              what is there twice
// hits is null where they are not there yet, or could not be found.
let shown = null;
let before = []; // each with `opened`: where the keyboard was
let running = new AbortController(); // the newest question; older ones are dropped

const pad = new Pad(byId("search-pad"), {
  onStroke: () =>
    attempt(async () => {
      const file = await pad.file();
      if (!pad.isBlank) await askAbout([file]); // it may have been cleared by now
    }),
});

const where = () => byId("search-where").value;
const hasGallery = () => (now()?.gallery ?? null) !== null;
const counted = (count) => (count === 1 ? "1 picture" : `${count} pictures`);

function take(files) {
  pad.clear();
  return attempt(() => askAbout(files));
}

function begin(entry) {
  running.abort();
  for (const each of [shown, ...before]) for (const url of each?.urls ?? []) URL.revokeObjectURL(url);
  shown = entry;
  before = [];
}

function askAbout(files) {
  begin({ files, urls: files.map((file) => URL.createObjectURL(file)), where: where(), hits: shown?.hits ?? null });
  return askAgain();
}

// The same picture, after the filter or the gallery changed.
async function askAgain() {
  if (!shown || shown.pairs) return;
  const entry = shown;
  entry.where = where();
  try {
    const { hits } = await busy((signal) => find(entry, signal));
    entry.hits = hits;
  } catch (error) {
    if (error.name !== "AbortError") entry.hits = null; // what is shown must not seem to be about this picture
    throw error;
  } finally {
    if (shown === entry) show();
  }
}

// Asks, and tells so; an older question is dropped.
async function busy(ask) {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  byId("search-result").setAttribute("aria-busy", "true");
  try {
    return await ask(signal);
  } finally {
    if (!signal.aborted) byId("search-result").removeAttribute("aria-busy");
  }
}

async function find({ files, id }, signal) {
  const wanted = filter();
  if (id !== undefined) return api.neighbours(id, wanted, signal);
  const [, [large]] = bySize(files);
  if (large) throw new api.Problem(api.sentence(`${large.name} is ${TOO_LARGE}`));
  if (api.parts(files).length > 1) throw new api.Problem("These are too many pictures to search with at once.");
  return api.search(files, wanted, signal);
}

// What is typed in a field of metadata; one that cannot be read is marked.
function typed(field, read) {
  field.removeAttribute("aria-invalid");
  try {
    return read(field.value);
  } catch (error) {
    field.setAttribute("aria-invalid", "true");
    throw error;
  }
}

const filter = () => typed(byId("search-where"), whereOf);

function go(entry) {
  if (shown) before.push({ ...shown, opened: document.activeElement });
  shown = entry;
  show();
  byId("search-title").focus(); // where the keyboard was is gone
}

const open = (id, name) =>
  attempt(async () => {
    const filtered = where();
    const { hits } = await busy((signal) => find({ id }, signal));
    pad.clear(); // it is no longer what is asked about
    go({ id, name, where: filtered, hits });
  });

const findPairs = () =>
  attempt(async () => {
    say("Looking for near duplicates…", { stays: true });
    try {
      const { pairs, count } = await busy((signal) => api.duplicates(signal));
      if (shown?.pairs) shown = { pairs, count };
      else go({ pairs, count });
      show();
    } finally {
      say("");
    }
  });

function back() {
  if (!before.length) return;
  running.abort();
  byId("search-result").removeAttribute("aria-busy");
  const { opened, ...entry } = before.pop();
  const kept = opened?.closest("li")?.dataset.id;
  shown = entry;
  if (!entry.pairs) byId("search-where").value = entry.where;
  show();
  const cards = [...byId(entry.pairs ? "pairs" : "hits").children];
  (cards.find((each) => each.dataset.id === kept)?.querySelector("button.hit") ?? byId("search-title")).focus();
}

function clear() {
  pad.clear();
  begin(null);
  byId("search-result").removeAttribute("aria-busy");
  show();
}

async function add(files) {
  const notes = typed(byId("add-notes"), notesOf); // first: what cannot be read stops all of it
  const [good, large] = bySize(files);
  const failures = large.map((file) => ({ name: file.name, why: TOO_LARGE }));
  let count = 0;
  try {
    for (const part of api.parts(good)) {
      say("Adding pictures…", { stays: true });
      const added = await api.addToGallery(part, notes);
      count += added.ids.length;
      failures.push(...added.failures);
    }
  } finally {
    say(count ? `${counted(count)} added to the gallery` : "");
    if (count) await refresh();
  }
  if (count) await askAgain();
  if (failures.length) throw notAdded(failures);
}

function title() {
  if (shown.pairs) return "Near duplicates";
  if (shown.id !== undefined) return `Most like ${shown.name}`;
  return shown.files.length === 1 ? "Most like this picture" : `Most like all of these ${shown.files.length} pictures`;
}

function summary() {
  if (shown.pairs) {
    const { pairs, count } = shown;
    if (!count) return "No two pictures are nearly the same.";
    if (count > pairs.length) return `The ${pairs.length} most similar of ${count} pairs`;
    return count === 1 ? "1 pair" : `${count} pairs`;
  }
  if (!shown.hits || shown.hits.length) return "";
  if (shown.where.trim()) return "No picture with this metadata was found.";
  return now()?.gallery ? "There is no other picture in the gallery." : "The gallery is empty. Add pictures first.";
}

function show() {
  byId("search-empty").hidden = Boolean(shown);
  byId("found").hidden = !shown;
  byId("search-back").hidden = !before.length;
  write(byId("search-title"), shown ? title() : "");
  write(byId("search-summary"), shown ? summary() : "");
  byId("hits").hidden = !shown?.hits?.length;
  byId("pairs").hidden = !shown?.pairs?.length;
  showAsked();
  showHits(shown?.hits ?? [], open);
  showPairs(shown?.pairs ?? [], open);
}

function showAsked() {
  const own = shown?.id === undefined ? [] : [{ key: shown.id, src: api.galleryThumbnail(shown.id), whole: api.galleryPicture(shown.id), name: shown.name }];
  const files = (shown?.urls ?? []).map((url, place) => ({ key: url, src: url, whole: url, name: shown.files[place].name }));
  const asked = [...own, ...files];
  byId("search-asked").hidden = !asked.length;
  keyed(
    byId("search-asked"),
    asked.slice(0, MOST_SHOWN),
    (each) => each.key,
    (each) => lookable(thumbnail(each.src, each.name, { alt: `Asked about: ${each.name}` }), each.whole, each.name),
  );
  if (asked.length > MOST_SHOWN) byId("search-asked").append(make("span", { className: "soft", textContent: `and ${asked.length - MOST_SHOWN} more` }));
}

export function start() {
  show();
  watch((state) => write(byId("gallery-count"), state.gallery === null ? "" : `${counted(state.gallery)} in the gallery`));
  byId("search-clear").addEventListener("click", () => attempt(clear));
  byId("search-back").addEventListener("click", () => attempt(back));
  byId("duplicates").addEventListener("click", findPairs);
  byId("filter").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(async () => (shown && !shown.pairs ? askAgain() : filter()));
  });
  byId("search-where").addEventListener("change", () => attempt(async () => (shown && !shown.pairs ? askAgain() : filter())));
  whenChosen(byId("search-files"), take);
  byId("add-notes").addEventListener("change", () => attempt(async () => typed(byId("add-notes"), notesOf)));
  whenChosen(byId("add-pictures"), (files) => attempt(() => add(files)));
  whenDropped(byId("search"), (files) => hasGallery() && take(files));
  whenPasted((files) => view() === "search" && hasGallery() && take(files));
  byId("search-camera").hidden = !camera.isThere();
  byId("search-camera").addEventListener("click", () =>
    camera.open("Camera", async (file) => {
      camera.close();
      await take([file]);
    }),
  );
}
