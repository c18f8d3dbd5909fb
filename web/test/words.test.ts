import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { actParts } from "../src/pages/audit-model.ts";

// Dictionaries are put together into one: a key in two of them would take the word of the other page.
test("a word is in one dictionary only", () => {
  const seen = new Map<string, string>();
  const twice: string[] = [];
  for (const file of readdirSync("src/words")) {
    for (const [, key] of readFileSync(`src/words/${file}`, "utf8").matchAll(/^\s*"([^"]+)":\s*\{/gm)) {
      if (seen.has(key)) twice.push(`${key} in ${seen.get(key)} and ${file}`);
      seen.set(key, file);
    }
  }
  assert.ok(seen.size > 100);
  assert.deepEqual(twice, []);
});

// Half-width marks stand between Latin words, in patterns and after keys of the filter, never between Chinese characters.
test("Chinese words have Chinese marks", () => {
  const wrong: string[] = [];
  for (const file of readdirSync("src/words")) {
    for (const [, text] of readFileSync(`src/words/${file}`, "utf8").matchAll(/zh: "((?:[^"\\]|\\.)*)"/g)) {
      const plain = text.replace(/“[^”]*”/g, "").replaceAll("云区域:IP", "");
      if (/\p{Script=Han} ?[,;:!()]|[,;:!(] ?\p{Script=Han}|\p{Script=Han}\?(?!$| )/u.test(plain)) wrong.push(text);
    }
  }
  assert.deepEqual(wrong, []);
});

test("an act of the audit begins with what has words", () => {
  assert.deepEqual(actParts("user:login ada 12ab"), { key: "user:login", rest: "ada 12ab" });
  assert.deepEqual(actParts("operate:start,stop"), { key: "operate", rest: "start,stop" });
  assert.deepEqual(actParts("key:signing:rotate:2"), { key: "key:signing:rotate", rest: "2" });
  assert.deepEqual(actParts("something new"), { key: "", rest: "something new" });
});
