import assert from "node:assert/strict";
import { test } from "node:test";
import { ownName, ownSpace, placeOf, wholeName } from "../src/live/names.ts";
import type { Table } from "../src/live/table.ts";

const table = {
  places: [[0, "", "", ""], [7, "shop", "front", "gate"], [7, "shop", "back", "gate"]],
  names: { space: ["GSEKIT_BIZ_7", "GSEKIT_BIZ_7", "other"], name: ["web_1", "web_2", "web_1"] },
  name: [0, 1, 1, 2], place: [1, 1, 2, 0], top: 4, has: () => true,
} as unknown as Table;

test("a process of a business has its place in its name", () => {
  assert.equal(wholeName(table, "GSEKIT_BIZ_7", "web_1", 1), "shop/front/gate/web");
  assert.equal(wholeName(table, "GSEKIT_BIZ_7", "my_web_2", 1), "shop/front/gate/my_web #2");
  assert.equal(wholeName(table, "GSEKIT_BIZ_7", "web_1"), "shop/web");
  assert.equal(wholeName(table, "GSEKIT_BIZ_8", "web_1", 1), "8/web"); // the place is of another business
  assert.equal(wholeName(null, "GSEKIT_BIZ_7", "web_1", 1), "7/web");
});

test("another name stays as it is", () => {
  for (const [space, name] of [["other", "web_1"], ["GSEKIT_BIZ_7", "web"], ["GSEKIT_BIZ_", "web_1"], ["GSEKIT_BIZ_7x", "_1"]]) {
    assert.equal(wholeName(table, space, name), `${space}/${name}`);
    assert.equal(ownName(space, name), name);
  }
  assert.equal(ownSpace(table, "GSEKIT_BIZ_7"), "shop");
  assert.equal(ownSpace(table, "other"), "other");
});

test("the place of a process is known if all its rows have it", () => {
  assert.equal(placeOf(table, "GSEKIT_BIZ_7", "web_1"), 1);
  assert.equal(placeOf(table, "GSEKIT_BIZ_7", "web_2"), 0);
  assert.equal(placeOf(table, "other", "web_1"), 0);
  assert.equal(placeOf(table, "GSEKIT_BIZ_7", "none_1"), 0);
});
