// Opens a profile with Mozilla's own command line, which is built from the sources of profiler.firefox.com,
// and prints JSON: for each thread its chains of calls with their own weight, its functions' own and total
// weight, its length in milliseconds, and the part of it in which the processor was active.
//
//     node firefox.cjs NODE_MODULES FILE FOLDER
"use strict";
const assert = require("node:assert");
const { execFileSync, spawn } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const [modules, file, temporary] = process.argv.slice(2);
const program = path.join(modules, "@firefox-devtools/profiler-cli/dist/profiler-cli.js");
// Each run keeps its session in a folder of its own, because the end of another run would remove the session's files.
const folder = fs.mkdtempSync(path.join(temporary, "session-"));
// All names are known, so no symbol server is needed.
const env = { ...process.env, HOME: folder, PROFILER_CLI_SESSION_DIR: folder, PROFILER_CLI_NO_SYMBOLICATE: "1" };
const options = { env, encoding: "utf8", timeout: 300000, maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] };
const ask = (...command) =>
    JSON.parse(execFileSync(process.execPath, [program, ...command, "--session", "tracewalk", "--json"], options));

// The profiler's `load` allows half a second for the daemon's start, too little on a busy machine.
const daemon = spawn(process.execPath, [program, "--daemon", file, "--session", "tracewalk"], { env, stdio: "ignore" });
const end = Date.now() + 300000;
const pause = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
// The daemon writes this file when it listens. Without the file, a question removes the session's files, even
// those that the daemon has just written; so no question may come earlier.
const listens = () => {
    try {
        return JSON.parse(fs.readFileSync(path.join(folder, "tracewalk.json"), "utf8"));
    } catch (error) {
        if (Date.now() > end) throw error;
        return undefined;
    }
};
// The daemon reads the profile after that.
const asked = (question) => {
    for (;;) {
        try {
            return ask(...question);
        } catch (error) {
            if (Date.now() > end) throw error;
            pause();
        }
    }
};
try {
    while (!listens()) pause();
    const info = asked(["profile", "info", "--all"]);
    const threads = {};
    for (const { threadHandle, name } of ask("thread", "list").threads) {
        const chains = {};
        const walk = (node, before) => {
            assert.ok(!node.childrenTruncated, `${node.name} has all that it called`);
            const chain = node.originalDepth < 0 ? "" : before + node.name;
            if (node.selfSamples > 0) chains[chain] = (chains[chain] || 0) + node.selfSamples;
            (node.children || []).forEach((child) => walk(child, chain && chain + ";"));
        };
        const tree = ask("thread", "samples-top-down", "--thread", threadHandle, "--max-lines", "1000000");
        walk(tree.regularCallTree, "");
        const functions = {};
        for (const found of ask("thread", "functions", "--thread", threadHandle).functions) {
            assert.ok(!(found.name in functions), `${found.name} is one function`);
            functions[found.name] = [found.selfSamples, found.totalSamples];
        }
        threads[name] = { chains, functions, weights: tree.weightType };
    }
    console.log(JSON.stringify({ threads, info }));
} finally {
    daemon.kill();
}
