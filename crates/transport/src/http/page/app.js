// Lists runs and follows one. A pure client of the HTTP surface: everything here can be had with curl.
"use strict";

const at = (id) => document.getElementById(id);
const LINES = 2000; // The page keeps so many lines of a log; the server has them all.
let stream = null;
let refresh = null;

function say(text) {
  at("state").textContent = text;
}

function signedOut() {
  clearTimeout(refresh);
  stream?.close();
  at("sign-in").hidden = false;
  at("runs").hidden = at("one").hidden = at("out").hidden = true;
  say("Not signed in.");
}

async function list() {
  clearTimeout(refresh);
  let answer;
  try {
    answer = await fetch("api/v1/runs?limit=50", { headers: { accept: "application/json" } });
  } catch {
    say("The server does not answer; trying again.");
    refresh = setTimeout(list, 3000);
    return;
  }
  if (answer.status === 401) return signedOut();
  if (!answer.ok) {
    say((await answer.json()).detail ?? `The server answers ${answer.status}.`);
    refresh = setTimeout(list, 5000);
    return;
  }
  const { runs } = await answer.json();
  at("sign-in").hidden = true;
  at("runs").hidden = at("out").hidden = false;
  at("none").hidden = runs.length > 0;
  at("list").replaceChildren(...runs.map(row));
  say(`${runs.length} run${runs.length === 1 ? "" : "s"}.`);
  refresh = setTimeout(list, 5000);
}

function row(run) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = run.run;
  button.addEventListener("click", () => follow(run.run));
  const cells = [button, run.playbook, run.status + (run.error ? `: ${run.error}` : ""), run.state ?? "", new Date(run.started_at).toLocaleString()];
  const line = document.createElement("tr");
  line.append(...cells.map((content) => {
    const cell = document.createElement("td");
    cell.append(content);
    return cell;
  }));
  return line;
}

function follow(run) {
  stream?.close();
  const log = at("log");
  log.replaceChildren();
  at("one").hidden = false;
  at("one-title").textContent = run;
  stream = new EventSource(`api/v1/runs/${encodeURIComponent(run)}/stream`);
  stream.onmessage = (event) => show(log, JSON.parse(event.data));
  stream.addEventListener("gap", (event) => {
    const gap = JSON.parse(event.data);
    add(log, `records ${gap.from} to ${gap.to} are gone (${gap.reason})`, "warning");
  });
  stream.addEventListener("end", (event) => {
    stream.close();
    const last = JSON.parse(event.data);
    add(log, `${last.status}${last.error ? `: ${last.error}` : ""}`, "other");
    list();
  });
  stream.onerror = () => {
    if (stream.readyState === EventSource.CLOSED) add(log, "the stream has ended", "other");
  };
}

function show(log, record) {
  if (record.type === "log") return add(log, record.text ?? `(${record.b64.length} characters of base64)`, record.stream);
  if (record.type === "message") return add(log, record.text, "");
  const about = [record.state, record.status, record.policy, record.message, record.text].filter((word) => typeof word === "string");
  add(log, `${record.seq} ${record.type} ${about.join(" ")}`, record.type === "clipped" ? "warning" : "other");
}

function add(log, text, kind) {
  const below = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  const line = document.createElement("span");
  line.className = kind;
  line.textContent = `${text}\n`;
  log.append(line);
  while (log.childElementCount > LINES) log.firstElementChild.remove();
  if (below) log.scrollTop = log.scrollHeight;
}

at("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const field = at("token");
  const answer = await fetch("login", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token: field.value }),
  });
  field.value = "";
  if (answer.ok) list();
  else say((await answer.json()).detail);
});

at("out").addEventListener("click", async () => {
  await fetch("logout", { method: "POST" });
  signedOut();
});

list();
