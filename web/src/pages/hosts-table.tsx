// The table of hosts. Only the rows in view are drawn.
import { useState } from "preact/hooks";
import type { HostInfo } from "../api-types.ts";
import { href, place, setQuery } from "../router.ts";
import { stateOrder } from "../live/filter.ts";
import type { Table } from "../live/table.ts";
import { Moment, State, Text } from "../ui/kit.tsx";
import { bytes, percent } from "../ui/format.ts";
import { number, t, tOf, type Word } from "../words.ts";
import { Load, SkewMark } from "./host-vitals.tsx";
import type { Sum } from "./hosts-data.ts";

const rowHeight = 29;
const allAbove = 500; // fewer rows are all drawn

export interface Row { host: HostInfo; name: string; sum: Sum | undefined; online: boolean }

type Sort = "host" | "online" | "name" | "version" | "processes" | "cpu" | "memory" | "load" | "missing";

const value: Record<Sort, (r: Row) => string | number> = {
  host: (r) => r.name,
  online: (r) => (r.online ? 1 : 0),
  name: (r) => r.host.hostname,
  version: (r) => r.host.version,
  processes: (r) => -(r.sum?.count ?? 0),
  cpu: (r) => -(r.sum?.cpu ?? 0),
  memory: (r) => -(r.sum?.mem ?? 0),
  load: (r) => -(r.host.load ?? -1),
  missing: (r) => -(r.host.degraded?.length ?? 0),
};

/** The rows in the order that the address asks for. */
export function sortRows(rows: Row[]): Row[] {
  const asked = place.value.query.get("sort") ?? "";
  const back = asked.startsWith("-");
  const key = asked.replace(/^-/, "") as Sort;
  if (!(key in value)) return rows;
  const of = value[key];
  const compare = (a: Row, b: Row) => {
    const x = of(a), y = of(b);
    return typeof x === "number" ? x - (y as number) : x.localeCompare(y as string, undefined, { numeric: true });
  };
  return [...rows].sort((a, b) => (back ? -compare(a, b) : compare(a, b)));
}

export function HostTable({ rows, table, enrolled }: { rows: Row[]; table: Table | null; enrolled: boolean }) {
  const [view, setView] = useState({ top: 0, height: 900 });
  const whole = rows.length <= allAbove;
  const first = whole ? 0 : Math.max(0, Math.floor(view.top / rowHeight) - 10);
  const last = whole ? rows.length : Math.min(rows.length, Math.ceil((view.top + view.height) / rowHeight) + 10);
  const columns = enrolled ? 11 : 10;

  return (
    <div class={`scroll hosts-scroll ${whole ? "" : "hosts-virtual"}`} role="region" aria-label={t("hosts.title")} tabIndex={0}
      onScroll={(e) => { if (!whole) setView({ top: e.currentTarget.scrollTop, height: e.currentTarget.clientHeight }); }}>
      <table class="hosts-table" aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            <Head sort="host" word="hosts.host" />
            <Head sort="online" word="hosts.state" />
            <Head sort="name" word="hosts.name" />
            {enrolled && <th scope="col">{t("hosts.trust")}</th>}
            <Head sort="processes" word="hosts.processes" />
            <Head sort="cpu" word="hosts.cpu" right />
            <Head sort="memory" word="hosts.memory" right />
            <Head sort="load" word="hosts.load" right />
            <th scope="col">{t("hosts.mode")}</th>
            <Head sort="version" word="hosts.version" />
            <Head sort="missing" word="hosts.missing" />
          </tr>
        </thead>
        <tbody>
          {first > 0 && <Gap rows={first} columns={columns} />}
          {rows.slice(first, last).map((r, i) => <HostRow key={r.host.agent} row={r} at={first + i} table={table} enrolled={enrolled} />)}
          {last < rows.length && <Gap rows={rows.length - last} columns={columns} />}
        </tbody>
      </table>
    </div>
  );
}

/** Stands for rows that are not drawn. */
function Gap({ rows, columns }: { rows: number; columns: number }) {
  return <tr aria-hidden="true"><td colSpan={columns} ref={(e) => { if (e) e.style.height = `${rows * rowHeight}px`; }} /></tr>;
}

function Head({ sort, word, right }: { sort: Sort; word: Word; right?: boolean }) {
  const now = place.value.query.get("sort") ?? "";
  const order = now === sort ? "ascending" : now === `-${sort}` ? "descending" : undefined;
  return (
    <th scope="col" aria-sort={order} class={right ? "right" : ""}>
      <button type="button" class="sort" onClick={() => setQuery({ sort: order === "ascending" ? `-${sort}` : order === "descending" ? "" : sort })}>
        {t(word)}<span aria-hidden="true">{order === "ascending" ? " ↓" : order === "descending" ? " ↑" : ""}</span>
      </button>
    </th>
  );
}

function HostRow({ row, at, table, enrolled }: { row: Row; at: number; table: Table | null; enrolled: boolean }) {
  const { host, sum } = row;
  const missing = host.degraded ?? [];
  return (
    <tr aria-rowindex={at + 2}>
      <th scope="row" class="hosts-name"><a href={href(`/hosts/${encodeURIComponent(host.agent)}`)}><Text of={row.name} /></a></th>
      <td><Online on={row.online} seen={host.last_seen} /></td>
      <td><Text of={host.hostname} class="one-line hosts-word" /></td>
      {enrolled && <td>{host.trust ? <Trust of={host.trust} /> : ""}</td>}
      <td>{sum && table ? <StateCounts sum={sum} table={table} agent={host.agent} /> : ""}</td>
      <td class="right">{sum && sum.count > 0 ? percent(sum.cpu) : ""}</td>
      <td class="right">{sum && sum.count > 0 ? bytes(sum.mem * 1024) : ""}</td>
      <td class="right"><Load of={host.load} /></td>
      <td title={host.mode ? tOf("hosts.mode.text.", host.mode) : undefined}>{host.mode ?? ""}</td>
      <td><Text of={host.version} class="one-line hosts-word" /></td>
      <td>{missing.length > 0 && <span class="one-line hosts-missing" title={missing.join("\n")}>{t("hosts.missing.n", { n: missing.length })}</span>} <SkewMark host={host} /> {host.flag && <span class="mark mark-warn">{t("hosts.limited")}</span>}</td>
    </tr>
  );
}

/** Whether a host is connected: shape and word. */
export function Online({ on, seen }: { on: boolean; seen?: string | null }) {
  return (
    <span class={`online ${on ? "online-yes" : "online-no"}`}>
      <span class="online-shape" aria-hidden="true" />{on ? t("hosts.online") : t("hosts.offline")}
      {!on && seen && <small class="dim"> <Moment at={seen} /></small>}
    </span>
  );
}

/** The membership of an enrolled host. */
export function Trust({ of }: { of: string }) {
  return <span class={`mark ${of === "active" ? "" : "mark-warn"}`} title={tOf("trust.text.", of)}>{tOf("trust.", of)}</span>;
}

/** How many processes of a host are in each state; a number leads to its rows. */
export function StateCounts({ sum, table, agent }: { sum: Sum; table: Table; agent: string }) {
  return (
    <span class="hosts-counts">
      {stateOrder.map((s) => ({ s, n: sum.states[table.states.indexOf(s)] ?? 0 })).filter((c) => c.n > 0).map(({ s, n }) => (
        <a key={s} href={href("/processes", { f: `host:${agent} state:${s}` })} title={tOf("state.", s)}><State of={s} bare /> {number(n)}</a>
      ))}
      {sum.count === 0 && <span class="dim">0</span>}
    </span>
  );
}
