// Taffrail with the MCP Inspector's `mcpdo`, which connects once and then runs one command after the other.
//
// Its daemon is private to this script. What each step is for is in ../README.md.

import { execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { promisify } from "node:util";
import * as report from "./report.mjs";

const { LINES, TOOLS, URL_OF_SERVER, expect, linesOfRecords } = report;
const run = promisify(execFile);

const clients = path.dirname(createRequire(import.meta.url).resolve("@modelcontextprotocol/inspector/package.json"));
const MCPDO = path.join(clients, "clients/mcpdo/build/mcp-bin.js");
const CLI = path.join(clients, "clients/launcher/build/index.js");

// Where the server is, as hosts write it down.
const CATALOG = path.join(process.env.HOME, "mcp.json");
const server = URL_OF_SERVER
  ? { type: "streamable-http", url: `${URL_OF_SERVER}/mcp`, headers: report.HEADERS }
  : report.SERVER;
writeFileSync(CATALOG, JSON.stringify({ mcpServers: { taffrail: server } }));

// The daemon's folder and token.
const { stdout: exports } = await run(process.execPath, [MCPDO, "private"]);
for (const [, name, value] of exports.matchAll(/^export (\w+)='(.*)'$/gm)) process.env[name] = value;
process.env.MCP_INSPECTOR_SECRET_STORE = "memory";

/** What a command answers with. */
async function mcpdo(...args) {
  try {
    const { stdout } = await run(process.execPath, [MCPDO, "--format", "json", ...args], { maxBuffer: 1 << 26 });
    return stdout.trim() === "" ? undefined : JSON.parse(stdout);
  } catch (error) {
    throw new Error(`mcpdo ${args.join(" ")}: ${error.stderr ?? error.message}`);
  }
}

/** A connection, which takes commands. */
async function connect(era) {
  const name = `${era}-${randomUUID().slice(0, 8)}`;
  const args = ["--server", "taffrail", "--connection", name, "--config", CATALOG, "--era", era];
  expect("era", (await mcpdo("connect", ...args)).protocolEra, era);
  const command = (...args) => mcpdo("--connection", name, ...args);
  return Object.assign(command, { connection: name });
}

/** The snapshot, table or page that a tool answers with. */
async function call(command, tool, args) {
  const answer = await command("tools/call", tool, "--tool-args-json", JSON.stringify(args));
  if (answer.isError) throw new Error(`${tool} ${JSON.stringify(args)}: ${answer.content[0].text}`);
  return answer.structuredContent ?? answer.content?.[0].text ?? answer;
}

/** Reads on from a cursor to the end of the run. */
async function allRecords(command, run, cursor = 0) {
  const records = [];
  for (;;) {
    const page = await call(command, "run_logs", { run, cursor, limit: 60, max_bytes: 40000, format: "json", wait_s: 20 });
    records.push(...page.records);
    if (page.done) return records;
    cursor = page.next;
  }
}

/** Ends the daemon, with all its connections. */
const stop = () => run(process.execPath, [MCPDO, "daemon", "stop"]).catch(() => {});

// The daemon would outlive this script when that had to be ended.
setTimeout(() => stop().then(() => process.exit(1)), 100_000).unref();

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// In the modern era the Inspector says that calls may become tasks, and waits for their end: what starts a run and does
// something else meanwhile has to be of the legacy era.
let modern;
let legacy;

// A run that was waited for.
let watched;

await report.step("connect", async () => {
  [modern, legacy] = await Promise.all([connect("modern"), connect("legacy")]);
  const { tools } = await modern("tools/list");
  expect("tools", tools.map((tool) => tool.name), TOOLS);
  expect("tools without a title", tools.filter((tool) => !tool.title).map((tool) => tool.name), []);
  // Judges how well the schemas travel. It fails on errors; warnings are about dialects that are no JSON Schema.
  const args = ["--cli", "--config", CATALOG, "--server", "taffrail", "--method", "tools/list", "--strict", "--format", "json"];
  const { stdout, stderr } = await run(process.execPath, [CLI, ...args], { maxBuffer: 1 << 26 });
  expect("tools", JSON.parse(stdout).result.tools.length, TOOLS.length);
  return `${TOOLS.length} tools, ${[...stderr.matchAll(/^Warning: tool/gm)].length} remarks on schemas`;
});

/** What `logging/tail` prints until it is ended: JSON texts, one after the other. */
function tail(connection) {
  const args = [MCPDO, "--format", "json", "--connection", connection, "logging/tail"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let printed = "";
  child.stdout.on("data", (data) => (printed += data));
  return {
    printed: () => printed,
    events: () => printed.split(/(?<=^\})\n/m).filter((text) => text.trim()).map((text) => JSON.parse(text).message.params),
    end: () => child.kill(),
  };
}

await report.step("events", async () => {
  if (URL_OF_SERVER) {
    watched = await call(legacy, "run", { playbook: "chatty" });
    expect("status", watched.status, "done");
    throw new report.Cannot("a call that becomes a task has no events, and without a session nothing remembers a level");
  }
  await legacy("logging/setLevel", "debug");
  const tailing = tail(legacy.connection);
  try {
    // It does not say when it is there; that it shows another run's events does.
    for (let i = 0; i < 30 && tailing.printed() === ""; i++) await call(legacy, "run", { playbook: "nothing" });
    watched = await call(legacy, "run", { playbook: "chatty" });
    expect("status", watched.status, "done");
    for (let i = 0; i < 50 && !tailing.printed().includes(`"seq": ${watched.head},`); i++) await pause(100);
    const events = tailing.events().filter((event) => event.data.run === watched.run);
    report.expectDense("events", events.map((event) => event._meta["io.taffrail/seq"]), watched.head);
    expect("records", events.map((event) => event.data), await allRecords(legacy, watched.run));
    return `${events.length} records`;
  } finally {
    tailing.end();
  }
});

await report.step("progress", async () => {
  throw new report.Cannot("its commands do not show progress");
});

await report.step("logs", async () => {
  const { run, head } = watched;
  const lines = [];
  let pages = 0;
  for (let cursor = 0; cursor < head; pages++) {
    const page = await call(modern, "run_logs", { run, cursor, limit: 25 });
    lines.push(...report.linesOfText(page));
    cursor = report.nextCursor(page);
  }
  expect("lines as text", lines, LINES);
  const records = await allRecords(modern, run);
  report.expectDense("records", records.map((record) => record.seq), head);
  expect("lines as records", linesOfRecords(records), LINES);
  return `${pages} pages`;
});

await report.step("approve", async () => {
  const { elicitationPending } = await call(modern, "run", { playbook: "gate" });
  const { elicitationId, message } = elicitationPending;
  const { structuredContent } = await modern("elicitation/respond", elicitationId, "decision:=approve");
  expect("status", structuredContent.status, "done");
  expect("lines", linesOfRecords(await allRecords(modern, structuredContent.run)), ["prepared", "shipped"]);
  return `asked '${message.split("\n")[0]}'`;
});

await report.step("decline", async () => {
  if (URL_OF_SERVER) throw new report.Cannot("nobody can be asked where the server cannot send requests");
  const { elicitationPending } = await call(legacy, "run", { playbook: "gate" });
  const { structuredContent } = await legacy("elicitation/respond", elicitationPending.elicitationId, "--decline");
  expect("status", structuredContent.status, "suspended");
  return "suspended";
});

/** The only run of a thread, as soon as there is one. */
async function onlyRun(thread) {
  for (;;) {
    const { runs } = await call(legacy, "list_runs", { thread });
    if (runs.length > 0) {
      expect("runs", runs.length, 1);
      return runs[0].run;
    }
  }
}

// Ends the client in the middle of a call.
await report.step("abort", async () => {
  const thread = randomUUID();
  const words = ["--cli", "--config", CATALOG, "--server", "taffrail", "--method", "tools/call", "--tool-name", "run"];
  const client = spawn(process.execPath, [CLI, ...words, "--tool-arg", "playbook=sleeper", `thread=${thread}`]);
  const run = await onlyRun(thread);
  const ended = new Promise((resolve) => client.on("exit", resolve));
  client.kill();
  await ended;
  // Over stdio its server ends with it, and so the run is interrupted, to be resumed.
  const wanted = URL_OF_SERVER ? "running" : "interrupted";
  const { status } = await call(legacy, "run_status", { run, wait_s: URL_OF_SERVER ? 0 : 10 });
  expect("status", status, wanted);
  await call(legacy, "run_cancel", { run });
  return wanted;
});

await report.step("cancel", async () => {
  const { run } = await call(legacy, "run", { playbook: "sleeper", wait_s: 0 });
  const { status } = await call(legacy, "run_cancel", { run, reason: "enough" });
  expect("status", status, "cancelled");
  const last = (await allRecords(legacy, run)).at(-1);
  expect("last record", [last.type, last.status], ["run-finished", "cancelled"]);
  return "cancelled";
});

await report.step("reconnect", async () => {
  const hold = new report.Hold();
  const { run } = await call(legacy, "run", { playbook: "chatty", inputs: { hold: hold.path }, wait_s: 0 });
  const records = [];
  let cursor = 0;
  while (linesOfRecords(records).length < 10) {
    const page = await call(legacy, "run_logs", { run, cursor, limit: 10, format: "json", wait_s: 5 });
    records.push(...page.records);
    cursor = page.next;
  }
  await mcpdo("disconnect", legacy.connection);
  legacy = await connect("legacy");
  hold.release();
  if (!URL_OF_SERVER) {
    // The run's server ended with the connection. The state it was in begins again.
    const { status } = await call(legacy, "run_status", { run, wait_s: 10 });
    expect("status", status, "interrupted");
    await call(legacy, "resume", { run, wait_s: 0 });
  }
  records.push(...(await allRecords(legacy, run, cursor)));
  const last = records.at(-1);
  report.expectDense("records", records.map((record) => record.seq), last.seq);
  expect("status", last.status, "done");
  report.expectLastLines(records);
  if (URL_OF_SERVER) expect("lines", linesOfRecords(records), LINES);
  return `went on from ${cursor} to ${last.seq}`;
});

await report.step("tasks", async () => {
  const thread = randomUUID();
  const called = call(modern, "run", { playbook: "sleeper", thread }).catch((error) => error.message);
  const run = await onlyRun(thread);
  // A connection of the Inspector does one thing after the other; any other connection knows the task, too.
  const other = await connect("modern");
  const { task } = await other("tasks/get", run);
  expect("task", [task.taskId, task.status], [run, "working"]);
  await other("tasks/cancel", run);
  const said = await called;
  const { status } = await call(legacy, "run_status", { run, wait_s: 10 });
  expect("status", status, "cancelled");
  expect("said", /was cancelled/.test(said), true);
  return "looked at and cancelled by another connection";
});

await report.step("resources", async () => {
  const uri = `taffrail://runs/${watched.run}`;
  const { resources } = await modern("resources/list");
  expect("listed", resources.some((resource) => resource.uri === uri), true);
  const { resourceTemplates } = await modern("resources/templates/list");
  expect("templates", resourceTemplates.map((template) => template.uriTemplate), ["taffrail://runs/{run}"]);
  const { contents } = await modern("resources/read", uri);
  const snapshot = JSON.parse(contents[0].text);
  expect("snapshot", [snapshot.run, snapshot.status], [watched.run, "done"]);
  return `${resources.length} resources`;
});

await report.step("prompts", async () => {
  const { run } = watched;
  const names = (await modern("prompts/list")).prompts.map((prompt) => prompt.name);
  expect("prompts that are missing", ["explain-failure", "watch-run"].filter((name) => !names.includes(name)), []);
  const { messages } = await modern("prompts/get", "watch-run", "--prompt-args", `run=${run}`);
  expect("names the run", messages[0].content.text.includes(run), true);
  return names.join(", ");
});

await stop();
report.end();
