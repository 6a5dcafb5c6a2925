"""Taffrail with `fastmcp-tasks`, the tasks (SEP-2663) of FastMCP's client.

It is a script of its own because the newest `fastmcp-tasks` goes with FastMCP 4.1, not with 4.2. What each step is for is
in ../README.md.
"""

import asyncio

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp_tasks import call_tool_task
from report import *


def client(**options):
    """A connection that is not open yet."""
    if URL:
        return Client(StreamableHttpTransport(f"{URL}/mcp", headers=HEADERS), **options)
    return Client(StdioTransport(COMMAND, ARGUMENTS, keep_alive=False), **options)


async def connect():
    async with client() as taffrail:
        expect("revision", taffrail.protocol_version, "2026-07-28")
        tools = await taffrail.list_tools()
        expect("tools", [tool.name for tool in tools], TOOLS)
        return f"{taffrail.protocol_version}, {len(tools)} tools"


async def tasks():
    async with client() as taffrail:
        task = await call_tool_task(taffrail, "run", {"playbook": "chatty"})
        statuses = {(await task.status()).status}
        result = await task.result()
        snapshot = result.structured_content
        expect("task id", task.task_id, snapshot["run"])
        expect("status", snapshot["status"], "done")
        expect("statuses on the way", statuses, {"working"})
        return "polled to its end"


async def approve():
    """A task that waits for a person is `input_required`, and answered by `tasks/update`."""
    asked = []

    async def answer(message, response_type, params, context):
        asked.append(message)
        return ElicitResult(action="accept", content={"decision": "approve"})

    async with client(elicitation_handler=answer) as taffrail:
        task = await call_tool_task(taffrail, "run", {"playbook": "gate"})
        snapshot = (await task.result()).structured_content
        expect("questions", len(asked), 1)
        expect("status", snapshot["status"], "done")
        return f"asked {asked[0].splitlines()[0]!r}"


async def decline():
    """A question that is declined decides nothing, and its person is not asked again."""
    asked = []

    async def answer(message, response_type, params, context):
        asked.append(message)
        return ElicitResult(action="decline")

    async with client(elicitation_handler=answer) as taffrail:
        task = await call_tool_task(taffrail, "run", {"playbook": "gate"})
        try:
            await asyncio.wait_for(task.result(), timeout=6)
        except asyncio.TimeoutError:
            pass
        expect("questions", len(asked), 1)
        state = await task.status()
        expect("task", state.status, "working")
        expect("reason", "Ship it?" in (state.status_message or ""), True)
        await task.cancel()
        expect("task", (await task.wait(timeout=10)).status, "cancelled")
        return "asked once; working, and says what it waits for"


async def cancel():
    async with client() as taffrail:
        task = await call_tool_task(taffrail, "run", {"playbook": "sleeper"})
        await task.cancel()
        state = await task.wait(timeout=10)
        expect("task", state.status, "cancelled")
        run = (await taffrail.call_tool_mcp("run_status", {"run": task.task_id})).structured_content
        expect("status", run["status"], "cancelled")
        return "cancelled"


async def reconnect():
    """A task outlives the connection: over HTTP it goes on, over stdio it is failed, and its run can be resumed."""
    with Hold() as hold:
        async with client() as taffrail:
            arguments = {"playbook": "chatty", "inputs": {"hold": str(hold)}}
            run = (await call_tool_task(taffrail, "run", arguments)).task_id
        async with client() as taffrail:
            hold.release()
            again = await taffrail.call_tool_mcp("run_status", {"run": run, "wait_s": 20})
            status = again.structured_content["status"]
            expect("status", status, "done" if URL else "interrupted")
            return status


async def main():
    report = Report()
    await report.step("connect", connect)
    await report.step("approve", approve)
    await report.step("decline", decline)
    await report.step("cancel", cancel)
    await report.step("reconnect", reconnect)
    await report.step("tasks", tasks)
    report.end()


asyncio.run(main())
