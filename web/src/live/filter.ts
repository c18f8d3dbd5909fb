// Filters and sorts rows. A filter is decided once for each entry of a dictionary, then rows are compared by number.
import { businessParts, ownName, ownSpace } from "./names.ts";
import { flagManaged, flagStale, type Table } from "./table.ts";

/** What the filter box and the chips say. Every field that is not empty must fit; a field fits when one value does. */
export interface Filter {
  words: string[]; // free words: each must be in the name, namespace, host or place
  states: string[];
  spaces: string[]; // or patterns with * and ?
  names: string[];
  hosts: string[]; // ip, cloud:ip or agent
  clouds: string[];
  bizs: string[]; // name or number
  sets: string[];
  modules: string[];
  managed?: boolean;
  stale?: boolean;
  expression: string; // five parts, decided by the server
}

export const emptyFilter = (): Filter => ({
  words: [], states: [], spaces: [], names: [], hosts: [], clouds: [], bizs: [], sets: [], modules: [], expression: "",
});

const lists: Record<string, keyof Filter> = {
  state: "states", namespace: "spaces", ns: "spaces", name: "names", host: "hosts", ip: "hosts", cloud: "clouds",
  biz: "bizs", business: "bizs", set: "sets", module: "modules",
};

/** The text of the filter box in parts: quotes and brackets keep blanks together. */
export function tokens(text: string): string[] {
  const out: string[] = [];
  let part = "", depth = 0, quoted = false;
  for (const c of text) {
    if (c === '"') quoted = !quoted;
    else if (/\s/.test(c) && !quoted && depth === 0) {
      if (part) out.push(part);
      part = "";
      continue;
    }
    if (c === "[") depth++;
    if (c === "]" && depth > 0) depth--;
    part += c;
  }
  if (part) out.push(part);
  return out;
}

/** How many parts with dots between them a token has, as an expression counts them. */
export function partsOf(token: string): number {
  let depth = 0, dots = 0;
  for (const c of token) {
    if (c === "[") depth++;
    else if (c === "]") depth--;
    else if (c === "." && depth === 0) dots++;
  }
  return dots + 1;
}

/** Whether a token has signs of a pattern, which free words do not have. */
export const isPattern = (token: string) => /[*?[]/.test(token);

/** Whether a token is an expression of five parts, such as [a, b].*.*.*.4[6, 8, 9]. */
function isExpression(token: string): boolean {
  return partsOf(token) === 5 && isPattern(token);
}

/** A state as it is recorded: Crash-Loop is crash_loop. */
export const stateOf = (s: string) => s.toLowerCase().replaceAll("-", "_");

const unquote = (s: string) => s.replaceAll('"', "");

export function parseFilter(text: string): Filter {
  const f = emptyFilter();
  for (const token of tokens(text)) {
    const colon = token.indexOf(":");
    const key = colon > 0 ? token.slice(0, colon).toLowerCase() : "";
    const value = unquote(token.slice(colon + 1));
    if (key in lists) (f[lists[key]] as string[]).push(...value.split(",").filter(Boolean));
    else if (key === "managed" || key === "stale") f[key] = !["no", "false", "0"].includes(value.toLowerCase());
    else if (key === "expr") f.expression = value;
    else if (isExpression(token)) f.expression = token;
    else f.words.push(unquote(token).toLowerCase());
  }
  return f;
}

/** The text of a filter: parseFilter(formatFilter(f)) is f. */
export function formatFilter(f: Filter): string {
  const quote = (s: string) => (/\s/.test(s) ? `"${s}"` : s);
  const out: string[] = [];
  const list = (key: string, values: string[]) => { if (values.length) out.push(`${key}:${quote(values.join(","))}`); };
  list("state", f.states);
  list("biz", f.bizs);
  list("set", f.sets);
  list("module", f.modules);
  list("ns", f.spaces);
  list("name", f.names);
  list("cloud", f.clouds);
  list("host", f.hosts);
  if (f.managed !== undefined) out.push(`managed:${f.managed ? "yes" : "no"}`);
  if (f.stale !== undefined) out.push(`stale:${f.stale ? "yes" : "no"}`);
  if (f.expression) out.push(isExpression(f.expression) ? f.expression : `expr:${quote(f.expression)}`);
  out.push(...f.words.map(quote));
  return out.join(" ");
}

/** A pattern with * and ? as a function; without them the whole text must be equal. */
export function pattern(p: string): (s: string) => boolean {
  if (!/[*?]/.test(p)) {
    const low = p.toLowerCase();
    return (s) => s.toLowerCase() === low;
  }
  const re = new RegExp(`^${p.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".")}$`, "is");
  return (s) => re.test(s);
}

const anyOf = (patterns: string[]) => {
  const fs = patterns.map(pattern);
  return (s: string) => fs.some((f) => f(s));
};

/** Marks the entries of a dictionary that fit: 1 fits. null: all fit. */
function marks(n: number, fits: ((i: number) => boolean) | null): Uint8Array | null {
  if (!fits) return null;
  const m = new Uint8Array(n);
  for (let i = 0; i < n; i++) if (fits(i)) m[i] = 1;
  return m;
}

/**
 * The ids of the rows that fit, in ascending order. `only` has a 1 for each id that the server has found for the
 * expression.
 */
export function matching(t: Table, f: Filter, only: Uint8Array | null = null): Uint32Array {
  const m = decide(t, f);
  const out = spare(0, t.count);
  let n = 0;
  for (let id = 0; id < t.top; id++) {
    const state = t.state[id];
    if (state === 255) continue;
    if (m.states && !m.states[state]) continue;
    if ((t.flags[id] & m.flagMask) !== m.flagValue) continue;
    if (m.names && !m.names[t.name[id]]) continue;
    if (m.hosts && !m.hosts[t.host[id]]) continue;
    if (m.places && !m.places[t.place[id]]) continue;
    if (m.words && !hasWords(m.words, t, id)) continue;
    if (only && !only[id]) continue;
    out[n++] = id;
  }
  return out.slice(0, n);
}

const spares = [new Uint32Array(0), new Uint32Array(0)];

/**
 * Room for n numbers that is used again. A million rows need 8 MB for each look, and the browser frees such blocks late.
 */
function spare(i: number, n: number): Uint32Array {
  if (spares[i].length < n) spares[i] = new Uint32Array(n + (n >>> 5));
  return spares[i].subarray(0, n);
}

type WordMarks = { names: Uint8Array; hosts: Uint8Array; places: Uint8Array }[];

/** Whether each word is in the name, the host or the place of a row. */
export function hasWords(words: WordMarks, t: Table, id: number): boolean {
  for (let i = 0; i < words.length; i++) {
    const w = words[i];
    if (!w.names[t.name[id]] && !w.hosts[t.host[id]] && !w.places[t.place[id]]) return false;
  }
  return true;
}

interface Texts { names: string[]; hosts: string[]; places: string[] }
const known = new WeakMap<Table, Texts>();

/** What words are looked for in, for each entry of the dictionaries. They only grow, so the texts are made once. */
function textsOf(t: Table): Texts {
  let k = known.get(t);
  if (!k) known.set(t, k = { names: [], hosts: [], places: [] });
  for (let i = k.names.length; i < t.names.name.length; i++) {
    const space = t.names.space[i], name = t.names.name[i];
    k.names.push(`${space}/${name} ${ownName(space, name)}`.toLowerCase());
  }
  for (let i = k.hosts.length; i < t.hosts.ip.length; i++) k.hosts.push(`${t.hosts.cloud[i]}:${t.hosts.ip[i]} ${t.hosts.agent[i]}`.toLowerCase());
  for (let i = k.places.length; i < t.places.length; i++) k.places.push(t.places[i].slice(1).join(" ").toLowerCase());
  return k;
}

/** Whether a name fits: as it is recorded, as it is shown (web #2), or as the document of its business has it (web). */
function nameFits(patterns: string[]): (space: string, name: string) => boolean {
  if (!patterns.length) return () => true;
  const fits = anyOf(patterns);
  return (space, name) => fits(name) || fits(ownName(space, name)) || fits(businessParts(space, name)?.alias ?? name);
}

/** Whether a namespace fits: as it is recorded, or by the name of its business. */
function spaceFits(t: Table, patterns: string[]): (space: string) => boolean {
  if (!patterns.length) return () => true;
  const fits = anyOf(patterns), known = new Map<string, boolean>();
  return (space) => {
    let fit = known.get(space);
    if (fit === undefined) known.set(space, fit = fits(space) || fits(ownSpace(t, space)));
    return fit;
  };
}

/** Decides a filter about every entry of the dictionaries. */
export function decide(t: Table, f: Filter) {
  const named = nameFits(f.names), inSpace = spaceFits(t, f.spaces);
  const states = f.states.map(stateOf);
  const bizs = anyOf(f.bizs), sets = anyOf(f.sets), modules = anyOf(f.modules);
  const hosts = anyOf(f.hosts);
  const texts = f.words.length ? textsOf(t) : null;
  let flagMask = 0, flagValue = 0;
  const flag = (bit: number, on: boolean | undefined) => {
    if (on === undefined) return;
    flagMask |= bit;
    if (on) flagValue |= bit;
  };
  flag(flagManaged, f.managed);
  flag(flagStale, f.stale);

  return {
    flagMask, flagValue,
    states: marks(t.states.length, states.length ? (i) => states.includes(t.states[i]) : null),
    names: marks(t.names.name.length, f.names.length || f.spaces.length ? (i) =>
      inSpace(t.names.space[i]) && named(t.names.space[i], t.names.name[i]) : null),
    hosts: marks(t.hosts.ip.length, f.hosts.length || f.clouds.length ? (i) =>
      (!f.clouds.length || f.clouds.includes(String(t.hosts.cloud[i]))) &&
      (!f.hosts.length || hosts(t.hosts.ip[i]) || hosts(`${t.hosts.cloud[i]}:${t.hosts.ip[i]}`) || hosts(t.hosts.agent[i])) : null),
    places: marks(t.places.length, f.bizs.length || f.sets.length || f.modules.length ? (i) => {
      const [biz, bizName, set, module] = t.places[i];
      return (!f.bizs.length || bizs(String(biz)) || bizs(bizName)) && (!f.sets.length || sets(set)) && (!f.modules.length || modules(module));
    } : null),
    words: f.words.length ? f.words.map((w) => ({
      names: marks(t.names.name.length, (i) => texts!.names[i].includes(w))!,
      hosts: marks(t.hosts.ip.length, (i) => texts!.hosts[i].includes(w))!,
      places: marks(t.places.length, (i) => texts!.places[i].includes(w))!,
    })) : null,
  };
}

export type SortKey = "name" | "namespace" | "host" | "state" | "cpu" | "mem" | "pid" | "started" | "restarts" | "place";

/** The worst first: the order in which states are listed and drawn. */
export const stateOrder = ["crash_loop", "failed", "unhealthy", "backing_off", "unknown", "starting", "unregistered", "stopped", "completed", "scheduled", "running"];

/**
 * Sorts ids in place, by counting: a million rows take some tens of milliseconds. Equal rows are in the order of their
 * ids, which must be ascending.
 */
export function sortRows(t: Table, ids: Uint32Array, key: SortKey, down: boolean): void {
  const { column, rank } = rankOf(t, key);
  const n = ids.length;
  const rise = (id: number) => { const value = column[id]; return rank ? rank[value] : value > 0 ? value : 0; };
  let most = 0;
  for (let i = 0; i < n; i++) most = Math.max(most, rise(ids[i]));
  const keyOf = down ? (id: number) => most - rise(id) : rise;

  const at = new Uint32Array(2049);
  let from = ids, to = spare(1, n);
  for (let shift = 0; shift === 0 || (shift < 32 && most >>> shift > 0); shift += 11) {
    at.fill(0);
    for (let i = 0; i < n; i++) at[((keyOf(from[i]) >>> shift) & 2047) + 1]++;
    for (let b = 1; b < 2049; b++) at[b] += at[b - 1];
    for (let i = 0; i < n; i++) {
      const id = from[i];
      to[at[(keyOf(id) >>> shift) & 2047]++] = id;
    }
    [from, to] = [to, from];
  }
  if (from !== ids) ids.set(from);
}

const ranks = new WeakMap<Table, Map<string, Uint32Array>>(); // of dictionaries, which only grow

/** The order of the entries of a dictionary, remembered until it grows. Texts with numbers are ordered by them. */
function order(t: Table, key: string, n: number, text: (i: number) => string): Uint32Array {
  let known = ranks.get(t);
  if (!known) ranks.set(t, known = new Map());
  const had = known.get(key);
  if (had && had.length === n) return had;

  const texts = Array.from({ length: n }, (_, i) => text(i));
  const index = texts.map((_, i) => i);
  const collator = new Intl.Collator(undefined, { numeric: true });
  index.sort((a, b) => collator.compare(texts[a], texts[b]));
  const rank = new Uint32Array(n);
  index.forEach((i, place) => { rank[i] = place > 0 && texts[i] === texts[index[place - 1]] ? rank[index[place - 1]] : place; });
  known.set(key, rank);
  return rank;
}

/** The column by which rows are sorted; if it holds numbers of a dictionary, with the rank of each. */
function rankOf(t: Table, key: SortKey): { column: Uint32Array | Int32Array | Uint16Array | Uint8Array; rank?: Uint32Array } {
  switch (key) {
    case "name": return { column: t.name, rank: order(t, key, t.names.name.length, (i) => `${t.names.name[i]}\u0000${t.names.space[i]}`) };
    case "namespace": return { column: t.name, rank: order(t, key, t.names.space.length, (i) => t.names.space[i]) };
    case "host": return { column: t.host, rank: order(t, key, t.hosts.ip.length, (i) => t.hosts.ip[i]) };
    case "place": return { column: t.place, rank: order(t, key, t.places.length, (i) => t.places[i].slice(1).join("\u0000")) };
    case "state": return { column: t.state, rank: Uint32Array.from(t.states, (s) => stateOrder.indexOf(s) + 1) };
    default: return { column: t[key] };
  }
}
