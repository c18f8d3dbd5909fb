import assert from "node:assert/strict";
import { test } from "node:test";
import { arrange, cellAt, heightOf, paint } from "../src/live/heat.ts";
import { Table } from "../src/live/table.ts";

/** A fleet of n rows on hosts of ten processes, in two businesses; every 100th row is in a crash loop. */
function fleet(n: number): Table {
  const t = new Table();
  const hosts = Math.ceil(n / 10);
  t.states = ["running", "crash_loop", "stopped"];
  t.byState = [0, 0, 0];
  t.hosts = { agent: [], ip: [], cloud: [], online: [] };
  for (let h = 0; h < hosts; h++) {
    t.hosts.agent.push(`a${h}`);
    t.hosts.ip.push(`10.0.${h >> 8}.${h & 255}`);
    t.hosts.cloud.push(0);
    t.hosts.online.push(1);
  }
  t.names = { space: ["web", "db"], name: ["nginx", "redis"] };
  t.places = [[0, "", "", ""], [2, "shop", "one", "gate"], [3, "game", "two", "world"]];
  t.count = t.top = n;
  t.host = Uint32Array.from({ length: n }, (_, i) => Math.floor(i / 10));
  t.name = Uint32Array.from({ length: n }, (_, i) => i % 2);
  t.place = Uint32Array.from({ length: n }, (_, i) => i % 3);
  t.state = Uint8Array.from({ length: n }, (_, i) => (i % 100 === 99 ? 1 : 0));
  t.flags = new Uint8Array(n);
  return t;
}

test("every row has a cell of its own", () => {
  const t = fleet(1000);
  for (const by of ["business", "namespace", "host"] as const) {
    const heat = arrange(t, by, 800, 300);
    assert.equal(new Set(heat.cells).size, 1000);
    assert.equal(heat.blocks.reduce((n, b) => n + b.count, 0), 1000);
    assert.ok(heightOf(heat) <= 300, `${by}: ${heightOf(heat)}`);
    for (const b of heat.blocks) {
      const found = cellAt(heat, b.x, b.y);
      assert.equal(found?.cell, heat.cells[b.first]);
    }
  }
});

test("the worst cells of a group are first, and groups with bad rows too", () => {
  const t = fleet(1000);
  const heat = arrange(t, "namespace", 800, 300);
  const first = heat.blocks[0];
  assert.equal(heat.groups[first.group].label, "db"); // all bad rows have odd numbers
  assert.equal(t.state[heat.cells[first.first]], 1);
  assert.equal(heat.groups[first.group].bad, 10);
});

test("a million rows are cells, more are hosts", () => {
  const heat = arrange(fleet(1_000_000), "business", 1000, 640);
  assert.equal(heat.cells.length, 1_000_000);
  assert.equal(heat.byHost, false);
  const more = arrange(fleet(1_000_010), "business", 1000, 640);
  assert.equal(more.byHost, true);
  assert.equal(more.cells.length, 100_001);
});

test("cells have the colour of their state", () => {
  const t = fleet(200);
  const heat = arrange(t, "namespace", 400, 200);
  const image = new Uint32Array(400 * 200);
  paint(t, heat, image, Uint32Array.from([11, 22, 33]), 44);
  const first = heat.blocks[0];
  assert.equal(image[first.y * 400 + first.x], 22);
  assert.ok(image.includes(11));
  assert.ok(!image.includes(44));
  t.flags[heat.cells[first.first]] = 2; // its host went away
  paint(t, heat, image, Uint32Array.from([11, 22, 33]), 44);
  assert.equal(image[first.y * 400 + first.x], 44);
});
