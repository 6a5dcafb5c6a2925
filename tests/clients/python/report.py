"""What the scripts beside this file print and check. Nothing here knows a client.

A script is started as `SCRIPT stdio` or `SCRIPT URL` and prints one JSON line a step: `{"step": …, "ok": …, "detail": …}`,
where `ok` is null for what this client cannot do, and `detail` says why. It ends with 1 when a step failed.
"""

import json
import os
import re
import sys
import tempfile
import time
import traceback
import uuid

# What the playbook `chatty` prints, and in which state.
STATES = {"first": range(1, 21), "second": range(21, 41), "third": range(41, 61)}
LINES = [f"line {n:02}" for numbers in STATES.values() for n in numbers]

TOOLS = ["run", "resume", "run_status", "run_logs", "run_cancel", "list_runs", "list_playbooks", "check_playbook"]

# How to reach the server: `None` for stdio, where the client starts it.
URL = None if sys.argv[1] == "stdio" else sys.argv[1].rstrip("/")
HEADERS = {"Authorization": f"Bearer {os.environ.get('TAFFRAIL_TOKEN', '')}"}
COMMAND = os.environ.get("TAFFRAIL", "taffrail")
ARGUMENTS = ["mcp", "--data-dir", os.environ["TAFFRAIL_DATA_DIR"], "--playbooks", os.environ["TAFFRAIL_PLAYBOOKS"]]


class Hold:
    """Keeps a run of `chatty` in its second state until it is released."""

    def __init__(self):
        self.path = os.path.join(tempfile.gettempdir(), f"taffrail-{uuid.uuid4()}")

    def __str__(self):
        return self.path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if os.path.exists(self.path):
            os.remove(self.path)

    def release(self):
        open(self.path, "x").close()


class Cannot(Exception):
    """This client cannot do it, and why."""


class Report:
    def __init__(self):
        self.failed = False

    async def step(self, name, work, *args):
        """Does one step; what it returns is the detail."""
        start = time.monotonic()
        try:
            ok, detail = True, await work(*args)
        except Exception as error:
            # What happens within a client's task group comes wrapped.
            cause = error
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            if isinstance(cause, Cannot):
                ok, detail = None, str(cause)
            else:
                ok, detail = False, f"{type(cause).__name__}: {cause}"
                self.failed = True
                traceback.print_exc()
        seconds = round(time.monotonic() - start, 1)
        print(json.dumps({"step": name, "ok": ok, "detail": detail, "seconds": seconds}), flush=True)

    def end(self):
        sys.exit(1 if self.failed else 0)


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, wanted {wanted!r}")


def expect_dense(what, seqs, head):
    """Every record from 1 to `head`, once and in order."""
    expect(what, list(seqs), list(range(1, head + 1)))


def expect_increase(what, values):
    if not values:
        raise AssertionError(f"{what}: there is nothing")
    for before, after in zip(values, values[1:]):
        if not before < after:
            raise AssertionError(f"{what}: {after} came after {before} in {values}")


def lines_of_text(page):
    """The lines of output in a page of `run_logs`, as text."""
    return re.findall(r"^\d+ \w+ out\| (.*)$", page, re.MULTILINE)


def next_cursor(page):
    """Where a page of `run_logs`, as text, goes on: its last line says it."""
    return int(re.fullmatch(r"next cursor: (\d+)", page.rsplit("\n", 1)[-1])[1])


def lines_of_records(records):
    """The lines of output in records."""
    return [record["text"] for record in records if record["type"] == "log"]


def expect_last_lines(records):
    """Each state printed all its lines after it began the last time: one that was interrupted begins anew."""
    printed = {}
    for record in records:
        if record["type"] == "state-start":
            printed[record["state"]] = []
        elif record["type"] == "log":
            printed[record["state"]].append(record["text"])
    expect("lines by state", printed, {state: [f"line {n:02}" for n in numbers] for state, numbers in STATES.items()})
