// Small pictures. Where there is none, its name lies in its place: what was taught elsewhere comes without pictures.

import { make } from "./nodes.js";

export function thumbnail(src, name, properties = {}) {
  const image = make("img", { className: "thumb", alt: name, decoding: "async", ...properties });
  image.addEventListener("error", () => image.replaceWith(placeholder(image, name)), { once: true });
  image.src = src;
  return image;
}

function placeholder({ alt, title, dataset }, name) {
  const said = alt ? { role: "img", "aria-label": alt } : { "aria-hidden": "true" };
  return make("span", { className: "thumb missing", title: title || name, data: dataset, ...said }, make("span", { textContent: name }));
}

// What it shows has another name now.
export function rename(thumb, text) {
  if (thumb instanceof HTMLImageElement) thumb.alt = text;
  else thumb.setAttribute("aria-label", text);
}
