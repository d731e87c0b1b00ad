// The answer about one picture: what it is, how likely, and which examples decided.

import * as api from "./api.js";
import { lookable } from "./look.js";
import { byId, keyed, make, percent, write } from "./nodes.js";
import { rename, thumbnail } from "./thumbs.js";

const MOST_BARS = 8;

// { url, answer }; null: nothing is asked
export function showOne(given) {
  const answer = given?.answer;
  const query = byId("query");
  query.hidden = !given;
  if (given) query.src = given.url;
  else query.removeAttribute("src");
  const place = byId("answer");
  place.classList.toggle("waiting", !given || Boolean(answer.error));
  place.classList.toggle("none", Boolean(given) && !answer.error && answer.label === null);
  write(place, !given ? "The answer appears here." : answer.error ? api.sentence(answer.error) : (answer.label ?? "none of these"));
  place.title = answer?.label ?? "";
  showBars(answer?.probabilities.slice(0, MOST_BARS) ?? [], answer?.class_id);
  showDeciding(answer?.neighbours ?? [], answer?.label === null);
}

// By place and not by class, so that the bars only change their lengths.
function showBars(shares, answered) {
  keyed(
    byId("bars"),
    shares.map((each, place) => ({ ...each, place })),
    (each) => String(each.place),
    () =>
      make(
        "li",
        {},
        make("span", { className: "bar-name" }),
        make("div", { className: "track", "aria-hidden": "true" }, make("div", { className: "fill" })),
        make("span", { className: "share" }),
      ),
    (row, each) => {
      row.classList.toggle("answered", each.id === answered);
      write(row.querySelector(".bar-name"), each.name);
      row.querySelector(".bar-name").title = each.name;
      row.querySelector(".fill").style.width = `${Math.max(0, Math.min(1, each.probability)) * 100}%`;
      write(row.querySelector(".share"), percent(each.probability));
    },
  );
}

function showDeciding(neighbours, isNone) {
  byId("deciding-part").hidden = neighbours.length === 0;
  write(byId("deciding-title"), isNone ? "Nearest examples" : "Examples that decided");
  keyed(
    byId("deciding"),
    neighbours,
    (each) => each.example,
    (each) =>
      make(
        "li",
        {},
        lookable(thumbnail(api.thumbnail(each.example), each.name), api.picture(each.example), each.name),
        make("span", { className: "deciding-name" }),
        make("span", { className: "similarity soft" }),
      ),
    (item, each) => {
      rename(item.querySelector(".thumb"), `Example of ${each.class_name}`);
      write(item.querySelector(".deciding-name"), each.class_name);
      item.querySelector(".deciding-name").title = each.class_name;
      write(item.querySelector(".similarity"), each.similarity.toFixed(2));
      item.querySelector(".similarity").title = "Similarity; 1 is the same";
    },
  );
}
