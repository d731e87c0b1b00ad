// Puts the page together: the header, and the order in which all begins.

import * as api from "./api.js";
import { explain } from "./camera.js";
import { follow, hasExamples, now, refresh, watch } from "./live.js";
import { attempt, say } from "./messages.js";
import { byId, write } from "./nodes.js";
import { guardAgainstMisses, whenChosen } from "./pictures.js";
import * as recognise from "./recognise.js";
import * as search from "./search.js";
import * as tabs from "./tabs.js";
import * as teach from "./teach.js";

function showHeader(state) {
  write(byId("network"), `Network: ${state.network.name}`);
  const undo = byId("undo");
  undo.setAttribute("aria-disabled", String(state.undo === null)); // disabled, it would lose the keyboard's focus
  const label = state.undo === null ? "Nothing to undo" : `Undo: ${state.undo}`;
  undo.title = label;
  undo.setAttribute("aria-label", state.undo === null ? "Undo" : label);
  byId("download").hidden = !hasExamples();
}

// One after another: what is said last is about the change that was taken back last, however slow an answer is.
let takenBack = Promise.resolve();

function takeBack() {
  takenBack = takenBack.then(() => attempt(takeBackOne));
}

async function takeBackOne() {
  if (!now()?.undo) {
    say("Nothing to undo");
    return;
  }
  const { undone } = await api.undo();
  await refresh();
  say(`Taken back: ${undone}`);
}

function takeIn(file) {
  return attempt(async () => {
    say("Taking in…", { stays: true });
    try {
      await api.takeIn(file);
    } catch (error) {
      say("");
      throw error;
    }
    await refresh();
    say(`${file.name} taken in. Undo takes it out again`);
  });
}

const isText = (node) => node.isContentEditable || node.matches("textarea, input:not([type=file], [type=range], [type=checkbox])");

watch(showHeader);
teach.start();
recognise.start();
search.start();
tabs.start();
explain();
guardAgainstMisses();
byId("undo").addEventListener("click", takeBack);
whenChosen(byId("upload-classifier"), ([file]) => takeIn(file));
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || event.key.toLowerCase() !== "z") return;
  if (isText(event.target) || document.querySelector("dialog[open]")) return; // there it takes back letters
  event.preventDefault();
  takeBack();
});
follow();
