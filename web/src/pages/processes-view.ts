// Which rows the table of processes shows, in which order, and which of them are selected. No DOM here.
import type { Selection } from "../ui/action.tsx";
import { matching, sortRows, type Filter, type SortKey } from "../live/filter.ts";
import type { Table } from "../live/table.ts";

export interface Order { key: SortKey; down: boolean }

const live = new Set<SortKey>(["cpu", "mem", "state", "started", "restarts", "pid"]);

/** The rows in view. What was found is kept while nothing that decides about it has changed. */
export class View {
  ids = new Uint32Array(0);
  matches = 0; // rows that fit now; ids may have more while the order is held
  cost = 0; // how long the last look took, in milliseconds

  private of: Table | null = null;
  private filter: Filter | null = null;
  private order: Order | null = null;
  private only: Uint8Array | null = null;
  private shape = -1;
  private version = -1;
  private lookedAt = -Infinity;
  private shown = new Uint8Array(0); // by id: is in ids

  /**
   * Brings the rows up to date and reports whether they changed. New questions are answered at once; what changes in
   * the fleet is looked at twice a second at most, and more rarely if a look takes long. While the order is held, rows
   * stay where they are and new ones come last.
   */
  refresh(t: Table, filter: Filter, order: Order, only: Uint8Array | null, held: boolean, now: number): boolean {
    const asked = t !== this.of || filter !== this.filter || order !== this.order || only !== this.only;
    if (!asked) {
      if (now - this.lookedAt < Math.max(500, this.cost * 10)) return false;
      const byState = filter.states.length > 0 || filter.managed !== undefined || filter.stale !== undefined;
      const moved = t.shape !== this.shape || (t.version !== this.version && (byState || (!held && live.has(order.key))));
      if (!moved && !(this.late && !held)) return false;
    }

    const begin = performance.now();
    const found = matching(t, filter, only);
    this.matches = found.length;
    if (held && !asked) this.append(t, found);
    else this.replace(t, found, order);
    Object.assign(this, { of: t, filter, order, only, shape: t.shape, version: t.version, lookedAt: now });
    this.cost = performance.now() - begin;
    return true;
  }

  private late = false; // the order was held at the last look

  private replace(t: Table, found: Uint32Array, order: Order): void {
    sortRows(t, found, order.key, order.down);
    this.ids = found as Uint32Array<ArrayBuffer>;
    this.late = false;
    this.shown = new Uint8Array(0);
  }

  /** Adds rows that are new to the end. */
  private append(t: Table, found: Uint32Array): void {
    if (this.shown.length < t.top) {
      this.shown = new Uint8Array(t.top + 1024);
      for (const id of this.ids) this.shown[id] = 1;
    }
    const more: number[] = [];
    for (let i = 0; i < found.length; i++) {
      if (this.shown[found[i]]) continue;
      this.shown[found[i]] = 1;
      more.push(found[i]);
    }
    this.late = true;
    if (more.length === 0) return;
    const ids = new Uint32Array(this.ids.length + more.length);
    ids.set(this.ids);
    ids.set(more, this.ids.length);
    this.ids = ids;
  }
}

/**
 * The selected rows: a byte for each id, and the process and host that had the id when it was selected, because an id
 * may be given to another process later.
 */
export class Picked {
  count = 0;
  private bits = new Uint8Array(0);
  private name = new Uint32Array(0);
  private host = new Uint32Array(0);
  private of: Table | null = null;

  has(t: Table, id: number): boolean {
    return this.of === t && this.bits[id] === 1 && t.has(id) && this.name[id] === t.name[id] && this.host[id] === t.host[id];
  }

  set(t: Table, ids: Iterable<number>, on: boolean): void {
    if (this.of !== t) this.settle(t);
    this.of = t;
    this.grow(t);
    for (const id of ids) {
      if (id >= t.top || !t.has(id) || this.has(t, id) === on) continue;
      if (this.bits[id] !== (on ? 1 : 0)) this.count += on ? 1 : -1;
      this.bits[id] = on ? 1 : 0;
      this.name[id] = t.name[id];
      this.host[id] = t.host[id];
    }
  }

  private grow(t: Table): void {
    if (this.bits.length >= t.top) return;
    const more = <T extends Uint8Array | Uint32Array>(old: T): T => {
      const c = new (old.constructor as new (n: number) => T)(t.top + 256);
      c.set(old);
      return c;
    };
    this.bits = more(this.bits);
    this.name = more(this.name);
    this.host = more(this.host);
  }

  clear(): void {
    this.count = 0;
    this.bits = new Uint8Array(0);
    this.name = new Uint32Array(0);
    this.host = new Uint32Array(0);
  }

  /** Removes rows that are gone. It finds the selected processes of an earlier table again, and returns how many are lost. */
  settle(t: Table): number {
    if (this.of && this.of !== t && this.count > 0) return this.carry(t);
    if (this.count === 0) return 0;
    for (let id = 0; id < this.bits.length; id++) {
      if (this.bits[id] === 0 || this.has(t, id)) continue;
      this.bits[id] = 0;
      this.count--;
    }
    return 0;
  }

  /** Takes the selection over to another table, which has other ids. */
  private carry(t: Table): number {
    const before = this.count;
    const wanted = new Map(this.selection(this.of!).processes!.map((p) => [`${p.namespace}\u0000${p.name}`, new Set(p.agents)]));
    const byName = t.names.name.map((name, i) => wanted.get(`${t.names.space[i]}\u0000${name}`));
    this.clear();
    this.of = t;
    const ids: number[] = [];
    for (let id = 0; id < t.top; id++) {
      if (t.has(id) && byName[t.name[id]]?.has(t.hosts.agent[t.host[id]])) ids.push(id);
    }
    this.set(t, ids, true);
    return Math.max(0, before - this.count);
  }

  /** The selection as the API has it: each process with its hosts. */
  selection(t: Table): Selection {
    const agents = new Map<number, string[]>();
    for (let id = 0; id < this.bits.length; id++) {
      if (this.bits[id] === 0 || !this.has(t, id)) continue;
      const list = agents.get(t.name[id]);
      const agent = t.hosts.agent[t.host[id]];
      if (list) list.push(agent);
      else agents.set(t.name[id], [agent]);
    }
    return { processes: [...agents].map(([name, list]) => ({ namespace: t.names.space[name], name: t.names.name[name], agents: list })) };
  }
}

/** The ids between two places of a list, both included. */
export function between(ids: Uint32Array, a: number, b: number): Uint32Array {
  return ids.subarray(Math.min(a, b), Math.max(a, b) + 1);
}

export const rowHeight = 28;
export const tallest = 8_000_000; // browsers limit the height of an element

/** Where rows are in a scrolled area that may be too small for all of them. */
export function scrolled(rows: number, top: number, height: number): { tall: number; first: number; shift: number; count: number } {
  const full = rows * rowHeight;
  const tall = Math.min(full, tallest);
  const count = Math.ceil(height / rowHeight) + 2;
  const most = Math.max(0, tall - height);
  const at = most > 0 ? Math.min(Math.max(top, 0), most) : 0;
  const wanted = full === tall || most === 0 ? at : (at / most) * (full - height); // the place among all rows
  const first = Math.max(0, Math.min(Math.floor(wanted / rowHeight), Math.max(0, rows - 1)));
  return { tall, first, shift: at - (wanted - first * rowHeight), count };
}

/** The scroll position that shows a row: the nearest to the present one. */
export function scrollTo(rows: number, row: number, top: number, height: number): number {
  const full = rows * rowHeight;
  const tall = Math.min(full, tallest);
  const most = Math.max(0, tall - height);
  const scale = full === tall || most === 0 ? 1 : (full - height) / most;
  const wanted = top * scale;
  const low = (row + 1) * rowHeight - height, high = row * rowHeight;
  if (wanted >= low && wanted <= high) return top;
  return Math.max(0, Math.min(most, (wanted < low ? low : high) / scale));
}
