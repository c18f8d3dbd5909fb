// What a task's page computes: results, groups of errors, speed and the grid of cells. No part of it draws.
import type { Attempt, Counts, HostRef, TaskSummary } from "../api-types.ts";

/** The result of an attempt as the page shows it: what is not sent yet waits, what is sent runs. */
export type Result = "failed" | "running" | "waiting" | "done" | "noted";

export const results: Result[] = ["failed", "running", "waiting", "noted", "done"];

export function resultOf(a: Attempt): Result {
  if (a.verdict === "running") return a.state === "pending" ? "waiting" : "running";
  return a.verdict === "failed" || a.verdict === "noted" ? a.verdict : "done";
}

export function countResults(attempts: readonly Attempt[]): Record<Result, number> {
  const n: Record<Result, number> = { failed: 0, running: 0, waiting: 0, noted: 0, done: 0 };
  for (const a of attempts) n[resultOf(a)]++;
  return n;
}

export function hostText(h: HostRef): string {
  return h.ip ? `${h.cloud}:${h.ip}` : h.agent;
}

/** The hosts of attempts, each once, one a line: as commands read them. */
export function hostList(attempts: readonly Attempt[]): string {
  return [...new Set(attempts.map((a) => hostText(a.host)))].join("\n");
}

export interface ErrorGroup {
  key: string;
  code: string;
  message: string; // of the first one
  positions: number[]; // in the attempts of the task
  hosts: string[]; // each once
  repeats: boolean; // a newer operation did not replace them
}

const longest = 2000; // characters by which errors are compared

/** What differs between hosts that fail for the same reason: words with a digit, such as pids, addresses and times. */
const varying = /[0-9A-Za-z:._/-]*[0-9][0-9A-Za-z:._/-]*/g;

function reason(a: Attempt): string {
  let text = a.message ?? "";
  for (const own of [a.host.agent, a.host.ip, `${a.namespace}:${a.name}`]) {
    if (own && own !== ":") text = text.replaceAll(own, "#");
  }
  return text.slice(0, longest).replace(varying, "#");
}

/** Groups failures by code and text, the largest group first, as the command line does. */
export function groupErrors(attempts: readonly Attempt[]): ErrorGroup[] {
  const index = new Map<string, ErrorGroup & { seen: Set<string> }>();
  attempts.forEach((a, at) => {
    if (a.verdict !== "failed") return;
    const key = `${a.code ?? ""}\u0000${reason(a)}`;
    let g = index.get(key);
    if (!g) {
      g = { key, code: a.code ?? "", message: a.message ?? "", positions: [], hosts: [], repeats: a.code !== "superseded", seen: new Set() };
      index.set(key, g);
    }
    g.positions.push(at);
    const host = hostText(a.host);
    if (!g.seen.has(host)) {
      g.seen.add(host);
      g.hosts.push(host);
    }
  });
  return [...index.values()].sort((a, b) => b.positions.length - a.positions.length);
}

/** How many attempts had their verdicts at a moment, in milliseconds. */
export interface Sample { at: number; ended: number }

const window = 15_000;

/** Adds a sample, and drops those that say nothing any more. */
export function sample(list: readonly Sample[], s: Sample): Sample[] {
  const kept = list.filter((o) => o.at > s.at - 2 * window && o.at < s.at && o.ended <= s.ended);
  return [...kept, s].slice(-60);
}

/** Verdicts a second over the last moments, and the seconds that the rest needs. Undefined: nothing is known yet. */
export function speed(list: readonly Sample[], open: number, now: number): { rate: number; left: number | undefined } | undefined {
  const recent = list.filter((s) => s.at >= now - window);
  const first = recent[0] ?? list.at(-1);
  const last = list.at(-1);
  if (!first || !last || list.length < 2) return undefined;
  const from = first === last ? list[list.length - 2] : first;
  const seconds = (Math.max(now, last.at) - from.at) / 1000;
  if (seconds < 0.5) return undefined;
  const rate = (last.ended - from.ended) / seconds;
  return { rate, left: rate > 0 ? open / rate : undefined };
}

/** How many milliseconds to wait after a reading that took some time: at most an eighth of the time is spent on reading. */
export function pause(took: number, targets: number): number {
  return Math.min(30_000, Math.max(1000, took * 8, targets > 20_000 ? 3000 : 0));
}

/** A grid of cells: size in pixels, cells in a row, rows. */
export interface Grid { size: number; columns: number; rows: number }

/** The largest cells that fit into the width and about the height. */
export function gridOf(n: number, width: number, height: number): Grid {
  for (const size of [20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2]) {
    const columns = Math.max(1, Math.floor(width / size));
    const rows = Math.ceil(n / columns);
    if (rows * size <= height || size === 2) return { size, columns, rows };
  }
  throw new Error("unreachable");
}

/** The cell under a point, -1 for none. */
export function cellAt(g: Grid, n: number, x: number, y: number): number {
  const column = Math.floor(x / g.size), row = Math.floor(y / g.size);
  const at = row * g.columns + column;
  return x < 0 || y < 0 || column >= g.columns || at >= n ? -1 : at;
}

/** The number in a task's id: newer tasks have larger ones. */
export function taskNumber(id: string): number {
  return Number(id.slice(id.lastIndexOf(":") + 1)) || 0;
}

/** A task's id without the part that all have. */
export function shortTask(id: string): string {
  return id.replace(/^GSETASK:/, "");
}

/** Puts a newer first page over a list: what the page covers is as the page says, older rows stay. */
export function mergePage(list: readonly TaskSummary[], page: readonly TaskSummary[], more: boolean): TaskSummary[] {
  if (!more) return [...page];
  const oldest = page.length ? taskNumber(page[page.length - 1].task_id) : Infinity;
  return [...page, ...list.filter((s) => taskNumber(s.task_id) < oldest)];
}

/** Replaces rows that changed. new: one of them is not in the list. */
export function replaceRows(list: readonly TaskSummary[], changed: readonly TaskSummary[]): { list: TaskSummary[]; isNew: boolean } {
  const by = new Map(changed.map((s) => [s.task_id, s]));
  let known = 0;
  const out = list.map((s) => {
    const c = by.get(s.task_id);
    if (!c) return s;
    known++;
    return c;
  });
  return { list: out, isNew: known < by.size };
}

/** The part of a task that has ended, from 0 to 1. */
export function part(c: Counts): number {
  return c.targets ? (c.done + c.failed) / c.targets : 1;
}
