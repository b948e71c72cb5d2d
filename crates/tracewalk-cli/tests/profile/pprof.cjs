// Reads a profile for pprof with DataDog's pprof-format, checks what the format demands, and prints JSON: the types of
// values, and chains of calls with their values.
//
//     node pprof.cjs NODE_MODULES FILE
"use strict";
const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const zlib = require("node:zlib");
const [modules, file] = process.argv.slice(2);
const { Profile } = require(path.join(modules, "pprof-format"));

const bytes = fs.readFileSync(file);
assert.deepStrictEqual([...bytes.subarray(0, 2)], [0x1f, 0x8b], "it is gzipped");
const profile = Profile.decode(zlib.gunzipSync(bytes));
const strings = profile.stringTable.strings;
assert.strictEqual(strings[0], "", "the first string is empty");
assert.strictEqual(new Set(strings).size, strings.length, "each string is there once");
const text = (index) => {
    assert.ok(Number(index) < strings.length, `string ${index}`);
    return strings[Number(index)];
};
const byId = (things, what) => {
    const map = new Map(things.map((thing) => [Number(thing.id), thing]));
    assert.strictEqual(map.size, things.length, `${what} have different numbers`);
    assert.ok(!map.has(0), `${what} have numbers from 1`);
    return (id) => {
        assert.ok(map.has(Number(id)), `${what} ${id}`);
        return map.get(Number(id));
    };
};
const mapping = byId(profile.mapping, "mappings");
const location = byId(profile.location, "locations");
const functions = byId(profile.function, "functions");
const types = profile.sampleType.map((type) => `${text(type.type)}/${text(type.unit)}`);
assert.ok(types.length > 0);
assert.ok(profile.sampleType.some((type) => type.type === profile.defaultSampleType), "the default type is one of them");
const chains = {};
const lines = {};
for (const sample of profile.sample) {
    assert.strictEqual(sample.value.length, types.length, "a sample has a value of each type");
    const names = [];
    for (const id of sample.locationId) {
        const place = location(id);
        mapping(place.mappingId);
        assert.ok(place.line.length > 0, "a location has a line");
        place.line.forEach((line, index) => {
            const inlined = index + 1 < place.line.length;
            names.push(text(functions(line.functionId).name) + (inlined ? "_[i]" : ""));
        });
    }
    const values = sample.value.map(Number);
    const chain = names.reverse().join(";");
    chains[chain] = (chains[chain] || types.map(() => 0)).map((sum, index) => sum + values[index]);
    const line = location(sample.locationId[0]).line[0];
    const place = `${text(functions(line.functionId).filename)}:${line.line}`;
    lines[place] = (lines[place] || types.map(() => 0)).map((sum, index) => sum + values[index]);
}
const comments = profile.comment.map(text);
console.log(JSON.stringify({ types, chains, lines, comments, default: text(profile.defaultSampleType) }));
