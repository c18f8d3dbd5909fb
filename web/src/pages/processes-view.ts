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

const spare = 8; // rows above and below the view: the browser scrolls before the page draws
const edge = 100_000; // pixels at both ends of a tall area in which rows are where they would be without the limit
const drift = edge / 2; // how far the bar may be from its share of all rows

/**
 * Where rows are in a scrolled area that may be too low for all of them. A near scroll moves the rows pixel by pixel, and
 * rows stay where they are drawn. A far one, by the bar, goes to the same share of all rows.
 */
export class Scrolled {
  first = 0; // the first row that is drawn
  count = 0; // how many are drawn
  tall = 0; // the height of the area
  top = 0; // where the area must be scrolled to
  private shift = 0; // how much higher rows are than they would be without the limit
  private full = 0;
  private height = 0;

  /** Brings everything up to date for a scroll position. */
  look(rows: number, top: number, height: number): void {
    this.full = rows * rowHeight;
    this.height = height;
    this.tall = Math.min(this.full, tallest);
    if (this.full === this.tall) this.shift = 0;
    else if (Math.abs(top - this.top) > Math.max(4 * height, 4000)) this.shift = this.placeOf(top) - top;

    // The bar must not come to an end before the rows do.
    const end = Math.max(0, this.full - height);
    const place = Math.max(0, Math.min(end, top + this.shift));
    const wanted = this.topOf(place), off = Math.abs(wanted - (place - this.shift));
    if (off > (place < edge || place > end - edge ? 0 : drift)) this.shift = place - wanted;

    this.top = place - this.shift;
    this.first = Math.max(0, Math.min(Math.floor(place / rowHeight), rows - 1) - spare);
    this.count = Math.min(Math.floor(place / rowHeight) + Math.ceil(height / rowHeight) + 1 + spare, rows) - this.first;
  }

  /** Scrolls to a row that is not in view: the way is as short as possible. */
  show(row: number): void {
    const now = this.top + this.shift;
    const low = (row + 1) * rowHeight - this.height, high = row * rowHeight;
    const place = Math.max(0, Math.min(this.full - this.height, now < low ? low : now > high ? high : now));
    if (Math.abs(place - now) > drift) this.shift = place - this.topOf(place);
    this.top = place - this.shift;
  }

  /** Where a row is in the area. */
  at(row: number): number {
    return row * rowHeight - this.shift;
  }

  /** The position of the bar for a place among all rows: the same at both ends, and a share of the rest between them. */
  private topOf(place: number): number {
    const end = this.full - this.height, most = this.tall - this.height;
    if (this.full === this.tall || place <= edge) return place;
    if (place >= end - edge) return most - (end - place);
    return Math.round(edge + ((place - edge) * (most - 2 * edge)) / (end - 2 * edge));
  }

  /** The opposite of topOf. */
  private placeOf(top: number): number {
    const end = this.full - this.height, most = this.tall - this.height;
    if (top <= edge) return top;
    if (top >= most - edge) return end - (most - top);
    return Math.round(edge + ((top - edge) * (end - 2 * edge)) / (most - 2 * edge));
  }
}
