// Where pictures come from, beside drawings and the camera: chosen, dropped, pasted.

import { MOST_BYTES, Problem, sentence } from "./api.js";
import { complain } from "./messages.js";

export function whenChosen(input, use) {
  input.addEventListener("change", () => {
    const files = [...input.files];
    input.value = ""; // the same file can be chosen again
    if (files.length) use(files);
  });
}

const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");

export function whenDropped(node, use) {
  const mark = (is) => node.classList.toggle("dropping", is);
  node.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    mark(true);
  });
  node.addEventListener("dragleave", (event) => {
    if (!node.contains(event.relatedTarget)) mark(false);
  });
  node.addEventListener("drop", (event) => {
    mark(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    const folders = [...event.dataTransfer.items].map((each) => Boolean(each.webkitGetAsEntry?.()?.isDirectory));
    const files = [...event.dataTransfer.files].filter((_, place) => !folders[place]);
    if (files.length) use(files);
    else complain(new Problem("A folder cannot be dropped: choose the pictures in it."));
  });
}

// A file that misses its place must not make the browser leave this page.
export function guardAgainstMisses() {
  for (const kind of ["dragover", "drop"]) {
    window.addEventListener(kind, (event) => {
      if (event.defaultPrevented || !hasFiles(event)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "none";
    });
  }
}

export function whenPasted(use) {
  document.addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])].filter((each) => each.type.startsWith("image/"));
    if (!files.length) return; // text goes where it is typed
    event.preventDefault();
    use(files);
  });
}

// [those that the server would take, those that are too large for it]
export function bySize(files) {
  return [files.filter((each) => each.size <= MOST_BYTES), files.filter((each) => each.size > MOST_BYTES)];
}

// [{ name, why }]: the complaint about files that were left out
export function notAdded(failures) {
  const more = failures.length > 1 ? `, and ${failures.length - 1} more` : "";
  return new Problem(sentence(`not added: ${failures[0].name} (${failures[0].why})${more}`));
}

export const TOO_LARGE = `larger than ${MOST_BYTES / 2 ** 20} MiB`;
