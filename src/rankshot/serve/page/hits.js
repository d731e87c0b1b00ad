// What was found in the gallery: cards, and pairs of them. Every picture is a button that asks for what is like it.

import * as api from "./api.js";
import { byId, keyed, make, write } from "./nodes.js";
import { thumbnail } from "./thumbs.js";

const NAME = "name"; // in the metadata: what a picture was called where it came from

function notes({ name: called, metadata }) {
  const shown = Object.entries(metadata).filter(([name, value]) => name !== NAME || value !== called);
  return shown.map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(" · ");
}

function picture(id, name, open, above = [], below = []) {
  const shown = make("span", { className: "hit-name", textContent: name, title: name });
  const image = thumbnail(api.galleryThumbnail(id), name, { alt: "", loading: "lazy" });
  const button = make("button", { type: "button", className: "hit", title: "Show what is most like it" }, image, ...above, shown, ...below);
  button.addEventListener("click", () => open(id, name));
  return button;
}

// open(id, name): somebody wants to see what is like it
export function showHits(hits, open) {
  keyed(
    byId("hits"),
    hits,
    (each) => each.id,
    ({ id, name }) => {
      const similarity = make("span", { className: "similarity", title: "Similarity; 1 is the same" });
      return make("li", {}, picture(id, name, open, [similarity], [make("span", { className: "notes soft" })]));
    },
    (item, each) => {
      const text = notes(each);
      write(item.querySelector(".similarity"), each.similarity.toFixed(2));
      write(item.querySelector(".notes"), text);
      item.querySelector(".notes").title = text;
    },
  );
}

export function showPairs(pairs, open) {
  keyed(
    byId("pairs"),
    pairs,
    (each) => JSON.stringify([each.id, each.other]),
    ({ id, name, other, other_name }) =>
      make(
        "li",
        { className: "pair" },
        picture(id, name, open),
        make("span", { className: "similarity", title: "Similarity; 1 is the same" }),
        picture(other, other_name, open),
      ),
    (item, each) => write(item.querySelector(".similarity"), each.similarity.toFixed(2)),
  );
}
