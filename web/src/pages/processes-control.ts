// Drives the table of processes: looks at the fleet when it changes, draws, selects, and moves by keys.
import { effect, signal } from "@preact/signals";
import { Failure, post, send } from "../api.ts";
import type { Process } from "../api-types.ts";
import { emptyFilter, type Filter } from "../live/filter.ts";
import { beat, table } from "../live/stream.ts";
import type { Table } from "../live/table.ts";
import { facetsOf, type Facets } from "./processes-facets.ts";
import type { Column } from "./processes-columns.ts";
import { Rows } from "./processes-rows.ts";
import { between, Picked, View, type Order } from "./processes-view.ts";

export interface Counts { matches: number; all: number; picked: number; held: boolean; lost: boolean }

const detailsFor = 5000; // how long fetched details of a row are shown before they are fetched again
const matchEvery = 3000; // how often an expression is asked again while rows come and go
const facetsEvery = 2000;
const scrollPause = 300; // without scrolling, before what takes long is done

export class Control {
  readonly view = new View();
  readonly picked = new Picked();
  readonly counts = signal<Counts>({ matches: 0, all: 0, picked: 0, held: false, lost: false });
  readonly facets = signal<Facets | null>(null);
  readonly expressionFault = signal("");
  filter: Filter = emptyFilter();
  order: Order = { key: "name", down: false };
  columns: Column[] = [];
  selectable = false;
  current = -1;

  private currentId = -1;
  private anchor = -1;
  private over = false;
  private focused = false;
  private lost = false;
  private rows: Rows | null = null;
  private scroller: HTMLElement | null = null;
  private frame = 0;
  private second = 0;
  private scrolledAt = -Infinity;
  private only: Uint8Array | null = null;
  private matched = { text: "", epoch: "", shape: -1, at: 0, asking: false };
  private detailsOf: Table | null = null;
  private details = new Map<number, { at: number; row: Process }>();
  private asking = false;
  private facetsAt = 0;
  private facetsCost = 0;
  private facetsOf: { filter: Filter; version: number; only: Uint8Array | null } | null = null;

  /** Draws into nodes until the returned function is called. */
  attach(scroller: HTMLElement, spacer: HTMLElement, head: HTMLElement): () => void {
    this.scroller = scroller;
    this.rows = new Rows(scroller, spacer, head);
    const on = <K extends keyof HTMLElementEventMap>(name: K, f: (e: HTMLElementEventMap[K]) => void, passive = true) => {
      scroller.addEventListener(name, f, { passive });
      return () => scroller.removeEventListener(name, f);
    };
    const resize = new ResizeObserver(() => { this.rows?.measure(); this.schedule(); });
    resize.observe(scroller);
    resize.observe(head);
    const clock = setInterval(() => { this.second++; this.schedule(); }, 1000); // ages grow
    const stops = [
      effect(() => { beat.value; table.value; this.schedule(); }),
      on("scroll", () => { this.scrolledAt = performance.now(); this.schedule(); }),
      on("pointerenter", () => { this.over = true; this.schedule(); }),
      on("pointerleave", () => { this.over = false; this.schedule(); }),
      on("focusin", () => { this.focused = true; this.schedule(); }),
      on("focusout", () => { this.focused = false; this.schedule(); }),
      () => resize.disconnect(),
      () => clearInterval(clock),
      () => cancelAnimationFrame(this.frame),
    ];
    return () => { for (const stop of stops) stop(); this.rows = null; this.scroller = null; };
  }

  schedule(): void {
    if (this.frame || !this.rows) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  private draw(): void {
    const t = table.value;
    if (!t || !this.rows || !this.scroller) return;
    this.ask(t);
    const held = this.over || this.focused;
    if (this.view.refresh(t, this.filter, this.order, this.only, held, performance.now())) {
      if (this.picked.settle(t) > 0) this.lost = true;
      this.follow();
    }
    this.rows.draw({ table: t, ids: this.view.ids, columns: this.columns, selectable: this.selectable, current: this.current,
      picked: (id) => this.picked.has(t, id), more: (id) => this.details.get(id)?.row, second: this.second });
    const active = this.rows.has(this.current) ? this.rows.idOf(this.current) : "";
    if (active) this.scroller.setAttribute("aria-activedescendant", active);
    else this.scroller.removeAttribute("aria-activedescendant");
    this.say(t, held);
    this.fetchDetails(t);
    this.countFacets(t);
  }

  /** Tells the frame what has changed. */
  private say(t: Table, held: boolean): void {
    const next: Counts = { matches: this.view.matches, all: t.count, picked: this.picked.count, held, lost: this.lost };
    const old = this.counts.value;
    if ((Object.keys(next) as (keyof Counts)[]).some((k) => old[k] !== next[k])) this.counts.value = next;
  }

  /** Keeps the row of the keyboard when the order has changed. */
  private follow(): void {
    if (this.current < 0 || this.view.ids[this.current] === this.currentId) return;
    const at = this.view.ids.indexOf(this.currentId);
    this.current = at >= 0 ? at : Math.min(this.current, this.view.ids.length - 1);
    this.currentId = this.current >= 0 ? this.view.ids[this.current] : -1;
    this.anchor = this.current;
  }

  // Keys and the mouse.

  /** The id of the row of the keyboard; -1: none. */
  at(): number {
    return this.current >= 0 && this.current < this.view.ids.length ? this.view.ids[this.current] : -1;
  }

  /** Goes to a row. With extend, everything from where the selection began is selected. */
  go(index: number, extend = false): void {
    const t = table.value, n = this.view.ids.length;
    if (!t || !this.rows || !this.scroller || n === 0) return;
    if (this.anchor < 0) this.anchor = Math.max(this.current, 0);
    this.current = Math.max(0, Math.min(n - 1, index));
    this.currentId = this.view.ids[this.current];
    if (extend && this.selectable) this.picked.set(t, between(this.view.ids, this.anchor, this.current), true);
    else this.anchor = this.current;
    this.rows.reveal(this.current);
    this.schedule();
  }

  move(step: number, extend = false): void {
    this.go(this.current < 0 ? (step > 0 ? 0 : this.view.ids.length - 1) : this.current + step, extend);
  }

  /** How many rows a page has. */
  page(): number {
    return Math.max(1, (this.rows?.page() ?? 1) - 1);
  }

  indexOf(node: Element | null): number {
    return this.rows?.indexOf(node) ?? -1;
  }

  /** Selects a row or takes it out. With extend, everything from the last one to it. */
  pick(index: number, extend = false): void {
    const t = table.value;
    if (!t || !this.selectable || index < 0 || index >= this.view.ids.length) return;
    const from = extend && this.anchor >= 0 ? this.anchor : index;
    this.picked.set(t, between(this.view.ids, from, index), extend || !this.picked.has(t, this.view.ids[index]));
    this.current = this.anchor = index;
    this.currentId = this.view.ids[index];
    this.lost = false;
    this.schedule();
  }

  pickAll(): void {
    const t = table.value;
    if (!t || !this.selectable) return;
    this.picked.clear();
    this.picked.set(t, this.view.ids, true);
    this.lost = false;
    this.schedule();
  }

  pickNone(): void {
    this.picked.clear();
    this.lost = false;
    this.schedule();
  }

  // What the server is asked.

  /** Asks the server which rows an expression means: the page does not have all numbers that are in it. */
  private ask(t: Table): void {
    const { expression, bizs } = this.filter;
    if (!expression) {
      this.only = null;
      this.matched.text = "";
      if (this.expressionFault.value) this.expressionFault.value = "";
      return;
    }

    const biz = bizs.length === 1 && /^[1-9]\d*$/.test(bizs[0]) ? bizs[0] : "";
    const text = `${biz} ${expression}`, m = this.matched;
    const other = m.text !== text || m.epoch !== t.epoch;
    if (m.asking || (!other && (m.shape === t.shape || performance.now() - m.at < matchEvery))) return;
    if (other) this.only = new Uint8Array(0); // nothing until it is known
    this.matched = { text, epoch: t.epoch, shape: t.shape, at: performance.now(), asking: true };
    void this.match(t, expression, biz);
  }

  private async match(t: Table, expression: string, biz: string): Promise<void> {
    const wanted = this.matched;
    try {
      const answer = await send("GET", "/live/match", { query: { epoch: t.epoch, expression, biz }, accept: "application/octet-stream" });
      const ids = new Uint32Array(await answer.arrayBuffer());
      const only = new Uint8Array(t.top);
      for (const id of ids) only[id] = 1;
      this.only = only;
      this.expressionFault.value = "";
    } catch (err) {
      if (!(err instanceof Failure) || err.status !== 400) wanted.shape = -1; // ask again: the table is about to be read again, or the server to answer
      if (!(err instanceof Failure) || err.status !== 409) this.expressionFault.value = err instanceof Failure ? err.faults[0]?.text || err.message : String(err);
    }
    wanted.asking = false;
    wanted.at = performance.now();
    this.schedule();
  }

  /** Fetches what the columns do not have, for the rows in view. */
  private fetchDetails(t: Table): void {
    if (this.asking || !this.rows || !this.columns.some((c) => c.more)) return;
    if (this.detailsOf !== t) this.details.clear(); // another snapshot has other ids
    this.detailsOf = t;
    const old = Date.now() - detailsFor;
    const ids: number[] = [];
    const { first, count } = this.rows.place;
    for (let i = first; i < first + count && ids.length < 200; i++) {
      const id = this.view.ids[i];
      if ((this.details.get(id)?.at ?? 0) < old) ids.push(id);
    }
    if (ids.length === 0) return;
    this.asking = true;
    if (this.details.size > 2000) this.details.clear();
    post<{ rows: (Process & { id: number })[] }>("/live/rows", { epoch: t.epoch, ids }).then((got) => {
      const at = Date.now();
      for (const row of got.rows) this.details.set(row.id, { at, row });
      this.second++;
    }, () => this.details.clear()).finally(() => {
      setTimeout(() => { this.asking = false; this.schedule(); }, 500);
    });
  }

  /** Counts what the chips show, after the rows are drawn, and more rarely if it takes long. */
  private countFacets(t: Table): void {
    const had = this.facetsOf, now = performance.now();
    const asked = !had || had.filter !== this.filter || had.only !== this.only;
    if (!asked && now - this.scrolledAt < scrollPause) return; // the clock draws again
    if (!asked && (had.version === t.version || now - this.facetsAt < Math.max(facetsEvery, this.facetsCost * 20))) return;
    this.facetsOf = { filter: this.filter, version: t.version, only: this.only };
    this.facetsAt = now;
    setTimeout(() => {
      const begin = performance.now();
      this.facets.value = facetsOf(t, this.filter, this.only);
      this.facetsCost = performance.now() - begin;
    });
  }
}
