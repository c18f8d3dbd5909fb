// CPU, memory, descriptors and restarts of a process over time, as its agents have measured them.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Failure, get } from "../api.ts";
import type { History, HostPage, Process } from "../api-types.ts";
import { place, setQuery } from "../router.ts";
import { alignSeries, Chart } from "../ui/chart.tsx";
import { bytes, percent, plain } from "../ui/format.ts";
import { Problem } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { number, t } from "../words.ts";
import { HostChoice, hostName } from "./process-log.tsx";

const ranges = { hour: 3600, day: 86400, month: 30 * 86400 } as const;
type Range = keyof typeof ranges;
const maxHosts = 6;
const kinds = ["cpu", "mem", "fd", "restarts"] as const;
type Kind = (typeof kinds)[number];
type Points = { times: number[] } & Record<Kind, (number | null)[]>;

export function Charts({ list, host }: { list: Process[]; host: string }) {
  const chosen = host ? list.filter((p) => p.host.agent === host) : list.slice(0, maxHosts);
  const asked = place.value.query.get("range") ?? "hour";
  const range: Range = asked in ranges ? (asked as Range) : "hour";
  const every = range === "hour" ? 10_000 : 60_000;
  const loaded = useLoad((signal) => readAll(chosen, range, signal), [chosen.map((p) => p.host.agent).join(" "), range], every);
  const live = useLivePoints(chosen);

  const points = useMemo(() => new Map(chosen.map((p) => {
    const old = loaded.data?.points.get(p.host.agent);
    const few = !old || old.mem.filter((v) => v !== null).length < 2;
    return [p.host.agent, few && range === "hour" ? live.get(p.host.agent) ?? old : old] as const;
  })), [loaded.data, live, range]);

  const format: Record<Kind, (n: number) => string> = { cpu: percent, mem: bytes, fd: (n) => number(Math.round(n)), restarts: (n) => number(Math.round(n * 100) / 100) };
  const to = Math.max(loaded.data?.to ?? 0, ...[...points.values()].map((p) => p?.times.at(-1) ?? 0));
  const missing = loaded.failure ? [] : loaded.data?.missing ?? [];
  const empty = loaded.data ? t("chart.none") : t("chart.loading");
  return (
    <div class="stack">
      <div class="row">
        {list.length > 1 && <HostChoice list={list} host={host} />}
        <div class="row" role="group" aria-label={t("chart.range")}>
          {(Object.keys(ranges) as Range[]).map((r) => <button key={r} type="button" class="chip" aria-pressed={r === range} onClick={() => setQuery({ range: r === "hour" ? undefined : r })}>{t(`chart.${r}`)}</button>)}
        </div>
      </div>
      {!host && list.length > maxHosts && <p class="note">{t("chart.tooMany", { n: maxHosts, all: list.length })}</p>}
      {loaded.failure && <Problem of={loaded.failure} retry={loaded.reload} />}
      {missing.length > 0 && <ul class="note" role="status">{missing.map((m) => <li key={m.host}>{t("chart.missing", { host: m.host, why: plain(m.why) })}</li>)}</ul>}
      <div class="charts">
        {kinds.map((kind) => <Chart key={`${kind} ${range}`} title={t(`chart.${kind}`)} format={format[kind]} from={to - ranges[range]} to={to} bytes={kind === "mem"} empty={empty}
          data={alignSeries(chosen.map((p) => { const at = points.get(p.host.agent); return { label: hostName(p), times: at?.times ?? [], values: at?.[kind] ?? [] }; }))} />)}
      </div>
    </div>
  );
}

async function readAll(list: Process[], range: Range, signal: AbortSignal): Promise<{ points: Map<string, Points>; to: number; missing: { host: string; why: string }[] }> {
  const to = Math.floor(Date.now() / 1000);
  const points = new Map<string, Points>();
  const missing: { host: string; why: string }[] = [];
  await Promise.all(list.map(async (p) => {
    try {
      const h = await get<History>("/history", { namespace: p.namespace, name: p.name, agent: p.host.agent, from: to - ranges[range], to, points: 360 }, signal);
      points.set(p.host.agent, { times: h.mem.map((_, i) => h.from + i * h.step), cpu: h.cpu, mem: h.mem, fd: h.fd, restarts: h.restarts });
    } catch (err) {
      if (signal.aborted) throw err;
      if (!(err instanceof Failure) || err.status === 0) throw err; // the server does not answer for any host
      missing.push({ host: hostName(p), why: err.message });
    }
  }));
  return { points, to, missing: missing.sort((a, b) => a.host.localeCompare(b.host, undefined, { numeric: true })) };
}

/** What the page has seen since it was opened: a new process has a chart before its agent has measured it for long. */
function useLivePoints(list: Process[]): Map<string, Points> {
  const hosts = useLoad((signal) => get<HostPage>("/hosts", { limit: 1000 }, signal), []);
  const [points, setPoints] = useState<Map<string, Points>>(new Map());
  useEffect(() => {
    const cpus = new Map(hosts.data?.hosts.map((h) => [h.agent, h.cpus]));
    const time = Math.floor(Date.now() / 1000);
    setPoints((old) => new Map(list.map((p) => {
      const before = old.get(p.host.agent) ?? { times: [], cpu: [], mem: [], fd: [], restarts: [] };
      if (before.times.at(-1) === time) return [p.host.agent, before];
      const add = <T,>(values: T[], v: T) => [...values, v].slice(-720);
      const up = p.pid > 0;
      return [p.host.agent, {
        times: add(before.times, time), cpu: add(before.cpu, up ? p.cpu * (cpus.get(p.host.agent) ?? 1) : null), mem: add(before.mem, up ? p.mem_bytes : null),
        fd: add(before.fd, up ? p.fd : null), restarts: add(before.restarts, p.restarts),
      }];
    })));
  }, [list.map((p) => `${p.host.agent} ${p.reported_at} ${p.state}`).join("\n"), hosts.data]);
  return points;
}
