import assert from "node:assert/strict";
import { test } from "node:test";
import { diffLines, documentText, same } from "../src/ui/diff.ts";
import { cleanLine, Cutter, mergeLines, searchLines, timeOf } from "../src/ui/loglines.ts";

test("diff", () => {
  const show = (a: string, b: string) => diffLines(a, b).map((l) => l.sign + l.text).join("|");
  assert.equal(show("a\nb\nc\n", "a\nx\nc\n"), " a|-b|+x| c");
  assert.equal(show("a\nb", "a\nb"), " a| b");
  assert.equal(show("a\nb\nc\nd", "b\nd\ne"), "-a| b|-c| d|+e");
  const long = Array.from({ length: 3000 }, (_, i) => `l${i}`).join("\n");
  assert.equal(diffLines(long, long.replaceAll("l", "m")).length, 6000);
});

test("documents", () => {
  assert.equal(documentText({ name: "web", limits: { files: 5 }, after: ["a"], command: "x\ny" }), "name: web\nlimits.files: 5\nafter: [\"a\"]\ncommand:\n  x\n  y");
  assert.ok(same({ a: [1, { b: 2 }], c: null }, { c: null, a: [1, { b: 2 }] }));
  assert.ok(!same({ a: 1 }, { a: 1, b: undefined }));
  assert.ok(!same([1], { 0: 1 }));
});

test("log lines are safe to show", () => {
  assert.equal(cleanLine("\u001b[31mred\u001b[0m \u001b]0;title\u0007x"), "red x");
  assert.equal(cleanLine("10%\r50%\r100%\r"), "100%");
  assert.equal(cleanLine("a\u0000b\u202ec\td"), "a⟨0000⟩b⟨202E⟩c\td");
  assert.ok(cleanLine("x".repeat(100_000)).length < 4100);
});

test("times of lines", () => {
  assert.equal(timeOf("2026-11-17T03:04:05.678Z hello"), Date.UTC(2026, 10, 17, 3, 4, 5, 678));
  assert.equal(timeOf("[2026/11/17 03:04:05,6 +0800] x") !== undefined, true);
  assert.equal(timeOf("2026-11-17 03:04:05+0800 x"), Date.UTC(2026, 10, 16, 19, 4, 5));
  assert.equal(timeOf("hello"), undefined);
  assert.equal(timeOf("2026-99-99 99:99:99"), undefined);
});

test("logs of several hosts are merged by time, in bounds", () => {
  const a = new Cutter("a"), b = new Cutter("b");
  let lines = mergeLines([], [...a.add("2026-11-17T00:00:01Z one\n  at line 1\n2026-11-17T00:00:03Z three\n2026-11-17T00:0", 9), ...b.add("2026-11-17T00:00:02Z two\n", 9)]);
  assert.deepEqual(lines.map((l) => l.text.replace(/^2026\S+ /, "")), ["one", "  at line 1", "two", "three"]);
  lines = mergeLines(lines, a.add("0:04Z four\n", 10));
  assert.equal(lines.at(-1)!.text, "2026-11-17T00:00:04Z four");
  assert.equal(searchLines(lines, "TWO").length, 1);

  const c = new Cutter("c");
  lines = mergeLines([], c.add("x\n".repeat(20), 5), 8);
  assert.equal(lines.length, 8);
  assert.equal(lines[7].id, 19);
});
