// Client: @modelcontextprotocol/inspector, its CLI. It knows one method a run, so that
// each request has a connection of its own. The variable INTEROP_MODE is the era that
// it is told. The first request is made by the program itself; for the others its CLI
// is called here, as the program does it, because a process for each is a second each.
import { spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { run } from './checks.mjs';

const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json');
const built = name => path.join(path.dirname(manifest), 'clients', name, 'build', 'index.js');
const { runCli } = await import(pathToFileURL(built('cli')));
const OUTPUT = 'inspected.json';

run(options => {
    const target = options.http
        ? ['--transport', 'http', '--server-url', options.http, '--stored-auth-only']
        : ['--', ...options.stdio];
    const inspect = async (start, method, ...args) => {
        await rm(OUTPUT, { force: true });
        let failure;
        await start([
            '--quiet', '--output', OUTPUT, '--protocol-era', process.env.INTEROP_MODE, '--method', method, ...args, ...target
        ]).catch(error => { failure = error; });
        // A tool that failed has a result, too.
        return readFile(OUTPUT, 'utf8').then(JSON.parse, error => { throw failure ?? error; });
    };
    const request = (method, ...args) => inspect(inProcess, method, ...args);
    return {
        oneShot: true,
        async connect() {
            const { serverInfo, protocolVersion } = await inspect(asProgram, 'initialize');
            return { server: serverInfo?.name, version: protocolVersion };
        },
        listTools: async () => (await request('tools/list')).tools,
        listResources: async () => (await request('resources/list')).resources,
        listPrompts: async () => (await request('prompts/list')).prompts,
        callTool: (name, args) => request('tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)),
        readResource: async uri => (await request('resources/read', '--uri', uri)).contents,
        getPrompt: async (name, args) => (await request('prompts/get', '--prompt-name', name,
            ...Object.entries(args).flatMap(([key, value]) => ['--prompt-args', `${key}=${value}`]))).messages,
        close: async () => {}
    };
});

function inProcess(args) {
    return runCli([process.execPath, built('cli'), ...args]);
}

function asProgram(args) {
    const { promise, resolve, reject } = Promise.withResolvers();
    const child = spawn(process.execPath, [built('launcher'), '--cli', ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', text => { said += text; });
    child.on('error', reject);
    child.on('close', (code, signal) => {
        if (code === 0) resolve();
        else reject(new Error(`the inspector ended with ${signal ?? `status ${code}`}: ${said}`));
    });
    return promise;
}
