"""Server: FastMCP, on stdio or, with --http, on a free loopback port.

The questions are asked in the way that FastMCP has for each era: a request of
its own to a legacy client, an input_required result to a modern one."""

import asyncio
import json
import os
import socket
import sys

import mcp_types as types
import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools import ToolResult
from pydantic import BaseModel

MEMO = "memo://greeting"

server = FastMCP("interop-fastmcp", version="1.0.0")
state = {"cancelled": 0, "grown": 0}


@server.tool
def echo(text: str) -> ToolResult:
    return ToolResult(content=text)


@server.tool
def fail() -> str:
    raise ToolError("no luck")


@server.tool
def exact(n: int) -> ToolResult:
    return ToolResult(content=str(n), structured_content={"n": n})


class Weather(BaseModel):
    city: str
    celsius: float
    words: list[str]


@server.tool(output_schema=Weather.model_json_schema())
def weather(city: str) -> ToolResult:
    found = {"city": city, "celsius": 21.5, "words": ["sunny", "windy"]}
    return ToolResult(content=json.dumps(found), structured_content=found)


@server.tool
async def meet() -> ToolResult:
    first = state.pop("first", None)
    if first:
        first.set()
    else:
        state["first"] = asyncio.Event()
        await state["first"].wait()
    return ToolResult(content="met")


@server.tool
async def once() -> ToolResult:
    with open("executed", "a") as file:
        file.write("once\n")
    await asyncio.sleep(20)
    return ToolResult(content="once")


@server.tool
async def progress(steps: int, ctx: Context) -> ToolResult:
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps)
        await asyncio.sleep(0.03)
    return ToolResult(content=f"{steps} steps")


@server.tool
async def slow(ms: int, ctx: Context) -> ToolResult:
    await ctx.report_progress(1, 2)
    try:
        await asyncio.sleep(ms / 1000)
    except asyncio.CancelledError:
        state["cancelled"] += 1
        raise
    return ToolResult(content="slept")


@server.tool
def cancelled() -> ToolResult:
    return ToolResult(content=str(state["cancelled"]))


@server.tool
async def log(level: str, ctx: Context) -> ToolResult:
    await ctx.log("a log message", level=level)
    return ToolResult(content="logged")


@server.tool
async def grow(ctx: Context) -> ToolResult:
    state["grown"] += 1
    name = f"grown-{state['grown']}"

    @server.tool(name=name)
    def grown() -> str:
        return "grown"

    await ctx.send_notification(types.ToolListChangedNotification(method="notifications/tools/list_changed"))
    return ToolResult(content="grown")


@server.tool(name="ask-name")
async def ask_name(ctx: Context) -> ToolResult | types.InputRequiredResult:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    params = types.ElicitRequestFormParams(message="What is your name?", requested_schema=schema)
    if ctx.request_context.protocol_version < "2026-07-28":
        answer = await ctx.session.elicit(
            message=params.message, requested_schema=schema, related_request_id=ctx.request_id
        )
        return ToolResult(content=f"{answer.action} {getattr(answer, 'content', None)}")
    answers = ctx.input_responses
    if not answers:
        return types.InputRequiredResult(
            input_requests={"answer": types.ElicitRequest(method="elicitation/create", params=params)},
            request_state="asked by ask-name",
        )
    return ToolResult(content=f"{ctx.request_state}: {answers['answer'].action} {answers['answer'].content}")


@server.tool(name="ask-url")
async def ask_url(ctx: Context) -> ToolResult | types.InputRequiredResult:
    page = types.ElicitRequestURLParams(message="Please open this.", url="https://example.com/", elicitation_id="e-1")
    if ctx.request_context.protocol_version < "2026-07-28":
        answer = await ctx.session.elicit_url(
            page.message, page.url, page.elicitation_id, related_request_id=ctx.request_id
        )
        return ToolResult(content=answer.action)
    answers = ctx.input_responses
    if not answers:
        return types.InputRequiredResult(
            input_requests={"answer": types.ElicitRequest(method="elicitation/create", params=page)},
            request_state="asked by ask-url",
        )
    return ToolResult(content=answers["answer"].action)


@server.resource(MEMO, mime_type="text/plain")
def greeting() -> str:
    return "grüezi mitenand"


@server.prompt
def greet(name: str) -> str:
    return f"Say grüezi to {name}"


@server.completion
def complete(ref, argument, context) -> list[str]:
    return [name for name in ("Ada", "Alan", "Grace") if name.startswith(argument.value)]


def serve_http():
    listener = socket.create_server(("127.0.0.1", int(os.environ.get("INTEROP_PORT") or 0)))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(
        server.http_app(path="/mcp"), log_level="warning", timeout_graceful_shutdown=1, lifespan="on"
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    if "--http" in sys.argv:
        serve_http()
    else:
        server.run(transport="stdio", show_banner=False, log_level="WARNING")
