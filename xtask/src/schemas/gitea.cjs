// Requests that the program sent to Gitea or Forgejo, held by TypeScript against the types that were made from the server's
// own description. Each is also written with something wrong in it, which has to be refused.
const fs = require("fs");
const ts = require("typescript");

const [library, make, file] = process.argv.slice(2);
const ROOT = "/api/v1";
// Newer than the library; the program asks the server itself whether it has them.
const NEWER = /^\/repos\/o\/r\/pulls\/comments\/\d+\/(un)?resolve$/;

let wrong = 0;
const complain = (...words) => { wrong = 1; console.error(...words); };

/// All requests of the library: method, path, and the name of the function with its group.
const types = fs.readFileSync(`node_modules/${library}/dist/index.d.ts`, "utf8");
const known = [];
let group = "";
let request = null;
for (const line of types.split("\n")) {
  const begins = line.match(/^    (\w+): \{$/);
  if (begins) group = begins[1];
  const described = line.match(/@request (\w+):(\S+)/);
  if (described) request = [described[1], described[2]];
  const named = line.match(/^        (\w+): \(/);
  if (named && request) { known.push([...request, `${group}.${named[1]}`]); request = null; }
}

function call(one, body) {
  const path = one.path.slice(ROOT.length);
  const fits = (name) => new RegExp("^" + name.replace(/\{[^}]+\}/g, "([^/]+)") + "$");
  const holes = (name) => name.split("{").length;
  const found = known.filter(([method, name]) => method === one.method && fits(name).test(path));
  const [, name, of] = found.sort((a, b) => holes(a[1]) - holes(b[1]))[0] ?? [];
  if (!name) return null;
  const value = (text) => (/^\d+$/.test(text) && text.length < 16 ? text : JSON.stringify(decodeURIComponent(text)));
  const parameters = path.match(fits(name)).slice(1).map(value);
  const query = [...new URLSearchParams(one.query)].map(([key, text]) => `${key}: ${value(text)}`);
  if (query.length) parameters.push(`{ ${query.join(", ")} }`);
  if (body) parameters.push(JSON.stringify(body));
  return `api.${of}(${parameters.join(", ")});`;
}

function faults(name, lines) {
  fs.writeFileSync(name, [`import { ${make} } from "${library}"; const api = ${make}("http://x", {});`, ...lines].join("\n"));
  const options = { noEmit: true, strict: true, skipLibCheck: true, moduleResolution: ts.ModuleResolutionKind.Bundler,
    module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, lib: ["lib.es2022.d.ts", "lib.dom.d.ts"], types: [] };
  const program = ts.createProgram([name], options);
  return ts.getPreEmitDiagnostics(program).map((found) => {
    const { line } = found.file ? found.file.getLineAndCharacterOfPosition(found.start) : { line: 0 };
    return [line, ts.flattenDiagnosticMessageText(found.messageText, " ").slice(0, 300)];
  });
}

const right = [];
const spoiled = [];
for (const one of JSON.parse(fs.readFileSync(file, "utf8")).filter((one) => one.path.startsWith(ROOT))) {
  const text = call(one, one.body);
  if (!text && NEWER.test(one.path.slice(ROOT.length))) { console.log(`not in ${library}:`, one.method, one.path); continue; }
  if (!text) { complain(library, "has no", one.method, one.path); continue; }
  right.push(text);
  if (!one.body) continue;
  spoiled.push(call(one, { ...one.body, nobodyKnowsThis: true }));
  for (const [name, value] of Object.entries(one.body)) {
    spoiled.push(call(one, { ...one.body, [name]: typeof value === "object" ? 7 : { wrong: true } }));
  }
}
if (right.length < 6) complain("there are fewer requests than the program can send");
for (const [line, why] of faults("right.ts", right)) complain(right[line - 1], why);
const refused = new Set(faults("spoiled.ts", spoiled).map(([line]) => line));
spoiled.forEach((text, at) => { if (!refused.has(at + 1)) complain(library, "takes anything:", text.slice(0, 300)); });
if (!wrong) right.forEach((text) => console.log("fits:", text.slice(0, 100)));
process.exit(wrong);
