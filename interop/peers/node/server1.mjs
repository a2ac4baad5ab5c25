// Server: @modelcontextprotocol/sdk, the first generation, with sessions.
// Legacy revisions only.
//
//	node server1.mjs [--http|--sse]
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import process from 'node:process';
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

const MEMO = 'memo://greeting';
let cancelled = 0;
let waiting; // the first of two calls that meet

const text = value => ({ content: [{ type: 'text', text: String(value) }] });

function makeServer() {
    const mcp = new McpServer({ name: 'interop-ts1', version: '1.0.0' }, {
        capabilities: { logging: {}, tools: { listChanged: true }, resources: { subscribe: true } }
    });
    const server = mcp.server;
    let grown = 0;
    let subscribed = false;
    server.setRequestHandler(types.SubscribeRequestSchema, () => { subscribed = true; return {}; });
    server.setRequestHandler(types.UnsubscribeRequestSchema, () => { subscribed = false; return {}; });
    const tool = (name, inputSchema, handler) =>
        mcp.registerTool(name, { description: `The tool ${name}`, inputSchema }, handler);
    const progress = (extra, step, total) => {
        const progressToken = extra._meta?.progressToken;
        if (progressToken === undefined) return;
        return extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress: step, total } });
    };

    tool('echo', { text: z.string() }, args => text(args.text));
    tool('fail', {}, () => ({ ...text('no luck'), isError: true }));
    mcp.registerTool('weather', {
        description: 'The tool weather', inputSchema: { city: z.string() },
        outputSchema: { city: z.string(), celsius: z.number(), words: z.array(z.string()) }
    }, ({ city }) => {
        const found = { city, celsius: 21.5, words: ['sunny', 'windy'] };
        return { ...text(JSON.stringify(found)), structuredContent: found };
    });
    tool('meet', {}, async () => {
        await meet();
        return text('met');
    });
    tool('once', {}, async () => {
        fs.appendFileSync('executed', 'once\n');
        await sleep(20000);
        return text('once');
    });
    tool('progress', { steps: z.number().int() }, async ({ steps }, extra) => {
        for (let step = 1; step <= steps; step++) {
            await progress(extra, step, steps);
            await sleep(30);
        }
        return text(`${steps} steps`);
    });
    tool('slow', { ms: z.number().int() }, async ({ ms }, extra) => {
        await progress(extra, 1, 2);
        if (await sleep(ms, extra.signal)) return text('slept');
        cancelled++;
        return text('cancelled');
    });
    tool('cancelled', {}, () => text(cancelled));
    tool('log', { level: z.enum(['debug', 'info', 'warning', 'error']) }, async ({ level }, extra) => {
        await mcp.sendLoggingMessage({ level, data: 'a log message' }, extra.sessionId);
        return text('logged');
    });
    tool('touch', {}, async () => {
        if (subscribed) await server.sendResourceUpdated({ uri: MEMO });
        return text('touched');
    });
    tool('grow', {}, () => {
        grown++;
        tool(`grown-${grown}`, {}, () => text('grown'));
        return text('grown');
    });

    // The questions: each a request of the server, related to the call.
    const ask = (name, method, params, result) => tool(name, {}, async (_args, extra) =>
        text(JSON.stringify(await extra.sendRequest({ method, params }, result))));
    ask('ask-name', 'elicitation/create', {
        mode: 'form', message: 'What is your name?',
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
    }, types.ElicitResultSchema);
    ask('ask-url', 'elicitation/create', {
        mode: 'url', message: 'Please open this.', url: 'https://example.com/', elicitationId: 'e-1'
    }, types.ElicitResultSchema);
    ask('ask-model', 'sampling/createMessage', {
        messages: [{ role: 'user', content: { type: 'text', text: 'Say something.' } }], maxTokens: 10
    }, types.CreateMessageResultSchema);
    ask('ask-roots', 'roots/list', undefined, types.ListRootsResultSchema);

    mcp.registerResource('greeting', MEMO, { mimeType: 'text/plain' }, () => ({
        contents: [{ uri: MEMO, mimeType: 'text/plain', text: 'grüezi mitenand' }]
    }));
    mcp.registerPrompt('greet', {
        description: 'Greets somebody',
        argsSchema: {
            name: completable(z.string(), value => ['Ada', 'Alan', 'Grace'].filter(name => name.startsWith(value)))
        }
    }, ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Say grüezi to ${name}` } }] }));
    return mcp;
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

const transports = new Map(); // by session

async function streamable(req, res) {
    const id = req.headers['mcp-session-id'];
    if (id) {
        const transport = transports.get(id);
        if (transport) return transport.handleRequest(req, res);
        res.writeHead(404).end('no such session');
        return;
    }
    const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: id => { transports.set(id, transport); },
        onsessionclosed: id => { transports.delete(id); }
    });
    await makeServer().connect(transport);
    await transport.handleRequest(req, res);
}

async function withSSE(req, res) {
    const url = new URL(req.url, 'http://localhost');
    if (req.method === 'GET' && url.pathname === '/sse') {
        const transport = new SSEServerTransport('/messages', res);
        transports.set(transport.sessionId, transport);
        res.on('close', () => transports.delete(transport.sessionId));
        return makeServer().connect(transport);
    }
    const transport = transports.get(url.searchParams.get('sessionId'));
    if (req.method === 'POST' && transport) return transport.handlePostMessage(req, res);
    res.writeHead(404).end();
}

function serve(handler) {
    const server = http.createServer((req, res) => handler(req, res).catch(error => {
        console.error(error);
        res.end();
    }));
    server.listen(Number(process.env.INTEROP_PORT || 0), '127.0.0.1', () => {
        console.error(`listening on http://127.0.0.1:${server.address().port}/mcp`);
    });
}

if (process.argv.includes('--http')) serve(streamable);
else if (process.argv.includes('--sse')) serve(withSSE);
else await makeServer().connect(new StdioServerTransport());
