// What the scripts beside this file print and check. Nothing here knows a client.
//
// A script is started as `SCRIPT stdio` or `SCRIPT URL` and prints one JSON line a step: `{"step": …, "ok": …, "detail": …}`,
// where `ok` is null for what this client cannot do, and `detail` says why. It ends with 1 when a step failed.

import { deepStrictEqual } from "node:assert";
import { randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

// What the playbook `chatty` prints, and in which state.
const numbered = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => `line ${String(from + i).padStart(2, "0")}`);
export const STATES = { first: numbered(1, 20), second: numbered(21, 40), third: numbered(41, 60) };
export const LINES = Object.values(STATES).flat();

export const TOOLS = ["run", "resume", "run_status", "run_logs", "run_cancel", "list_runs", "list_playbooks", "check_playbook"];

const { TAFFRAIL = "taffrail", TAFFRAIL_DATA_DIR, TAFFRAIL_PLAYBOOKS, TAFFRAIL_TOKEN = "" } = process.env;

/** How to reach the server: `undefined` for stdio, where the client starts it. */
export const URL_OF_SERVER = process.argv[2] === "stdio" ? undefined : process.argv[2].replace(/\/$/, "");
export const HEADERS = { Authorization: `Bearer ${TAFFRAIL_TOKEN}` };
export const SERVER = { command: TAFFRAIL, args: ["mcp", "--data-dir", TAFFRAIL_DATA_DIR, "--playbooks", TAFFRAIL_PLAYBOOKS] };

/** Keeps a run of `chatty` in its second state until it is released. */
export class Hold {
  path = path.join(tmpdir(), `taffrail-${randomUUID()}`);

  release() {
    writeFileSync(this.path, "");
    process.once("exit", () => rmSync(this.path));
  }
}

/** This client cannot do it, and why. */
export class Cannot extends Error {}

let failed = false;

/** Does one step; what it returns is the detail. */
export async function step(name, work) {
  const start = performance.now();
  let ok = true;
  let detail;
  try {
    detail = await work();
  } catch (error) {
    ok = error instanceof Cannot ? null : false;
    detail = error.message.split("\n").slice(0, 12).join(" ");
    if (ok === false) {
      failed = true;
      console.error(error);
    }
  }
  const seconds = Math.round((performance.now() - start) / 100) / 10;
  console.log(JSON.stringify({ step: name, ok, detail, seconds }));
}

export function end() {
  process.exit(failed ? 1 : 0);
}

export function expect(what, got, wanted) {
  deepStrictEqual({ [what]: got }, { [what]: wanted });
}

/** Every record from 1 to `head`, once and in order. */
export function expectDense(what, seqs, head) {
  expect(what, seqs, Array.from({ length: head }, (_, i) => i + 1));
}

export function expectIncrease(what, values) {
  if (values.length === 0) throw new Error(`${what}: there is nothing`);
  values.forEach((value, i) => {
    if (i > 0 && !(values[i - 1] < value)) throw new Error(`${what}: ${value} came after ${values[i - 1]} in ${values}`);
  });
}

/** The lines of output in a page of `run_logs`, as text. */
export const linesOfText = (page) => [...page.matchAll(/^\d+ \w+ out\| (.*)$/gm)].map((match) => match[1]);

/** Where a page of `run_logs`, as text, goes on: its last line says it. */
export const nextCursor = (page) => Number(/\nnext cursor: (\d+)$/.exec(page)[1]);

/** The lines of output in records. */
export const linesOfRecords = (records) => records.filter((record) => record.type === "log").map((record) => record.text);

/** Each state printed all its lines after it began the last time: one that was interrupted begins anew. */
export function expectLastLines(records) {
  const printed = {};
  for (const record of records) {
    if (record.type === "state-start") printed[record.state] = [];
    if (record.type === "log") printed[record.state].push(record.text);
  }
  expect("lines by state", printed, STATES);
}
