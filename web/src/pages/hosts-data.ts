// The hosts with what the live table knows about them.
import { get } from "../api.ts";
import type { HostInfo, HostPage, Member, MemberList } from "../api-types.ts";
import { flagStale, type Table } from "../live/table.ts";

const pageSize = 1000;
const mostHosts = 100_000; // a bound on what one page keeps

export interface Fleet {
  hosts: HostInfo[];
  members: Map<string, Member>;
  restoredFrom: string;
}

/** Reads all hosts, and the enrolled ones that never connected. */
export async function readFleet(signal: AbortSignal): Promise<Fleet> {
  const fleet: Fleet = { hosts: [], members: new Map(), restoredFrom: "" };
  while (fleet.hosts.length < mostHosts) {
    const page = await get<HostPage>("/hosts", { start: fleet.hosts.length, limit: pageSize }, signal);
    fleet.hosts.push(...page.hosts);
    fleet.restoredFrom = page.restored_from ?? "";
    if (page.hosts.length < pageSize) break;
  }

  const { agents } = await get<MemberList>("/enrol/agents", undefined, signal);
  const known = new Set(fleet.hosts.map((h) => h.agent));
  for (const m of agents) {
    fleet.members.set(m.agent, m);
    if (!known.has(m.agent)) fleet.hosts.push(hostOf(m));
  }
  fleet.hosts = fleet.hosts.filter((h) => h.trust !== "removed");
  return fleet;
}

/** A member that never connected, in the form of a host. */
function hostOf(m: Member): HostInfo {
  return {
    agent: m.agent, addrs: m.ips.map((ip) => ({ cloud: m.cloud, ip })), online: false, hostname: m.hostname, os: "", arch: "",
    version: "", started_at: null, cpus: 0, mem_bytes: 0, trust: m.state,
  };
}

/** The address by which people know a host. */
export function nameOf(h: { addrs: { cloud: number; ip: string }[]; agent: string }): string {
  const a = h.addrs[0];
  if (!a) return h.agent;
  return a.cloud ? `${a.cloud}:${a.ip}` : a.ip;
}

/** What the processes of one host add up to. */
export interface Sum {
  index: number; // of the host in the table
  online: boolean;
  states: Uint32Array; // processes by state
  count: number;
  stale: number;
  cpu: number; // percent of one core
  mem: number; // KiB
}

let sums = new Map<string, Sum>();
let sumsOf: Table | null = null;
let sumsAt = 0;

/** The sums of all hosts, at most a second old: counting a million rows takes some milliseconds. */
export function sumHosts(table: Table | null): Map<string, Sum> {
  if (!table) return new Map();
  if (table === sumsOf && Date.now() - sumsAt < 1000) return sums;
  const list: Sum[] = table.hosts.agent.map((_, index) => ({
    index, online: table.hosts.online[index] === 1, states: new Uint32Array(table.states.length), count: 0, stale: 0, cpu: 0, mem: 0,
  }));
  for (let id = 0; id < table.top; id++) {
    if (!table.has(id)) continue;
    const s = list[table.host[id]];
    if (!s) continue;
    s.states[table.state[id]]++;
    s.count++;
    s.cpu += table.cpu[id] / 10;
    s.mem += table.mem[id];
    if (table.flags[id] & flagStale) s.stale++;
  }
  sums = new Map(list.map((s, i) => [table.hosts.agent[i], s]));
  sumsOf = table;
  sumsAt = Date.now();
  return sums;
}
