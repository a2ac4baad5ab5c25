"""Server: the package mcp, on stdio or, with --http or --sse, on a loopback port.

The questions are asked in the way that the SDK has for both eras, by resolvers."""

import asyncio
import os
import socket
import sys
import warnings
from typing import Annotated

import mcp_types as types
import uvicorn
from mcp.server import MCPServer
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from pydantic import BaseModel

warnings.simplefilter("ignore")

MEMO = "memo://greeting"

server = MCPServer("interop-mcp", version="1.0.0", log_level="WARNING")
state = {"cancelled": 0, "grown": 0}


def tool(name):
    return server.tool(name=name, structured_output=False)


@tool("echo")
def echo(text: str) -> str:
    return text


@tool("fail")
def fail() -> str:
    raise ToolError("no luck")


@tool("exact")
def exact(n: int) -> str:
    return str(n)


class Weather(BaseModel):
    city: str
    celsius: float
    words: list[str]


@server.tool()
def weather(city: str) -> Weather:
    return Weather(city=city, celsius=21.5, words=["sunny", "windy"])


@tool("meet")
async def meet() -> str:
    first = state.pop("first", None)
    if first:
        first.set()
    else:
        state["first"] = asyncio.Event()
        await state["first"].wait()
    return "met"


@tool("once")
async def once() -> str:
    with open("executed", "a") as file:
        file.write("once\n")
    await asyncio.sleep(20)
    return "once"


@tool("progress")
async def progress(steps: int, ctx: Context) -> str:
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps)
        await asyncio.sleep(0.03)
    return f"{steps} steps"


@tool("slow")
async def slow(ms: int, ctx: Context) -> str:
    await ctx.report_progress(1, 2)
    try:
        await asyncio.sleep(ms / 1000)
    except asyncio.CancelledError:
        state["cancelled"] += 1
        raise
    return "slept"


@tool("cancelled")
def cancelled() -> str:
    return str(state["cancelled"])


@tool("log")
async def log(level: str, ctx: Context) -> str:
    await ctx.log(level, "a log message")
    return "logged"


@tool("touch")
async def touch(ctx: Context) -> str:
    await ctx.notify_resource_updated(MEMO)
    return "touched"


@tool("grow")
async def grow(ctx: Context) -> str:
    state["grown"] += 1
    server.add_tool(lambda: "grown", name=f"grown-{state['grown']}", structured_output=False)
    if ctx.protocol_version < "2026-07-28":
        await ctx.session.send_tool_list_changed()
    else:
        await ctx.notify_tools_changed()
    return "grown"


class Name(BaseModel):
    name: str


def which_name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


@tool("ask-name")
async def ask_name(answer: Annotated[ElicitationResult[Name], Resolve(which_name)]) -> str:
    return f"{answer.action} {answer.data.name if isinstance(answer, AcceptedElicitation) else ''}"


def which_model() -> Sample:
    said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Say something."))
    return Sample(messages=[said], max_tokens=10)


@tool("ask-model")
async def ask_model(answer: Annotated[types.CreateMessageResult, Resolve(which_model)]) -> str:
    return answer.model


@tool("ask-roots")
async def ask_roots(answer: Annotated[types.ListRootsResult, Resolve(lambda: ListRoots())]) -> str:
    return " ".join(str(root.uri) for root in answer.roots)


@server.resource(MEMO, name="greeting", mime_type="text/plain")
def greeting() -> str:
    return "grüezi mitenand"


@server.prompt()
def greet(name: str) -> str:
    return f"Say grüezi to {name}"


@server.completion()
async def complete(ref, argument, context) -> types.Completion:
    names = [name for name in ("Ada", "Alan", "Grace") if name.startswith(argument.value)]
    return types.Completion(values=names)


def serve(app):
    listener = socket.create_server(("127.0.0.1", int(os.environ.get("INTEROP_PORT") or 0)))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, lifespan="on")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    if "--http" in sys.argv:
        serve(server.streamable_http_app())
    elif "--sse" in sys.argv:
        serve(server.sse_app())
    else:
        server.run(transport="stdio")
