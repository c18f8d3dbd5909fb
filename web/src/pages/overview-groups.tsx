import { useMemo } from "preact/hooks";
import { ownSpace } from "../live/names.ts";
import { slowBeat, table } from "../live/stream.ts";
import { stateOrder } from "../live/filter.ts";
import type { Grouping } from "../live/heat.ts";
import { href } from "../router.ts";
import { State, Text } from "../ui/kit.tsx";
import { number, t } from "../words.ts";

const most = 200;

interface Row { label: string; filter: string; count: number; states: Map<string, number>; worst: number }

/** The groups of the map as a list, the worst first: every number leads to its rows. */
export function Groups({ by }: { by: Grouping }) {
  const rows = useMemo(() => count(by), [by, slowBeat.value, table.value]);
  return (
    <ul class="groups">
      {rows.slice(0, most).map((r) => (
        <li key={r.filter}>
          <a href={href("/processes", { f: r.filter })} class="one-line">{r.label ? <Text of={r.label} /> : t("overview.outside")}</a>
          <span class="groups-counts">
            {[...r.states].sort((a, b) => stateOrder.indexOf(a[0]) - stateOrder.indexOf(b[0])).slice(0, 5).map(([s, n]) =>
              <a key={s} href={href("/processes", { f: `${r.filter} state:${s}`.trim() })}><State of={s} bare /> {number(n)}</a>)}
          </span>
        </li>
      ))}
      {rows.length > most && <li class="dim">{t("overview.moreWrong", { n: rows.length - most })}</li>}
    </ul>
  );
}

/** Businesses, namespaces or hosts with the states of their processes. */
function count(by: Grouping): Row[] {
  const fleet = table.value;
  if (!fleet) return [];
  const key = keyOf(by);
  const states = fleet.states.length;
  const index = new Map<string, number>();
  const rows: { label: string; filter: string }[] = [];
  const of = key.entries.map(({ label, filter }) => {
    let i = index.get(filter);
    if (i === undefined) index.set(filter, i = rows.push({ label, filter }) - 1);
    return i;
  });

  const counts = new Uint32Array(rows.length * states);
  for (let id = 0; id < fleet.top; id++) if (fleet.state[id] !== 255) counts[of[key.column[id]] * states + fleet.state[id]]++;
  const out: Row[] = rows.map((r, i) => {
    const found = new Map<string, number>();
    let sum = 0, worst = stateOrder.length;
    for (let s = 0; s < states; s++) {
      const n = counts[i * states + s];
      if (!n) continue;
      found.set(fleet.states[s], n);
      sum += n;
      worst = Math.min(worst, stateOrder.indexOf(fleet.states[s]));
    }
    return { ...r, count: sum, states: found, worst };
  });
  return out.filter((r) => r.count > 0).sort((a, b) => a.worst - b.worst || a.label.localeCompare(b.label, undefined, { numeric: true }));
}

function keyOf(by: Grouping): { column: Uint32Array; entries: { label: string; filter: string }[] } {
  const fleet = table.value!;
  const quote = (s: string) => (/[\s,]/.test(s) ? `"${s}"` : s);
  switch (by) {
    case "host":
      return { column: fleet.host, entries: fleet.hosts.ip.map((ip, i) => ({ label: ip, filter: `host:${fleet.hosts.cloud[i]}:${ip}` })) };
    case "namespace":
      return { column: fleet.name, entries: fleet.names.space.map((s) => ({ label: ownSpace(fleet, s), filter: `ns:${quote(s)}` })) };
    case "business":
      return { column: fleet.place, entries: fleet.places.map(([biz, name, set]) => (biz ? { label: `${name} / ${set}`, filter: `biz:${biz} set:${quote(set)}` } : { label: "", filter: "biz:0" })) };
  }
}
