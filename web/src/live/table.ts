// The processes of the fleet in columns. A row's id is its index, so a million rows cost 30 bytes each and no objects.

export const flagManaged = 1, flagStale = 2, flagPeriodic = 4, flagUnhealthy = 8, flagWanted = 16;

const noRow = 255; // in the column of states: there is no row with this id
const fullSize = 36;

export interface Header {
  epoch: string;
  seq: number;
  rows: number;
  time: number;
  states: string[];
  hosts: HostColumns;
  names: { space: string[]; name: string[] };
  places: PlaceRow[];
}

export interface HostColumns { agent: string[]; ip: string[]; cloud: number[]; online: number[] }

export type PlaceRow = [biz: number, bizName: string, set: string, module: string];

/** One batch of changes, as the stream sends it. */
export interface Batch {
  seq: number;
  hosts?: HostColumns;
  names?: { space: string[]; name: string[] };
  places?: PlaceRow[];
  online?: [number, number][];
  b?: string;
}

type Column = Uint32Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Uint16Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;

/** The bytes of a snapshot, in the order in which they come. */
class Source {
  private rest: Uint8Array = new Uint8Array(0); // of the last part

  constructor(private reader: ReadableStreamDefaultReader<Uint8Array>) {}

  /** Fills a list of bytes with the next ones. */
  async take<T extends Uint8Array>(into: T): Promise<T> {
    for (let at = 0; at < into.length;) {
      if (this.rest.length === 0) {
        const { value, done } = await this.reader.read();
        if (done) throw new Error("the snapshot ends too early");
        this.rest = value;
      }
      const part = this.rest.subarray(0, into.length - at);
      into.set(part, at);
      at += part.length;
      this.rest = this.rest.subarray(part.length);
    }
    return into;
  }

  /** Fills a column and skips what follows it up to a multiple of 8 bytes. */
  async column<T extends Column>(into: T): Promise<T> {
    await this.take(new Uint8Array(into.buffer));
    await this.take(new Uint8Array((8 - (into.byteLength % 8)) % 8));
    return into;
  }
}

export class Table {
  epoch = "";
  seq = 0;
  count = 0; // rows
  top = 0; // ids are below
  states: string[] = [];
  hosts: HostColumns = { agent: [], ip: [], cloud: [], online: [] };
  names: { space: string[]; name: string[] } = { space: [], name: [] };
  places: PlaceRow[] = [];

  host = new Uint32Array(0);
  name = new Uint32Array(0);
  place = new Uint32Array(0);
  mem = new Uint32Array(0);
  pid = new Int32Array(0);
  started = new Uint32Array(0);
  restarts = new Uint16Array(0);
  cpu = new Uint16Array(0);
  state = new Uint8Array(0);
  flags = new Uint8Array(0);

  byState: number[] = []; // how many rows are in each state
  staleRows = 0;

  version = 0; // grows with every change
  shape = 0; // grows when rows come, go or move, or a dictionary grows: what a filter has found must be looked for again
  hostsVersion = 0; // grows when a host comes, goes online or offline

  has(id: number): boolean {
    return id < this.top && this.state[id] !== noRow;
  }

  /** The table of a snapshot. It reads the columns as they come, and throws if the bytes are not a snapshot. */
  static async read(body: ReadableStream<Uint8Array>): Promise<Table> {
    const source = new Source(body.getReader());
    const start = new DataView((await source.take(new Uint8Array(8))).buffer);
    if (start.getUint32(0) !== 0x475a4c31) throw new Error("not a snapshot");
    const text = await source.take(new Uint8Array(start.getUint32(4, true)));
    const header = JSON.parse(new TextDecoder().decode(text)) as Header;

    const t = new Table();
    t.epoch = header.epoch;
    t.seq = header.seq;
    t.states = header.states;
    t.hosts = header.hosts;
    t.names = header.names;
    t.places = header.places;
    t.byState = header.states.map(() => 0);
    await t.fill(source, header.rows);
    return t;
  }

  /** Reads the columns of a snapshot. */
  private async fill(source: Source, n: number): Promise<void> {
    // Find out where rows belong.
    const id = await source.column(new Uint32Array(n));
    let dense = true, top = 0;
    for (let i = 0; i < n; i++) {
      if (id[i] !== i) dense = false;
      if (id[i] >= top) top = id[i] + 1;
    }

    // Read the columns. Without holes between the ids, which is usual, a column is what was sent.
    const column = async <T extends Column>(make: new (n: number) => T, none = 0): Promise<T> => {
      const sent = await source.column(new make(n));
      if (dense) return sent;
      const c = new make(top);
      if (none) c.fill(none);
      for (let i = 0; i < n; i++) c[id[i]] = sent[i];
      return c;
    };
    this.host = await column(Uint32Array);
    this.name = await column(Uint32Array);
    this.place = await column(Uint32Array);
    this.mem = await column(Uint32Array);
    this.pid = await column(Int32Array);
    this.started = await column(Uint32Array);
    this.restarts = await column(Uint16Array);
    this.cpu = await column(Uint16Array);
    this.state = await column(Uint8Array, noRow);
    this.flags = await column(Uint8Array);

    // Count.
    for (let i = 0; i < n; i++) {
      this.byState[this.state[id[i]]]++;
      if (this.flags[id[i]] & flagStale) this.staleRows++;
    }
    this.top = top;
    this.count = n;
  }

  /** Makes room for ids below top. */
  private grow(top: number): void {
    if (top <= this.top) return;
    if (top > this.state.length) {
      const room = this.state.length === 0 ? top : Math.max(top, Math.ceil(this.state.length * 1.25));
      const more = <T extends Column>(old: T): T => {
        const c = new (old.constructor as new (n: number) => T)(room);
        c.set(old);
        return c;
      };
      this.host = more(this.host);
      this.name = more(this.name);
      this.place = more(this.place);
      this.mem = more(this.mem);
      this.pid = more(this.pid);
      this.started = more(this.started);
      this.restarts = more(this.restarts);
      this.cpu = more(this.cpu);
      const filled = this.state.length;
      this.state = more(this.state);
      this.state.fill(noRow, filled);
      this.flags = more(this.flags);
    }
    this.top = top;
  }

  /** Applies a batch of changes. */
  apply(batch: Batch): void {
    this.seq = batch.seq;
    this.version++;
    this.applyDictionaries(batch);
    if (!batch.b) return;

    const text = atob(batch.b);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const v = new DataView(bytes.buffer);
    const nShort = v.getUint32(0, true), nMem = v.getUint32(4, true), nFull = v.getUint32(8, true), nGone = v.getUint32(12, true);
    const shortAt = 16, memAt = shortAt + nShort * 8, fullAt = memAt + nMem * 8, goneAt = fullAt + nFull * fullSize;

    for (let i = 0; i < nGone; i++) this.remove(v.getUint32(goneAt + i * 4, true));
    for (let i = 0; i < nFull; i++) this.applyFull(v, fullAt + i * fullSize);
    for (let i = 0, at = shortAt; i < nShort; i++, at += 8) {
      const id = v.getUint32(at, true);
      if (!this.has(id)) continue;
      this.move(id, v.getUint8(at + 4), v.getUint8(at + 5));
      this.cpu[id] = v.getUint16(at + 6, true);
    }
    for (let i = 0, at = memAt; i < nMem; i++, at += 8) {
      const id = v.getUint32(at, true);
      if (this.has(id)) this.mem[id] = v.getUint32(at + 4, true);
    }
    if (nGone > 0) this.shape++;
  }

  private applyDictionaries(batch: Batch): void {
    if (batch.hosts) {
      for (const key of ["agent", "ip", "cloud", "online"] as const) (this.hosts[key] as unknown[]).push(...batch.hosts[key]);
      this.hostsVersion++;
    }
    if (batch.names) {
      this.names.space.push(...batch.names.space);
      this.names.name.push(...batch.names.name);
    }
    if (batch.places) this.places.push(...batch.places);
    for (const [host, online] of batch.online ?? []) {
      this.hosts.online[host] = online;
      this.hostsVersion++;
    }
    if (batch.hosts || batch.names || batch.places) this.shape++;
  }

  private applyFull(v: DataView, at: number): void {
    const id = v.getUint32(at, true);
    const state = v.getUint8(at + 32), flags = v.getUint8(at + 33);
    this.grow(id + 1);
    if (this.state[id] === noRow || this.host[id] !== v.getUint32(at + 4, true) || this.name[id] !== v.getUint32(at + 8, true) ||
      this.place[id] !== v.getUint32(at + 12, true)) this.shape++;
    if (this.state[id] === noRow) {
      this.count++;
      this.byState[state]++;
      if (flags & flagStale) this.staleRows++;
      this.state[id] = state;
      this.flags[id] = flags;
    } else {
      this.move(id, state, flags);
    }
    this.host[id] = v.getUint32(at + 4, true);
    this.name[id] = v.getUint32(at + 8, true);
    this.place[id] = v.getUint32(at + 12, true);
    this.mem[id] = v.getUint32(at + 16, true);
    this.pid[id] = v.getInt32(at + 20, true);
    this.started[id] = v.getUint32(at + 24, true);
    this.restarts[id] = v.getUint16(at + 28, true);
    this.cpu[id] = v.getUint16(at + 30, true);
  }

  private move(id: number, state: number, flags: number): void {
    this.byState[this.state[id]]--;
    this.byState[state]++;
    this.staleRows += ((flags & flagStale) >> 1) - ((this.flags[id] & flagStale) >> 1);
    this.state[id] = state;
    this.flags[id] = flags;
  }

  private remove(id: number): void {
    if (!this.has(id)) return;
    this.byState[this.state[id]]--;
    if (this.flags[id] & flagStale) this.staleRows--;
    this.state[id] = noRow;
    this.count--;
  }
}
