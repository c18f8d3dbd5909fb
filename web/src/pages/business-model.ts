// What the pages of businesses compute: expressions, completion and live counts. No part of it draws.
import type { Table } from "../live/table.ts";

/** The fields of an expression, in their order. */
export const fieldNames = ["set", "module", "service", "process", "id"] as const;

export type Fields = [string, string, string, string, string];

export const everything: Fields = ["*", "*", "*", "*", "*"];

/** Splits an expression at the dots that are neither escaped nor within brackets. The escapes stay. */
export function splitExpression(text: string): Fields {
  const out: string[] = [];
  let part = "", depth = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === "\\" && text[i + 1] === ".") {
      part += "\\.";
      i++;
      continue;
    }
    if (c === "[" && text.indexOf("]", i) > 0) depth = 1;
    else if (c === "]") depth = 0;
    if (c === "." && depth === 0) {
      out.push(part);
      part = "";
    } else part += c;
  }
  out.push(part);
  return everything.map((all, i) => out[i] || all) as Fields;
}

/** A field as it is written in an expression: a dot that belongs to a name gets its backslash. */
export function escapeField(text: string): string {
  let out = "", depth = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === "\\" && text[i + 1] === ".") {
      out += "\\.";
      i++;
      continue;
    }
    if (c === "[" && text.indexOf("]", i) > 0) depth = 1;
    else if (c === "]") depth = 0;
    out += c === "." && depth === 0 ? "\\." : c;
  }
  return out.trim() || "*";
}

export function joinExpression(fields: readonly string[]): string {
  return fields.map(escapeField).join(".");
}

/** The names that a document has for each field. A field that is written out narrows those after it. */
export interface Names { set: string; module: string; service: string; process: string; id: string }

interface DocumentProcess { id?: number; name?: string }
interface Document { sets?: { name?: string; modules?: { name?: string; instances?: { name?: string; processes?: DocumentProcess[] }[] }[] }[] }

/** The names of a document, one row a process. */
export function namesOf(doc: unknown): Names[] {
  const out: Names[] = [];
  for (const s of (doc as Document)?.sets ?? []) {
    for (const m of s.modules ?? []) {
      for (const i of m.instances ?? []) {
        for (const p of i.processes ?? []) {
          out.push({ set: s.name ?? "", module: m.name ?? "", service: i.name ?? "", process: p.name ?? "", id: String(p.id ?? "") });
        }
      }
    }
  }
  return out;
}

/** Whether a name can be written in an expression as it is. */
const special = /[*?[\]]/;

/** What to offer for a field: names that begin with or contain what is typed, within the fields before that are written out. */
export function complete(names: readonly Names[], fields: readonly string[], at: number, most = 50): string[] {
  const typed = fields[at] === "*" ? "" : (fields[at] ?? "").replaceAll("\\.", ".").toLowerCase();
  const key = fieldNames[at];
  const before = fieldNames.slice(0, at).map((f, i) => ({ f, want: (fields[i] ?? "*").replaceAll("\\.", ".") })).filter((b) => !special.test(b.want));
  const found = new Set<string>();
  for (const n of names) {
    const name = n[key];
    if (!name || special.test(name) || !name.toLowerCase().includes(typed) || before.some((b) => n[b.f] !== b.want)) continue;
    found.add(name);
    if (found.size > 2000) break;
  }
  return [...found].sort((a, b) => Number(b.toLowerCase().startsWith(typed)) - Number(a.toLowerCase().startsWith(typed)) || a.localeCompare(b, undefined, { numeric: true })).slice(0, most);
}

/** Instances by state, as the table has them. */
export type StateCounts = Record<string, number>;

export interface LiveCounts {
  biz: StateCounts;
  sets: Map<string, StateCounts>; // by name
  modules: Map<string, StateCounts>; // by set and module
}

export const moduleKey = (set: string, module: string) => `${set}\u0000${module}`;

/** Counts the instances of every business by set, module and state, in one pass over the table. */
export function liveCounts(t: Table): Map<number, LiveCounts> {
  const states = t.states.length;
  const byPlace = new Uint32Array(t.places.length * states);
  for (let id = 0; id < t.top; id++) {
    const s = t.state[id];
    if (s !== 255) byPlace[t.place[id] * states + s]++;
  }

  const out = new Map<number, LiveCounts>();
  t.places.forEach(([biz, , set, module], p) => {
    if (!biz) return;
    let c = out.get(biz);
    if (!c) out.set(biz, (c = { biz: {}, sets: new Map(), modules: new Map() }));
    const inSet = of(c.sets, set), inModule = of(c.modules, moduleKey(set, module));
    for (let s = 0; s < states; s++) {
      const n = byPlace[p * states + s];
      if (!n) continue;
      for (const counts of [c.biz, inSet, inModule]) counts[t.states[s]] = (counts[t.states[s]] ?? 0) + n;
    }
  });
  return out;
}

function of(map: Map<string, StateCounts>, key: string): StateCounts {
  let c = map.get(key);
  if (!c) map.set(key, (c = {}));
  return c;
}

export function sum(c: StateCounts | undefined): number {
  return Object.values(c ?? {}).reduce((a, b) => a + b, 0);
}

/** Rows of the table that have the namespace of a business and no place in it: the document does not know them. */
export function strangers(t: Table, biz: number): number[] {
  const space = `GSEKIT_BIZ_${biz}`;
  const names = new Set<number>();
  t.names.space.forEach((s, i) => { if (s === space) names.add(i); });
  const out: number[] = [];
  if (names.size === 0) return out;
  for (let id = 0; id < t.top; id++) {
    if (t.state[id] !== 255 && names.has(t.name[id]) && t.places[t.place[id]][0] !== biz) out.push(id);
  }
  return out;
}

/** The number of the business that a document is about, as far as one can see before the server reads it. */
export function bizOf(text: string): number {
  const found = /^\s*["']?biz["']?\s*:\s*(\d{1,9})/m.exec(text) ?? /[{,]\s*"biz"\s*:\s*(\d{1,9})/.exec(text);
  return found ? Number(found[1]) : 0;
}
