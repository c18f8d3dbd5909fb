import { useState } from "preact/hooks";
import { get, del, Failure, post } from "../api.ts";
import type { Grant, GrantCheck, GrantList, HeldGrant } from "../api-types.ts";
import { href, place, setQuery } from "../router.ts";
import { Act, Scroll } from "../ui/act.tsx";
import { Button, Empty, Field, Problem, Text } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { t, tOf } from "../words.ts";
import { GrantForm, grantActions, GrantText } from "./people-grant.tsx";

type Holder = "user" | "app" | "group";

export function Grants() {
  const grants = useLoad((s) => get<GrantList>("/grants", undefined, s), [], 30_000);
  const [adding, setAdding] = useState(false);
  const [gone, setGone] = useState<HeldGrant>();
  const asked = (place.value.query.get("q") ?? "").trim().toLowerCase();
  const found = (grants.data?.grants ?? []).filter((g) => nameOf(g).toLowerCase().includes(asked));
  return (
    <div class="stack">
      <Check />
      <div class="row">
        <input type="search" aria-label={t("grants.filter")} placeholder={t("grants.filter")} value={place.value.query.get("q") ?? ""} onInput={(e) => setQuery({ q: e.currentTarget.value })} />
        <Button kind="main" onClick={() => setAdding(true)}>{t("grants.add")}</Button>
      </div>
      {grants.failure && <Problem of={grants.failure} retry={grants.reload} />}
      {grants.data && found.length === 0 && <Empty title={t("grants.none")} />}
      {found.length > 0 && (
        <Scroll label={t("people.tab.grants")}>
          <table>
            <thead><tr><th scope="col">{t("grants.holder")}</th><th scope="col">{t("grants.grant")}</th><th><span class="unseen">{t("people.actions")}</span></th></tr></thead>
            <tbody>{found.slice(0, 1000).map((g) => (
              <tr key={JSON.stringify(g)}>
                <th scope="row"><HolderName of={g} /></th>
                <td><GrantText of={g.grant} /></td>
                <td class="right"><Button kind="danger" onClick={() => setGone(g)}>{t("remove")}</Button></td>
              </tr>
            ))}</tbody>
          </table>
        </Scroll>
      )}
      {adding && <AddGrant onClose={() => setAdding(false)} onDone={grants.reload} />}
      {gone && <RemoveGrant held={gone} onClose={() => setGone(undefined)} onDone={grants.reload} />}
    </div>
  );
}

const nameOf = (g: HeldGrant) => g.user ?? g.app ?? g.group ?? "";

function HolderName({ of }: { of: HeldGrant }) {
  const kind: Holder = of.user ? "user" : of.app ? "app" : "group";
  const name = <Text of={nameOf(of)} />;
  return <><span class="dim">{t(`grants.${kind}`)}</span> {kind === "user" ? <a href={href(`/people/${encodeURIComponent(nameOf(of))}`)}>{name}</a> : name}</>;
}

/** Asks before a grant is taken away. */
export function RemoveGrant({ held, onClose, onDone }: { held: HeldGrant; onClose: () => void; onDone: () => void }) {
  return (
    <Act title={t("grants.remove", { name: nameOf(held) })} label={t("remove")} danger run={() => del("/grants", held)} onClose={onClose} onDone={onDone}>
      <p><GrantText of={held.grant} /></p>
      <p>{t("grants.remove.text")}</p>
    </Act>
  );
}

/** Gives a grant; user: to this user. */
export function AddGrant({ user, onClose, onDone }: { user?: string; onClose: () => void; onDone: () => void }) {
  const [kind, setKind] = useState<Holder>("user");
  const [name, setName] = useState(user ?? "");
  const [grant, setGrant] = useState<Grant | undefined>({ role: "viewer" });
  return (
    <Act title={t("grants.add")} label={t("grants.add")} ready={name !== "" && !!grant} run={() => post("/grants", { [kind]: name, grant })} onClose={onClose} onDone={onDone}>
      {!user && <>
        <Field label={t("grants.to")}>{(a) => <select {...a} value={kind} onChange={(e) => setKind(e.currentTarget.value as Holder)}>{(["user", "app", "group"] as const).map((k) => <option key={k} value={k}>{t(`grants.${k}`)}</option>)}</select>}</Field>
        <Field label={t("grants.name")}>{(a) => <input {...a} type="text" required autocomplete="off" value={name} onInput={(e) => setName(e.currentTarget.value.trim())} />}</Field>
      </>}
      <GrantForm onChange={setGrant} />
    </Act>
  );
}

/** Asks the server what somebody could do somewhere. The question is in the address. */
function Check() {
  const q = place.value.query;
  const [f, setF] = useState({ user: q.get("user") ?? "", app: q.get("app") ?? "", action: q.get("action") ?? "stop", host: q.get("host") ?? "", namespace: q.get("namespace") ?? "", account: q.get("account") ?? "" });
  const [answer, setAnswer] = useState<GrantCheck>();
  const [failure, setFailure] = useState<Failure>();
  const ask = async (e: Event) => {
    e.preventDefault();
    setQuery(f);
    try {
      setAnswer(await get<GrantCheck>("/grants/check", f));
      setFailure(undefined);
    } catch (err) {
      setAnswer(undefined);
      if (err instanceof Failure) setFailure(err);
    }
  };
  const field = (key: "user" | "app" | "host" | "namespace" | "account") => (
    <Field label={t(`check.${key}`)}>{(a) => <input {...a} type="text" autocomplete="off" value={f[key]} onInput={(e) => setF({ ...f, [key]: e.currentTarget.value.trim() })} />}</Field>
  );
  return (
    <details class="card" open={!!q.get("host")}>
      <summary><h2>{t("check.title")}</h2></summary>
      <form class="stack" onSubmit={(e) => { void ask(e); }}>
        <div class="columns check-fields">
          {field("user")}
          {field("app")}
          <Field label={t("check.action")}>{(a) => <select {...a} value={f.action} onChange={(e) => setF({ ...f, action: e.currentTarget.value })}>{grantActions.map((x) => <option key={x} value={x}>{tOf("action.", x)}</option>)}</select>}</Field>
          {field("host")}
          {field("namespace")}
          {field("account")}
        </div>
        <div class="row"><Button type="submit" kind="main" disabled={f.host === "" || (f.user === "" && f.app === "")}>{t("check.ask")}</Button><span class="hint">{t("check.hint")}</span></div>
      </form>
      {failure && <Problem of={failure} />}
      {answer && (
        <div class="stack check-answer" role="status">
          <p><strong class={answer.allowed ? "yes" : "no"}>{answer.allowed ? t("check.yes") : t("check.no")}</strong> {!answer.host_known && <span class="hint">{t("check.hostUnknown")}</span>}</p>
          <ul class="bullets">{answer.grants.map((g, i) => <li key={i}>{g.allows ? "✓" : "✗"} <GrantText of={g.grant} /> {g.reason && <span class="dim"><Text of={g.reason} /></span>}</li>)}</ul>
          {answer.grants.length === 0 && <p class="hint">{t("check.noGrants")}</p>}
        </div>
      )}
    </details>
  );
}
