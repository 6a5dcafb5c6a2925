"""Taffrail with the Python package `mcp`, 1.x, which speaks 2025-11-25.

Over stdio a session can ask for events and can be asked. Over HTTP the server keeps no sessions, so there events and
questions go other ways. What each step is for is in ../README.md.
"""

import asyncio
import uuid
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from pydantic import AnyUrl
from report import *


@asynccontextmanager
async def client(**options):
    """An open connection."""
    if URL:
        http = create_mcp_http_client(headers=HEADERS)
        transport = streamable_http_client(f"{URL}/mcp", http_client=http)
    else:
        transport = stdio_client(StdioServerParameters(command=COMMAND, args=ARGUMENTS))
    async with transport as (read, write, *_), ClientSession(read, write, **options) as session:
        session.hello = await session.initialize()
        yield session


async def call(taffrail, tool, arguments, **options):
    """The snapshot, table or page that a tool answers with."""
    result = await taffrail.call_tool(tool, arguments, **options)
    if result.isError:
        raise AssertionError(f"{tool} {arguments}: {result.content[0].text}")
    return result.structuredContent or result.content[0].text


async def all_records(taffrail, run, cursor=0):
    """Reads on from a cursor to the end of the run."""
    records = []
    while True:
        page = await call(
            taffrail, "run_logs", {"run": run, "cursor": cursor, "limit": 7, "format": "json", "wait_s": 20}
        )
        records += page["records"]
        cursor = page["next"]
        if page["done"]:
            return records


async def connect():
    async with client() as taffrail:
        expect("revision", taffrail.hello.protocolVersion, "2025-11-25")
        tools = (await taffrail.list_tools()).tools
        expect("tools", [tool.name for tool in tools], TOOLS)
        expect("tools without a title", [tool.name for tool in tools if not tool.title], [])
        return f"{taffrail.hello.protocolVersion}, {len(tools)} tools"


class Watched:
    """A run that was waited for, with all that came meanwhile."""

    events: list[types.LoggingMessageNotificationParams]
    progress: list[float]
    snapshot: dict[str, Any]


async def events(watched):
    watched.events, watched.progress = [], []

    async def on_event(event):
        watched.events.append(event)

    async def on_progress(progress, total, message):
        watched.progress.append(progress)

    async with client(logging_callback=on_event) as taffrail:
        if not URL:
            await taffrail.set_logging_level("debug")
        watched.snapshot = await call(taffrail, "run", {"playbook": "chatty"}, progress_callback=on_progress)
        expect("status", watched.snapshot["status"], "done")
        if URL:
            expect("events", watched.events, [])
            raise Cannot("without a session nothing remembers the level that `logging/setLevel` sets")
        seqs = [event.meta.model_extra["io.taffrail/seq"] for event in watched.events]
        expect_dense("events", seqs, watched.snapshot["head"])
        records = [event.data for event in watched.events]
        expect("lines", lines_of_records(records), LINES)
        expect("records", records, await all_records(taffrail, watched.snapshot["run"]))
        return f"{len(records)} records"


async def progress(watched):
    expect_increase("progress", watched.progress)
    return f"{len(watched.progress)} notifications up to {watched.progress[-1]:g}"


async def logs(watched):
    run, lines, cursor, pages = watched.snapshot["run"], [], 0, 0
    async with client() as taffrail:
        while cursor < watched.snapshot["head"]:
            page = await call(taffrail, "run_logs", {"run": run, "cursor": cursor, "limit": 7})
            lines += lines_of_text(page)
            cursor, pages = next_cursor(page), pages + 1
        expect("lines as text", lines, LINES)
        records = await all_records(taffrail, run)
        expect_dense("records", [record["seq"] for record in records], watched.snapshot["head"])
        expect("lines as records", lines_of_records(records), LINES)
        return f"{pages} pages"


async def approve():
    asked = []

    async def answer(context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": "approve"})

    async with client(elicitation_callback=answer) as taffrail:
        snapshot = await call(taffrail, "run", {"playbook": "gate"})
        if URL:
            expect("questions", asked, [])
            expect("status", snapshot["status"], "suspended")
            await decide(snapshot)
            snapshot = await call(taffrail, "resume", {"run": snapshot["run"]})
        else:
            expect("questions", len(asked), 1)
        expect("status", snapshot["status"], "done")
        records = await all_records(taffrail, snapshot["run"])
        expect("lines", lines_of_records(records), ["prepared", "shipped"])
        return "decided over HTTP" if URL else f"asked {asked[0].splitlines()[0]!r}"


async def decide(snapshot):
    """What a person would do with the page at `/` or `taffrail approve`."""
    approval = snapshot["approval"]
    body = {"decision": "approve", "hash": approval["hash"], "seen_seq": snapshot["head"]}
    url = f"{URL}/api/v1/runs/{snapshot['run']}/approvals/{approval['approval']}"
    async with httpx.AsyncClient(headers=HEADERS) as http:
        (await http.post(url, json=body)).raise_for_status()


async def decline():
    if URL:
        raise Cannot("nobody can be asked where the server cannot send requests")

    async def answer(context, params):
        return types.ElicitResult(action="decline")

    async with client(elicitation_callback=answer) as taffrail:
        snapshot = await call(taffrail, "run", {"playbook": "gate"})
        expect("status", snapshot["status"], "suspended")
        await call(taffrail, "run_cancel", {"run": snapshot["run"]})
        return "suspended"


async def abort():
    """Gives up a call: the run goes on, and a repeated call finds it."""
    arguments = {"playbook": "sleeper", "thread": str(uuid.uuid4()), "idempotency_key": str(uuid.uuid4())}
    async with client() as taffrail:
        try:
            await taffrail.call_tool("run", arguments, read_timeout_seconds=timedelta(seconds=1.5))
        except McpError as error:
            expect("error", error.error.code, httpx.codes.REQUEST_TIMEOUT)
        else:
            raise AssertionError("the call was to time out")
        runs = (await call(taffrail, "list_runs", {"thread": arguments["thread"]}))["runs"]
        expect("runs", [run["status"] for run in runs], ["running"])
        again = await call(taffrail, "run", {**arguments, "wait_s": 0})
        expect("the same run", again["run"], runs[0]["run"])
        await call(taffrail, "run_cancel", {"run": again["run"]})
        # This package does not say that it gave up, so the first call is answered now. When it ends while an answer comes,
        # its stdio transport fails.
        await call(taffrail, "run_status", {"run": again["run"]})
        return "still running"


async def cancel():
    async with client() as taffrail:
        snapshot = await call(taffrail, "run", {"playbook": "sleeper", "wait_s": 0})
        snapshot = await call(taffrail, "run_cancel", {"run": snapshot["run"], "reason": "enough"})
        expect("status", snapshot["status"], "cancelled")
        records = await all_records(taffrail, snapshot["run"])
        expect("last record", (records[-1]["type"], records[-1]["status"]), ("run-finished", "cancelled"))
        return "cancelled"


async def reconnect():
    with Hold() as hold:
        return await reconnect_in_the_middle(hold)


async def reconnect_in_the_middle(hold):
    async with client() as taffrail:
        run = (await call(taffrail, "run", {"playbook": "chatty", "inputs": {"hold": str(hold)}, "wait_s": 0}))["run"]
        records, cursor = [], 0
        while len(lines_of_records(records)) < 25:
            page = await call(
                taffrail, "run_logs", {"run": run, "cursor": cursor, "limit": 5, "format": "json", "wait_s": 5}
            )
            records += page["records"]
            cursor = page["next"]
    async with client() as taffrail:
        hold.release()
        if not URL:
            # The run's server ended with the connection. The state it was in begins again.
            snapshot = await call(taffrail, "run_status", {"run": run, "wait_s": 10})
            expect("status", snapshot["status"], "interrupted")
            await call(taffrail, "resume", {"run": run, "wait_s": 0})
        records += await all_records(taffrail, run, cursor)
        expect_dense("records", [record["seq"] for record in records], records[-1]["seq"])
        expect("status", records[-1]["status"], "done")
        expect_last_lines(records)
        if URL:
            expect("lines", lines_of_records(records), LINES)
        return f"went on from {cursor} to {records[-1]['seq']}"


async def tasks():
    raise Cannot("tasks of runs are an extension of 2026-07-28; this package has the older, other shape")


async def resources(watched):
    run = watched.snapshot["run"]
    async with client() as taffrail:
        listed = (await taffrail.list_resources()).resources
        expect("listed", f"taffrail://runs/{run}" in [str(resource.uri) for resource in listed], True)
        templates = (await taffrail.list_resource_templates()).resourceTemplates
        expect("templates", [template.uriTemplate for template in templates], ["taffrail://runs/{run}"])
        read = await taffrail.read_resource(AnyUrl(f"taffrail://runs/{run}"))
        snapshot = json.loads(read.contents[0].text)
        expect("snapshot", (snapshot["run"], snapshot["status"]), (run, "done"))
        return f"{len(listed)} resources"


async def prompts(watched):
    run = watched.snapshot["run"]
    async with client() as taffrail:
        names = [prompt.name for prompt in (await taffrail.list_prompts()).prompts]
        expect("prompts that are missing", {"explain-failure", "watch-run"} - set(names), set())
        prompt = await taffrail.get_prompt("watch-run", {"run": run})
        expect("names the run", run in prompt.messages[0].content.text, True)
        reference = types.PromptReference(type="ref/prompt", name="watch-run")
        completed = await taffrail.complete(reference, {"name": "run", "value": run[:-4]})
        expect("completed", run in completed.completion.values, True)
        return ", ".join(names)


async def main():
    report, watched = Report(), Watched()
    await report.step("connect", connect)
    await report.step("events", events, watched)
    await report.step("progress", progress, watched)
    await report.step("logs", logs, watched)
    await report.step("approve", approve)
    await report.step("decline", decline)
    await report.step("abort", abort)
    await report.step("cancel", cancel)
    await report.step("reconnect", reconnect)
    await report.step("tasks", tasks)
    await report.step("resources", resources, watched)
    await report.step("prompts", prompts, watched)
    report.end()


asyncio.run(main())
