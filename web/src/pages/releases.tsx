import { useState } from "preact/hooks";
import { del, get, may, post, put, session } from "../api.ts";
import type { EnrolTokenList, Release, ReleaseList, Upgrade, UpgradeList } from "../api-types.ts";
import { href } from "../router.ts";
import { Act, Scroll } from "../ui/act.tsx";
import { Button, Command, Empty, Field, Moment, PageHead, Problem, Text } from "../ui/kit.tsx";
import { bytes } from "../ui/format.ts";
import { useLoad } from "../ui/load.ts";
import { t, tOf } from "../words.ts";
import { HostTabs } from "./hosts.tsx";

export default function Releases() {
  const admin = may("admin");
  const releases = useLoad(admin ? (s) => get<ReleaseList>("/releases", undefined, s) : undefined, [], 30_000);
  const rolls = useLoad(admin ? (s) => get<UpgradeList>("/rolls", { limit: 20 }, s) : undefined, [], 2000);
  const tokens = useLoad(admin ? (s) => get<EnrolTokenList>("/enrol/tokens", undefined, s) : undefined, []);
  const [rolling, setRolling] = useState<Release>();
  const [removing, setRemoving] = useState<Release>();
  if (!admin) return <Empty title={t("empty.rights")} />;
  const reload = () => { releases.reload(); rolls.reload(); };
  const open = rolls.data?.rolls.find((r) => r.state === "running" || r.state === "waiting");

  return (
    <>
      <PageHead title={t("releases.title")} />
      <HostTabs at="releases" enrol={!!tokens.data} />
      <div class="stack">
        {releases.failure && (releases.failure.kind === "conflict" ? <Empty title={t("releases.off")} /> : <Problem of={releases.failure} retry={reload} />)}
        {rolls.data && rolls.data.rolls.length > 0 && <section class="stack"><h2>{t("rolls.title")}</h2>{rolls.data.rolls.map((r) => <Roll key={r.id} roll={r} reload={reload} />)}</section>}
        {releases.data && (
          <section class="card">
            <h2>{t("releases.published")}</h2>
            {releases.data.releases.length === 0 ? <Empty title={t("releases.none")}><p>{t("releases.none.text")}</p><Command text="gozzard release publish FOLDER" /></Empty> : (
              <Scroll label={t("releases.published")}>
                <table>
                  <thead><tr><th scope="col">{t("releases.version")}</th><th scope="col">{t("releases.at")}</th><th scope="col">{t("releases.expires")}</th><th scope="col">{t("enrol.by")}</th><th scope="col">{t("releases.files")}</th><th><span class="unseen">{t("people.actions")}</span></th></tr></thead>
                  <tbody>{releases.data.releases.map((r) => (
                    <tr key={r.version}>
                      <th scope="row"><Text of={r.version} /></th>
                      <td><Moment at={r.published} /></td>
                      <td><Moment at={r.expires} /></td>
                      <td><Caller of={r.by} /></td>
                      <td>{r.files.map((f) => <div key={f.sha256} title={f.sha256}><Text of={f.platform} /> {bytes(f.size)} {f.missing && <span class="mark mark-warn">{t("releases.missing")}</span>}</div>)}</td>
                      <td class="right"><div class="row end">
                        {!open && r.files.some((f) => !f.missing) && <Button onClick={() => setRolling(r)}>{t("rolls.start")}</Button>}
                        {open?.version !== r.version && <Button kind="danger" onClick={() => setRemoving(r)}>{t("remove")}</Button>}
                      </div></td>
                    </tr>
                  ))}</tbody>
                </table>
              </Scroll>
            )}
          </section>
        )}
      </div>
      {rolling && <StartRoll release={rolling} onClose={() => setRolling(undefined)} onDone={reload} />}
      {removing && (
        <Act title={t("releases.remove", { version: removing.version })} label={t("remove")} danger run={() => del(`/releases/${encodeURIComponent(removing.version)}`)} onClose={() => setRemoving(undefined)} onDone={reload}>
          <p>{t("releases.remove.text")}</p>
        </Act>
      )}
    </>
  );
}

function StartRoll({ release, onClose, onDone }: { release: Release; onClose: () => void; onDone: () => void }) {
  const [stages, setStages] = useState("1, 10, 100");
  const [agents, setAgents] = useState("");
  const list = stages.split(/[\s,]+/).filter(Boolean).map(Number);
  const rises = list.length > 0 && list.every((n, i) => Number.isInteger(n) && n > (list[i - 1] ?? 0) && n <= 100) && list.at(-1) === 100;
  return (
    <Act title={t("rolls.start.title", { version: release.version })} label={t("rolls.start")} ready={rises} onClose={onClose} onDone={onDone}
      run={() => post<Upgrade>("/rolls", { version: release.version, stages: list, agents: agents.split(/[\s,]+/).filter(Boolean) })}>
      <p>{t("rolls.start.text")}</p>
      <Field label={t("rolls.stages")} hint={t("rolls.stages.hint")} fault={rises ? undefined : t("rolls.stages.fault")}>{(a) => <input {...a} type="text" value={stages} onInput={(e) => setStages(e.currentTarget.value)} />}</Field>
      <Field label={t("rolls.agents")} hint={t("rolls.agents.hint")}>{(a) => <textarea {...a} rows={2} value={agents} onInput={(e) => setAgents(e.currentTarget.value)} />}</Field>
    </Act>
  );
}

/** The caller of a release or a roll: the server names it "user NAME" or "app NAME". */
function Caller({ of }: { of: string }) {
  const [, kind, name] = /^(user|app) (.*)$/s.exec(of) ?? [];
  return kind ? <>{t(kind === "user" ? "grants.user" : "grants.app")} <Text of={name} /></> : <Text of={of} />;
}

/** One roll with a cell for each host. */
function Roll({ roll, reload }: { roll: Upgrade; reload: () => void }) {
  const [asking, setAsking] = useState<"approved" | "stopped">();
  const count = (state: string) => roll.hosts.filter((h) => h.state === state).length;
  const done = count("done");
  const mine = roll.by === `user ${session.value?.user}`;
  return (
    <section class="card">
      <div class="row">
        <h3><Text of={roll.version} /> · {tOf("rolls.state.", roll.state)}</h3>
        <span class="dim">{t("rolls.progress", { n: done, all: roll.hosts.length })}</span>
        <span class="dim"><Moment at={roll.created} /> <Caller of={roll.by} />{roll.approved && <> · {t("rolls.approvedBy")} <Caller of={roll.approved} /></>}</span>
        <span class="members-actions">
          {roll.state === "waiting" && !mine && <Button kind="main" onClick={() => setAsking("approved")}>{t("rolls.approve")}</Button>}
          {(roll.state === "waiting" || roll.state === "running") && <Button kind="danger" onClick={() => setAsking("stopped")}>{t("rolls.stop")}</Button>}
        </span>
      </div>
      {roll.reason && <p><Text of={roll.reason} /></p>}
      {roll.state === "waiting" && <p class="hint">{mine ? t("rolls.waits.own") : t("rolls.waits")}</p>}
      <ul class="cells" aria-label={t("rolls.cells")}>
        {roll.hosts.slice(0, 2000).map((h) => <li key={h.agent} class={`cell cell-${h.state}`} title={`${h.agent} · ${h.stage} % · ${tOf("rolls.host.", h.state)} ${h.reason ?? ""}`}><a href={href(`/hosts/${encodeURIComponent(h.agent)}`)}><span class="unseen">{h.agent} {tOf("rolls.host.", h.state)}</span></a></li>)}
      </ul>
      <p class="dim">{["waiting", "asked", "done", "offline", "skipped", "failed"].filter((s) => count(s) > 0).map((s) => `${tOf("rolls.host.", s)} ${count(s)}`).join(" · ")}</p>
      {roll.hosts.filter((h) => h.state === "failed").slice(0, 20).map((h) => <p key={h.agent} class="fault"><Text of={h.agent} />{t("mark.colon")}<Text of={h.reason ?? ""} /></p>)}
      {asking && (
        <Act title={t(asking === "approved" ? "rolls.approve.title" : "rolls.stop.title", { version: roll.version })} label={t(asking === "approved" ? "rolls.approve" : "rolls.stop")} danger={asking === "stopped"}
          run={() => put<Upgrade>(`/rolls/${encodeURIComponent(roll.version)}`, { state: asking })} onClose={() => setAsking(undefined)} onDone={reload}>
          <p>{asking === "approved" ? t("rolls.approve.text", { n: roll.hosts.length }) : t("rolls.stop.text", { n: done, rest: roll.hosts.length - done })}</p>
        </Act>
      )}
    </section>
  );
}
