// What JSON may be, for people: the forms of OpenAPI as one word, or as an outline that looks like the JSON itself.

const REFERENCE = "#/components/schemas/";
const DEEPEST = 8; // a type may hold itself
const INDENT = "  ";

const nameIn = (schema) => schema.$ref?.replace(REFERENCE, "");
const choices = (schema) => schema.anyOf ?? schema.oneOf;

// The types that have names: State, or Rejection or null.
export function named(schema) {
  return schema && schema.format !== "binary" ? typeOf(schema) : "";
}

// Of a parameter: null is that it is not there.
export function unlessNull(schema) {
  return choices(schema) ? { anyOf: choices(schema).filter((each) => each.type !== "null") } : schema;
}

// In a few words.
export function typeOf(schema) {
  if (nameIn(schema)) return nameIn(schema);
  if (choices(schema)) return choices(schema).map(typeOf).join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? {})}`;
  if (schema.format === "binary") return "file";
  const bounds = [
    ["minimum", "from"],
    ["exclusiveMinimum", "above"],
    ["maximum", "to"],
    ["exclusiveMaximum", "below"],
  ].filter(([name]) => name in schema);
  const said = bounds.map(([name, word]) => ` ${word} ${schema[name]}`).join("");
  const long = schema.maxLength ? ` of up to ${schema.maxLength} characters` : "";
  return `${schema.type ?? "any"}${said}${long}`;
}

// As JSON would be, with types in the place of values and what is to be said of them behind.
export function outline(schema, schemas) {
  return lines(schema, schemas, 0).map(([text, said]) => (said ? `${text}  // ${said}` : text)).join("\n");
}

const oneLine = (text = "") => text.replace(/\s+/g, " ").trim();

// [[text, what is said of it]]; the first line has no indent of its own
function lines(schema, schemas, depth) {
  const name = nameIn(schema);
  if (name) {
    const whole = schemas[name];
    if (!whole || depth > DEEPEST) return [[name, ""]];
    const [[first, said], ...rest] = lines(whole, schemas, depth);
    return [[first, said || oneLine(whole.description)], ...rest];
  }
  const other = choices(schema)?.filter((each) => each.type !== "null");
  if (other?.length === 1 && nameIn(other[0])) {
    const [[first, said], ...rest] = lines(other[0], schemas, depth);
    return [[first, `or null. ${said}`.trim()], ...rest];
  }
  if (schema.type === "array") return around("[", lines(schema.items ?? {}, schemas, depth), "]");
  if (schema.type === "object" && schema.properties) return object(schema, schemas, depth);
  return [[typeOf(schema), ""]];
}

function around(open, [[first, said], ...rest], close) {
  if (!rest.length) return [[`${open}${first}${close}`, said]];
  const [last, lastSaid] = rest.at(-1);
  return [[`${open}${first}`, said], ...rest.slice(0, -1), [`${last}${close}`, lastSaid]];
}

function object({ properties, required = [] }, schemas, depth) {
  const fields = Object.entries(properties);
  const inner = fields.flatMap(([name, schema], place) => {
    const [[first, said], ...rest] = lines(schema, schemas, depth + 1);
    const told = [required.includes(name) ? "" : "optional.", oneLine(schema.description) || said].filter(Boolean).join(" ");
    const all = [[`"${name}": ${first}`, told], ...rest];
    if (place < fields.length - 1) all[all.length - 1] = [`${all.at(-1)[0]},`, all.at(-1)[1]];
    return all.map(([text, note]) => [INDENT + text, note]);
  });
  return [["{", ""], ...inner, ["}", ""]];
}
