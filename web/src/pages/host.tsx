import type { HostInfo } from "../api-types.ts";
import { beat, table } from "../live/stream.ts";
import { flagManaged, flagStale } from "../live/table.ts";
import { href } from "../router.ts";
import { Scroll } from "../ui/act.tsx";
import { CopyButton, Empty, Moment, PageHead, Problem, State, Text } from "../ui/kit.tsx";
import { ProcessName } from "../ui/process-name.tsx";
import { bytes, percent } from "../ui/format.ts";
import { useLoad } from "../ui/load.ts";
import { useEvents } from "../ui/use-events.ts";
import { number, t, tOf } from "../words.ts";
import { Vitals } from "./host-vitals.tsx";
import { nameOf, readFleet, sumHosts, type Fleet } from "./hosts-data.ts";
import { isOnline } from "./hosts.tsx";
import { MemberActions } from "./hosts-members.tsx";
import { Online, StateCounts, Trust } from "./hosts-table.tsx";

const mostRows = 200; // the page of processes shows more
const mostEvents = 50;

export default function HostPage({ params }: { params: Record<string, string> }) {
  const fleet = useLoad(readFleet, [], 15_000);
  beat.value;
  const host = fleet.data?.hosts.find((h) => h.agent === params.agent) ?? fleet.data?.hosts.find((h) => h.addrs.some((a) => a.ip === params.agent || `${a.cloud}:${a.ip}` === params.agent));
  if (fleet.failure && !fleet.data) return <Problem of={fleet.failure} retry={fleet.reload} />;
  if (!fleet.data) return <p class="dim loading" role="status">{t("loading")}</p>;
  if (!host) return <Empty title={t("host.unknown")}><a class="button" href={href("/hosts")}>{t("host.back")}</a></Empty>;

  const sums = sumHosts(table.value);
  const online = isOnline(host, sums);
  const member = fleet.data.members.get(host.agent);
  return (
    <>
      <PageHead title={<Text of={nameOf(host)} />}>
        <MemberActions host={host} member={member} online={online} reload={fleet.reload} />
      </PageHead>
      <div class="stack">
        {host.trust && host.trust !== "active" && (
          <section class="card warn"><h2><Trust of={host.trust} /></h2><p>{tOf("trust.text.", host.trust)}</p>{member?.reason && <p><Text of={member.reason} /></p>}</section>
        )}
        {host.flag && <section class="card warn"><h2>{t("hosts.limited")}</h2><p><Text of={host.flag} /></p></section>}
        <div class="columns">
          <Facts host={host} fleet={fleet.data} online={online} />
          <Missing host={host} />
        </div>
        <Processes agent={host.agent} />
        <Events agent={host.agent} />
      </div>
    </>
  );
}

function Facts({ host, fleet, online }: { host: HostInfo; fleet: Fleet; online: boolean }) {
  const member = fleet.members.get(host.agent);
  const sum = sumHosts(table.value).get(host.agent);
  return (
    <section class="card">
      <h2>{t("host.facts")}</h2>
      <dl class="facts">
        <dt>{t("hosts.state")}</dt><dd><Online on={online} seen={host.last_seen} /></dd>
        <dt>{t("hosts.name")}</dt><dd><Text of={host.hostname || "-"} /></dd>
        <dt>{t("host.addresses")}</dt><dd>{host.addrs.map((a) => <div key={`${a.cloud}:${a.ip}`}><code>{a.cloud}:{a.ip}</code></div>)}</dd>
        <dt>{t("host.agent")}</dt><dd><code><Text of={host.agent} /></code> <CopyButton text={host.agent} /></dd>
        <dt>{t("hosts.version")}</dt><dd><Text of={host.version || "-"} /></dd>
        <dt>{t("host.agentStarted")}</dt><dd><Moment at={host.started_at} /></dd>
        <dt>{t("host.system")}</dt><dd>{host.os ? <Text of={`${host.os}/${host.arch}`} /> : "-"}</dd>
        <dt>{t("host.machine")}</dt><dd>{host.cpus > 0 ? t("host.machine.text", { n: host.cpus, memory: bytes(host.mem_bytes) }) : "-"}</dd>
        <Vitals host={host} />
        {sum && sum.count > 0 && <><dt>{t("host.use")}</dt><dd>{t("host.use.text", { cpu: percent(sum.cpu), memory: bytes(sum.mem * 1024) })}</dd></>}
        {host.trust && <><dt>{t("hosts.trust")}</dt><dd><Trust of={host.trust} /></dd></>}
        {member && <><dt>{t("host.enrolled")}</dt><dd><Moment at={member.enrolled} /></dd><dt>{t("host.certificate")}</dt><dd><Moment at={member.not_after} /></dd></>}
      </dl>
    </section>
  );
}

/** What the host allows, and what it cannot do. */
function Missing({ host }: { host: HostInfo }) {
  const digest = (host.policy_digest ?? "").split("/")[0];
  return (
    <section class="card">
      <h2>{t("host.allows")}</h2>
      <dl class="facts">
        <dt>{t("hosts.mode")}</dt><dd>{host.mode ? <>{host.mode}<br /><span class="hint">{tOf("hosts.mode.text.", host.mode)}</span></> : "-"}</dd>
        <dt>{t("host.account")}</dt><dd>{host.default_account ? <code>{host.default_account}</code> : <span class="hint">{t("host.account.none")}</span>}</dd>
        <dt>{t("host.policy")}</dt><dd>{digest ? <><code title={digest}>{digest.slice(0, 12)}</code> <span class="hint">{t("host.policy.text")}</span></> : <span class="hint">{t("host.policy.none")}</span>}</dd>
      </dl>
      <h3>{t("host.missing")}</h3>
      {host.degraded?.length ? <ul class="bullets">{host.degraded.map((d) => <li key={d}><Text of={d} /></li>)}</ul> : <p class="hint">{t("host.missing.none")}</p>}
    </section>
  );
}

/** The processes of the host, live. */
function Processes({ agent }: { agent: string }) {
  beat.value;
  const fleet = table.value;
  const sum = sumHosts(fleet).get(agent);
  if (!fleet || !sum) return null;
  const ids: number[] = [];
  for (let id = 0; id < fleet.top && ids.length < mostRows; id++) if (fleet.has(id) && fleet.host[id] === sum.index) ids.push(id);
  const name = (id: number) => `${fleet.names.space[fleet.name[id]]}/${fleet.names.name[fleet.name[id]]}`;
  ids.sort((a, b) => name(a).localeCompare(name(b)));

  return (
    <section class="card">
      <h2>{t("hosts.processes")} <StateCounts sum={sum} table={fleet} agent={agent} /></h2>
      {ids.length === 0 ? <p class="hint">{t("host.processes.none")}</p> : (
        <Scroll label={t("hosts.processes")}>
          <table>
            <thead><tr><th scope="col">{t("host.process")}</th><th scope="col">{t("hosts.state")}</th><th scope="col" class="right">{t("host.pid")}</th><th scope="col">{t("host.started")}</th><th scope="col" class="right">{t("host.restarts")}</th><th scope="col" class="right">{t("hosts.cpu")}</th><th scope="col" class="right">{t("hosts.memory")}</th></tr></thead>
            <tbody>{ids.map((id) => {
              const space = fleet.names.space[fleet.name[id]], own = fleet.names.name[fleet.name[id]];
              return (
                <tr key={id}>
                  <th scope="row"><a href={href(`/process/${encodeURIComponent(space)}/${encodeURIComponent(own)}`)}><ProcessName space={space} name={own} place={fleet.place[id]} /></a></th>
                  <td><State of={fleet.states[fleet.state[id]]} />{!!(fleet.flags[id] & flagStale) && <small class="dim"> {t("host.stale")}</small>}{!(fleet.flags[id] & flagManaged) && <small class="dim"> {t("host.unmanaged")}</small>}</td>
                  <td class="right">{fleet.pid[id] > 0 ? fleet.pid[id] : ""}</td>
                  <td><Moment at={fleet.started[id]} /></td>
                  <td class="right">{number(fleet.restarts[id])}</td>
                  <td class="right">{percent(fleet.cpu[id] / 10)}</td>
                  <td class="right">{bytes(fleet.mem[id] * 1024)}</td>
                </tr>
              );
            })}</tbody>
          </table>
        </Scroll>
      )}
      {sum.count > ids.length && <p><a href={href("/processes", { f: `host:${agent}` })}>{t("host.processes.all", { n: sum.count })}</a></p>}
    </section>
  );
}

/** What happened on the host, newest first. */
function Events({ agent }: { agent: string }) {
  const old = useEvents({ host: agent, limit: mostEvents }, mostEvents, (e) => e.host.agent === agent);
  const all = [...old.events].reverse();
  return (
    <section class="card">
      <h2>{t("host.events")}</h2>
      {old.failure && <Problem of={old.failure} retry={old.reload} />}
      {old.data && all.length === 0 && <p class="hint">{t("host.events.none")}</p>}
      {all.length > 0 && (
        <Scroll label={t("host.events")}>
          <table>
            <thead><tr><th scope="col">{t("host.event.at")}</th><th scope="col">{t("host.process")}</th><th scope="col">{t("host.event")}</th><th scope="col">{t("host.event.text")}</th></tr></thead>
            <tbody>{all.map((e) => (
              <tr key={e.id}>
                <td><Moment at={e.at} /></td>
                <td>{e.name ? <a href={href(`/process/${encodeURIComponent(e.namespace)}/${encodeURIComponent(e.name)}`)}><ProcessName space={e.namespace} name={e.name} /></a> : "-"}</td>
                <td>{tOf("event.", e.kind)}</td>
                <td><Text of={[e.message, e.code !== null && e.code !== undefined ? t("host.event.code", { n: e.code }) : "", e.signal, e.user].filter(Boolean).join(" · ")} /></td>
              </tr>
            ))}</tbody>
          </table>
        </Scroll>
      )}
    </section>
  );
}
