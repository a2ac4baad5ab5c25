"""Client: the package mcp, second generation. The variable INTEROP_MODE
chooses legacy, auto or 2026-07-28. It runs the same checks as peers/node/checks.mjs."""

import asyncio
import hashlib
import json
import os
import sys
import time
import warnings

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

warnings.simplefilter("ignore")

CALL_TIMEOUT = 20.0
MODERN = "2026-07-28"

# How much of its time a check waits: a fifth if it is known to fail.
patience = 1.0


class Mismatch(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Mismatch(message)


def parse_args(argv):
    options = {"profile": {}, "checks": [], "brief": [], "era": "any", "http": "", "sse": "", "stdio": []}
    args = iter(argv)
    for arg in args:
        if arg == "--profile":
            options["profile"] = json.loads(next(args))
        elif arg == "--checks":
            options["checks"] = next(args).split(",")
        elif arg == "--brief":
            options["brief"] = next(args).split(",")
        elif arg == "--era":
            options["era"] = next(args)
        elif arg == "--http":
            options["http"] = next(args)
        elif arg == "--sse":
            options["sse"] = next(args)
        elif arg == "--stdio":
            options["stdio"] = list(args)
        else:
            raise SystemExit(f"unknown argument {arg}")
    return options


def digest(models):
    dumped = [model.model_dump(mode="json", by_alias=True, exclude_none=True) for model in models]
    return hashlib.sha256(json.dumps(dumped, sort_keys=True).encode()).hexdigest()[:16]


def text_of(result):
    return "".join(getattr(block, "text", "") for block in result.content)


def filled(value, text, i):
    """Gives a value with what its texts leave open."""
    if isinstance(value, str):
        return text if value == "$TEXT" else value.replace("$I", i)
    if isinstance(value, list):
        return [filled(item, text, i) for item in value]
    return {key: filled(item, text, i) for key, item in value.items()}


async def eventually(seconds, message, condition):
    end = time.monotonic() + seconds * patience
    while time.monotonic() < end:
        if await condition():
            return
        await asyncio.sleep(0.05)
    raise Mismatch(message() if callable(message) else message)


def pages(list_page, key):
    async def all_pages():
        found, cursor = [], None
        while True:
            page = await list_page(cursor=cursor)
            found += getattr(page, key)
            cursor = page.next_cursor
            if cursor is None:
                return found

    return all_pages()


class Checks:
    def __init__(self, options):
        self.options = options
        self.profile = options["profile"]
        self.seen_updated, self.seen_list_changed, self.seen_logs = [], [], []
        self.action = "accept"
        if options["sse"]:
            target = sse_client(options["sse"])
        elif options["http"]:
            # The default limit of 1 MiB for one event is just below the check named big.
            target = streamable_http_client(options["http"], max_sse_event_size=16 << 20)
        else:
            target = StdioServerParameters(command=options["stdio"][0], args=options["stdio"][1:])
        self.client = Client(
            target,
            mode=os.environ.get("INTEROP_MODE", "auto"),
            client_info=types.Implementation(name="interop-python", version="1.0.0"),
            elicitation_callback=self._elicit,
            sampling_callback=self._sample,
            list_roots_callback=self._roots,
            logging_callback=self._log,
            message_handler=self._message,
            log_level="debug",
            cache=None,
        )

    async def _elicit(self, context, params):
        if isinstance(params, types.ElicitRequestURLParams):
            return types.ElicitResult(action="accept")
        content = {"name": "Ada"} if self.action == "accept" else None
        return types.ElicitResult(action=self.action, content=content)

    async def _sample(self, context, params):
        content = types.TextContent(type="text", text="sampled by the client")
        return types.CreateMessageResult(
            role="assistant", content=content, model="interop-model", stop_reason="endTurn"
        )

    async def _roots(self, context):
        return types.ListRootsResult(roots=[types.Root(uri=self.profile["root"], name="interop")])

    async def _log(self, params):
        self.seen_logs.append(params)

    async def _message(self, message):
        if isinstance(message, types.ResourceUpdatedNotification):
            self.seen_updated.append(str(message.params.uri))
        elif isinstance(message, types.ToolListChangedNotification):
            self.seen_list_changed.append("tools")
        elif isinstance(message, types.ResourceListChangedNotification):
            self.seen_list_changed.append("resources")
        elif isinstance(message, Exception):
            print(f"message handler: {message}", file=sys.stderr)

    def modern(self):
        return self.client.protocol_version >= MODERN

    async def tool(self, name, args=None, **kwargs):
        return await self.client.call_tool(name, args or {}, read_timeout_seconds=CALL_TIMEOUT, **kwargs)

    async def echo(self, text, i):
        result = None
        for step in self.profile["echo"]["steps"]:
            result = await self.tool(step["tool"], filled(step["args"], text, str(i)))
        if "at" in self.profile["echo"]:
            got = result.structured_content
            for step in self.profile["echo"]["at"]:
                got = got[step]
            return got
        got, prefix = text_of(result), self.profile["echo"].get("prefix", "")
        expect(got.startswith(prefix), f"echo gave {got[:80]!r}")
        return got[len(prefix) :]

    async def question(self, spec):
        text = ""

        async def answered():
            nonlocal text
            text = text_of(await self.tool(spec["tool"], spec.get("args")))
            return spec["want"] in text

        await eventually(8, lambda: f"answer not used: {text[:300]!r}", answered)

    # The checks.

    async def connect(self):
        await self.client.__aenter__()
        info, version = self.client.server_info, self.client.protocol_version
        expect(info and info.name == self.profile["server"], f"server is {info}, want {self.profile['server']}")
        if self.options["era"] != "any":
            want = self.options["era"]
            expect((version >= MODERN) == (want == "modern"), f"negotiated {version}, want the {want} era")
        return {"detail": f"{info.name} {version}"}

    async def list(self):
        tools = await pages(self.client.list_tools, "tools")
        names = [tool.name for tool in tools]
        for want in self.profile["tools"]:
            expect(want in names, f"no tool {want} in {names}")
        return {"detail": f"{len(tools)} tools", "same": digest(tools)}

    async def call(self):
        text = 'Grüezi "\\" \n\t\u2028 🎈 \u0000 </script>'
        got = await self.echo(text, 0)
        expect(got == text, f"echo gave {got!r}")

    async def structured(self):
        spec = self.profile["structured"]
        result = await self.tool(spec["tool"], spec["args"])
        got, text = result.structured_content, text_of(result)
        expect(got == spec["want"], f"the structured content is {got}")
        expect(json.loads(text) == spec["want"], f"the text is {text}")

    async def error(self):
        got = []
        for tool, args in [("no-such-tool", {})] + [
            (fail["tool"], fail.get("args")) for fail in [self.profile.get("fail")] if fail
        ]:
            try:
                result = await self.tool(tool, args)
            except MCPError as error:
                got.append(f"error {error.code} {error.message}")
                continue
            expect(result.is_error, f"{tool} did not fail")
            got.append(f"isError {text_of(result)}")
        await self.call()
        return {"detail": "; ".join(got), "same": "; ".join(got)}

    async def read(self):
        uri = self.profile["read"]["uri"]
        resources = await pages(self.client.list_resources, "resources")
        expect(any(str(r.uri) == uri for r in resources), f"{uri} is not listed")
        contents = (await self.client.read_resource(uri)).contents
        text = "".join(getattr(c, "text", "") for c in contents)
        expect(self.profile["read"]["want"] in text, f"read gave {text[:80]!r}")
        return {"detail": f"{len(text)} characters", "same": digest(contents)}

    async def prompt(self):
        spec = self.profile["prompt"]
        prompts = await pages(self.client.list_prompts, "prompts")
        expect(any(p.name == spec["name"] for p in prompts), f"{spec['name']} is not listed")
        messages = (await self.client.get_prompt(spec["name"], spec["args"])).messages
        text = "".join(getattr(m.content, "text", "") for m in messages)
        expect(spec["want"] in text, f"prompt gave {text!r}")
        return {"same": digest(messages)}

    async def complete(self):
        spec = self.profile["complete"]
        ref = types.PromptReference(type="ref/prompt", name=spec["prompt"])
        result = await self.client.complete(ref, {"name": spec["argument"], "value": spec["value"]})
        expect(result.completion.values == spec["want"], f"completion gave {result.completion.values}")

    async def progress(self):
        # As in peers/node: the SDKs drop progress that they read with the result.
        for _ in range(3):
            steps = []

            async def note(progress, total, message, steps=steps):
                steps.append(progress)

            await self.tool(self.profile["progress"]["tool"], self.profile["progress"]["args"], progress_callback=note)
            if len(steps) >= 2:
                break
        before = len(steps)
        expect(before >= 2, f"{before} progress notifications before the result: {steps}")
        expect(all(a < b for a, b in zip(steps, steps[1:])), f"progress not increasing: {steps}")
        await asyncio.sleep(0.1)
        return {"detail": f"{before} notifications, {len(steps) - before} late"}

    async def cancel(self):
        spec = self.profile["cancel"]
        started = asyncio.Event()

        async def note(progress, total, message):
            started.set()

        call = asyncio.create_task(self.tool(spec["tool"], spec["args"], progress_callback=note))
        waiting = asyncio.create_task(started.wait())
        await asyncio.wait({call, waiting}, timeout=CALL_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        expect(not call.done(), "no progress to abort after: the call ended")
        aborted = time.monotonic()
        call.cancel()
        await asyncio.wait({call}, timeout=5)
        took = round((time.monotonic() - aborted) * 1000)
        expect(call.done() and (call.cancelled() or call.exception()), "the aborted call did not end, or has a result")
        expect(took < 2000, f"the aborted call took {took} ms to end")
        await self.call()
        if "count" not in spec:
            return {"detail": f"ended after {took} ms"}

        async def counted():
            return int(text_of(await self.tool(spec["count"]))) >= 1

        await eventually(5, "the server did not see the cancellation", counted)
        return {"detail": f"ended after {took} ms, seen by the server"}

    async def log(self):
        if not self.modern():
            await self.client.set_logging_level("debug")
        self.seen_logs.clear()
        await self.tool(self.profile["log"]["tool"], self.profile["log"]["args"])

        async def logged():
            return any(self.profile["log"].get("want", "") in str(entry.data) for entry in self.seen_logs)

        await eventually(8, "no log message", logged)
        return {"detail": f"{self.seen_logs[0].level} {self.seen_logs[0].data}"[:100]}

    async def _notified(self, got, want, what, filter, trigger):
        """Waits for a notification that a tool triggers. A modern one comes on a
        listen stream of its own, which has to grant what was asked."""
        if not self.modern():
            got.clear()
            await self.tool(trigger["tool"], trigger["args"])
        else:
            async with self.client.listen(**filter) as subscription:
                for key, value in filter.items():
                    granted = getattr(subscription.honored, key)
                    expect(granted == value, f"listen granted {subscription.honored} of {filter}")
                await self.tool(trigger["tool"], trigger["args"])
                try:
                    await asyncio.wait_for(anext(aiter(subscription)), 8 * patience)
                except TimeoutError:
                    raise Mismatch(f"no {what}") from None
            return

        async def notified():
            return want in got

        await eventually(8, f"no {what}", notified)

    async def updated(self):
        spec = self.profile["updated"]
        if not self.modern():
            await self.client.subscribe_resource(spec["uri"])
        await self._notified(
            self.seen_updated, spec["uri"], "resources/updated", {"resource_subscriptions": [spec["uri"]]}, spec
        )
        if not self.modern():
            await self.client.unsubscribe_resource(spec["uri"])

    async def listchanged(self):
        spec = self.profile["listchanged"]
        kind = spec["kind"]
        await self._notified(self.seen_list_changed, kind, f"{kind}/list_changed", {f"{kind}_list_changed": True}, spec)
        if "grown" in spec:
            names = [tool.name for tool in await pages(self.client.list_tools, "tools")]
            expect(spec["grown"] in names, f"{spec['grown']} is not in {names}")

    async def elicit(self):
        await self.question(self.profile["elicit"])

    async def sealed(self):
        await self.question(self.profile["sealed"])

    async def decline(self):
        """The other two answers to a form."""
        spec = self.profile["decline"]
        try:
            for action, want in sorted(spec["want"].items()):
                self.action = action
                await self.question({"tool": spec["tool"], "args": spec.get("args"), "want": want})
        finally:
            self.action = "accept"

    async def sample(self):
        await self.question(self.profile["sample"])

    async def roots(self):
        await self.question(self.profile["roots"])

    async def url(self):
        await self.question(self.profile["url"])

    async def urlerror(self):
        spec = self.profile["urlerror"]
        if not self.modern():
            try:
                result = await self.tool(spec["tool"], spec["args"])
                raise Mismatch(f"first call gave {text_of(result)!r}, want error -32042")
            except MCPError as error:
                expect(error.code == -32042, f"first call gave error {error.code}, want -32042")
        await self.question(spec)

    async def exact(self):
        digits = 9007199254740993
        result = await self.tool(self.profile["exact"]["tool"], {"n": digits})
        expect(text_of(result) == str(digits), f"{digits} came back as {text_of(result)}")
        if result.structured_content is not None:
            got = result.structured_content.get("n")
            expect(got == digits and isinstance(got, int), f"{digits} came back structured as {got!r}")

    async def big(self):
        text = ('x1"\\ü' * ((1 << 20) // 5 + 1))[: 1 << 20]
        got = await self.echo(text, 1)
        expect(got == text, f"1 MiB came back as {len(got)} characters, or changed")

    async def meet(self):
        """Two calls each of which ends only when the other one is there."""
        spec = self.profile["meet"]
        for result in await asyncio.gather(*(self.tool(spec["tool"], spec.get("args")) for _ in range(2))):
            expect(text_of(result) == spec["want"], f"{spec['tool']} gave {text_of(result)}")

    async def many(self):
        async def one(i):
            text = f"call {i} of twenty"
            got = await self.echo(text, 100 + i)
            expect(got == text, f"call {i} got {got!r}")

        await asyncio.gather(*(one(i) for i in range(20)))


def describe(error):
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    code = f" (code {error.code})" if isinstance(error, MCPError) else ""
    return f"{type(error).__name__}: {error}{code}"[:400]


async def main():
    global patience
    options = parse_args(sys.argv[1:])
    checks = Checks(options)
    connected = False
    for name in options["checks"]:
        start = time.monotonic()
        line = {"check": name, "ok": False, "ms": 0, "detail": ""}
        patience = 0.2 if name in options["brief"] else 1.0
        try:
            expect(name == "connect" or connected, "not connected")
            check = getattr(checks, name)
            # No wait_for around connect: it enters task groups that later checks use.
            outcome = await (check() if name == "connect" else asyncio.wait_for(check(), 45))
            connected = connected or name == "connect"
            line |= {"ok": True} | (outcome or {})
        except Exception as error:
            line["detail"] = describe(error)
        line["ms"] = round((time.monotonic() - start) * 1000)
        print(json.dumps(line), flush=True)
    try:
        await checks.client.__aexit__(None, None, None)
    except Exception as error:
        print(f"close: {describe(error)}", file=sys.stderr)


asyncio.run(main())
