// The instances of a process: one a host.
import { useState } from "preact/hooks";
import { get, may } from "../api.ts";
import type { Definition, HostPage, Process } from "../api-types.ts";
import { href } from "../router.ts";
import { openAction, oneProcess } from "../ui/action.tsx";
import { age, bytes, exact, nextText, now, percent } from "../ui/format.ts";
import { Button, Empty, Moment, State, Text } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { number, t } from "../words.ts";
import { limitsOf, type Limit } from "./process-limits.ts";

const atFirst = 100; // instances on screen

const broken = ["crash_loop", "failed", "unhealthy", "backing_off", "unknown"];
const rank = (p: Process) => (broken.includes(p.state) ? broken.indexOf(p.state) : broken.length);

export function Instances({ list, definitions, path }: { list: Process[]; definitions: Definition[]; path: string }) {
  const hosts = useLoad((signal) => get<HostPage>("/hosts", { limit: 1000 }, signal), []);
  const cpus = new Map(hosts.data?.hosts.map((h) => [h.agent, h.cpus]));
  const [shown, setShown] = useState(atFirst);
  if (list.length === 0) return <Empty title={t("process.noInstance")} />;
  const sorted = [...list].sort((a, b) => rank(a) - rank(b)); // what is broken comes first; the order of hosts stays
  return (
    <>
      <ul class="instances">
        {sorted.slice(0, shown).map((p) => <Instance key={p.host.agent} of={p} document={documentOf(definitions, p)} cpus={cpus.get(p.host.agent) ?? 0} path={path} />)}
      </ul>
      {sorted.length > shown && <Button onClick={() => setShown(shown + atFirst)}>{t("process.moreInstances", { n: sorted.length - shown })}</Button>}
    </>
  );
}

/** The definition of the host of an instance. */
export function documentOf(definitions: Definition[], p: Process): unknown {
  const has = (d: Definition) => ((d.document as { hosts?: { agent?: string; ip?: string; cloud?: number }[] }).hosts ?? [])
    .some((h) => h.agent === p.host.agent || (h.ip === p.host.ip && (h.cloud ?? 0) === p.host.cloud));
  const found = definitions.find(has);
  return found?.effective ?? found?.document;
}

function Instance({ of: p, document, cpus, path }: { of: Process; document: unknown; cpus: number; path: string }) {
  const agent = p.host.agent;
  const limits = limitsOf(document, p, cpus);
  return (
    <li class="card instance">
      <div class="row instance-head">
        <a href={href(`/hosts/${encodeURIComponent(agent)}`)} class="mono"><Text of={p.host.ip ? `${p.host.cloud}:${p.host.ip}` : agent} /></a>
        <State of={p.state} />
        {p.stale && <span class="dim">{t("process.stale")}</span>}
        <span class="instance-links">
          <a href={href(path, { tab: "log", host: agent })}>{t("process.tab.log")}</a>
          <a href={href(path, { tab: "charts", host: agent })}>{t("process.tab.charts")}</a>
          {may("operate") && <Button kind="quiet" onClick={() => openAction({ action: "restart", selection: oneProcess(p.namespace, p.name, agent) })}>{t("action.restart")}</Button>}
        </span>
      </div>
      <dl class="values">
        <Value label={t("process.pid")}>{p.pid > 0 ? p.pid : "-"}</Value>
        <Value label={t("process.uptime")}>{p.pid > 0 && p.started_at ? <span title={p.started_at}>{age((now.value - Date.parse(p.started_at)) / 1000)}</span> : "-"}</Value>
        <Value label={t("process.restarts")}>{number(p.restarts)}</Value>
        <Value label={t("process.cpu")}>{cpus > 0 ? percent(p.cpu * cpus) : "-"}</Value>
        <Value label={t("process.memory")}>{bytes(p.mem_bytes)}</Value>
        <Value label={t("process.files")}>{number(p.fd)}</Value>
        {p.exit && <Value label={t("process.exit")}>{exitText(p.exit)} {p.exit.at && <span class="dim"><Moment at={p.exit.at} /></span>}</Value>}
        {p.last_run && <Value label={t("process.lastRun")}><Moment at={p.last_run.started_at} /> {p.last_run.ended_at ? exitText(p.last_run) : t("process.stillRuns")}</Value>}
        {p.next_at && <Value label={t(p.state === "scheduled" ? "process.waits" : "process.next")}><Next at={p.next_at} stale={p.stale} /></Value>}
        {p.version && <Value label={t("process.version")}><Text of={p.version} /></Value>}
        <Value label={t("process.managed")}>{p.managed ? t("yes") : t("no")}</Value>
        {p.health && <Value label={t("process.health")}>{p.health === "passing" ? t("process.healthy") : t("process.unhealthy")} {p.health_message && <Text of={p.health_message} />}</Value>}
      </dl>
      {p.message && !(p.health_message && p.message.includes(p.health_message)) && <p class="instance-message"><Text of={p.message} /></p>}
      {limits.length > 0 && <ul class="limits">{limits.map((l) => <LimitBar key={l.kind} of={l} />)}</ul>}
    </li>
  );
}

/** The next planned start, as the page counts it: what a host said last may be old. */
function Next({ at, stale }: { at: string; stale: boolean }) {
  const ms = Date.parse(at);
  if (stale && ms <= now.value) return <span class="dim">{t("process.stale")}</span>;
  return <time dateTime={at} title={exact(ms)}>{nextText(ms)}</time>;
}

function Value({ label, children }: { label: string; children: preact.ComponentChildren }) {
  return <div><dt>{label}</dt><dd>{children}</dd></div>;
}

export function exitText(e: { code?: number; signal?: string; core?: boolean; oom?: boolean }): string {
  const how = e.signal ? e.signal : e.code !== undefined ? t("process.code", { code: String(e.code) }) : t("process.codeUnknown");
  return [how, e.oom && t("process.oom"), e.core && t("process.core")].filter(Boolean).join(t("mark.list"));
}

function LimitBar({ of: l }: { of: Limit }) {
  const show = (n: number) => (l.kind === "cpu" ? percent(n) : l.kind === "files" ? number(n) : bytes(n));
  const label = t("process.limit", { what: t(`process.${l.kind}`), used: show(l.used), most: show(l.most) });
  return (
    <li>
      <span>{label}</span>
      <progress class={`limit ${l.share >= 0.9 ? "limit-near" : ""}`} max={1} value={Math.min(1, l.share)} aria-label={label} />
      <span class={l.share >= 0.9 ? "limit-word" : "dim"}>{percent(l.share * 100)}{l.share >= 0.9 && ` ${t("process.near")}`}</span>
    </li>
  );
}
