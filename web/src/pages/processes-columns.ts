// The columns of the table of processes: what a cell shows, and which columns are chosen.
import { signal } from "@preact/signals";
import type { Process } from "../api-types.ts";
import type { SortKey } from "../live/filter.ts";
import { flagManaged, flagStale, type Table } from "../live/table.ts";
import { href } from "../router.ts";
import { ownName, ownSpace } from "../live/names.ts";
import { age, bytes, nextText, percent, plain } from "../ui/format.ts";
import { t as word, tOf, type Word } from "../words.ts";

export interface Column {
  key: string;
  word: Word;
  hint?: Word; // on hover over the head
  width: string; // of CSS grid
  sort?: SortKey;
  down?: boolean; // the first click sorts the largest first
  number?: boolean;
  text: (t: Table, id: number, more: Process | undefined) => string;
  hover?: (t: Table, id: number) => string; // another text on hover than that of the cell
  link?: (t: Table, id: number) => string;
  mark?: (t: Table, id: number) => string; // the class of the cell
  fades?: boolean; // a changed value is marked for a moment
  more?: boolean; // needs details that are fetched for the rows in view
}

const dash = "-";

/** A text from outside: long ones are cut, their cell shows the rest on hover. */
const outside = (s: string) => plain(s.length > 500 ? `${s.slice(0, 500)}…` : s);

export const columns: Column[] = [
  { key: "state", word: "ps.col.state", width: "116px", sort: "state", fades: true,
    text: (t, id) => tOf("state.", t.states[t.state[id]]) + (t.flags[id] & flagStale ? " ?" : ""),
    mark: (t, id) => `ps-state state-${t.states[t.state[id]]}` },
  { key: "name", word: "ps.col.name", width: "minmax(108px, 2fr)", sort: "name",
    text: (t, id) => outside(ownName(t.names.space[t.name[id]], t.names.name[t.name[id]])), link: processLink,
    hover: (t, id) => outside(`${t.names.space[t.name[id]]}/${t.names.name[t.name[id]]}`) },
  { key: "namespace", word: "ps.col.namespace", width: "minmax(96px, 1fr)", sort: "namespace", text: (t, id) => outside(ownSpace(t, t.names.space[t.name[id]])),
    hover: (t, id) => outside(t.names.space[t.name[id]]) },
  { key: "host", word: "ps.col.host", width: "minmax(108px, 1fr)", sort: "host",
    text: (t, id) => { const h = t.host[id], ip = t.hosts.ip[h] || t.hosts.agent[h]; return t.hosts.cloud[h] ? `${t.hosts.cloud[h]}:${ip}` : ip; },
    link: (t, id) => href(`/hosts/${encodeURIComponent(t.hosts.agent[t.host[id]])}`) },
  { key: "place", word: "ps.col.place", width: "minmax(160px, 2fr)", sort: "place",
    text: (t, id) => { const [biz, name, set, module] = t.places[t.place[id]]; return biz ? outside([name || String(biz), set, module].filter(Boolean).join(" / ")) : dash; } },
  { key: "cpu", word: "ps.col.cpu", hint: "ps.col.cpu.hint", width: "112px", sort: "cpu", down: true, number: true, fades: true, text: (t, id) => (t.pid[id] > 0 ? percent(t.cpu[id] / 10) : dash) },
  { key: "mem", word: "ps.col.mem", width: "88px", sort: "mem", down: true, number: true, fades: true, text: (t, id) => (t.pid[id] > 0 ? bytes(t.mem[id] * 1024) : dash) },
  { key: "pid", word: "ps.col.pid", width: "88px", sort: "pid", number: true, fades: true, text: (t, id) => (t.pid[id] > 0 ? String(t.pid[id]) : dash) },
  { key: "started", word: "ps.col.started", width: "112px", sort: "started", down: true, number: true,
    text: (t, id) => (t.started[id] && t.pid[id] > 0 ? age(Date.now() / 1000 - t.started[id]) : dash) },
  { key: "restarts", word: "ps.col.restarts", width: "88px", sort: "restarts", down: true, number: true, fades: true, text: (t, id) => String(t.restarts[id]) },
  { key: "managed", word: "ps.col.managed", width: "88px", text: (t, id) => word(t.flags[id] & flagManaged ? "yes" : "no"), fades: true },
  { key: "next", word: "ps.col.next", width: "112px", number: true, more: true, text: (_t, _id, more) => (more?.next_at ? nextText(Date.parse(more.next_at)) : dash) },
  { key: "version", word: "ps.col.version", width: "minmax(96px, 1fr)", more: true, text: (_t, _id, more) => outside(more?.version || dash) },
  { key: "message", word: "ps.col.message", width: "minmax(240px, 3fr)", more: true, text: (_t, _id, more) => outside(more?.message || more?.health_message || dash) },
];

/** The page of the process of a row. */
export function processLink(t: Table, id: number): string {
  const n = t.name[id];
  return href(`/process/${encodeURIComponent(t.names.space[n])}/${encodeURIComponent(t.names.name[n])}`, { host: t.hosts.agent[t.host[id]] });
}

const kept = "gozzard.processes.columns";
const usual = ["state", "name", "namespace", "host", "place", "cpu", "mem", "started", "restarts"];
const narrow = ["state", "name", "host"];

function read(): string[] {
  try {
    const list = JSON.parse(localStorage.getItem(kept) ?? "null") as unknown;
    if (Array.isArray(list)) {
      const known = list.filter((k) => columns.some((c) => c.key === k)) as string[];
      if (known.length) return known;
    }
  } catch { /* somebody else has written it */ }
  return innerWidth < 600 ? narrow : usual;
}

/** The keys of the columns that are shown. The name is always there. */
export const chosen = signal<string[]>(read());

export function choose(key: string, on: boolean): void {
  const set = new Set(chosen.value);
  if (on) set.add(key);
  else set.delete(key);
  set.add("name");
  chosen.value = columns.map((c) => c.key).filter((k) => set.has(k));
  localStorage.setItem(kept, JSON.stringify(chosen.value));
}
