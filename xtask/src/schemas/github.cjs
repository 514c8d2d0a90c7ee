// Requests that the program sent, held against GitHub's own descriptions: REST by Prism, GraphQL by graphql-js.
// Each is also sent with something wrong in it, which has to be refused: a check that takes anything is none.
const fs = require("fs");
const { spawn } = require("child_process");
const { buildSchema, parse, validate } = require("graphql");
const { getVariableValues } = require("graphql/execution/values");

const ROOT = "/api/v3";
const DESCRIPTION = "node_modules/@octokit/openapi/generated/api.github.com.json";
const SCHEMA = "node_modules/@octokit/graphql-schema/schema.graphql";

let wrong = 0;
const complain = (...words) => { wrong = 1; console.error(...words); };

/// The path of the description that a request is for; the one with the fewest parameters if there are several.
function template(paths, path) {
  const fits = (name) => new RegExp("^" + name.replace(/\{[^}]+\}/g, "[^/]+") + "$").test(path);
  const holes = (name) => name.split("{").length;
  return Object.keys(paths).filter(fits).sort((a, b) => holes(a) - holes(b))[0];
}

/// Names that nobody described are mistakes in what we send, although GitHub ignores them.
function strict(schema) {
  if (!schema || typeof schema !== "object") return;
  if (schema.properties && schema.additionalProperties === undefined) schema.additionalProperties = false;
  Object.values(schema.properties ?? {}).forEach(strict);
  strict(schema.items);
}

/// The same content with one thing wrong, for each thing that can be.
function* spoiled(body) {
  yield { ...body, nobodyKnowsThis: true };
  for (const [name, value] of Object.entries(body)) {
    yield { ...body, [name]: typeof value === "object" ? 7 : { wrong: true } };
  }
}

async function rest(asked) {
  const doc = JSON.parse(fs.readFileSync(DESCRIPTION, "utf8"));
  const paths = {};
  for (const one of asked) {
    const name = template(doc.paths, one.path);
    const operation = doc.paths[name]?.[one.method.toLowerCase()];
    if (!operation) { complain("GitHub has no", one.method, one.path); continue; }
    paths[name] = doc.paths[name];
    const parameters = [...(operation.parameters ?? []), ...(doc.paths[name].parameters ?? [])]
      .map((one) => (one.$ref ? one.$ref.split("/").slice(1).reduce((at, key) => at[key], doc) : one));
    for (const key of new URLSearchParams(one.query).keys()) {
      if (!parameters.some((known) => known.in === "query" && known.name === key)) {
        complain(one.method, one.path, "has no parameter", key);
      }
    }
    strict(operation.requestBody?.content?.["application/json"]?.schema);
  }
  doc.paths = paths;
  delete doc["x-webhooks"];
  fs.writeFileSync("github-used.json", JSON.stringify(doc));
  const prism = spawn(process.execPath,
    ["node_modules/@stoplight/prism-cli/dist/index.js", "mock", "-p", "0", "github-used.json"],
    { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const address = await new Promise((done, failed) => {
      let said = "";
      prism.stdout.on("data", (data) => {
        said += data;
        const found = said.match(/listening on (http:\S+)/);
        if (found) done(found[1].replace(/\x1b\[[0-9;]*m/g, ""));
      });
      prism.on("exit", (code) => failed(new Error(`Prism ended with ${code}: ${said}`)));
    });
    const send = async (one, body) => {
      // The description has plain JSON where GitHub has a name of its own for it.
      const accept = one.accept.replace("vnd.github+json", "json");
      const headers = { authorization: "Bearer x", accept, "x-github-api-version": one["x-github-api-version"] };
      if (body) headers["content-type"] = one["content-type"];
      const url = address + one.path + (one.query ? "?" + one.query : "");
      const answer = await fetch(url, { method: one.method, headers, body: body && JSON.stringify(body) });
      return [answer.status, await answer.text()];
    };
    for (const one of asked) {
      const [status, said] = await send(one, one.body);
      if (status >= 300) complain(one.method, one.path, status, said.slice(0, 1000));
      else console.log("fits:", one.method, one.path);
      if (!one.body) continue;
      for (const body of spoiled(one.body)) {
        const [status] = await send(one, body);
        if (status !== 422 && status !== 400) complain(one.method, one.path, "takes anything:", status, JSON.stringify(body).slice(0, 300));
      }
    }
  } finally {
    prism.removeAllListeners("exit");
    prism.kill();
  }
}

function graphql(asked) {
  const schema = buildSchema(fs.readFileSync(SCHEMA, "utf8"), { assumeValidSDL: true });
  const faults = (query, variables) => {
    const document = parse(query);
    const found = validate(schema, document);
    if (found.length) return found.map((error) => error.message);
    const declared = document.definitions[0].variableDefinitions;
    return (getVariableValues(schema, declared, variables).errors ?? []).map((error) => error.message);
  };
  for (const { body: { query, variables } } of asked) {
    const name = query.match(/^\w+ \w+/)[0];
    const found = faults(query, variables);
    if (found.length) complain(name, found);
    else console.log("fits:", name);
    const others = [[query.replace(/\b(pageInfo|id)\b/, "nobodyKnowsThis"), variables]];
    for (const key of Object.keys(variables).filter((key) => key !== "after")) {
      others.push([query, { ...variables, [key]: null }], [query, { ...variables, [key]: { wrong: true } }]);
    }
    for (const [query, variables] of others) {
      if (!faults(query, variables).length) complain(name, "takes anything", JSON.stringify(variables));
    }
  }
}

(async () => {
  const asked = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
  const queries = asked.filter((one) => one.path.endsWith("/graphql"));
  const others = asked.filter((one) => !one.path.endsWith("/graphql"));
  if (queries.length < 5 || others.length < 9) complain("there are fewer requests than the program can send");
  await rest(others.map((one) => ({ ...one, path: one.path.slice(ROOT.length) })));
  graphql(queries);
  process.exit(wrong);
})();
