// The rows of the table as pooled nodes: as many as fit into the view, each updated cell by cell. The framework draws
// the frame only.
import type { Process } from "../api-types.ts";
import type { Table } from "../live/table.ts";
import { t as word } from "../words.ts";
import type { Column } from "./processes-columns.ts";
import { rowHeight, Scrolled } from "./processes-view.ts";

interface Cell { node: HTMLElement; into: HTMLElement; text: string; mark: string }
interface Row {
  node: HTMLElement;
  cells: Cell[];
  box: HTMLInputElement | null;
  id: number;
  key: number;
  index: number;
  y: number;
  state: string;
  drawn: string; // the version of the fleet that its cells show
}

export interface Scene {
  table: Table;
  ids: Uint32Array;
  columns: Column[];
  selectable: boolean;
  picked: (id: number) => boolean;
  current: number; // the index of the row of the keyboard; -1: none
  more: (id: number) => Process | undefined;
  second: number; // grows when ages or details may be other ones
}

let serial = 0;

export class Rows {
  readonly place = new Scrolled();
  private height = rowHeight; // of the part of the scroller that shows rows
  private tall = -1;
  private pool: Row[] = [];
  private shape = ""; // of the columns of the pool
  private columns: Column[] = [];
  private drawn = 0; // grows when all cells must be filled again
  private readonly prefix = `ps${serial++}`;

  constructor(private scroller: HTMLElement, private spacer: HTMLElement, private head: HTMLElement) {
    this.measure();
  }

  idOf(index: number): string {
    return `${this.prefix}-${index}`;
  }

  /** The index of the row of a node; -1: none. */
  indexOf(node: Element | null): number {
    const row = node?.closest<HTMLElement>("[aria-rowindex]");
    return row && this.spacer.contains(row) ? Number(row.getAttribute("aria-rowindex")) - 2 : -1;
  }

  /** Looks at the sizes. This is not done while drawing: the browser would have to lay out again. */
  measure(): void {
    this.height = Math.max(rowHeight, this.scroller.clientHeight - this.head.offsetHeight);
  }

  /** How many whole rows are in view. */
  page(): number {
    return Math.max(1, Math.floor(this.height / rowHeight));
  }

  /** Whether a row has a node. */
  has(index: number): boolean {
    return index >= this.place.first && index < this.place.first + this.place.count;
  }

  /** Scrolls until a row is in view. */
  reveal(index: number): void {
    this.place.show(index);
    this.scroller.scrollTop = this.place.top;
  }

  draw(s: Scene): void {
    // Build new nodes when the columns have changed.
    const shape = `${s.selectable} ${s.columns.map((c) => c.key).join(" ")}`;
    if (shape !== this.shape) {
      this.shape = shape;
      for (const r of this.pool) r.node.remove();
      this.pool = [];
    }

    // Find the rows in view.
    const top = this.scroller.scrollTop;
    this.place.look(s.ids.length, top, this.height);
    if (this.tall !== this.place.tall) this.spacer.style.height = `${this.tall = this.place.tall}px`;
    if (Math.abs(this.place.top - top) >= 1) this.scroller.scrollTop = this.place.top;

    // Fill as many nodes as there is room for. A row keeps its node while it scrolls.
    const { first, count } = this.place;
    if (s.columns !== this.columns) this.drawn++; // also in another language
    this.columns = s.columns;
    const version = `${s.table.epoch} ${s.table.version} ${s.second} ${this.drawn}`;
    while (this.pool.length < count) this.pool.push(this.make(s));
    const n = this.pool.length;
    for (let i = 0; i < n; i++) {
      const index = first + (((i - first) % n) + n) % n;
      const row = this.pool[i];
      if (index < first + count) {
        this.show(row, index, s, version);
        continue;
      }
      if (!row.node.hidden) row.node.hidden = true;
      row.id = -1;
    }
  }

  private make(s: Scene): Row {
    const node = document.createElement("div");
    node.className = "ps-row";
    node.setAttribute("role", "row");
    let box: HTMLInputElement | null = null;
    if (s.selectable) {
      const cell = document.createElement("span");
      cell.className = "ps-cell ps-box";
      cell.setAttribute("role", "gridcell");
      box = document.createElement("input");
      box.type = "checkbox";
      box.tabIndex = -1; // the key x selects
      cell.append(box);
      node.append(cell);
    }
    const cells = s.columns.map((c): Cell => {
      const cell = document.createElement("span");
      cell.className = "ps-cell";
      cell.setAttribute("role", "gridcell");
      let into: HTMLElement = cell;
      if (c.key === "state") {
        const shape = document.createElement("span");
        shape.className = "state-shape";
        cell.append(shape);
      }
      if (c.link || c.key === "state") {
        into = document.createElement(c.link ? "a" : "bdi");
        into.tabIndex = c.link ? -1 : into.tabIndex; // Enter opens the row
        cell.append(into);
      }
      node.append(cell);
      return { node: cell, into, text: "", mark: "" };
    });
    this.spacer.append(node);
    return { node, cells, box, id: -1, key: -1, index: -1, y: -1, state: "", drawn: "" };
  }

  private show(row: Row, index: number, s: Scene, version: string): void {
    const { node } = row, id = s.ids[index], gone = !s.table.has(id);
    const key = gone ? -2 : s.table.name[id] * 4294967296 + s.table.host[id]; // an id may be given to another process
    const same = row.id === id && (row.key === key || gone);
    if (node.hidden) node.hidden = false;
    const y = this.place.at(index);
    if (row.y !== y) node.style.transform = `translateY(${row.y = y}px)`;
    if (row.index !== index) {
      row.index = index;
      node.id = this.idOf(index);
      node.setAttribute("aria-rowindex", String(index + 2));
    }

    const picked = !gone && s.picked(id), current = index === s.current;
    const state = `${picked ? " ps-picked" : ""}${current ? " ps-current" : ""}${gone ? " ps-gone" : ""}${index % 2 ? " ps-odd" : ""}`;
    if (row.state !== state || !same) {
      row.state = state;
      node.className = `ps-row${state}`;
      if (s.selectable) node.setAttribute("aria-selected", String(picked));
      if (row.box) {
        row.box.checked = picked;
        row.box.setAttribute("aria-label", `${word("ps.col.select")} ${gone ? "" : s.table.names.name[s.table.name[id]].slice(0, 100)}`);
      }
    }
    row.id = id;
    row.key = key;
    if (gone) return; // what it was stays readable while the order is held
    if (same && row.drawn === version) return;
    row.drawn = version;
    s.columns.forEach((c, i) => this.fill(row.cells[i], c, s, id, same));
  }

  private fill(cell: Cell, c: Column, s: Scene, id: number, same: boolean): void {
    const text = c.text(s.table, id, c.more ? s.more(id) : undefined);
    const mark = `ps-cell${c.number ? " ps-number" : ""} ${c.mark ? c.mark(s.table, id) : ""}`;
    if (cell.text !== text) {
      cell.into.textContent = text;
      if (text.length > 16) cell.into.title = text;
      else if (cell.into.title) cell.into.title = "";
      if (same && c.fades && cell.text !== "") cell.node.dataset.changed = cell.node.dataset.changed === "a" ? "b" : "a";
      cell.text = text;
    }
    if (!same) {
      delete cell.node.dataset.changed;
      if (c.hover) cell.into.title = c.hover(s.table, id);
      if (c.link) (cell.into as HTMLAnchorElement).href = c.link(s.table, id);
    }
    if (cell.mark !== mark) {
      cell.node.className = mark;
      cell.mark = mark;
    }
  }
}
