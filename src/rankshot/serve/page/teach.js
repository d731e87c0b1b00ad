// The view where classes are made and shown examples.

import * as api from "./api.js";
import * as camera from "./camera.js";
import { Card } from "./card.js";
import { fileOf, Pad } from "./drawing.js";
import { classOf, now, refresh, watch } from "./live.js";
import { attempt, complain, say } from "./messages.js";
import { byId, keyed, make, write } from "./nodes.js";
import { bySize, notAdded, TOO_LARGE, whenDropped, whenPasted } from "./pictures.js";
import { view } from "./tabs.js";
import { thumbnail } from "./thumbs.js";

const cards = new WeakMap(); // element -> Card
let target = null; // id of the class that drawings and pasted pictures go to; it may not be there yet, or no longer
let review = { revision: -1, mistakes: [], mixed_up: [] };

const pad = new Pad(byId("teach-pad"), { onInk: () => showTarget() });

const acts = {
  draw(each) {
    target = each.id;
    show();
    byId("teach-pad").parentElement.scrollIntoView({ block: "nearest" }); // on a narrow screen it is far above
    say(`Drawings go to ${each.name}`);
  },
  add: (each, files) => attempt(() => add(each.id, files)),
  camera: (each) => camera.open(`Camera: ${each.name}`, (file) => add(each.id, [file])),
  rename: (id, name) =>
    attempt(async () => {
      await api.renameClass(id, name);
      await refresh();
      say(`Renamed to ${name.trim()}`);
      return true;
    }),
  removeClass: (each) =>
    attempt(async () => {
      const card = document.activeElement?.closest("article.class");
      const near = card?.nextElementSibling ?? card?.previousElementSibling;
      await api.removeClass(each.id);
      await refresh();
      say(`${each.name} deleted. Undo brings it back`);
      (near?.querySelector("button.draw") ?? byId("new-class-name")).focus({ preventScroll: true });
    }),
  removeExample: (id, each) =>
    attempt(async () => {
      await api.removeExample(id);
      await refresh();
      say(`Example removed from ${each.name}`);
    }),
};

// Says what was added, and complains about files that were not; resolves to what was said.
async function add(id, files) {
  const [good, large] = bySize(files);
  const failures = large.map((file) => ({ name: file.name, why: TOO_LARGE }));
  let count = 0;
  try {
    for (const part of api.parts(good)) {
      if (part.some((file) => file.size > 2 ** 20) || part.length > 8) say("Adding pictures…");
      const added = await api.addExamples(id, part);
      count += added.ids.length;
      failures.push(...added.failures);
    }
  } finally {
    if (count) await refresh();
  }
  const name = classOf(id)?.name ?? "the class";
  const said = count === 1 ? `Example added to ${name}` : `${count} examples added to ${name}`;
  if (count) say(said);
  if (failures.length) throw notAdded(failures);
  return said;
}

async function addDrawing() {
  const each = classOf(target);
  if (!each || pad.isBlank) return;
  const drawing = pad.take(); // the next one need not wait for this one to be on the server
  const isAdded = await attempt(async () => add(each.id, [await fileOf(drawing)]));
  if (!isAdded) pad.putBack(drawing);
}

// On a narrow screen the field is far below.
function toNewClass(text) {
  const link = make("button", { type: "button", className: "link", textContent: text });
  link.addEventListener("click", () => byId("new-class-name").focus());
  return link;
}

function showTarget() {
  const each = classOf(target);
  const place = byId("target");
  const isEmpty = now()?.classes.length === 0;
  const how = !now() ? "" : isEmpty ? "Add a class first." : "Press ‘Draw’ on a class first.";
  const text = each ? `An example of ${each.name}` : how;
  if (place.textContent !== text) {
    const shown = each ? ["An example of ", make("strong", { textContent: each.name })] : [isEmpty ? toNewClass(how) : how];
    place.replaceChildren(...shown);
  }
  byId("add-drawing").disabled = !each || pad.isBlank;
}

function show() {
  const state = now();
  if (!state) return;
  showTarget();
  byId("teach-empty").hidden = state.classes.length > 0;
  const names = new Map(state.classes.map((each) => [each.id, each.name]));
  const mistakes = new Map(
    review.mistakes.filter((each) => names.has(each.taken_for)).map((each) => [each.example, names.get(each.taken_for)]),
  );
  keyed(
    byId("cards"),
    state.classes,
    (each) => each.id,
    (each) => {
      const card = new Card(each, acts);
      cards.set(card.node, card);
      return card.node;
    },
    (node, each) => cards.get(node).update(each, each.id === target, mistakes),
  );
  showMixedUp(names);
}

function showMixedUp(names) {
  const known = new Map(now().classes.flatMap((each) => each.examples.map((example) => [example.id, example.name])));
  const pairs = review.mixed_up.filter((each) => names.has(each.class_id) && names.has(each.taken_for));
  byId("mixed-up").hidden = pairs.length === 0;
  keyed(
    byId("mixed-up-rows"),
    pairs,
    (each) => `${each.class_id} ${each.taken_for}`,
    () => make("tr", {}, make("th", { scope: "row" }), make("td"), make("td", { className: "number" }), make("td", {}, make("div", { className: "small-thumbs" }))),
    (row, each) => {
      write(row.cells[0], names.get(each.class_id));
      write(row.cells[1], names.get(each.taken_for));
      write(row.cells[2], String(each.count));
      const wrong = review.mistakes.filter(
        (one) => one.class_id === each.class_id && one.taken_for === each.taken_for && known.has(one.example),
      );
      keyed(
        row.cells[3].firstChild,
        wrong,
        (one) => one.example,
        (one) => thumbnail(api.thumbnail(one.example), known.get(one.example), { alt: `Example of ${names.get(each.class_id)}`, loading: "lazy" }),
      );
    },
  );
}

// Asked for after every change; an answer about an older state is not shown.
async function look(state) {
  try {
    const found = await api.review();
    if (found.revision < review.revision && state.revision >= review.revision) return;
    review = found;
    show();
  } catch (error) {
    complain(error);
  }
}

export function start() {
  watch((state) => {
    show();
    look(state);
  });
  byId("new-class").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(async () => {
      const field = byId("new-class-name");
      const { id } = await api.addClass(field.value);
      say(`Class ${field.value.trim()} added`);
      field.value = "";
      target = id; // the next drawing is most likely meant for it
      await refresh();
      show();
    });
  });
  byId("add-drawing").addEventListener("click", addDrawing);
  byId("teach-clear").addEventListener("click", () => pad.clear());
  const addToTarget = (files, again) => {
    const each = classOf(target);
    if (each) acts.add(each, files);
    else complain(new api.Problem(`Press ‘Draw’ on the class that the picture is for, then ${again} again.`));
  };
  whenDropped(byId("teach-pad").parentElement, (files) => addToTarget(files, "drop it"));
  whenPasted((files) => view() === "teach" && addToTarget(files, "paste"));
}
