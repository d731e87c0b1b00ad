// The view where pictures are answered: as the pen lifts, or as soon as files are there.

import * as api from "./api.js";
import * as camera from "./camera.js";
import { Pad } from "./drawing.js";
import { hasExamples, now, watch } from "./live.js";
import { complain, attempt, say } from "./messages.js";
import { byId, percent, write } from "./nodes.js";
import { showOne } from "./one.js";
import { bySize, TOO_LARGE, whenChosen, whenDropped, whenPasted } from "./pictures.js";
import { showSeveral } from "./several.js";
import { view, whenShown } from "./tabs.js";

const AT_ONCE = 32; // pictures of one request: the first answers come soon, and progress can be told
const SETTLED = 200; // milliseconds after which a slider counts as set down

let asked = []; // [{ file, url }]: what is being asked about
let running = new AbortController(); // the newest question; older ones are dropped
let answeredAt = null; // the revision that the answers on the page are of
let timer = 0;

const pad = new Pad(byId("recognise-pad"), {
  onStroke: () =>
    attempt(async () => {
      const file = await pad.file();
      if (!pad.isBlank) await ask([file]); // it may have been cleared by now
    }),
});

const reject = () => (byId("none-of-these").checked ? byId("careful").value : null);

function take(files) {
  pad.clear();
  return attempt(() => ask(files));
}

function ask(files) {
  const old = asked;
  asked = files.map((file) => ({ file, url: URL.createObjectURL(file) }));
  for (const each of old) URL.revokeObjectURL(each.url);
  if (asked.length !== 1) showOne(null);
  if (asked.length < 2) showSeveral([]);
  byId("one").hidden = asked.length > 1;
  byId("several").hidden = asked.length < 2;
  return askAgain();
}

// The same pictures, after the classes or the care changed.
async function askAgain() {
  clearTimeout(timer);
  running.abort();
  running = new AbortController();
  const { signal } = running;
  if (!hasExamples()) return;
  answeredAt = now().revision;
  if (!asked.length) {
    showCost(reject() === null ? null : await api.rejection(reject(), signal));
    return;
  }
  byId("result").setAttribute("aria-busy", "true");
  try {
    await answer(signal);
  } catch (error) {
    if (!signal.aborted && asked.length === 1) showOne(null); // what is shown must not seem to be about this picture
    throw error;
  } finally {
    if (!signal.aborted) byId("result").removeAttribute("aria-busy");
  }
}

async function answer(signal) {
  const [good, large] = bySize(asked.map((each) => each.file));
  const found = new Map(large.map((file) => [file, { picture: file.name, probabilities: [], neighbours: [], error: TOO_LARGE }]));
  let done = 0;
  for (const part of api.parts(good, AT_ONCE)) {
    if (asked.length > 1) say(`${done} of ${asked.length} pictures answered…`);
    const answers = await api.classify(part, reject(), signal);
    part.forEach((file, place) => found.set(file, answers.answers[place]));
    done += part.length;
    showCost(answers.rejection);
    if (asked.length > 1) showSeveral(asked.map((each) => ({ ...each, answer: found.get(each.file) })));
  }
  if (asked.length === 1) showOne({ ...asked[0], answer: found.get(asked[0].file) });
  else {
    showSeveral(asked.map((each) => ({ ...each, answer: found.get(each.file) })));
    say(`${asked.length} pictures answered`);
  }
}

function showCost(rejection) {
  const isAllowed = byId("none-of-these").checked;
  byId("how-careful").hidden = !isAllowed;
  if (!isAllowed) return;
  if (!rejection) {
    write(byId("cost"), "The examples cannot tell yet what is none of these: give each class a second one.");
    return;
  }
  const { false_rejections: away, false_acceptances: passed } = rejection;
  const costs = [];
  if (away !== null) costs.push(`About ${percent(away)} of your own examples would be turned away`);
  if (passed !== null) costs.push(`${costs.length ? "" : "About "}${percent(passed)} of strangers would pass`);
  write(byId("cost"), costs.length ? `${costs.join("; ")}.` : "What that costs cannot be told from so few examples.");
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(() => attempt(askAgain), SETTLED);
}

function sayCareful() {
  byId("careful").setAttribute("aria-valuetext", `up to ${percent(Number(byId("careful").value))} of known pictures turned away`);
}

function showState() {
  const is = hasExamples();
  byId("recognise-empty").hidden = is || !now();
  for (const part of ["asking", "options", "result"]) byId(part).hidden = !is;
  if (view() === "recognise" && is && answeredAt !== now().revision) askAgain().catch(complain);
}

export function start() {
  showOne(null);
  sayCareful();
  watch(showState);
  whenShown(showState);
  byId("recognise-clear").addEventListener("click", () => {
    pad.clear();
    attempt(() => ask([]));
  });
  byId("none-of-these").addEventListener("change", () => {
    byId("how-careful").hidden = !byId("none-of-these").checked;
    attempt(askAgain);
  });
  byId("careful").addEventListener("input", () => {
    sayCareful();
    soon();
  });
  whenChosen(byId("recognise-files"), take);
  whenDropped(byId("recognise"), (files) => (hasExamples() ? take(files) : complain(new api.Problem("Nothing is taught yet."))));
  whenPasted((files) => view() === "recognise" && hasExamples() && take(files));
  byId("recognise-camera").hidden = !camera.isThere();
  byId("recognise-camera").addEventListener("click", () =>
    camera.open("Camera", async (file) => {
      camera.close();
      await take([file]);
    }),
  );
}
