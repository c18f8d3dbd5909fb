import assert from "node:assert/strict";
import { test } from "node:test";
import { diffLines, documentText, same } from "../src/ui/diff.ts";
import { cleanLine, Cutter, mergeLines, searchLines, timeOf } from "../src/ui/loglines.ts";
import type { Process } from "../src/api-types.ts";
import { limitsOf, sizeOf } from "../src/pages/process-limits.ts";
import { belongs, parse, read, show, write, type Document } from "../src/pages/register-fields.ts";

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

test("the form of a definition loses nothing", () => {
  let doc: Document = { name: "web", restart: "on-failure", health: "http://x/", spec: { odd: 1 }, command: ["a", "b"] };
  assert.equal(read(doc, "restart.policy"), "on-failure");
  assert.equal(read(doc, "health.http"), "http://x/");
  doc = write(doc, "restart.delay", "2s");
  doc = write(doc, "health.interval", "5s");
  assert.deepEqual(doc, { name: "web", restart: { policy: "on-failure", delay: "2s" }, health: { http: "http://x/", interval: "5s" }, spec: { odd: 1 }, command: ["a", "b"] });
  doc = write(write(doc, "restart.delay", undefined), "restart.policy", undefined);
  assert.equal("restart" in doc, false);
  assert.deepEqual(Object.keys(write(doc, "name", "x"))[0], "name");

  assert.equal(show("lines", ["a", "b"]), null);
  assert.equal(show("pairs", { A: "1", B: "x=y" }), "A=1\nB=x=y");
  assert.equal(show("pairs", { A: "1\n2" }), null);
  assert.deepEqual(parse("pairs", "A=1\nB=x=y\n\nC"), { A: "1", B: "x=y", C: "" });
  assert.deepEqual(parse("list", "a, b,,"), ["a", "b"]);
  assert.equal(parse("number", " 12 "), 12);
  assert.equal(parse("number", "many"), "many");
  assert.equal(parse("text", "  "), undefined);
  assert.ok(belongs("env.A", "env") && belongs("hosts[0].ip", "hosts") && belongs("restart", "restart.policy") && !belongs("restart", "restart.delay"));
});

test("how close an instance is to its limits", () => {
  const p = { mem_bytes: 100 * 2 ** 20, mem: 10, cpu: 25, fd: 90, disk: 0, net: 0 } as Process;
  assert.equal(sizeOf("512M"), 512 * 2 ** 20);
  assert.equal(sizeOf("x"), undefined);
  const shares = (doc: unknown, cpus = 0) => Object.fromEntries(limitsOf(doc, p, cpus).map((l) => [l.kind, Math.round(l.share * 100)]));
  assert.deepEqual(shares({ memory: "200M", cpu: "50%", limits: { files: 100 } }, 4), { memory: 50, cpu: 50, files: 90 });
  assert.deepEqual(shares({ memory: "20%", cpu: 2 }, 4), { memory: 50, cpu: 50 });
  assert.deepEqual(shares({}), {});
});
