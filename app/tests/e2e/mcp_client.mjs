// The official TypeScript client against `archeflow mcp`, in one of its modes: it lists, has a change reviewed, starts a run
// and answers as a person would. Prints what it got as one JSON object. Arguments: folder with the package, mode, program.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [, , folder, mode, program] = process.argv;
const require = createRequire(`${folder}/`);
const load = name => import(pathToFileURL(require.resolve(name)).href);
const { Client } = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');

const modes = { legacy: 'legacy', auto: 'auto', pinned: { pin: '2026-07-28' } };
const client = new Client(
  { name: 'official', version: '1' },
  { capabilities: { elicitation: {} }, versionNegotiation: { mode: modes[mode] } },
);
const asked = [];
client.setRequestHandler('elicitation/create', request => {
  asked.push(request.params.message);
  const choice = request.params.requestedSchema.properties.choice.enum.find(label => /merge|land/i.test(label));
  return { action: 'accept', content: { choice, sure: true } };
});
await client.connect(new StdioClientTransport({ command: program, args: ['mcp'], env: process.env, stderr: 'ignore' }));

const progress = [];
const call = async (name, args) => {
  const result = await client.callTool({ name, arguments: args }, { onprogress: one => progress.push(one.message) });
  return result.structuredContent;
};
const ended = async result => {
  while (result.status === 'working') {
    result = await call('wait', { run_id: result.run_id });
  }
  return result;
};
const got = { version: client.getNegotiatedProtocolVersion(), tools: (await client.listTools()).tools.map(tool => tool.name) };
got.prompts = (await client.listPrompts()).prompts.map(prompt => prompt.name);
got.resources = (await client.listResources()).resources.map(resource => resource.uri);
got.review = await ended(await call('review', {}));
const report = await client.readResource({ uri: `archeflow://run/${got.review.run_id}/report` });
got.report = report.contents[0].text.length;
try {
  await call('merge', {});
} catch (error) {
  got.unknown = error.message;
}
got.run = await ended(await call('run', { task: 'Add a line', budget: 5 }));
got.decided = await call('decide', { run_id: got.run.run_id });
got.end = await ended(await call('wait', { run_id: got.run.run_id }));
got.asked = asked.length;
got.progress = progress.length;
await client.close();
console.log(JSON.stringify(got));
