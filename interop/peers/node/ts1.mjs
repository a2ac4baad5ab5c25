// Client: @modelcontextprotocol/sdk, the first generation. Legacy revisions only.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { answers } from './answers.mjs';
import { run } from './checks.mjs';

run((options, seen) => {
    const client = new Client({ name: 'interop-ts1', version: '1.0.0' }, {
        capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } }
    });
    const answer = answers(options.profile, seen);
    client.setRequestHandler(types.ElicitRequestSchema, answer.elicit);
    client.setRequestHandler(types.CreateMessageRequestSchema, answer.sample);
    client.setRequestHandler(types.ListRootsRequestSchema, answer.roots);
    client.setNotificationHandler(types.LoggingMessageNotificationSchema, n => { seen.logs.push(n.params); });
    client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, n => { seen.updated.push(n.params.uri); });
    client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => { seen.listChanged.push('tools'); });
    client.setNotificationHandler(types.ResourceListChangedNotificationSchema, () => { seen.listChanged.push('resources'); });
    client.onerror = error => console.error(`onerror: ${error.message}`);

    const transport = options.sse ? new SSEClientTransport(new URL(options.sse))
        : options.http ? new StreamableHTTPClientTransport(new URL(options.http))
        : new StdioClientTransport({ command: options.stdio[0], args: options.stdio.slice(1) });
    // The client keeps the negotiated version to itself, but tells a transport that wants it.
    let version;
    const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = negotiated => {
        version = negotiated;
        setProtocolVersion?.(negotiated);
    };

    return {
        modern: () => false,
        async connect() {
            await client.connect(transport);
            return { server: client.getServerVersion()?.name, version };
        },
        listTools: () => pages(cursor => client.listTools({ cursor }), 'tools'),
        listResources: () => pages(cursor => client.listResources({ cursor }), 'resources'),
        listPrompts: () => pages(cursor => client.listPrompts({ cursor }), 'prompts'),
        callTool: (name, args, { timeout, signal, onprogress }) =>
            client.callTool({ name, arguments: args }, undefined, { timeout, signal, onprogress }),
        readResource: async uri => (await client.readResource({ uri })).contents,
        getPrompt: async (name, args) => (await client.getPrompt({ name, arguments: args })).messages,
        complete: async (prompt, name, value) => (await client.complete({
            ref: { type: 'ref/prompt', name: prompt }, argument: { name, value }
        })).completion.values,
        setLevel: level => client.setLoggingLevel(level),
        async subscribe(uri) {
            await client.subscribeResource({ uri });
            return () => client.unsubscribeResource({ uri });
        },
        listenListChanged: async () => async () => {},
        async close() {
            if (options.http) await transport.terminateSession();
            await client.close();
        }
    };
});

async function pages(list, key) {
    const all = [];
    let cursor;
    do {
        const page = await list(cursor);
        all.push(...page[key]);
        cursor = page.nextCursor;
    } while (cursor);
    return all;
}
