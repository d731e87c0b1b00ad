// One picture alone, as large as the screen: what is elsewhere on the page is small.

import { byId, make, write } from "./nodes.js";

const dialog = byId("look");
const picture = byId("look-picture");

// small: the address of the small view, for files that no browser shows
function open(whole, small, name) {
  write(byId("look-name"), name);
  write(byId("look-said"), "");
  picture.alt = name;
  picture.onerror = () => {
    picture.onerror = null;
    write(byId("look-said"), "Browsers do not show files of this kind: this is a small view of it.");
    picture.src = small;
  };
  picture.src = whole;
  dialog.showModal();
}

// The thumbnail as a button that shows all of the picture; where there is no picture, there is nothing to press.
export function lookable(thumb, whole, name) {
  const button = make("button", { type: "button", className: "look-at", title: `Look at ${name}` }, thumb);
  button.addEventListener("click", () => open(whole, thumb.src, name));
  thumb.addEventListener("error", () => (button.disabled = true), { once: true });
  return button;
}

byId("look-close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // beside the picture
dialog.addEventListener("close", () => {
  picture.onerror = null;
  picture.removeAttribute("src");
});
