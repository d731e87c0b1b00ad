// The page about the API, made of the server's own description of it.

import * as api from "./api.js";
import { copy } from "./copy.js";
import { curlOf } from "./curl.js";
import { attempt, complain, say } from "./messages.js";
import { byId, make, write } from "./nodes.js";
import { named, outline, typeOf, unlessNull } from "./schemas.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const code = (textContent) => make("code", { textContent });

// What is between `…` in a sentence is code.
const prose = (text) => text.split("`").map((part, place) => (place % 2 ? code(part) : part));

function operationsIn(description) {
  return Object.entries(description.paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => method in methods).map((method) => {
      const id = `${method}${path.replace(/[^a-z0-9]+/gi, "-")}`.replace(/-$/, "");
      return { ...methods[method], id, method: method.toUpperCase(), path };
    }),
  );
}

const calledAs = ({ method, path }) => [make("span", { className: "method", textContent: method }), " ", make("code", { textContent: path })];

const block = (text) => make("pre", {}, code(text));

function parameters({ parameters: given = [] }) {
  if (!given.length) return [];
  const rows = given.map(({ name, in: place, required, description = "", schema }) => {
    const usual = schema.default === undefined || schema.default === null ? "" : ` Without it: ${schema.default}.`;
    const told = `${required ? "Required. " : ""}${description}${usual}`.trim();
    return make("tr", {}, make("th", { scope: "row" }, code(name)), make("td", { textContent: place }), make("td", { textContent: typeOf(unlessNull(schema)) }), make("td", {}, ...prose(told)));
  });
  const head = ["Parameter", "In", "Type", "What it does"].map((textContent) => make("th", { scope: "col", textContent }));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  return [make("h3", { textContent: "Parameters" }), make("div", { className: "scrolls", tabIndex: 0, role: "region", "aria-label": "Parameters" }, table)];
}

function content(given, schemas) {
  return Object.entries(given).flatMap(([kind, { schema }]) => {
    if (!schema || schema.format === "binary") return [make("p", {}, "A file: ", code(kind))];
    if (kind === "multipart/form-data") {
      const fields = Object.entries(schema.properties).map(([name, each]) => `\`${name}\`, a ${typeOf(each)}`);
      return [make("p", {}, code(kind), ...prose(` with ${fields.join("; ")}`))];
    }
    return [make("p", {}, code(kind)), block(outline(schema, schemas))];
  });
}

function body({ requestBody }, schemas) {
  return requestBody ? [make("h3", { textContent: "Body" }), ...content(requestBody.content, schemas)] : [];
}

const isError = (status) => Number(status) >= 400;

function answers({ responses }, schemas) {
  const statuses = Object.keys(responses);
  const good = statuses.filter((status) => !isError(status)).map((status) => {
    const given = responses[status].content ?? {};
    const what = Object.values(given).map(({ schema }) => named(schema)).filter(Boolean).join(", ");
    return make("details", {}, make("summary", {}, code(status), what ? ` ${what}` : " A file"), ...content(given, schemas));
  });
  const errors = statuses.filter(isError);
  const told = errors.map((status) => `${status} ${responses[status].description}`).join(", ");
  return [make("h3", { textContent: "Answers" }), ...good, ...(errors.length ? [make("p", { className: "soft", textContent: `Errors: ${told}` })] : [])];
}

function curl(operation, schemas, hasToken) {
  const line = curlOf(operation, location.origin, hasToken, schemas);
  const shown = block(line);
  const button = make("button", { type: "button", className: "copy", textContent: "Copy", "aria-label": `Copy curl for ${operation.method} ${operation.path}` });
  button.addEventListener("click", () =>
    attempt(async () => {
      if (!(await copy(line, shown.firstChild))) throw new api.Problem("The browser does not allow copying: the line is selected, copy it with the keyboard.");
      say("Copied");
    }),
  );
  return make("div", { className: "curl" }, shown, button);
}

function section(operation, schemas, hasToken) {
  const title = `${operation.id}-title`;
  return make(
    "section",
    { id: operation.id, className: "operation", "aria-labelledby": title },
    make("h2", { id: title }, ...calledAs(operation)),
    make("p", {}, ...prose(operation.description ?? operation.summary)),
    curl(operation, schemas, hasToken),
    ...parameters(operation),
    ...body(operation, schemas),
    ...answers(operation, schemas),
  );
}

function show(description) {
  const operations = operationsIn(description);
  const schemas = description.components?.schemas ?? {};
  const hasToken = Boolean(description.security?.length);
  write(byId("version"), `Version ${description.info.version}`);
  write(byId("about"), description.info.description);
  byId("token").hidden = !hasToken;
  byId("contents").replaceChildren(
    ...operations.map((each) => make("li", {}, make("a", { href: `#${each.id}` }, ...calledAs(each)))),
  );
  byId("operations").replaceChildren(...operations.map((each) => section(each, schemas, hasToken)));
}

try {
  show(await api.description());
  byId("reference").removeAttribute("aria-busy");
  byId(location.hash.slice(1))?.scrollIntoView(); // what the address names was not there when the browser looked for it
} catch (error) {
  complain(error);
}
