// What a preview of an action says, summed up for people. Pure, so that it is tested without a page.
import type { Preview } from "../api-types.ts";
import type { Table } from "../live/table.ts";
import type { Selection } from "./action.tsx";

export interface Summary {
  reached: number; // processes that the action goes to
  hosts: number; // at least that many, if partly
  host: string; // its address, if it is one
  partly: boolean; // the preview lists only a part of the processes
  offline: number; // hosts without a connection
  names: { space: string; name: string; count: number }[]; // the most frequent ones
  moreNames: number;
  rejectedCount: number;
  rejected: { code: string; message: string; count: number }[];
  second: "waits" | "refused" | ""; // what happens because the action needs a second person
}

const mostNames = 8, mostRejected = 6;

/** The limits of the API for one operation. */
export const maxTargets = 100_000, maxBody = 4 << 20;

/** Why a selection is too large for one operation; undefined if it is not. */
export function tooLarge(s: Selection): { word: "act.tooMany" | "act.tooLong"; n: number; most: number } | undefined {
  if (!s.processes) return undefined;
  const n = s.processes.reduce((sum, p) => sum + p.agents.length, 0);
  if (n > maxTargets) return { word: "act.tooMany", n, most: maxTargets };

  // Estimate the length of the body: exact for ASCII, and too large for other texts.
  const length = s.processes.reduce((sum, p) => sum + 60 + 3 * (p.namespace.length + p.name.length) + p.agents.reduce((l, a) => l + a.length + 3, 0), 200);
  return length > maxBody ? { word: "act.tooLong", n, most: Math.floor((n * maxBody) / length) } : undefined;
}

export function summarise(p: Preview, s: Selection, t: Table | null): Summary {
  // Count hosts and names of what is listed. A selection that names its hosts says more than the list.
  const agents = new Set<string>(s.processes?.flatMap((r) => r.agents));
  const addresses = new Set<string>();
  const names = new Map<string, Summary["names"][number]>();
  const away = new Set<string>(); // the server knows it before the live table does
  const rejected = new Map<string, { code: string; message: string; count: number }>();
  const count = (space: string, name: string, n: number) => {
    const key = `${space}/${name}`;
    names.set(key, { space, name, count: (names.get(key)?.count ?? 0) + n });
  };
  for (const r of s.processes ?? []) count(r.namespace, r.name, r.agents.length);
  for (const r of p.processes) {
    if (!s.processes) {
      agents.add(r.host.agent || `${r.host.cloud}:${r.host.ip}`);
      count(r.namespace, r.name, 1);
    }
    addresses.add(r.host.cloud && r.host.ip ? `${r.host.cloud}:${r.host.ip}` : r.host.ip || r.host.agent);
    if (r.code === "unreachable") away.add(`${r.host.cloud}:${r.host.ip}`);
    if (!r.code) continue;
    const key = `${r.code} ${r.message ?? ""}`;
    const group = rejected.get(key) ?? { code: r.code, message: r.message ?? "", count: 0 };
    group.count++;
    rejected.set(key, group);
  }

  const listed = [...names.values()].sort((a, b) => b.count - a.count);
  const shown = listed.length === mostNames + 1 ? listed.length : mostNames; // "1 more" would take the line of its name
  const groups = [...rejected.values()].sort((a, b) => b.count - a.count);
  return {
    reached: p.targets - p.rejected, hosts: agents.size, partly: !s.processes && p.processes.length < p.targets,
    host: agents.size === 1 && addresses.size === 1 ? [...addresses][0] : "",
    offline: Math.max(offlineHosts(agents, t), away.size), names: listed.slice(0, shown), moreNames: Math.max(0, listed.length - shown),
    rejectedCount: p.rejected, rejected: groups.slice(0, mostRejected),
    second: p.second_person === "waits" || p.second_person === "refused" ? p.second_person : "",
  };
}

/** Counts the hosts without a connection. A preview names a host that it does not reach by its address only. */
function offlineHosts(agents: Set<string>, t: Table | null): number {
  if (!t) return 0;
  const { agent, cloud, ip, online } = t.hosts;
  return agent.filter((a, i) => online[i] === 0 && (agents.has(a) || agents.has(`${cloud[i]}:${ip[i]}`))).length;
}
