// The checks that every JavaScript client runs. A client is an adapter: an
// object with the methods used below, over the SDK that it stands for. One
// line of JSON per check goes to stdout; the exit status says nothing about
// the checks, only about the run.
import process from 'node:process';
import { isDeepStrictEqual } from 'node:util';

const CALL_TIMEOUT = 20_000;

// How much of its time a check waits: a fifth if it is known to fail.
let patience = 1;

export function parseArgs(argv) {
    const options = { profile: {}, checks: [], brief: [], era: 'any', http: '', sse: '', stdio: [] };
    for (let i = 0; i < argv.length; i++) {
        switch (argv[i]) {
            case '--profile': options.profile = JSON.parse(argv[++i]); break;
            case '--checks': options.checks = argv[++i].split(','); break;
            case '--brief': options.brief = argv[++i].split(','); break;
            case '--era': options.era = argv[++i]; break;
            case '--http': options.http = argv[++i]; break;
            case '--sse': options.sse = argv[++i]; break;
            case '--stdio': options.stdio = argv.slice(i + 1); i = argv.length; break;
            default: throw new Error(`unknown argument ${argv[i]}`);
        }
    }
    return options;
}

export async function run(makeClient) {
    const options = parseArgs(process.argv.slice(2));
    const { profile } = options;
    const seen = { updated: [], listChanged: [], logs: [], action: 'accept' };
    const client = makeClient(options, seen);
    let connected = false;
    for (const name of options.checks) {
        const start = performance.now();
        const line = { check: name, ok: false, ms: 0, detail: '' };
        patience = options.brief.includes(name) ? 0.2 : 1;
        try {
            if (name !== 'connect' && !connected) throw new Error('not connected');
            const outcome = await within(45_000, name, checks[name](client, profile, seen, options));
            if (name === 'connect') connected = true;
            line.ok = true;
            line.detail = outcome?.detail ?? '';
            if (outcome?.same !== undefined) line.same = outcome.same;
        } catch (error) {
            line.detail = describe(error);
        }
        line.ms = Math.round(performance.now() - start);
        console.log(JSON.stringify(line));
    }
    await within(15_000, 'close', client.close()).catch(error => console.error(`close: ${describe(error)}`));
    process.exit(0);
}

const checks = {
    async connect(client, profile, seen, options) {
        const got = await client.connect();
        expect(got.server === profile.server, `server is ${got.server}, want ${profile.server}`);
        const modern = got.version >= '2026-07-28';
        if (options.era !== 'any') {
            expect(modern === (options.era === 'modern'), `negotiated ${got.version}, want the ${options.era} era`);
        }
        return { detail: `${got.server} ${got.version}` };
    },

    async list(client, profile) {
        const tools = await client.listTools();
        const names = tools.map(tool => tool.name);
        for (const want of profile.tools) {
            // Who cannot be asked may not be shown the tools that ask.
            if (client.oneShot && want === profile.elicit?.tool) continue;
            expect(names.includes(want), `no tool ${want} in ${names}`);
        }
        return { detail: `${tools.length} tools`, same: await digest(tools) };
    },

    async call(client, profile) {
        const text = 'Grüezi "\\" \n\t\u2028 🎈 \u0000 </script>';
        const got = await echo(client, profile, text, 0);
        expect(got === text, `echo gave ${JSON.stringify(got)}`);
    },

    async structured(client, profile) {
        const { tool, args, want } = profile.structured;
        const result = await client.callTool(tool, args, { timeout: CALL_TIMEOUT });
        const got = result.structuredContent;
        expect(isDeepStrictEqual(got, want), `the structured content is ${JSON.stringify(got)}`);
        expect(isDeepStrictEqual(JSON.parse(textOf(result)), want), `the text is ${textOf(result)}`);
    },

    async error(client, profile) {
        const outcome = async (tool, args) => {
            try {
                const result = await client.callTool(tool, args, { timeout: CALL_TIMEOUT });
                expect(result.isError, `${tool} did not fail`);
                return `isError ${textOf(result)}`;
            } catch (error) {
                if (error instanceof Mismatch) throw error;
                return `error ${error.code} ${error.message}`;
            }
        };
        const got = [];
        if (!(client.oneShot && profile.fail)) got.push(await outcome('no-such-tool', {}));
        if (profile.fail) got.push(await outcome(profile.fail.tool, profile.fail.args ?? {}));
        if (!client.oneShot) await checks.call(client, profile);
        return { detail: got.join('; '), same: got.join('; ') };
    },

    async read(client, profile) {
        const resources = await client.listResources();
        expect(resources.some(r => r.uri === profile.read.uri), `${profile.read.uri} is not listed`);
        const contents = await client.readResource(profile.read.uri);
        const text = contents.map(c => c.text ?? '').join('');
        expect(text.includes(profile.read.want), `read gave ${JSON.stringify(text.slice(0, 80))}`);
        return { detail: `${text.length} characters`, same: await digest(contents) };
    },

    async prompt(client, profile) {
        const prompts = await client.listPrompts();
        expect(prompts.some(p => p.name === profile.prompt.name), `${profile.prompt.name} is not listed`);
        const messages = await client.getPrompt(profile.prompt.name, profile.prompt.args);
        const text = messages.map(m => m.content.text ?? '').join('');
        expect(text.includes(profile.prompt.want), `prompt gave ${JSON.stringify(text)}`);
        return { same: await digest(messages) };
    },

    async complete(client, profile) {
        const { prompt, argument, value, want } = profile.complete;
        const values = await client.complete(prompt, argument, value);
        expect(JSON.stringify(values) === JSON.stringify(want), `completion gave ${JSON.stringify(values)}`);
    },

    // The SDKs drop progress that they read in one piece with the result, as
    // happens on a busy machine.
    async progress(client, profile) {
        let steps = [];
        for (let i = 0; i < 3 && steps.length < 2; i++) {
            const came = steps = [];
            await client.callTool(profile.progress.tool, profile.progress.args, {
                timeout: CALL_TIMEOUT, onprogress: p => came.push(p.progress)
            });
        }
        const before = steps.length;
        expect(before >= 2, `${before} progress notifications before the result: ${steps}`);
        expect(steps.every((step, i) => i === 0 || step > steps[i - 1]), `progress not increasing: ${steps}`);
        await sleep(100);
        return { detail: `${before} notifications, ${steps.length - before} late` };
    },

    async cancel(client, profile) {
        const { tool, args, count } = profile.cancel;
        const abort = new AbortController();
        let aborted = 0;
        const onprogress = () => {
            if (aborted) return;
            aborted = performance.now();
            abort.abort(new Error('enough'));
        };
        let failure;
        await client.callTool(tool, args, { timeout: CALL_TIMEOUT, signal: abort.signal, onprogress })
            .catch(error => { failure = error; });
        expect(aborted, `no progress to abort after: ${failure ? describe(failure) : 'call returned'}`);
        const took = Math.round(performance.now() - aborted);
        expect(failure, 'the aborted call returned a result');
        expect(took < 2000, `the aborted call took ${took} ms to end`);
        await checks.call(client, profile);
        if (!count) return { detail: `ended after ${took} ms` };
        await eventually(5000, 'the server did not see the cancellation', async () =>
            Number(textOf(await client.callTool(count, {}, { timeout: CALL_TIMEOUT }))) >= 1);
        return { detail: `ended after ${took} ms, seen by the server` };
    },

    async log(client, profile, seen) {
        await client.setLevel('debug');
        seen.logs.length = 0;
        await client.callTool(profile.log.tool, profile.log.args, { timeout: CALL_TIMEOUT, logLevel: 'debug' });
        const want = profile.log.want ?? '';
        await eventually(8000, 'no log message', () => seen.logs.some(l => JSON.stringify(l).includes(want)));
        return { detail: JSON.stringify(seen.logs[0]).slice(0, 100) };
    },

    async updated(client, profile, seen) {
        const { uri, tool, args } = profile.updated;
        const close = await client.subscribe(uri);
        seen.updated.length = 0;
        await client.callTool(tool, args, { timeout: CALL_TIMEOUT });
        await eventually(8000, 'no resources/updated', () => seen.updated.includes(uri));
        await close();
    },

    async listchanged(client, profile, seen) {
        const { kind, tool, args, grown } = profile.listchanged;
        const close = await client.listenListChanged(kind);
        seen.listChanged.length = 0;
        await client.callTool(tool, args, { timeout: CALL_TIMEOUT });
        await eventually(8000, `no ${kind}/list_changed`, () => seen.listChanged.includes(kind));
        await close();
        if (!grown) return;
        const names = (await client.listTools()).map(tool => tool.name);
        expect(names.includes(grown), `${grown} is not in ${names}`);
    },

    elicit: (client, profile) => question(client, profile.elicit),
    sealed: (client, profile) => question(client, profile.sealed),
    sample: (client, profile) => question(client, profile.sample),
    roots: (client, profile) => question(client, profile.roots),
    url: (client, profile) => question(client, profile.url),

    // The other two answers to a form.
    async decline(client, profile, seen) {
        const { tool, args, want } = profile.decline;
        try {
            for (const action of Object.keys(want).sort()) {
                seen.action = action;
                await question(client, { tool, args, want: want[action] });
            }
        } finally {
            seen.action = 'accept';
        }
    },

    // A legacy client gets -32042 as it came, and asks again once the user has
    // been there. A modern one has no such error: its call ends by itself.
    async urlerror(client, profile) {
        if (client.modern()) return question(client, profile.urlerror);
        const { tool, args } = profile.urlerror;
        const error = await client.callTool(tool, args, { timeout: CALL_TIMEOUT }).then(() => undefined, e => e);
        expect(error?.code === -32042, `first call: ${error ? describe(error) : 'no error'}, want code -32042`);
        return question(client, profile.urlerror);
    },

    async exact(client, profile) {
        const digits = '9007199254740993';
        const got = await client.callTool(profile.exact.tool, { n: JSON.rawJSON(digits) }, { timeout: CALL_TIMEOUT });
        expect(textOf(got) === digits, `${digits} came back as ${textOf(got)}`);
    },

    async big(client, profile) {
        const text = 'x1"\\ü'.repeat(1 << 20).slice(0, 1 << 20);
        const got = await echo(client, profile, text, 1);
        expect(got === text, `1 MiB came back as ${got.length} characters, or changed`);
    },

    // Two calls each of which ends only when the other one is there.
    async meet(client, profile) {
        const { tool, args, want } = profile.meet;
        const results = await Promise.all([0, 1].map(() => client.callTool(tool, args, { timeout: CALL_TIMEOUT })));
        for (const result of results) expect(textOf(result) === want, `${tool} gave ${textOf(result)}`);
    },

    async many(client, profile) {
        await Promise.all(Array.from({ length: 20 }, async (_, i) => {
            const text = `call ${i} of twenty`;
            const got = await echo(client, profile, text, 100 + i);
            expect(got === text, `call ${i} got ${JSON.stringify(got)}`);
        }));
    }
};

class Mismatch extends Error {}

function expect(condition, message) {
    if (!condition) throw new Mismatch(message);
}

async function question(client, { tool, args, want }) {
    let text = '';
    await eventually(8000, () => `answer not used: ${JSON.stringify(text.slice(0, 300))}`, async () => {
        text = textOf(await client.callTool(tool, args ?? {}, { timeout: CALL_TIMEOUT }));
        return text.includes(want);
    });
}

async function echo(client, profile, text, i) {
    let result;
    for (const { tool, args } of profile.echo.steps) {
        result = await client.callTool(tool, filled(args, text, String(i)), { timeout: CALL_TIMEOUT });
    }
    if (profile.echo.at) return profile.echo.at.reduce((value, step) => value?.[step], result.structuredContent);
    const got = textOf(result);
    const prefix = profile.echo.prefix ?? '';
    expect(got.startsWith(prefix), `echo gave ${JSON.stringify(got.slice(0, 80))}`);
    return got.slice(prefix.length);
}

// filled gives a value with what its texts leave open.
function filled(value, text, i) {
    if (value === '$TEXT') return text;
    if (typeof value === 'string') return value.replace('$I', i);
    if (Array.isArray(value)) return value.map(item => filled(item, text, i));
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, text, i)]));
}

function textOf(result) {
    return result.content.map(c => c.text ?? '').join('');
}

async function digest(value) {
    const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(value)));
    return Buffer.from(hash).toString('hex').slice(0, 16);
}

async function eventually(ms, message, condition) {
    for (const end = performance.now() + ms * patience; performance.now() < end; await sleep(50)) {
        if (await condition()) return;
    }
    throw new Mismatch(typeof message === 'function' ? message() : message);
}

function within(ms, what, promise) {
    let timer;
    const expired = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Mismatch(`${what}: no end after ${ms} ms`)), ms);
    });
    return Promise.race([promise, expired]).finally(() => clearTimeout(timer));
}

function sleep(ms) {
    return new Promise(resolve => setTimeout(resolve, ms));
}

function describe(error) {
    const code = error?.code === undefined ? '' : ` (code ${error.code})`;
    const cause = error?.cause ? `: ${error.cause.message ?? error.cause}` : '';
    return `${error?.message ?? error}${code}${cause}`.slice(0, 400);
}
