// Keeps the table up to date: a snapshot, then the stream of changes. One tab of the browser reads the stream and passes
// it on to the others, because a browser opens few connections to one server.
import { effect, signal } from "@preact/signals";
import { Table, type Batch } from "./table.ts";
import { address, background, Failure, readSession, send, session } from "../api.ts";
import type { Event as FleetEvent, TaskSummary } from "../api-types.ts";
import { language } from "../words.ts";

/** The fleet; null before the first snapshot. The object stays the same between snapshots: watch `beat` for changes. */
export const table = signal<Table | null>(null);

/** Grows when the table has changed, at most some times a second. */
export const beat = signal(0);

/** Follows `beat` twice a second at most, for what looks through the whole table. It never misses the last change. */
export const slowBeat = signal(0);
let slow = 0;
effect(() => {
  const now = beat.value;
  if (now && !slow) slow = window.setTimeout(() => { slow = 0; slowBeat.value = beat.peek(); }, 500);
});

export type Connection = "loading" | "live" | "off";
export const connection = signal<Connection>("loading");

/** When the connection was lost, in milliseconds. */
export const lostAt = signal(0);

type Heard = { events: FleetEvent[]; tasks: TaskSummary[] };
type Listener<K extends keyof Heard> = (what: Heard[K]) => void;
const listeners: { [K in keyof Heard]: Set<Listener<K>> } = { events: new Set(), tasks: new Set() };

/** Calls f for new events or for tasks that changed, until the returned function is called. */
export function listen<K extends keyof Heard>(topic: K, f: Listener<K>): () => void {
  listeners[topic].add(f);
  return () => { listeners[topic].delete(f); };
}

type Message = { kind: string; data: string; epoch: string; from: string };

const self = String(Math.random());
let channel: BroadcastChannel | null = null;
let started = ""; // the session that the data belongs to
let leading = false; // this tab reads the stream for all
let source: EventSource | null = null;
let waiting: Message[] = []; // changes that came while the snapshot was on its way
let fetching = false;
let lastHeard = 0;
let backoff = 500;

/** Starts once, after the sign-in. A page that has data of another session begins anew: nothing of one person stays for the next one. */
export function startLive(id: string): void {
  if (started === id) return;
  if (started) return location.reload();
  started = id;
  channel = new BroadcastChannel(`gozzard.live.${id}`); // tabs of another session have other rights
  channel.onmessage = (e: MessageEvent<Message>) => take(e.data);
  void snapshot();
  void lead();
  setInterval(watch, 1000);
}

/** Reads the stream as long as this tab is the first one of the browser. */
async function lead(): Promise<void> {
  if (!navigator.locks) { // a page over plain HTTP from another machine
    leading = true;
    return open();
  }
  await navigator.locks.request(`gozzard.live.${started}`, async () => {
    leading = true;
    open();
    await new Promise(() => {}); // until the tab is closed
  });
}

function open(): void {
  source?.close();
  source = null;
  const t = table.value;
  if (!leading || !t || session.value === null) return;
  source = new EventSource(address("/live/stream", { epoch: t.epoch, after: t.seq, lang: language.value }));
  source.onopen = () => { backoff = 500; pass("open", "{}"); };
  source.onerror = () => { void broken(); };
  for (const kind of ["changes", "events", "tasks", "resnapshot", "bye", "beat"]) {
    source.addEventListener(kind, (e) => pass(kind, (e as MessageEvent<string>).data));
  }
}

// Messages of events come in the language of the page.
let spoken = language.peek();
effect(() => {
  const now = language.value;
  if (now !== spoken && source) open();
  spoken = now;
});

/** Handles a message, and passes it on to the other tabs. */
function pass(kind: string, data: string): void {
  const m: Message = { kind, data, epoch: table.value?.epoch ?? "", from: self };
  channel?.postMessage(m);
  take(m);
}

async function broken(): Promise<void> {
  source?.close();
  source = null;
  pass("broken", "{}");
  try {
    await readSession(background(new AbortController().signal)); // a session that has ended is shown as such, not as a lost connection
  } catch { /* the server does not answer */ }
  if (session.value === null) return;
  setTimeout(open, backoff * (0.75 + Math.random() / 2));
  backoff = Math.min(backoff * 2, 10_000);
}

function take(m: Message): void {
  lastHeard = Date.now();
  switch (m.kind) {
    case "changes":
      change(m);
      break;
    case "events":
      for (const f of listeners.events) f(JSON.parse(m.data) as FleetEvent[]);
      break;
    case "tasks":
      for (const f of listeners.tasks) f(JSON.parse(m.data) as TaskSummary[]);
      break;
    case "resnapshot":
      void snapshot();
      break;
    case "bye":
      source?.close();
      source = null;
      session.value = null;
      break;
    case "broken":
      lose();
      return;
  }
  if (table.value && !fetching) connection.value = "live";
}

function change(m: Message): void {
  const t = table.value;
  if (!t || fetching) {
    waiting.push(m);
    if (waiting.length > 2000) waiting = []; // the snapshot will be too old, and is fetched again
    return;
  }

  const batch = JSON.parse(m.data) as Batch;
  if (m.from !== self && m.epoch !== t.epoch || batch.seq > t.seq + 1) {
    void snapshot();
    return;
  }
  if (batch.seq <= t.seq) return;
  t.apply(batch);
  beat.value++;
}

/** Fetches the whole fleet. */
async function snapshot(): Promise<void> {
  if (fetching) return;
  fetching = true;
  try {
    const answer = await send("GET", "/live/snapshot", { accept: "application/octet-stream" });
    if (!answer.body) throw new Failure(0, {});
    table.value = await Table.read(answer.body);
    fetching = false;
    connection.value = "live";
    lastHeard = Date.now();
    catchUp();
    beat.value++;
    open(); // go on after this snapshot
  } catch (err) {
    fetching = false;
    lose();
    if (!(err instanceof Failure && err.status === 401)) setTimeout(() => { void snapshot(); }, 2000);
  }
}

/** Applies what came while the snapshot was on its way. */
function catchUp(): void {
  const late = waiting;
  waiting = [];
  const t = table.value!;
  for (const m of late) {
    const batch = JSON.parse(m.data) as Batch;
    if (batch.seq === t.seq + 1 && (m.epoch === t.epoch || m.epoch === "")) t.apply(batch);
  }
}

function lose(): void {
  if (connection.value === "off") return;
  lostAt.value = lastHeard || Date.now();
  connection.value = "off";
}

/** The server sends something at least every 15 seconds: silence is a lost connection, even if nothing says so. */
function watch(): void {
  if (connection.value === "live" && source && lastHeard && Date.now() - lastHeard > 40_000) void broken();
}
