// Taffrail with the package `@modelcontextprotocol/sdk`, 1.x, which speaks 2025-11-25.
//
// Over stdio a session can ask for events and can be asked. Over HTTP the server keeps no sessions, so there events and
// questions go other ways. What each step is for is in ../README.md.

import { randomUUID } from "node:crypto";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, ErrorCode, LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import * as report from "./report.mjs";

const { LINES, TOOLS, URL_OF_SERVER, expect, linesOfRecords } = report;

// Over stdio this package may forget a call's token before it has read the last progress that came before the result.
const LATE_PROGRESS = /^Received a progress notification for an unknown token/;
const LATE_ANSWER = /^Received a response for an unknown message ID/;

/** Does `work` with an open connection; `prepare` sets it up before, and errors that are `expected` do not count. */
async function connected(work, { capabilities = {}, prepare = () => {}, expected = LATE_PROGRESS } = {}) {
  const client = new Client({ name: "example", version: "1.0.0" }, { capabilities });
  const errors = [];
  client.onerror = ({ message }) => {
    if (!expected.test(message)) errors.push(message);
  };
  prepare(client);
  const transport = URL_OF_SERVER
    ? new StreamableHTTPClientTransport(new URL(`${URL_OF_SERVER}/mcp`), { requestInit: { headers: report.HEADERS } })
    : new StdioClientTransport(report.SERVER);
  await client.connect(transport);
  let result;
  try {
    result = await work(client, transport);
    expect("errors of the connection", errors, []);
  } finally {
    await client.close();
  }
  return result;
}

/** The snapshot, table or page that a tool answers with. */
async function call(client, name, args, options = {}) {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  if (result.isError) throw new Error(`${name} ${JSON.stringify(args)}: ${result.content[0].text}`);
  return result.structuredContent ?? result.content[0].text;
}

/** Reads on from a cursor to the end of the run. */
async function allRecords(client, run, cursor = 0) {
  const records = [];
  for (;;) {
    const page = await call(client, "run_logs", { run, cursor, limit: 7, format: "json", wait_s: 20 });
    records.push(...page.records);
    if (page.done) return records;
    cursor = page.next;
  }
}

// A run that was waited for, with all that came meanwhile.
const watched = { events: [], progress: [], snapshot: undefined };

await report.step("connect", () =>
  connected(async (client) => {
    const warnings = [];
    const warn = console.warn;
    console.warn = (...words) => warnings.push(words.join(" "));
    const { tools } = await client.listTools();
    console.warn = warn;
    expect("tools", tools.map((tool) => tool.name), TOOLS);
    expect("tools without a title", tools.filter((tool) => !tool.title).map((tool) => tool.name), []);
    expect("warnings", warnings, []);
    return `2025-11-25, ${tools.length} tools`;
  }),
);

await report.step("events", () => {
  const prepare = (client) =>
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void watched.events.push(params));
  return connected(
    async (client) => {
      if (!URL_OF_SERVER) await client.setLoggingLevel("debug");
      const onprogress = ({ progress }) => watched.progress.push(progress);
      watched.snapshot = await call(client, "run", { playbook: "chatty" }, { onprogress });
      expect("status", watched.snapshot.status, "done");
      if (URL_OF_SERVER) {
        expect("events", watched.events, []);
        throw new report.Cannot("without a session nothing remembers the level that `logging/setLevel` sets");
      }
      report.expectDense("events", watched.events.map((event) => event._meta["io.taffrail/seq"]), watched.snapshot.head);
      const records = watched.events.map((event) => event.data);
      expect("lines", linesOfRecords(records), LINES);
      expect("records", records, await allRecords(client, watched.snapshot.run));
      return `${records.length} records`;
    },
    { prepare },
  );
});

await report.step("progress", async () => {
  report.expectIncrease("progress", watched.progress);
  return `${watched.progress.length} notifications up to ${watched.progress.at(-1)}`;
});

await report.step("logs", () =>
  connected(async (client) => {
    const { run, head } = watched.snapshot;
    const lines = [];
    let pages = 0;
    for (let cursor = 0; cursor < head; pages++) {
      const page = await call(client, "run_logs", { run, cursor, limit: 7 });
      lines.push(...report.linesOfText(page));
      cursor = report.nextCursor(page);
    }
    expect("lines as text", lines, LINES);
    const records = await allRecords(client, run);
    report.expectDense("records", records.map((record) => record.seq), head);
    expect("lines as records", linesOfRecords(records), LINES);
    return `${pages} pages`;
  }),
);

/** A client that can ask a person, who says this. */
const person = (answer) => ({
  capabilities: { elicitation: { form: {} } },
  prepare: (client) => client.setRequestHandler(ElicitRequestSchema, async ({ params }) => answer(params)),
});

/** What a person would do with the page at `/` or `taffrail approve`. */
async function decide({ run, head, approval: { approval, hash } }) {
  const headers = { ...report.HEADERS, "Content-Type": "application/json" };
  const body = JSON.stringify({ decision: "approve", hash, seen_seq: head });
  const url = `${URL_OF_SERVER}/api/v1/runs/${run}/approvals/${approval}`;
  const answer = await fetch(url, { method: "POST", headers, body });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
}

await report.step("approve", () => {
  const asked = [];
  const answer = ({ message }) => {
    asked.push(message);
    return { action: "accept", content: { decision: "approve" } };
  };
  return connected(async (client) => {
    let snapshot = await call(client, "run", { playbook: "gate" });
    if (URL_OF_SERVER) {
      expect("questions", asked, []);
      expect("status", snapshot.status, "suspended");
      await decide(snapshot);
      snapshot = await call(client, "resume", { run: snapshot.run });
    } else {
      expect("questions", asked.length, 1);
    }
    expect("status", snapshot.status, "done");
    expect("lines", linesOfRecords(await allRecords(client, snapshot.run)), ["prepared", "shipped"]);
    return URL_OF_SERVER ? "decided over HTTP" : `asked '${asked[0].split("\n")[0]}'`;
  }, person(answer));
});

await report.step("decline", () => {
  if (URL_OF_SERVER) throw new report.Cannot("nobody can be asked where the server cannot send requests");
  return connected(async (client) => {
    const snapshot = await call(client, "run", { playbook: "gate" });
    expect("status", snapshot.status, "suspended");
    await call(client, "run_cancel", { run: snapshot.run });
    return "suspended";
  }, person(() => ({ action: "decline" })));
});

// Gives up a call: the run goes on, and a repeated call finds it.
await report.step("abort", () =>
  connected(async (client) => {
    const args = { playbook: "sleeper", thread: randomUUID(), idempotency_key: randomUUID() };
    const error = await client.callTool({ name: "run", arguments: args }, undefined, { timeout: 1500 }).catch((error) => error);
    expect("error", error.code, ErrorCode.RequestTimeout);
    const { runs } = await call(client, "list_runs", { thread: args.thread });
    expect("runs", runs.map((run) => run.status), ["running"]);
    const again = await call(client, "run", { ...args, wait_s: 0 });
    expect("the same run", again.run, runs[0].run);
    await call(client, "run_cancel", { run: again.run });
    return "still running";
    // The first call is answered when its run ends, although nobody waits for it any more.
  }, { expected: LATE_ANSWER }),
);

await report.step("cancel", () =>
  connected(async (client) => {
    const { run } = await call(client, "run", { playbook: "sleeper", wait_s: 0 });
    const snapshot = await call(client, "run_cancel", { run, reason: "enough" });
    expect("status", snapshot.status, "cancelled");
    const { type, status } = (await allRecords(client, run)).at(-1);
    expect("last record", [type, status], ["run-finished", "cancelled"]);
    return "cancelled";
  }),
);

await report.step("reconnect", async () => {
  const hold = new report.Hold();
  const records = [];
  let cursor = 0;
  const run = await connected(async (client) => {
    const { run } = await call(client, "run", { playbook: "chatty", inputs: { hold: hold.path }, wait_s: 0 });
    while (linesOfRecords(records).length < 25) {
      const page = await call(client, "run_logs", { run, cursor, limit: 5, format: "json", wait_s: 5 });
      records.push(...page.records);
      cursor = page.next;
    }
    return run;
  });
  return connected(async (client) => {
    hold.release();
    if (!URL_OF_SERVER) {
      // The run's server ended with the connection. The state it was in begins again.
      const { status } = await call(client, "run_status", { run, wait_s: 10 });
      expect("status", status, "interrupted");
      await call(client, "resume", { run, wait_s: 0 });
    }
    records.push(...(await allRecords(client, run, cursor)));
    const last = records.at(-1);
    report.expectDense("records", records.map((record) => record.seq), last.seq);
    expect("status", last.status, "done");
    report.expectLastLines(records);
    if (URL_OF_SERVER) expect("lines", linesOfRecords(records), LINES);
    return `went on from ${cursor} to ${last.seq}`;
  });
});

await report.step("tasks", async () => {
  throw new report.Cannot("tasks of runs are an extension of 2026-07-28; this package has the older, other shape");
});

await report.step("resources", () =>
  connected(async (client) => {
    const uri = `taffrail://runs/${watched.snapshot.run}`;
    const { resources } = await client.listResources();
    expect("listed", resources.some((resource) => resource.uri === uri), true);
    const { resourceTemplates } = await client.listResourceTemplates();
    expect("templates", resourceTemplates.map((template) => template.uriTemplate), ["taffrail://runs/{run}"]);
    const { contents } = await client.readResource({ uri });
    const snapshot = JSON.parse(contents[0].text);
    expect("snapshot", [snapshot.run, snapshot.status], [watched.snapshot.run, "done"]);
    return `${resources.length} resources`;
  }),
);

await report.step("prompts", () =>
  connected(async (client) => {
    const { run } = watched.snapshot;
    const names = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
    expect("prompts that are missing", ["explain-failure", "watch-run"].filter((name) => !names.includes(name)), []);
    const { messages } = await client.getPrompt({ name: "watch-run", arguments: { run } });
    expect("names the run", messages[0].content.text.includes(run), true);
    const argument = { name: "run", value: run.slice(0, -4) };
    const { completion } = await client.complete({ ref: { type: "ref/prompt", name: "watch-run" }, argument });
    expect("completed", completion.values.includes(run), true);
    return names.join(", ");
  }),
);

report.end();
