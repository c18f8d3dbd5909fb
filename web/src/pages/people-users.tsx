import { useState } from "preact/hooks";
import { get, post } from "../api.ts";
import type { Grant, User, UserPage } from "../api-types.ts";
import { useActions } from "../keys.ts";
import { href, place, setQuery } from "../router.ts";
import { Act, Once, Scroll } from "../ui/act.tsx";
import { Button, Dialog, Empty, Field, Problem, Text } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { t } from "../words.ts";
import { GrantForm, GrantText } from "./people-grant.tsx";

const mostUsers = 10_000;

export async function readUsers(signal: AbortSignal): Promise<User[]> {
  const all: User[] = [];
  for (;;) {
    const page = await get<UserPage>("/users", { start: all.length, limit: 1000 }, signal);
    all.push(...page.users);
    if (page.users.length < 1000 || all.length >= mostUsers) return all;
  }
}

export function Users() {
  const users = useLoad(readUsers, [], 30_000);
  const [adding, setAdding] = useState(false);
  useActions([{ label: t("users.add"), keys: "n", run: () => setAdding(true) }], []);
  const asked = (place.value.query.get("q") ?? "").trim().toLowerCase();
  const found = (users.data ?? []).filter((u) => u.name.toLowerCase().includes(asked)).slice(0, 1000);
  return (
    <div class="stack">
      <div class="row">
        <input type="search" aria-label={t("users.filter")} placeholder={t("users.filter")} value={place.value.query.get("q") ?? ""} onInput={(e) => setQuery({ q: e.currentTarget.value })} />
        <Button kind="main" onClick={() => setAdding(true)}>{t("users.add")}</Button>
        {users.data && <span class="dim" role="status">{t("users.n", { n: found.length })}</span>}
      </div>
      {users.failure && <Problem of={users.failure} retry={users.reload} />}
      {users.data?.length === 0 && <Empty title={t("users.none")}><p>{t("users.none.text")}</p></Empty>}
      {found.length > 0 && (
        <Scroll label={t("people.tab.users")}>
          <table>
            <thead><tr><th scope="col">{t("users.name")}</th><th scope="col">{t("users.state")}</th><th scope="col">{t("users.ways")}</th><th scope="col">{t("people.tab.grants")}</th></tr></thead>
            <tbody>{found.map((u) => (
              <tr key={u.name}>
                <th scope="row"><a href={href(`/people/${encodeURIComponent(u.name)}`)}><Text of={u.name} /></a></th>
                <td>{u.disabled ? <span class="mark mark-warn">{t("users.disabled")}</span> : t("users.enabled")}</td>
                <td>{waysOf(u)}</td>
                <td>{u.grants.length === 0 ? <span class="dim">{t("none")}</span> : u.grants.slice(0, 3).map((g, i) => <div key={i}><GrantText of={g} /></div>)}{u.grants.length > 3 && <span class="dim">{t("users.moreGrants", { n: u.grants.length - 3 })}</span>}</td>
              </tr>
            ))}</tbody>
          </table>
        </Scroll>
      )}
      {adding && <AddUser onClose={() => setAdding(false)} onDone={users.reload} />}
    </div>
  );
}

/** How a user can sign in, in words. */
export function waysOf(u: User): string {
  const list = [u.password && t("users.password"), u.totp && t("users.totp"), u.subject && t("users.provider")].filter(Boolean);
  return list.join(t("mark.list")) || t("users.noWay");
}

/** A password that nobody has to invent. */
export function newPassword(): string {
  const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
  const out: string[] = [];
  while (out.length < 20) {
    for (const b of crypto.getRandomValues(new Uint8Array(32))) {
      if (b < letters.length * 4 && out.length < 20) out.push(letters[b % letters.length]);
    }
  }
  return out.join("").replace(/(.{5})(?=.)/g, "$1-");
}

function AddUser({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [name, setName] = useState("");
  const [way, setWay] = useState<"generated" | "given" | "none">("generated");
  const [password, setPassword] = useState("");
  const [grant, setGrant] = useState<Grant>();
  const [reuse, setReuse] = useState(false);
  const [made, setMade] = useState("");
  const [secret] = useState(newPassword);
  if (made) return <Dialog title={t("users.added", { name })} onClose={onClose}><Once label={t("users.password.of", { name })} value={made} /><p class="hint">{t("users.added.text")}</p><footer class="dialog-foot"><Button onClick={onClose}>{t("close")}</Button></footer></Dialog>;
  return (
    <Act title={t("users.add")} label={t("users.add")} ready={name !== "" && (way !== "given" || password !== "")}
      run={() => post("/users", { name, password: way === "generated" ? secret : way === "given" ? password : undefined, grants: grant ? [grant] : [], reuse_name: reuse || undefined })}
      onClose={() => { if (way !== "generated") onClose(); }} onCancel={onClose} onDone={() => { onDone(); if (way === "generated") setMade(secret); }}>
      <Field label={t("users.name")}>{(a) => <input {...a} type="text" required autocomplete="off" maxLength={64} value={name} onInput={(e) => setName(e.currentTarget.value.trim())} />}</Field>
      <Field label={t("users.signsIn")}>
        {(a) => <select {...a} value={way} onChange={(e) => setWay(e.currentTarget.value as typeof way)}><option value="generated">{t("users.way.generated")}</option><option value="given">{t("users.way.given")}</option><option value="none">{t("users.way.none")}</option></select>}
      </Field>
      {way === "given" && <Field label={t("users.password")}>{(a) => <input {...a} type="password" required autocomplete="new-password" value={password} onInput={(e) => setPassword(e.currentTarget.value)} />}</Field>}
      <GrantForm optional onChange={setGrant} />
      <label class="row"><input type="checkbox" checked={reuse} onChange={(e) => setReuse(e.currentTarget.checked)} /> {t("users.reuse")}</label>
    </Act>
  );
}
