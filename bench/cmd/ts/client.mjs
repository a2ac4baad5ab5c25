// The benchmarks' contestant made with @modelcontextprotocol/client: a client
// program that takes the arguments of the others (internal/drive) and prints
// the same report.
import process from 'node:process';
import { readFileSync } from 'node:fs';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [, , revision, size, inFlight, ms, kind, ...server] = process.argv.slice(2);

// The text of internal/wire.
const sentence = 'The quick brown fox "jumps" over the lazy dog, naïve café, and runs on for a while.\n';

function textOf(bytes) {
    const whole = Buffer.from(sentence.repeat(Math.floor(bytes / Buffer.byteLength(sentence)) + 1));
    const cut = whole.subarray(0, bytes).toString();
    return cut.replace(/\uFFFD+$/, '.');
}

const text = textOf(Number(size));

const client = new Client({ name: 'bench', version: '1.0.0' }, {
    versionNegotiation: { mode: revision === '2026-07-28' ? { pin: revision } : 'legacy' }
});
await client.connect(kind === 'http'
    ? new StreamableHTTPClientTransport(new URL(`http://${server[0]}/mcp`))
    : new StdioClientTransport({ command: server[0], args: server.slice(1) }));
await client.listTools();

async function run(milliseconds) {
    const latencies = [];
    const end = performance.now() + milliseconds;
    const began = performance.now();
    await Promise.all(Array.from({ length: Number(inFlight) }, async () => {
        for (let now = performance.now(), first = true; first || now < end; first = false) {
            const result = await client.callTool({ name: 'echo', arguments: { text } });
            const got = result.content[0].text;
            if (got.length !== text.length || first && got !== text) throw new Error(`not the text that was sent: ${got}`);
            const done = performance.now();
            latencies.push(done - now);
            now = done;
        }
    }));
    return { elapsed: performance.now() - began, latencies: latencies.sort((a, b) => a - b) };
}

// The compiler needs seconds rather than milliseconds to warm up.
await run(Math.max(Number(ms) / 4, Number(process.env.BENCH_NODE_WARMUP ?? 2000)));
const before = process.cpuUsage();
const { elapsed, latencies } = await run(Number(ms));
const { user, system } = process.cpuUsage(before);

const ns = milliseconds => Math.round(milliseconds * 1e6);
const quantile = q => ns(latencies[Math.min(Math.floor(q * latencies.length), latencies.length - 1)]);
const peak = /VmHWM:\s*(\d+)/.exec(process.platform === 'linux' ? readFileSync('/proc/self/status', 'utf8') : '')?.[1] ?? 0;
console.log(JSON.stringify({
    calls: latencies.length, elapsedNs: ns(elapsed), p50Ns: quantile(0.5), p99Ns: quantile(0.99),
    cpuNs: (user + system) * 1000, bytes: 0, objects: 0, gcs: 0, peakBytes: Number(peak) * 1024
}));
await client.close();
process.exit(0);
