// The rows of the table as pooled nodes: as many as fit into the view, each updated cell by cell. The framework draws
// the frame only.
import type { Process } from "../api-types.ts";
import type { Table } from "../live/table.ts";
import { t as word } from "../words.ts";
import type { Column } from "./processes-columns.ts";
import { rowHeight, scrolled } from "./processes-view.ts";

interface Cell { node: HTMLElement; into: HTMLElement; text: string; mark: string }
interface Row { node: HTMLElement; cells: Cell[]; box: HTMLInputElement | null; id: number; key: number; index: number; state: string }

export interface Scene {
  table: Table;
  ids: Uint32Array;
  columns: Column[];
  selectable: boolean;
  picked: (id: number) => boolean;
  current: number; // the index of the row of the keyboard; -1: none
  more: (id: number) => Process | undefined;
}

let serial = 0;

export class Rows {
  first = 0;
  count = 0;
  private pool: Row[] = [];
  private shape = ""; // of the columns of the pool
  private readonly prefix = `ps${serial++}`;

  constructor(private scroller: HTMLElement, private spacer: HTMLElement, private head: HTMLElement) {}

  idOf(index: number): string {
    return `${this.prefix}-${index}`;
  }

  /** The index of the row of a node; -1: none. */
  indexOf(node: Element | null): number {
    const row = node?.closest<HTMLElement>("[aria-rowindex]");
    return row && this.spacer.contains(row) ? Number(row.getAttribute("aria-rowindex")) - 2 : -1;
  }

  /** The height of the part of the scroller that shows rows. */
  height(): number {
    return Math.max(rowHeight, this.scroller.clientHeight - this.head.offsetHeight);
  }

  draw(s: Scene): void {
    // Build new nodes when the columns have changed.
    const shape = `${s.selectable} ${s.columns.map((c) => c.key).join(" ")}`;
    if (shape !== this.shape) {
      this.shape = shape;
      for (const r of this.pool) r.node.remove();
      this.pool = [];
    }

    // Place as many as there is room for.
    const at = scrolled(s.ids.length, this.scroller.scrollTop, this.height());
    this.spacer.style.height = `${at.tall}px`;
    this.first = at.first;
    this.count = Math.min(at.count, s.ids.length - at.first);
    while (this.pool.length < this.count) this.pool.push(this.make(s));
    for (let i = 0; i < this.pool.length; i++) {
      const index = at.first + (((i - at.first) % this.pool.length) + this.pool.length) % this.pool.length; // a row keeps its node while it scrolls
      const row = this.pool[i];
      if (index >= at.first + this.count) {
        if (!row.node.hidden) row.node.hidden = true;
        row.id = -1;
        continue;
      }
      this.show(row, index, s, at.shift + (index - at.first) * rowHeight);
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
    return { node, cells, box, id: -1, key: -1, index: -1, state: "" };
  }

  private show(row: Row, index: number, s: Scene, y: number): void {
    const { node } = row, id = s.ids[index], gone = !s.table.has(id);
    const key = gone ? -2 : s.table.name[id] * 4294967296 + s.table.host[id]; // an id may be given to another process
    const same = row.id === id && (row.key === key || gone);
    if (node.hidden) node.hidden = false;
    node.style.transform = `translateY(${y}px)`;
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
      if (c.link) (cell.into as HTMLAnchorElement).href = c.link(s.table, id);
    }
    if (cell.mark !== mark) {
      cell.node.className = mark;
      cell.mark = mark;
    }
  }
}
