// The answers about many pictures: a table, and the same as a file.

import * as api from "./api.js";
import { csv, download } from "./csv.js";
import { byId, keyed, make, percent, write } from "./nodes.js";
import { thumbnail } from "./thumbs.js";

let shown = [];

const share = (answer) => answer.probabilities.find((each) => each.id === answer.class_id)?.probability;

// [{ file, url, answer }]; an answer may not be there yet
export function showSeveral(rows) {
  shown = rows;
  byId("csv").disabled = !rows.length || rows.some((each) => !each.answer);
  keyed(
    byId("answers-table").tBodies[0],
    rows,
    (each) => each.url,
    (each) => {
      const image = make("img", { className: "thumb", alt: "", loading: "lazy", decoding: "async" });
      image.addEventListener("error", () => image.classList.add("broken"));
      image.src = each.url;
      return make(
        "tr",
        {},
        make("td", {}, image),
        make("td", { className: "file-name", textContent: each.file.name }),
        make("td", { className: "row-answer" }),
        make("td", { className: "number" }),
        make("td", {}, make("div", { className: "nearest" })),
      );
    },
    (row, { answer }) => {
      if (!answer) return;
      write(row.cells[2], answer.error ? api.sentence(answer.error) : (answer.label ?? "none of these"));
      row.cells[2].classList.toggle("soft", answer.label === null);
      write(row.cells[3], answer.label === null ? "–" : percent(share(answer) ?? 0));
      showNearest(row.cells[4].firstChild, answer.neighbours[0]);
    },
  );
}

function showNearest(place, near) {
  keyed(
    place,
    near ? [near] : [],
    (each) => each.example,
    (each) => make("span", { className: "nearest" }, thumbnail(api.thumbnail(each.example), each.name, { alt: "", loading: "lazy" }), make("span")),
    (node, each) => write(node.lastChild, `${each.class_name}, ${each.similarity.toFixed(2)}`),
  );
}

byId("csv").addEventListener("click", () => {
  const head = ["picture", "answer", "probability", "nearest class", "nearest example", "similarity", "error"];
  const rows = shown.map(({ file, answer }) => [
    file.name,
    answer.error ? "" : (answer.label ?? "none of these"),
    answer.label === null ? "" : share(answer),
    answer.neighbours[0]?.class_name ?? "",
    answer.neighbours[0]?.example ?? "",
    answer.neighbours[0]?.similarity ?? "",
    answer.error ?? "",
  ]);
  download("answers.csv", csv([head, ...rows]), "text/csv;charset=utf-8");
});
