import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

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
