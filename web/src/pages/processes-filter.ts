// What is wrong with the text of the filter box, and how the chips change it.
import { formatFilter, isPattern, parseFilter, partsOf, stateOf, tokens, type Filter } from "../live/filter.ts";
import type { Word } from "../words.ts";

export interface FilterFault { word: Word; values: Record<string, string> }

const fields = ["state", "name", "ns", "namespace", "host", "ip", "cloud", "biz", "business", "set", "module", "managed", "stale", "expr"];
const named = ["state", "name", "ns", "host", "cloud", "biz", "set", "module", "managed", "stale"];

/** The faults of a text. What is not understood is searched for as a word, so most faults are hints. */
export function faultsOf(text: string, states: string[]): FilterFault[] {
  const out: FilterFault[] = [];
  if ((text.match(/"/g)?.length ?? 0) % 2) out.push({ word: "ps.fault.quote", values: {} });
  let depth = 0;
  for (const c of text) depth += c === "[" ? 1 : c === "]" && depth > 0 ? -1 : 0;
  if (depth > 0) out.push({ word: "ps.fault.bracket", values: {} });
  if (out.length) return out; // its parts cannot be told apart

  return tokens(text).flatMap((token) => faultsOfToken(token, states)).slice(0, 3);
}

function faultsOfToken(token: string, states: string[]): FilterFault[] {
  const [, field, colon, value] = /^([a-z_]+)([:：])(.*)$/is.exec(token) ?? [];
  if (!field) return faultsOfWord(token);
  const key = field.toLowerCase();
  if (!fields.includes(key)) return [{ word: "ps.fault.field", values: { field, fields: named.join(", ") } }];
  if (colon === "：") return [{ word: "ps.fault.colon", values: { field } }];

  if (key === "state") {
    return parseFilter(token).states.filter((s) => states.length && !states.includes(stateOf(s)))
      .map((state) => ({ word: "ps.fault.state", values: { state, states: states.join(", ") } }));
  }
  const flag = key === "managed" || key === "stale";
  if (flag && !["", "yes", "no", "true", "false", "1", "0"].includes(value.toLowerCase())) return [{ word: "ps.fault.flag", values: { field, value } }];
  return [];
}

/** Free words are looked for as they are: what looks like an expression or a pattern finds nothing. */
function faultsOfWord(token: string): FilterFault[] {
  const parts = partsOf(token);
  if (!isPattern(token) || parts === 5 || token.includes('"')) return [];
  if (parts > 1) return [{ word: "ps.fault.parts", values: { token, n: String(parts) } }];
  return [{ word: "ps.fault.pattern", values: { token } }];
}

/** The parts of a filter that chips change. */
export type Facet = "states" | "bizs" | "sets" | "modules" | "hosts" | "clouds";

/** A value as a pattern of the filter: what the text cannot hold stands for any character. */
export const asPattern = (value: string) => value.replace(/[",]/g, "?");

/** The text of the filter with a value of a chip added or removed. */
export function toggle(text: string, facet: Facet, value: string): string {
  const f = parseFilter(text);
  const wanted = asPattern(value);
  f[facet] = f[facet].includes(wanted) ? f[facet].filter((v) => v !== wanted) : [...f[facet], wanted];
  return formatFilter(f);
}

export function toggleManaged(text: string, on: boolean): string {
  const f = parseFilter(text);
  f.managed = f.managed === on ? undefined : on;
  return formatFilter(f);
}

/** The filters that leave out one part of a filter, with the text of that part: for "nothing fits all of it". */
export function withoutOne(f: Filter): { part: string; rest: Filter }[] {
  const out: { part: string; rest: Filter }[] = [];
  const empty = parseFilter("");
  for (const key of Object.keys(f) as (keyof Filter)[]) {
    const value = f[key];
    if (value === undefined || (typeof value !== "boolean" && value.length === 0)) continue;
    const part = formatFilter({ ...empty, [key]: value });
    out.push({ part, rest: { ...f, [key]: empty[key] } });
  }
  return out.length > 1 ? out : [];
}
