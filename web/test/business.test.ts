import assert from "node:assert/strict";
import { test } from "node:test";
import { bizOf, complete, escapeField, joinExpression, liveCounts, moduleKey, namesOf, splitExpression, strangers, sum } from "../src/pages/business-model.ts";
import { Table } from "../src/live/table.ts";

test("expressions are split and joined", () => {
  assert.deepEqual(splitExpression("[管控平台, PaaS.平台].*.10\\.0\\.0\\.1_web.*.4[6, 8, 9]"), ["[管控平台, PaaS.平台]", "*", "10\\.0\\.0\\.1_web", "*", "4[6, 8, 9]"]);
  assert.deepEqual(splitExpression(""), ["*", "*", "*", "*", "*"]);
  assert.equal(escapeField("10.0.0.1_web"), "10\\.0\\.0\\.1_web");
  assert.equal(escapeField("10\\.0"), "10\\.0");
  assert.equal(escapeField("[a.b, c]"), "[a.b, c]");
  assert.equal(escapeField("  "), "*");
  for (const e of ["front.*.*.nginx.*", "*.[a.b].x\\.y.*.1-3"]) assert.equal(joinExpression(splitExpression(e)), e);
});

const names = namesOf({ sets: [
  { name: "front", modules: [{ name: "web", instances: [{ name: "10.0.0.1_web", processes: [{ id: 46, name: "nginx" }, { id: 47, name: "redis" }] }] }] },
  { name: "后端", modules: [{ name: "db", instances: [{ name: "x", processes: [{ id: 5, name: "mysql" }] }] }, { name: "empty" }] },
] });

test("completion follows the fields before", () => {
  assert.equal(names.length, 3);
  assert.deepEqual(complete(names, ["*", "*", "*", "*", "*"], 0), ["front", "后端"].sort((a, b) => a.localeCompare(b, undefined, { numeric: true })));
  assert.deepEqual(complete(names, ["front", "*", "*", "*", "*"], 3), ["nginx", "redis"]);
  assert.deepEqual(complete(names, ["*", "*", "*", "sql", "*"], 3), ["mysql"]);
  assert.deepEqual(complete(names, ["*", "*", "10\\.0\\.0\\.1_web", "*", "*"], 4), ["46", "47"]);
  assert.deepEqual(namesOf(null), []);
});

test("instances are counted by place and state", () => {
  const t = new Table();
  Object.assign(t, {
    states: ["running", "failed"], places: [[0, "", "", ""], [2, "shop", "front", "web"], [2, "shop", "front", "db"]],
    names: { space: ["GSEKIT_BIZ_2", "other"], name: ["a_1", "b"] },
    top: 5, state: new Uint8Array([0, 0, 1, 255, 0]), place: new Uint32Array([1, 1, 2, 1, 0]), name: new Uint32Array([0, 0, 0, 0, 0]),
  });
  const c = liveCounts(t).get(2)!;
  assert.deepEqual(c.biz, { running: 2, failed: 1 });
  assert.equal(sum(c.sets.get("front")), 3);
  assert.deepEqual(c.modules.get(moduleKey("front", "db")), { failed: 1 });
  assert.deepEqual(strangers(t, 2), [4]);
  assert.deepEqual(strangers(t, 3), []);
});

test("the business of a document is found", () => {
  assert.equal(bizOf("# comment\nbiz: 12\nname: x"), 12);
  assert.equal(bizOf('{"name":"x","biz":7}'), 7);
  assert.equal(bizOf("name: x"), 0);
});
