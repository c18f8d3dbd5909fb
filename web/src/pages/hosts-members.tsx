// Members of the fleet: hosts that wait, and what an admin does with a host.
import { useState } from "preact/hooks";
import { del, get, may, post, put } from "../api.ts";
import type { ForgottenHost, HostInfo, Member, Restore } from "../api-types.ts";
import { href } from "../router.ts";
import { Act } from "../ui/act.tsx";
import { Button, Field, Moment, Text } from "../ui/kit.tsx";
import { exact } from "../ui/format.ts";
import { useLoad } from "../ui/load.ts";
import { t, tOf, type Word } from "../words.ts";
import { nameOf, type Fleet } from "./hosts-data.ts";
import { EnrolDialog } from "./hosts-enrol.tsx";
import { Trust } from "./hosts-table.tsx";

const memberPath = (agent: string) => `/enrol/agents/${encodeURIComponent(agent)}`;

/** The hosts that wait for somebody: pending and quarantined ones. */
export function Waiting({ fleet, reload }: { fleet: Fleet; reload: () => void }) {
  const list = fleet.hosts.filter((h) => h.trust === "pending" || h.trust === "quarantined");
  if (list.length === 0) return null;
  return (
    <section class="card" aria-labelledby="waiting">
      <h2 id="waiting">{t("members.waiting", { n: list.length })}</h2>
      <ul class="stack">
        {list.slice(0, 50).map((h) => {
          const m = fleet.members.get(h.agent);
          return (
            <li key={h.agent} class="members-row">
              <Trust of={h.trust!} />
              <a href={href(`/hosts/${encodeURIComponent(h.agent)}`)}><Text of={nameOf(h)} /></a>
              <Text of={h.hostname} /> <span class="dim"><Moment at={m?.enrolled ?? null} /></span>
              <span class="members-actions"><MemberActions host={h} member={m} reload={reload} only={["approve", "reject"]} /></span>
              <p class="hint">{tOf("trust.text.", h.trust!)} {m?.reason && <Text of={m.reason} />}</p>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

type Deed = "approve" | "reject" | "revoke" | "again" | "addresses" | "remove" | "forget";

/** What can be done with a host in its state; the server decides in any case. */
function deeds(member: Member | undefined, online: boolean): Deed[] {
  if (!member) return may("admin") && !online ? ["forget"] : [];
  const out: Deed[] = [];
  if (member.state === "pending" && (may("enrol") || may("admin"))) out.push("approve");
  if (!may("admin")) return out;
  if (member.state === "pending") out.push("reject");
  if (member.state === "quarantined" || member.state === "restored") out.push("approve");
  if (member.state === "active" || member.state === "quarantined" || member.state === "restored") out.push("revoke");
  if (member.state !== "removed") out.push("again", "addresses");
  if (member.state !== "pending" && member.state !== "removed") out.push("remove");
  return out;
}

/** The buttons of a host, each with a dialog that names what ends. */
export function MemberActions({ host, member, reload, only, online = host.online }: { host: HostInfo; member: Member | undefined; reload: () => void; only?: Deed[]; online?: boolean }) {
  const [open, setOpen] = useState<Deed>();
  const list = deeds(member, online).filter((d) => !only || only.includes(d));
  const close = () => setOpen(undefined);
  const name = nameOf(host);
  const set = (state: string) => () => put<Member>(memberPath(host.agent), { state });

  const ask = (word: "approve" | "reject" | "revoke" | "remove", state: string, danger: boolean) => (
    <Act title={t(`members.${word}.title`, { host: name })} label={t(`members.${word}`)} danger={danger} run={set(state)} onClose={close} onDone={reload}>
      <p>{word === "approve" && member?.state === "quarantined" ? t("members.approve.quarantined") : t(`members.${word}.text`)}</p>
      {member?.reason && <p class="hint"><Text of={member.reason} /></p>}
    </Act>
  );
  return (
    <>
      {list.map((d) => <Button key={d} kind={d === "approve" ? "main" : d === "revoke" || d === "remove" || d === "forget" || d === "reject" ? "danger" : undefined} onClick={() => setOpen(d)}>{t(`members.${d}` as Word)}</Button>)}
      {open === "approve" && ask("approve", "active", false)}
      {open === "reject" && ask("reject", "removed", true)}
      {open === "revoke" && ask("revoke", "revoked", true)}
      {open === "remove" && ask("remove", "removed", true)}
      {open === "again" && <EnrolDialog agent={host.agent} onClose={close} onDone={reload} />}
      {open === "addresses" && member && <Addresses member={member} onClose={close} onDone={reload} />}
      {open === "forget" && (
        <Act title={t("members.forget.title", { host: name })} label={t("members.forget")} danger run={() => del<ForgottenHost>(`/hosts/${encodeURIComponent(host.agent)}`)} onClose={close} onDone={reload}>
          <p>{t("members.forget.text")}</p>
        </Act>
      )}
    </>
  );
}

/** Adds and removes addresses of a host. */
function Addresses({ member, onClose, onDone }: { member: Member; onClose: () => void; onDone: () => void }) {
  const [add, setAdd] = useState("");
  const [gone, setGone] = useState<string[]>([]);
  const added = add.split(/[\s,]+/).filter(Boolean);
  return (
    <Act title={t("members.addresses")} label={t("save")} danger={gone.length > 0} ready={added.length + gone.length > 0} onClose={onClose} onDone={onDone}
      run={() => put<Member>(`${memberPath(member.agent)}/addresses`, { add: added, remove: gone })}>
      <p>{t("members.addresses.text")}</p>
      <fieldset class="plain-set">
        <legend>{t("members.addresses.keep")}</legend>
        {member.ips.map((ip) => (
          <label key={ip} class="row"><input type="checkbox" checked={!gone.includes(ip)} onChange={(e) => setGone(e.currentTarget.checked ? gone.filter((g) => g !== ip) : [...gone, ip])} /> <code>{ip}</code></label>
        ))}
      </fieldset>
      <Field label={t("members.addresses.add")}>{(a) => <input {...a} type="text" value={add} onInput={(e) => setAdd(e.currentTarget.value)} />}</Field>
    </Act>
  );
}

/** Says that the record was restored, and lets an admin confirm it. */
export function ConfirmRestore({ from, reload }: { from: string; reload: () => void }) {
  const [open, setOpen] = useState(false);
  const [typed, setTyped] = useState("");
  const state = useLoad((s) => get<Restore>("/restore", undefined, s), [from]);
  const n = state.data?.waiting ?? 0;
  return (
    <section class="card warn" aria-labelledby="restored">
      <h2 id="restored">{t("restore.title")}</h2>
      <p>{t("restore.text", { at: exact(Date.parse(from)), n })}</p>
      {state.data && <Button kind="main" onClick={() => setOpen(true)}>{t("restore.confirm")}</Button>}
      {open && (
        <Act title={t("restore.confirm")} label={t("restore.confirm")} danger ready={typed === String(n)} run={() => post("/restore/confirm", { confirm: n })} onClose={() => setOpen(false)} onDone={reload}>
          <p>{t("restore.ask", { n })}</p>
          <Field label={t("restore.number")}>{(a) => <input {...a} inputMode="numeric" autocomplete="off" value={typed} onInput={(e) => setTyped(e.currentTarget.value.trim())} />}</Field>
        </Act>
      )}
    </section>
  );
}
