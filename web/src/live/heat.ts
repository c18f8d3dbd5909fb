// The fleet as a map: one cell for each process, or for each host above a million, in blocks by group.
import { stateOrder } from "./filter.ts";
import { flagStale, type Table } from "./table.ts";

export type Grouping = "business" | "namespace" | "host";

export interface Group {
  label: string;
  filter: string; // of the page of processes
  count: number;
  bad: number;
}

export interface Block { group: number; x: number; y: number; columns: number; rows: number; first: number; count: number }

export interface Heat {
  groups: Group[];
  blocks: Block[];
  cells: Uint32Array; // ids of rows, or indexes of hosts, block by block
  byHost: boolean; // a cell is a host
  size: number; // of a cell with its gap, in pixels
  width: number;
  height: number;
}

/** Above so many rows a cell is a host. */
const mostRows = 1_000_000;

const good = new Set(["running", "scheduled", "completed", "stopped", "starting"]);

/** The places of states by badness: 0 is the worst. A row of a host that does not report is bad, whatever it was. */
function ranks(t: Table): Uint8Array {
  return Uint8Array.from(t.states, (s) => stateOrder.indexOf(s));
}

function groupsOf(t: Table, by: Grouping): { of: (id: number) => number; groups: Group[] } {
  const group = (label: string, filter: string): Group => ({ label, filter, count: 0, bad: 0 });
  const quote = (s: string) => (/[\s,]/.test(s) ? `"${s}"` : s);
  if (by === "host") {
    return { of: (id) => t.host[id], groups: t.hosts.ip.map((ip, i) => group(ip, `host:${t.hosts.cloud[i]}:${ip}`)) };
  }
  if (by === "business") {
    const groups = t.places.map(([biz, name, set, module]) => group(biz ? `${name} / ${set} / ${module}` : "", biz ? `biz:${biz} set:${quote(set)} module:${quote(module)}` : ""));
    return { of: (id) => t.place[id], groups };
  }

  const spaces = new Map<string, number>();
  const groups: Group[] = [];
  const ofName = Uint32Array.from(t.names.space, (space) => {
    let i = spaces.get(space);
    if (i === undefined) {
      i = groups.push(group(space, `ns:${quote(space)}`)) - 1;
      spaces.set(space, i);
    }
    return i;
  });
  return { of: (id) => ofName[t.name[id]], groups };
}

/** Sorts the rows into groups, the worst of each first, and finds a place for every cell. */
export function arrange(t: Table, by: Grouping, width: number, height: number): Heat {
  const byHost = t.count > mostRows;
  const { of, groups } = groupsOf(t, by);
  const rank = ranks(t);
  const isGood = Uint8Array.from(t.states, (s) => (good.has(s) ? 1 : 0));
  const levels = stateOrder.length;

  // Count the cells of each group and rank, then put them in order: a sort by counting.
  const ids = byHost ? hostCells(t, rank) : null;
  const counts = new Uint32Array(groups.length * levels + 1);
  const each = (f: (cell: number, group: number, level: number) => void) => {
    if (ids) for (let h = 0; h < ids.worst.length; h++) { if (ids.worst[h] !== 255) f(h, ids.group(of, h), ids.worst[h]); }
    else for (let id = 0; id < t.top; id++) { if (t.state[id] !== 255) f(id, of(id), rank[t.state[id]]); }
  };
  each((_, g, level) => { counts[g * levels + level + 1]++; });
  for (let i = 1; i < counts.length; i++) counts[i] += counts[i - 1];
  const starts = counts.slice();
  const cells = new Uint32Array(counts[counts.length - 1]);
  each((cell, g, level) => { cells[counts[g * levels + level]++] = cell; });

  for (let g = 0; g < groups.length; g++) {
    groups[g].count = starts[(g + 1) * levels] - starts[g * levels];
    for (let level = 0; level < levels; level++) {
      const state = t.states.indexOf(stateOrder[level]);
      if (state >= 0 && !isGood[state]) groups[g].bad += starts[g * levels + level + 1] - starts[g * levels + level];
    }
  }

  const order = groups.map((_, i) => i).filter((i) => groups[i].count > 0);
  const share = (g: Group) => g.bad > 0 ? 1 : 0;
  order.sort((a, b) => share(groups[b]) - share(groups[a]) || groups[b].bad - groups[a].bad || groups[a].label.localeCompare(groups[b].label, undefined, { numeric: true }));
  const { blocks, size } = pack(order.map((g) => ({ group: g, first: starts[g * levels], count: groups[g].count })), width, height);
  return { groups, blocks, cells, byHost, size, width, height };
}

/** The worst state of every host, and a row of it, which says its group. */
function hostCells(t: Table, rank: Uint8Array) {
  const worst = new Uint8Array(t.hosts.ip.length).fill(255);
  const row = new Uint32Array(t.hosts.ip.length);
  for (let id = 0; id < t.top; id++) {
    if (t.state[id] === 255) continue;
    const h = t.host[id], r = rank[t.state[id]];
    if (r < worst[h]) {
      worst[h] = r;
      row[h] = id;
    }
  }
  return { worst, row, group: (of: (id: number) => number, h: number) => of(row[h]) };
}

/** Puts blocks on shelves, with the largest cells that fit. */
function pack(list: { group: number; first: number; count: number }[], width: number, height: number): { blocks: Block[]; size: number } {
  let blocks: Block[] = [];
  const total = list.reduce((n, b) => n + b.count, 0);
  const most = total > 0 ? Math.min(total < 200 ? 30 : 18, Math.max(1, Math.ceil(Math.sqrt((width * height) / total)))) : 1;
  for (let size = most; size >= 1; size--) {
    const gap = size >= 6 ? 10 : size >= 3 ? 6 : 3;
    let x = 0, y = 0, shelf = 0;
    blocks = [];
    for (const b of list) {
      const widest = Math.max(1, Math.floor((width - gap) / size));
      const columns = Math.min(widest, Math.max(1, Math.ceil(Math.sqrt(b.count * 2))));
      const rows = Math.ceil(b.count / columns);
      if (x > 0 && x + columns * size > width) {
        x = 0;
        y += shelf + gap;
        shelf = 0;
      }
      blocks.push({ ...b, x, y, columns, rows });
      x += columns * size + gap;
      shelf = Math.max(shelf, rows * size);
    }
    if (y + shelf <= height || size === 1) return { blocks, size };
  }
  return { blocks, size: 1 };
}

/** The height that the blocks need. */
export function heightOf(heat: Heat): number {
  return heat.blocks.reduce((h, b) => Math.max(h, b.y + b.rows * heat.size), 0);
}

/** The cell at a point; undefined: none. */
export function cellAt(heat: Heat, x: number, y: number): { cell: number; group: number } | undefined {
  for (const b of heat.blocks) {
    const column = Math.floor((x - b.x) / heat.size), row = Math.floor((y - b.y) / heat.size);
    if (column < 0 || row < 0 || column >= b.columns || row >= b.rows) continue;
    const i = row * b.columns + column;
    return i < b.count ? { cell: heat.cells[b.first + i], group: b.group } : undefined;
  }
  return undefined;
}

/** Paints all cells into an image of width × height. Colours are 32-bit, by state; stale cells have their own. */
export function paint(t: Table, heat: Heat, image: Uint32Array, colours: Uint32Array, stale: number): void {
  image.fill(0);
  const { size, width } = heat;
  const side = size >= 3 ? size - 1 : size; // a gap between cells
  const hosts = heat.byHost ? hostCells(t, ranks(t)) : null;
  const lines = Math.floor(image.length / width);
  for (const b of heat.blocks) {
    for (let i = 0; i < b.count; i++) {
      const cell = heat.cells[b.first + i];
      const id = hosts ? hosts.row[cell] : cell;
      if (!t.has(id)) continue;
      const colour = t.flags[id] & flagStale ? stale : colours[t.state[id]];
      const x = b.x + (i % b.columns) * size, y = b.y + Math.floor(i / b.columns) * size;
      for (let dy = 0; dy < side && y + dy < lines; dy++) {
        const at = (y + dy) * width + x;
        if (side === 1) image[at] = colour;
        else image.fill(colour, at, Math.min(at + side, (y + dy + 1) * width));
      }
    }
  }
}
