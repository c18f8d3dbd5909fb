import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attempt, TaskSummary } from "../src/api-types.ts";
import { cellAt, countResults, gridOf, groupErrors, hostList, mergePage, pause, replaceRows, resultOf, sample, speed, taskNumber, type Sample } from "../src/pages/task-model.ts";

const attempt = (ip: string, verdict: string, message = "", code = "", state = ""): Attempt =>
  ({ host: { agent: `a-${ip}`, cloud: 0, ip }, namespace: "web", name: "nginx", action: "start", state, verdict, message, code, managed: true });

test("results are told apart", () => {
  assert.equal(resultOf(attempt("1", "running", "", "", "pending")), "waiting");
  assert.equal(resultOf(attempt("1", "running", "", "", "dispatched")), "running");
  assert.deepEqual(countResults([attempt("1", "done"), attempt("2", "noted"), attempt("3", "failed"), attempt("4", "running")]),
    { failed: 1, running: 1, waiting: 0, noted: 1, done: 1 });
});

test("errors are grouped by text without what differs between hosts", () => {
  const list = [
    attempt("10.0.0.1", "failed", "pid 17 of web:nginx on 10.0.0.1 does not answer", "timeout"), attempt("10.0.0.2", "done"),
    attempt("10.0.0.3", "failed", "pid 4242 of web:nginx on 10.0.0.3 does not answer", "timeout"),
    attempt("10.0.0.4", "failed", "no such file", "command_failed"), attempt("10.0.0.5", "failed", "a newer one", "superseded"),
  ];
  const groups = groupErrors(list);
  assert.equal(groups.length, 3);
  assert.deepEqual(groups[0].positions, [0, 2]);
  assert.deepEqual(groups[0].hosts, ["0:10.0.0.1", "0:10.0.0.3"]);
  assert.equal(groups[0].message, list[0].message);
  assert.equal(groups.find((g) => g.code === "superseded")!.repeats, false);
  assert.equal(hostList([list[0], list[0], list[3]]), "0:10.0.0.1\n0:10.0.0.4");
});

test("a hostile message does not take long", () => {
  const begin = Date.now();
  groupErrors([attempt("10.0.0.1", "failed", "a".repeat(200_000), "x"), attempt("10.0.0.2", "failed", "-/.:".repeat(50_000), "x")]);
  assert.ok(Date.now() - begin < 2000);
});

test("speed and time left", () => {
  let list: Sample[] = [];
  list = sample(list, { at: 1000, ended: 0 });
  assert.equal(speed(list, 100, 1000), undefined);
  list = sample(list, { at: 3000, ended: 20 });
  assert.deepEqual(speed(list, 80, 3000), { rate: 10, left: 8 });
  list = sample(list, { at: 100_000, ended: 20 }); // nothing happened for long
  assert.equal(speed(list, 80, 100_000)?.left, undefined);
});

test("large tasks are read less often", () => {
  assert.equal(pause(20, 10), 1000);
  assert.equal(pause(900, 50_000), 7200);
  assert.equal(pause(60_000, 100_000), 30_000);
});

test("cells fit into their place", () => {
  const big = gridOf(100_000, 1200, 320);
  assert.equal(big.size, 2);
  assert.ok(big.rows * big.size <= 340);
  const small = gridOf(7, 300, 320);
  assert.deepEqual(small, { size: 20, columns: 15, rows: 1 });
  assert.equal(cellAt(small, 7, 45, 5), 2);
  assert.equal(cellAt(small, 7, 145, 5), -1);
  assert.equal(cellAt(small, 7, 5, 25), -1);
});

const row = (n: number, final = true): TaskSummary => ({
  task_id: `GSETASK:20260102030405:${n}`, at: null, app: "a", user: "u", door: "api", actions: ["start"], final,
  counts: { targets: 1, done: 1, noted: 0, failed: 0, running: 0 }, processes: [],
});

test("the list of tasks follows changes", () => {
  assert.equal(taskNumber("GSETASK:20260102030405:17"), 17);
  const numbers = (l: TaskSummary[]) => l.map((s) => taskNumber(s.task_id));
  const list = [row(9), row(8), row(7), row(3)];
  assert.deepEqual(numbers(mergePage(list, [row(10), row(8)], true)), [10, 8, 7, 3]); // 9 does not fit any more
  assert.deepEqual(numbers(mergePage(list, [], false)), []);
  const changed = replaceRows(list, [row(8, false), row(11)]);
  assert.equal(changed.isNew, true);
  assert.equal(changed.list[1].final, false);
  assert.equal(replaceRows(list, [row(8)]).isNew, false);
});
