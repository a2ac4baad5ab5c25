// Client: @modelcontextprotocol/client, the second generation. The variable
// INTEROP_MODE chooses legacy, auto or modern (pinned to 2026-07-28).
import process from 'node:process';
import { Client, LOG_LEVEL_META_KEY, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { answers } from './answers.mjs';
import { run } from './checks.mjs';

const modes = { legacy: 'legacy', auto: 'auto', modern: { pin: '2026-07-28' } };

run((options, seen) => {
    const client = new Client({ name: 'interop-ts2', version: '1.0.0' }, {
        capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } },
        versionNegotiation: { mode: modes[process.env.INTEROP_MODE ?? 'auto'] }
    });
    const answer = answers(options.profile, seen);
    client.setRequestHandler('elicitation/create', answer.elicit);
    client.setRequestHandler('sampling/createMessage', answer.sample);
    client.setRequestHandler('roots/list', answer.roots);
    client.setNotificationHandler('notifications/message', n => { seen.logs.push(n.params); });
    client.setNotificationHandler('notifications/resources/updated', n => { seen.updated.push(n.params.uri); });
    client.setNotificationHandler('notifications/tools/list_changed', () => { seen.listChanged.push('tools'); });
    client.setNotificationHandler('notifications/resources/list_changed', () => { seen.listChanged.push('resources'); });
    client.onerror = error => console.error(`onerror: ${error.message}`);

    const transport = options.sse ? new SSEClientTransport(new URL(options.sse))
        : options.http ? new StreamableHTTPClientTransport(new URL(options.http))
        : new StdioClientTransport({ command: options.stdio[0], args: options.stdio.slice(1) });
    const modern = () => client.getProtocolEra() === 'modern';

    return {
        modern,
        async connect() {
            await client.connect(transport);
            return { server: client.getServerVersion()?.name, version: client.getNegotiatedProtocolVersion() };
        },
        listTools: async () => (await client.listTools()).tools,
        listResources: async () => (await client.listResources()).resources,
        listPrompts: async () => (await client.listPrompts()).prompts,
        callTool: (name, args, { timeout, signal, onprogress, logLevel }) => client.callTool({
            name, arguments: args, ...(logLevel && modern() ? { _meta: { [LOG_LEVEL_META_KEY]: logLevel } } : {})
        }, { timeout, signal, onprogress: onprogress && servers(onprogress) }),
        readResource: async uri => (await client.readResource({ uri })).contents,
        getPrompt: async (name, args) => (await client.getPrompt({ name, arguments: args })).messages,
        complete: async (prompt, name, value) => (await client.complete({
            ref: { type: 'ref/prompt', name: prompt }, argument: { name, value }
        })).completion.values,
        setLevel: async level => { if (!modern()) await client.setLoggingLevel(level); },
        async subscribe(uri) {
            if (modern()) return listen(client, { resourceSubscriptions: [uri] });
            await client.subscribeResource({ uri });
            return () => client.unsubscribeResource({ uri });
        },
        async listenListChanged(kind) {
            if (modern()) return listen(client, { [`${kind}ListChanged`]: true });
            return async () => {};
        },
        async close() {
            if (options.http && !modern()) await transport.terminateSession();
            await client.close();
        }
    };
});

// The SDK makes progress of its own when a server asks something in mid-call, as
// server-everything does of the roots once it has found out that there are some.
function servers(onprogress) {
    return p => { if (!p.message?.startsWith('Fulfilling input required')) onprogress(p); };
}

async function listen(client, filter) {
    const subscription = await client.listen(filter);
    const granted = subscription.honoredFilter;
    for (const [key, value] of Object.entries(filter)) {
        if (JSON.stringify(granted[key]) !== JSON.stringify(value)) {
            throw new Error(`listen honoured ${JSON.stringify(granted)} of ${JSON.stringify(filter)}`);
        }
    }
    return () => subscription.close();
}
