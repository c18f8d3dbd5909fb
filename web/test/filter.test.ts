import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFilter, matching, parseFilter, pattern, sortRows } from "../src/live/filter.ts";
import { Table } from "../src/live/table.ts";

/** Bytes as a browser gets them: in parts that end anywhere. */
function parts(bytes: Uint8Array, size: number): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(c) {
      for (let at = 0; at < bytes.length; at += size) c.enqueue(bytes.slice(at, at + size));
      c.close();
    },
  });
}

/** The snapshot of a small fleet: four rows, with ids that may have holes. */
function snapshot(ids: number[]): Uint8Array {
  const header = {
    epoch: "e", seq: 7, rows: 4, time: 1, states: ["running", "failed"],
    hosts: { agent: ["a1", "a2"], ip: ["10.0.0.1", "10.0.0.2"], cloud: [0, 1], online: [1, 0] },
    names: { space: ["web", "db"], name: ["nginx", "redis"] },
    places: [[0, "", "", ""], [2, "商城", "一区", "网关"]],
  };
  let text = JSON.stringify(header);
  let json = new TextEncoder().encode(text);
  while ((8 + json.length) % 8) { text += " "; json = new TextEncoder().encode(text); }

  const columns = [
    new Uint32Array(ids), new Uint32Array([0, 0, 1, 1]), new Uint32Array([0, 1, 0, 1]), new Uint32Array([1, 0, 1, 0]),
    new Uint32Array([100, 400, 200, 300]), new Int32Array([11, 12, -1, 14]), new Uint32Array([5, 6, 7, 8]),
    new Uint16Array([0, 1, 2, 3]), new Uint16Array([10, 30, 20, 30]), new Uint8Array([0, 0, 1, 0]), new Uint8Array([1, 1, 3, 2]),
  ];
  const size = columns.reduce((sum, c) => sum + Math.ceil(c.byteLength / 8) * 8, 8 + json.length);
  const bytes = new Uint8Array(size);
  bytes.set(new TextEncoder().encode("GZL1"));
  new DataView(bytes.buffer).setUint32(4, json.length, true);
  bytes.set(json, 8);
  let at = 8 + json.length;
  for (const c of columns) {
    bytes.set(new Uint8Array(c.buffer), at);
    at += Math.ceil(c.byteLength / 8) * 8;
  }
  return bytes;
}

const small = await Table.read(parts(snapshot([0, 2, 5, 6]), 1000));
const fleet = () => small;
const found = (text: string) => [...matching(fleet(), parseFilter(text))];

test("a snapshot is read", async () => {
  const t = fleet();
  assert.equal(t.count, 4);
  assert.deepEqual(t.byState, [3, 1]);
  assert.equal(t.staleRows, 2);
  assert.equal(t.has(1), false);
  assert.equal(t.pid[5], -1);

  for (const ids of [[0, 2, 5, 6], [0, 1, 2, 3]]) {
    const bytes = snapshot(ids);
    for (const size of [1, 7, 64, bytes.length]) {
      const t = await Table.read(parts(bytes, size));
      assert.equal(t.top, ids[3] + 1);
      assert.equal(t.count, 4);
      assert.deepEqual(ids.map((id) => t.mem[id]), [100, 400, 200, 300]);
      assert.deepEqual(ids.map((id) => t.pid[id]), [11, 12, -1, 14]);
      assert.deepEqual(ids.map((id) => t.state[id]), [0, 0, 1, 0]);
      assert.deepEqual(ids.map((id) => t.flags[id]), [1, 1, 3, 2]);
    }
    await assert.rejects(Table.read(parts(bytes.slice(0, -1), 50)));
  }
  await assert.rejects(Table.read(parts(new Uint8Array(16), 16)));
});

test("filters find rows", () => {
  assert.deepEqual(found(""), [0, 2, 5, 6]);
  assert.deepEqual(found("state:failed"), [5]);
  assert.deepEqual(found("nginx"), [0, 5]);
  assert.deepEqual(found("name:ng*"), [0, 5]);
  assert.deepEqual(found("ns:db host:10.0.0.2"), [6]);
  assert.deepEqual(found("cloud:1"), [5, 6]);
  assert.deepEqual(found("biz:商城"), [0, 5]);
  assert.deepEqual(found("biz:2 set:一区 module:网关 managed:yes state:running"), [0]);
  assert.deepEqual(found("managed:no"), [6]);
  assert.deepEqual(found("stale:yes redis"), [6]);
  assert.deepEqual(found("网关 10.0.0.1"), [0]);
  assert.deepEqual(found("nothing-fits"), []);
});

test("filters find processes of a business as they are shown", async () => {
  const t = await Table.read(parts(snapshot([0, 1, 2, 3]), 64));
  t.names.space.push("GSEKIT_BIZ_2", "GSEKIT_BIZ_2");
  t.names.name.push("web_1", "web_2");
  t.name[0] = 2;
  t.name[2] = 3;
  for (const [text, want] of [["name:web", [0, 2]], ["name:web_2", [2]], ['name:"web #2"', [2]], ["web #2", [2]], ["ns:商城", [0, 2]],
    ["ns:GSEKIT_BIZ_2", [0, 2]], ["GSEKIT_BIZ_2/web_1", [0]], ["ns:web", []], ["state:FAILED", [2]]] as const) {
    assert.deepEqual([...matching(t, parseFilter(text))], [...want], text);
  }
});

test("the text of a filter stands for it", () => {
  for (const text of ["state:failed,running web", "biz:\"my shop\" x", "[a, b].*.*.*.4[6, 8, 9]", "managed:no stale:yes"]) {
    assert.deepEqual(parseFilter(formatFilter(parseFilter(text))), parseFilter(text));
  }
  assert.equal(parseFilter("[管控平台, PaaS平台].*.*.*.4[6, 8, 9]").expression, "[管控平台, PaaS平台].*.*.*.4[6, 8, 9]");
  assert.equal(parseFilter("10.0.0.1").expression, "");
});

test("patterns are no regular expressions", () => {
  assert.equal(pattern("a.c")("abc"), false);
  assert.equal(pattern("a(*")("a(b"), true);
  assert.equal(pattern("?")("鹅"), true);
});

test("rows are sorted", () => {
  const t = fleet();
  let ids = matching(t, parseFilter(""));
  sortRows(t, ids, "cpu", true);
  assert.deepEqual([...ids], [2, 6, 5, 0]);
  sortRows(t, ids, "mem", false);
  assert.deepEqual([...ids], [0, 5, 6, 2]);
  ids = matching(t, parseFilter(""));
  sortRows(t, ids, "state", false);
  assert.equal(ids[0], 5);
  sortRows(t, ids, "mem", true);
  assert.deepEqual([...ids], [2, 6, 5, 0]);
  assert.deepEqual([...matching(t, parseFilter(""), new Uint8Array([1, 1, 0, 0, 0, 1, 0]))], [0, 5]);
});

test("changes are applied", () => {
  const t = fleet();
  const b = new DataView(new ArrayBuffer(16 + 8 + 8 + 36 + 4));
  [1, 1, 1, 1].forEach((n, i) => b.setUint32(i * 4, n, true));
  b.setUint32(16, 0, true); b.setUint8(20, 1); b.setUint8(21, 0); b.setUint16(22, 99, true); // row 0 fails
  b.setUint32(24, 2, true); b.setUint32(28, 4242, true); // memory of row 2
  [9, 1, 0, 1, 50].forEach((n, i) => b.setUint32(32 + i * 4, n, true)); // a new row 9
  b.setInt32(52, 77, true); b.setUint32(56, 9, true); b.setUint16(60, 1, true); b.setUint16(62, 5, true); b.setUint8(64, 0); b.setUint8(65, 1);
  b.setUint32(68, 5, true); // row 5 is gone
  t.apply({ seq: 8, b: btoa(String.fromCharCode(...new Uint8Array(b.buffer))), online: [[1, 1]] });

  assert.equal(t.seq, 8);
  assert.equal(t.count, 4);
  assert.deepEqual(t.byState, [3, 1]);
  assert.equal(t.cpu[0], 99);
  assert.equal(t.mem[2], 4242);
  assert.equal(t.pid[9], 77);
  assert.equal(t.has(5), false);
  assert.equal(t.has(8), false);
  assert.deepEqual(t.hosts.online, [1, 1]);
  assert.equal(t.staleRows, 1);
});
