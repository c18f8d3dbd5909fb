// How close an instance is to the limits of its definition.
import type { Process } from "../api-types.ts";

export interface Limit {
  kind: "memory" | "cpu" | "files" | "disk" | "net";
  used: number;
  most: number;
  share: number; // used of most, from 0
}

const units: Record<string, number> = { "": 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };

/** A size such as 512M, in bytes; undefined if it is none. */
export function sizeOf(v: unknown): number | undefined {
  if (typeof v === "number") return v;
  const m = typeof v === "string" ? /^([0-9.]+)\s*([KMGT]?)i?B?$/i.exec(v.trim()) : null;
  return m ? Number(m[1]) * units[m[2].toUpperCase()] : undefined;
}

const percentOf = (v: unknown) => (typeof v === "string" && v.endsWith("%") ? Number(v.slice(0, -1)) : undefined);

/** The limits that a document sets, with what an instance uses. cpus are the processors of its host; 0: not known. */
export function limitsOf(document: unknown, p: Process, cpus = 0): Limit[] {
  const doc = (document ?? {}) as Record<string, unknown>;
  const more = (doc.limits ?? {}) as Record<string, unknown>;
  const out: Limit[] = [];
  const add = (kind: Limit["kind"], used: number, most: number | undefined) => {
    if (most !== undefined && most > 0 && Number.isFinite(most)) out.push({ kind, used, most, share: used / most });
  };

  const memory = percentOf(doc.memory);
  if (memory !== undefined) add("memory", p.mem_bytes, p.mem > 0 ? (p.mem_bytes / p.mem) * memory : undefined);
  else add("memory", p.mem_bytes, sizeOf(doc.memory));

  const cpu = percentOf(doc.cpu);
  const most = cpu !== undefined ? cpu * cpus : Number(doc.cpu) * 100;
  if (cpus > 0) add("cpu", p.cpu * cpus, most); // in percent of one core, as everywhere; the agent reports of the machine

  add("files", p.fd, typeof more.files === "number" ? more.files : undefined);
  add("disk", p.disk, sizeOf(more.disk));
  add("net", p.net, sizeOf(more.net));
  return out;
}
