// A request as a line for a shell. What is to be put in is in capitals.

const PLAIN = /^[\w@%+=:,./-]+$/;
const quoted = (text) => (PLAIN.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const upper = (name) => name.toUpperCase();

const FORMS = {
  "application/json": ({ schema }, schemas) => ["--json", JSON.stringify(sample(schema, schemas))],
  "multipart/form-data": ({ schema }) => Object.keys(schema.properties).flatMap((name) => ["-F", `${name}=@picture.png`]),
  "application/zip": () => ["-H", "content-type: application/zip", "--data-binary", "@classifier.zip"],
};

// Of the fields that must be there; the others can be left out.
function sample(schema, schemas) {
  const whole = schema.$ref ? schemas[schema.$ref.split("/").at(-1)] : schema;
  const names = whole.required ?? [];
  return Object.fromEntries(names.map((name) => [name, upper(name)]));
}

function addressOf({ path, parameters = [] }, origin) {
  const asked = parameters.filter((each) => each.in === "query" && each.required).map(({ name }) => `${name}=${upper(name)}`);
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => upper(name));
  return `${origin}${filled}${asked.length ? `?${asked.join("&")}` : ""}`;
}

export function curlOf(operation, origin, hasToken, schemas) {
  const { method, path, requestBody, responses } = operation;
  const [kind, content] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const body = FORMS[kind]?.(content, schemas) ?? [];
  const implied = body.length ? "POST" : "GET";
  const file = responses["200"]?.content && Object.keys(responses["200"].content).find((each) => each !== "application/json");
  return [
    "curl",
    ...(hasToken ? ["-H", "Authorization: Bearer TOKEN"] : []),
    ...(method === implied ? [] : ["-X", method]),
    addressOf(operation, origin),
    ...body,
    ...(file ? ["-o", file.startsWith("image/") ? "picture" : path.split("/").at(-1)] : []),
  ]
    .map(quoted)
    .join(" ");
}
