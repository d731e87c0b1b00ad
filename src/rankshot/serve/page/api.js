// The server, as functions. What goes wrong is a Problem with one sentence to show.

export class Problem extends Error {}

// Limits of the server, so that a large choice of files is sent in parts and not refused as a whole.
export const MOST_BYTES = 32 * 2 ** 20;
const MOST_AT_ONCE = 256;

const MOST_HITS = 12;
const NEARLY_SAME = 0.98; // the similarity from which on two pictures are near duplicates

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(`/api/v1/${path}`, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server cannot be reached.");
  }
  const answer = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return undefined;
  });
  if (!response.ok) throw new Problem(sentence(answer?.error ?? `the server answered ${response.status}`));
  return answer;
}

const json = (method, body) => ({ method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

function form(files) {
  const body = new FormData();
  for (const file of files) body.append("pictures", file, file.name);
  return body;
}

const at = (id) => encodeURIComponent(id);

export const state = (signal) => ask("state", { signal });
export const description = () => ask("openapi.json");
export const changes = (since, signal) => ask(`changes?since=${since}`, { signal });
export const review = () => ask("review");
export const rejection = (reject, signal) => ask(`rejection?reject=${reject}`, { signal });
export const addClass = (name) => ask("classes", json("POST", { name }));
export const renameClass = (id, name) => ask(`classes/${at(id)}`, json("PATCH", { name }));
export const removeClass = (id) => ask(`classes/${at(id)}`, { method: "DELETE" });
export const removeExample = (id) => ask(`examples/${at(id)}`, { method: "DELETE" });
export const undo = () => ask("undo", { method: "POST" });
export const picture = (id) => `/api/v1/examples/${at(id)}/picture`; // all of it
export const thumbnail = (id) => `/api/v1/examples/${at(id)}/thumbnail`;

export const addExamples = (id, files) =>
  ask(`classes/${at(id)}/examples`, { method: "POST", body: form(files) });

// The zip that was downloaded elsewhere, as it is.
export const takeIn = (file) =>
  ask("classifier.zip", { method: "POST", headers: { "content-type": "application/zip" }, body: file });

const wanted = (where) => (where === null ? "" : `&where=${encodeURIComponent(JSON.stringify(where))}`);

export const search = (files, where, signal) =>
  ask(`gallery/search?k=${MOST_HITS}${wanted(where)}`, { method: "POST", body: form(files), signal });

export const neighbours = (id, where, signal) => ask(`gallery/neighbours?id=${at(id)}&k=${MOST_HITS}${wanted(where)}`, { signal });
export const duplicates = (signal) => ask(`gallery/duplicates?similarity=${NEARLY_SAME}`, { signal });

export const addToGallery = (files, notes) =>
  ask(`gallery/pictures${notes === null ? "" : `?metadata=${at(JSON.stringify(notes))}`}`, { method: "POST", body: form(files) });

export const galleryPicture = (id) => `/api/v1/gallery/picture?id=${at(id)}`;
export const galleryThumbnail = (id) => `/api/v1/gallery/thumbnail?id=${at(id)}`;

export const classify = (files, reject, signal) =>
  ask(`classify${reject === null ? "" : `?reject=${reject}`}`, { method: "POST", body: form(files), signal });

// Files in parts that fit into one request each.
export function parts(files, most = MOST_AT_ONCE) {
  const found = [];
  let bytes = 0;
  for (const file of files) {
    if (!found.length || found.at(-1).length >= most || bytes + file.size > MOST_BYTES) {
      found.push([]);
      bytes = 0;
    }
    found.at(-1).push(file);
    bytes += file.size;
  }
  return found;
}

export function sentence(text) {
  const whole = String(text).trim();
  return whole.charAt(0).toUpperCase() + whole.slice(1) + (/[.!?]$/.test(whole) ? "" : ".");
}
