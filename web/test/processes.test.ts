import assert from "node:assert/strict";
import { test } from "node:test";
import { matching, parseFilter, sortRows } from "../src/live/filter.ts";
import { Table, flagManaged } from "../src/live/table.ts";
import { facetsOf } from "../src/pages/processes-facets.ts";
import { faultsOf, toggle, toggleManaged, withoutOne } from "../src/pages/processes-filter.ts";
import { between, Picked, rowHeight, Scrolled, tallest, View, type Order } from "../src/pages/processes-view.ts";
import { summarise, tooLarge } from "../src/ui/action-preview.ts";

/** A fleet of n rows: 10 names on n/10 hosts, every seventh failed, every second supervised. */
function fleet(n: number): Table {
  const t = new Table();
  const hosts = Math.ceil(n / 10);
  t.states = ["running", "failed"];
  t.byState = [0, 0];
  t.names = { space: Array(10).fill("shop") as string[], name: Array.from({ length: 10 }, (_, i) => `app-${i}`) };
  t.hosts = { agent: [], ip: [], cloud: [], online: [] };
  for (let h = 0; h < hosts; h++) {
    t.hosts.agent.push(`a${h}`);
    t.hosts.ip.push(`10.${h >> 16}.${(h >> 8) & 255}.${h & 255}`);
    t.hosts.cloud.push(h % 2);
    t.hosts.online.push(h === 0 ? 0 : 1);
  }
  t.places = [[0, "", "", ""], [2, "Shop", "east", "web"], [2, "Shop", "west", "db"]];
  t.top = t.count = n;
  t.host = new Uint32Array(n); t.name = new Uint32Array(n); t.place = new Uint32Array(n); t.mem = new Uint32Array(n);
  t.pid = new Int32Array(n); t.started = new Uint32Array(n); t.restarts = new Uint16Array(n); t.cpu = new Uint16Array(n);
  t.state = new Uint8Array(n); t.flags = new Uint8Array(n);
  for (let i = 0; i < n; i++) {
    t.host[i] = Math.floor(i / 10);
    t.name[i] = i % 10;
    t.place[i] = i % 3;
    t.cpu[i] = (i * 7919) % 1000;
    t.state[i] = i % 7 === 0 ? 1 : 0;
    t.flags[i] = i % 2 ? flagManaged : 0;
    t.byState[t.state[i]]++;
  }
  return t;
}

const byName: Order = { key: "name", down: false };

test("the view looks again only when it must", () => {
  const t = fleet(70), v = new View(), f = parseFilter("state:failed");
  assert.equal(v.refresh(t, f, byName, null, false, 0), true);
  assert.equal(v.matches, 10);
  assert.equal(v.refresh(t, f, byName, null, false, 5000), false, "nothing has changed");
  t.state[1] = 1;
  t.version++;
  assert.equal(v.refresh(t, f, byName, null, false, 100), false, "too early");
  assert.equal(v.refresh(t, f, byName, null, false, 6000), true);
  assert.equal(v.matches, 11);
  assert.equal(v.refresh(t, parseFilter("app-1"), byName, null, false, 6001), true, "a new question is answered at once");
  t.version++;
  assert.equal(v.refresh(t, f, byName, null, false, 6002), true);
  const all = parseFilter("");
  v.refresh(t, all, byName, null, false, 7000);
  t.version++;
  assert.equal(v.refresh(t, all, byName, null, false, 9000), false, "values do not change what is found without a filter");
});

test("a held order does not change, and new rows come last", () => {
  const t = fleet(70), v = new View(), f = parseFilter("state:failed");
  const order: Order = { key: "cpu", down: true };
  v.refresh(t, f, order, null, false, 0);
  const before = [...v.ids];
  t.state[before[0]] = 0;
  t.state[1] = 1;
  t.cpu[1] = 1000;
  t.version++;
  v.refresh(t, f, order, null, true, 1000);
  assert.deepEqual([...v.ids], [...before, 1]);
  assert.equal(v.matches, 10);
  v.refresh(t, f, order, null, false, 2000);
  assert.equal(v.ids[0], 1);
  assert.equal(v.ids.length, 10);
});

test("the selection knows processes, not only ids", () => {
  const t = fleet(70), p = new Picked();
  p.set(t, [3, 4, 13], true);
  p.set(t, [4], false);
  assert.equal(p.count, 2);
  assert.deepEqual(p.selection(t), { processes: [{ namespace: "shop", name: "app-3", agents: ["a0", "a1"] }] });
  t.name[13] = 9; // the id has gone to another process
  assert.equal(p.has(t, 13), false);
  assert.equal(p.settle(t), 0);
  assert.equal(p.count, 1);
  p.set(t, [13], true);
  assert.equal(p.count, 2);

  // Another snapshot has other ids: what is still there stays selected.
  const next = fleet(20);
  next.names.name.reverse();
  p.clear();
  p.set(t, [3, 33], true);
  assert.equal(p.settle(next), 1, "one of the hosts is not there any more");
  assert.deepEqual(p.selection(next), { processes: [{ namespace: "shop", name: "app-3", agents: ["a0"] }] });
  assert.equal(p.has(next, 6), true);
  assert.deepEqual([...between(new Uint32Array([5, 6, 7, 8]), 2, 1)], [6, 7]);
});

test("rows are found in an area that is too small for all of them", () => {
  const rows = 1_000_000, height = 600, s = new Scrolled();
  s.look(rows, 0, height);
  assert.equal(s.tall, tallest);
  assert.equal(s.first, 0);
  s.look(rows, tallest - height, height);
  assert.equal(s.first + s.count, rows);
  assert.equal(s.at(rows), tallest, "the last row ends where the area ends");
  for (const row of [999_999, 0, 17, 123_456, 123_400, 123_480, 999_999]) {
    s.show(row);
    s.look(rows, s.top, height);
    assert.ok(row >= s.first && row < s.first + s.count, `row ${row}`);
    const y = s.at(row) - s.top;
    assert.ok(y >= 0 && y + rowHeight <= height, `row ${row} is at ${y}`);
  }
  s.look(0, 0, height);
  assert.equal(s.tall, 0);
  assert.equal(s.count, 0);
  s.look(10, 0, height);
  s.show(3);
  assert.equal(s.top, 0);
});

test("a wheel reaches every row, and a drag the same share of all rows", () => {
  const rows = 1_000_000, height = 600, s = new Scrolled();
  for (const step of [100, -100, 3999, -3999]) {
    let at = 0, place = step > 0 ? 0 : rows * rowHeight - height; // in pixels of all rows
    const seen = () => s.top + (rows * rowHeight - s.at(rows));
    s.look(rows, step > 0 ? 0 : tallest, height);
    let moved = 0;
    for (let i = 0; i < 40_000; i++) {
      const before = s.at(0);
      s.look(rows, Math.max(0, Math.min(tallest - height, s.top + step)), height);
      place = Math.max(0, Math.min(rows * rowHeight - height, place + step));
      if (s.at(0) !== before) moved++;
      assert.equal(seen(), place, `step ${i} of ${step}`);
      at = Math.max(at, Math.abs(s.top - (place / (rows * rowHeight - height)) * (tallest - height)));
    }
    assert.ok(at < tallest / 50, `the bar is ${at} away from its share`);
    assert.ok(moved < 600, `the rows moved ${moved} times`);
  }

  s.look(rows, 0, height);
  s.look(rows, (tallest - height) / 2, height);
  assert.ok(Math.abs(s.first - rows / 2) < 40, `the middle is row ${s.first}`);
});

test("faults of a filter are found", () => {
  const words = (text: string) => faultsOf(text, ["running", "failed"]).map((f) => f.word);
  assert.deepEqual(words("web state:failed 0:10.0.0.1 host:0:10.0.0.1"), []);
  assert.deepEqual(words("stat:failed"), ["ps.fault.field"]);
  assert.deepEqual(words("state:broken"), ["ps.fault.state"]);
  assert.deepEqual(words("managed:maybe"), ["ps.fault.flag"]);
  assert.deepEqual(words('biz:"my shop'), ["ps.fault.quote"]);
  assert.deepEqual(words("[a, b.*.*.*.*"), ["ps.fault.bracket"]);
  assert.deepEqual(words("foo:bar state:Failed,bogus"), ["ps.fault.field", "ps.fault.state"]);
  assert.deepEqual(words("front.*.web"), ["ps.fault.parts"]);
  assert.deepEqual(words("[a, b].*.*.*.*.*"), ["ps.fault.parts"]);
  assert.deepEqual(words("[a, b].*.*.*.* 10.0.0.1 nginx.conf \"a*b\" name:web*"), []);
  assert.deepEqual(words("web*"), ["ps.fault.pattern"]);
  assert.deepEqual(words("state：failed"), ["ps.fault.colon"]);
});

test("chips change the text of the filter", () => {
  assert.equal(toggle("web", "states", "failed"), "state:failed web");
  assert.equal(toggle("state:failed web", "states", "failed"), "web");
  assert.equal(toggle("", "bizs", "My, shop"), 'biz:"My? shop"');
  assert.equal(toggle(toggle("", "bizs", "My, shop"), "bizs", "My, shop"), "");
  assert.equal(toggleManaged("web", true), "managed:yes web");
  assert.equal(toggleManaged("managed:yes web", true), "web");
  assert.deepEqual(withoutOne(parseFilter("state:failed managed:no web")).map((w) => w.part), ["web", "state:failed", "managed:no"]);
  assert.deepEqual(withoutOne(parseFilter("web")), []);
});

test("chips count what they would show", () => {
  const t = fleet(70);
  for (const text of ["", "state:failed", "state:failed managed:yes set:east", "app-3 cloud:1", "host:10.0.0.1 state:running"]) {
    const f = parseFilter(text), facets = facetsOf(t, f, null);
    for (const state of t.states) assert.equal(facets.states.get(state), matching(t, { ...f, states: [state] }).length, `${text}: ${state}`);
    assert.equal(facets.managed[1], matching(t, { ...f, managed: true }).length, text);
    assert.equal(facets.sets.get("east") ?? 0, matching(t, { ...f, sets: ["east"] }).length, text);
    assert.equal(facets.bizs.get("Shop") ?? 0, matching(t, { ...f, bizs: ["Shop"] }).length, text);
    assert.equal(facets.clouds.get("1") ?? 0, matching(t, { ...f, clouds: ["1"] }).length, text);
    assert.equal(facets.hosts.get("10.0.0.2") ?? 0, matching(t, { ...f, hosts: ["10.0.0.2"] }).length, text);
  }
});

test("an action is summed up, and a selection may be too large", () => {
  const row = { host: { agent: "a0", cloud: 0, ip: "10.0.0.0" }, namespace: "shop", name: "app-1", action: "restart" };
  const preview = { targets: 3, rejected: 1, new: 0, changed: 0, unchanged: 0, processes: [row, { ...row, host: { agent: "a1", cloud: 0, ip: "10.0.0.1" } }, { ...row, name: "app-2", code: "refused", message: "protected" }] };
  const s = summarise(preview, { namespace: "shop", names: ["*"], all: true }, fleet(70));
  assert.equal(s.reached, 2);
  assert.equal(s.hosts, 2);
  assert.equal(s.offline, 1);
  assert.deepEqual(s.names, [{ space: "shop", name: "app-1", count: 2 }, { space: "shop", name: "app-2", count: 1 }]);
  assert.deepEqual(s.rejected, [{ code: "refused", message: "protected", count: 1 }]);

  // A host that is not reached has no agent in the preview.
  const away = { ...preview, processes: preview.processes.map((r) => ({ ...r, host: { ...r.host, agent: "" } })) };
  assert.equal(summarise(away, { namespace: "shop", names: ["*"], all: true }, fleet(70)).offline, 1);
  const refused = { ...preview, processes: preview.processes.map((r) => ({ ...r, code: "unreachable" })) };
  assert.equal(summarise(refused, { namespace: "shop", names: ["*"], all: true }, null).offline, 2);

  const agents = (n: number, length: number) => Array.from({ length: n }, (_, i) => String(i).padStart(length, "a"));
  const one = (list: string[]) => ({ processes: [{ namespace: "n", name: "p", agents: list }] });
  assert.equal(tooLarge(one(agents(100_000, 20))), undefined);
  assert.equal(tooLarge(one(agents(100_001, 6)))?.word, "act.tooMany");
  assert.equal(tooLarge(one(agents(90_000, 64)))?.word, "act.tooLong");
  assert.equal(tooLarge({ all: true, names: ["*"] }), undefined);
});

test("a million rows are filtered and sorted quickly", () => {
  const t = fleet(1_000_000);
  matching(t, parseFilter("app"));
  const times: number[] = [];
  for (const text of ["state:failed", "app-3 10.0", "name:app* cloud:1 managed:yes"]) {
    const begin = performance.now();
    matching(t, parseFilter(text));
    times.push(performance.now() - begin);
  }
  const begin = performance.now();
  sortRows(t, matching(t, parseFilter("")), "cpu", true);
  const sorted = performance.now() - begin;
  console.log(`a million rows: filters ${times.map((n) => n.toFixed(0)).join(", ")} ms, sorted in ${sorted.toFixed(0)} ms`);
  assert.ok(Math.max(...times) < 1500 && sorted < 3000, "far too slow, even for a busy machine");
});
