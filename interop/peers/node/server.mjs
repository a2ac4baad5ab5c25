// Server: @modelcontextprotocol/server, the second generation, as a strict
// modern server: it refuses legacy clients on both transports.
//
//	node server.mjs [--http]
import fs from 'node:fs';
import http from 'node:http';
import process from 'node:process';
import { Readable } from 'node:stream';
import { completable, createMcpHandler, inputRequired, inputResponse, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const MEMO = 'memo://greeting';
let cancelled = 0;
let grown = 0;
let waiting; // the first of two calls that meet
let notify; // set for HTTP, where every request has a server of its own

const text = value => ({ content: [{ type: 'text', text: String(value) }] });

function makeServer() {
    const server = new McpServer({ name: 'interop-ts2', version: '1.0.0' }, {
        capabilities: {
            logging: {}, tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, prompts: {}
        }
    });
    const tool = (name, shape, handler) =>
        server.registerTool(name, { description: `The tool ${name}`, inputSchema: z.object(shape) }, handler);
    const progress = (ctx, step, total) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        if (progressToken === undefined) return;
        return ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: step, total } });
    };

    tool('echo', { text: z.string() }, async args => text(args.text));
    tool('fail', {}, async () => ({ ...text('no luck'), isError: true }));
    server.registerTool('weather', {
        description: 'The tool weather', inputSchema: z.object({ city: z.string() }),
        outputSchema: z.object({ city: z.string(), celsius: z.number(), words: z.array(z.string()) })
    }, async ({ city }) => {
        const found = { city, celsius: 21.5, words: ['sunny', 'windy'] };
        return { ...text(JSON.stringify(found)), structuredContent: found };
    });
    // Legacy clients know output schemas of objects only, and must be able to list this all the same.
    server.registerTool('letters', {
        description: 'The tool letters', inputSchema: z.object({ word: z.string() }), outputSchema: z.array(z.string())
    }, async ({ word }) => ({ ...text([...word].join(' ')), structuredContent: [...word] }));
    tool('meet', {}, async () => {
        await meet();
        return text('met');
    });
    tool('once', {}, async () => {
        fs.appendFileSync('executed', 'once\n');
        await sleep(20000);
        return text('once');
    });
    tool('progress', { steps: z.number().int() }, async ({ steps }, ctx) => {
        for (let step = 1; step <= steps; step++) {
            await progress(ctx, step, steps);
            await sleep(30);
        }
        return text(`${steps} steps`);
    });
    tool('slow', { ms: z.number().int() }, async ({ ms }, ctx) => {
        await progress(ctx, 1, 2);
        if (await sleep(ms, ctx.mcpReq.signal)) return text('slept');
        cancelled++;
        return text('cancelled');
    });
    tool('cancelled', {}, async () => text(cancelled));
    tool('log', { level: z.enum(['debug', 'info', 'warning', 'error']) }, async ({ level }, ctx) => {
        await ctx.mcpReq.log(level, 'a log message');
        return text('logged');
    });
    tool('touch', {}, async () => {
        if (notify) notify.resourceUpdated(MEMO);
        else await server.server.sendResourceUpdated({ uri: MEMO });
        return text('touched');
    });
    tool('grow', {}, async () => {
        grown++;
        if (notify) notify.toolsChanged();
        else tool(`grown-${grown}`, {}, async () => text('grown'));
        return text('grown');
    });
    for (let i = 1; i <= grown; i++) tool(`grown-${i}`, {}, async () => text('grown'));

    // The questions: asked by input_required, answered in the retry.
    const ask = (name, request, read) => tool(name, {}, async (_args, ctx) => {
        const answer = inputResponse(ctx.mcpReq.inputResponses, 'answer');
        if (answer.kind === 'missing') {
            return inputRequired({ inputRequests: { answer: request }, requestState: `asked by ${name}` });
        }
        return text(`${ctx.mcpReq.requestState()}: ${JSON.stringify(read(answer))}`);
    });
    ask('ask-name', inputRequired.elicit({
        message: 'What is your name?',
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
    }), answer => answer.kind === 'elicit' ? { action: answer.action, ...answer.content } : answer);
    ask('ask-model', inputRequired.createMessage({
        messages: [{ role: 'user', content: { type: 'text', text: 'Say something.' } }], maxTokens: 10
    }), answer => answer);
    ask('ask-roots', inputRequired.listRoots(), answer => answer);
    ask('ask-url', inputRequired.elicitUrl({ message: 'Please open this.', url: 'https://example.com/' }),
        answer => answer);

    server.registerResource('greeting', MEMO, { mimeType: 'text/plain' }, async () => ({
        contents: [{ uri: MEMO, mimeType: 'text/plain', text: 'grüezi mitenand' }]
    }));
    server.registerPrompt('greet', {
        description: 'Greets somebody',
        argsSchema: z.object({
            name: completable(z.string(), value => ['Ada', 'Alan', 'Grace'].filter(name => name.startsWith(value)))
        })
    }, ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Say grüezi to ${name}` } }] }));
    return server;
}

// meet resolves when two calls are here at once.
function meet() {
    if (waiting) {
        waiting();
        waiting = undefined;
        return;
    }
    return new Promise(resolve => { waiting = resolve; });
}

// sleep resolves to whether it slept to the end.
function sleep(ms, signal) {
    return new Promise(resolve => {
        const timer = setTimeout(() => resolve(true), ms);
        signal?.addEventListener('abort', () => { clearTimeout(timer); resolve(false); }, { once: true });
    });
}

if (process.argv[2] === '--http') serveHTTP();
else serveStdio(makeServer, { legacy: 'reject' });

function serveHTTP() {
    const handler = createMcpHandler(makeServer, { legacy: 'reject' });
    notify = handler.notify;
    const server = http.createServer(async (req, res) => {
        const abort = new AbortController();
        res.on('close', () => abort.abort());
        try {
            const hasBody = req.method !== 'GET' && req.method !== 'DELETE';
            const response = await handler.fetch(new Request(`http://${req.headers.host}${req.url}`, {
                method: req.method, headers: req.headers, signal: abort.signal,
                ...(hasBody ? { body: Readable.toWeb(req), duplex: 'half' } : {})
            }));
            res.writeHead(response.status, Object.fromEntries(response.headers));
            res.flushHeaders();
            if (response.body) for await (const chunk of response.body) res.write(chunk);
        } catch (error) {
            if (!abort.signal.aborted) console.error(error);
        }
        res.end();
    });
    server.listen(Number(process.env.INTEROP_PORT || 0), '127.0.0.1', () => {
        console.error(`listening on http://127.0.0.1:${server.address().port}/mcp`);
    });
}
