import { useState } from "preact/hooks";
import { del, get, may, post, put, session } from "../api.ts";
import type { HeldGrant, Offboarded, User, UserTokenList } from "../api-types.ts";
import { go, href } from "../router.ts";
import { Act, Once, Scroll } from "../ui/act.tsx";
import { Button, Dialog, Empty, PageHead, Problem, Text } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { t } from "../words.ts";
import { AddGrant, RemoveGrant } from "./people-grants.tsx";
import { GrantText } from "./people-grant.tsx";
import { Tokens } from "./people-tokens.tsx";
import { newPassword, readUsers, waysOf } from "./people-users.tsx";

type Deed = "disable" | "enable" | "password" | "totp" | "subject" | "offboard" | "delete";

export default function Person({ params }: { params: Record<string, string> }) {
  const allowed = may("users") || may("admin");
  const name = params.name;
  const path = `/users/${encodeURIComponent(name)}`;
  const users = useLoad(allowed ? readUsers : undefined, [], 30_000);
  const tokens = useLoad(allowed ? (s) => get<UserTokenList>(`${path}/tokens`, undefined, s) : undefined, [name], 5000);
  const [granting, setGranting] = useState(false);
  const [gone, setGone] = useState<HeldGrant>();
  if (!allowed) return <Empty title={t("empty.rights")} />;
  if (users.failure && !users.data) return <Problem of={users.failure} retry={users.reload} />;
  if (!users.data) return <p class="dim loading" role="status">{t("loading")}</p>;
  const user = users.data.find((u) => u.name === name);
  if (!user) return <Empty title={t("person.unknown")}><a class="button" href={href("/people")}>{t("person.back")}</a></Empty>;
  const reload = () => { users.reload(); tokens.reload(); };

  return (
    <>
      <PageHead title={<Text of={name} />}><Deeds user={user} path={path} reload={reload} /></PageHead>
      <div class="stack">
        <section class="card">
          <dl class="facts">
            <dt>{t("users.state")}</dt><dd>{user.disabled ? <span class="mark mark-warn">{t("users.disabled")}</span> : t("users.enabled")}</dd>
            <dt>{t("users.ways")}</dt><dd>{waysOf(user)}</dd>
            {user.subject && <><dt>{t("person.subject.id")}</dt><dd><code><Text of={user.subject} /></code></dd></>}
          </dl>
          {may("audit") && <p><a href={href("/audit", { user: name })}>{t("person.audit")}</a></p>}
        </section>
        <section class="card">
          <div class="row"><h2>{t("people.tab.grants")}</h2><span class="members-actions"><Button onClick={() => setGranting(true)}>{t("grants.add")}</Button></span></div>
          {user.grants.length === 0 ? <p class="hint">{t("person.noGrants")}</p> : (
            <Scroll label={t("people.tab.grants")}><table><tbody>{user.grants.map((g, i) => (
              <tr key={i}><td><GrantText of={g} /></td><td class="right"><Button kind="danger" onClick={() => setGone({ user: name, grant: g })}>{t("remove")}</Button></td></tr>
            ))}</tbody></table></Scroll>
          )}
        </section>
        {tokens.failure && <Problem of={tokens.failure} retry={tokens.reload} />}
        {tokens.data && <Tokens user={name} tokens={tokens.data.tokens} reload={reload} />}
      </div>
      {granting && <AddGrant user={name} onClose={() => setGranting(false)} onDone={reload} />}
      {gone && <RemoveGrant held={gone} onClose={() => setGone(undefined)} onDone={reload} />}
    </>
  );
}

/** What an admin does with an account. */
function Deeds({ user, path, reload }: { user: User; path: string; reload: () => void }) {
  const [open, setOpen] = useState<Deed>();
  const [ended, setEnded] = useState<Offboarded>();
  const [password, setPassword] = useState("");
  const [fresh] = useState(newPassword);
  const self = user.name === session.value?.user;
  const list: Deed[] = ["password"];
  if (user.totp && !self) list.push("totp");
  if (user.subject) list.push("subject");
  if (!self) list.push(user.disabled ? "enable" : "disable", "offboard", "delete");
  const danger = (d: Deed) => d === "disable" || d === "offboard" || d === "delete" || d === "totp" || d === "subject";
  const run = (): Promise<unknown> => {
    switch (open!) {
      case "disable": case "enable": return put(path, { disabled: open === "disable" });
      case "subject": return put(path, { forget_subject: true });
      case "totp": return del(`${path}/totp`, {});
      case "password": return put(`${path}/password`, { password: fresh });
      case "offboard": return post<Offboarded>(`${path}/offboard`);
      case "delete": return del(path);
    }
  };
  const done = (answer: unknown) => {
    if (open === "delete") return go(href("/people"));
    if (open === "offboard") setEnded(answer as Offboarded);
    if (open === "password") setPassword(fresh);
    reload();
  };
  return (
    <>
      {list.filter((d) => !(self && d === "password")).map((d) => <Button key={d} kind={danger(d) ? "danger" : undefined} onClick={() => setOpen(d)}>{t(`person.${d}`)}</Button>)}
      {open && <Act title={t(`person.${open}.title`, { name: user.name })} label={t(`person.${open}`)} danger={danger(open)} run={run} onClose={() => setOpen(undefined)} onDone={done}><p>{t(`person.${open}.text`)}</p></Act>}
      {password && <Dialog title={t("person.password.title", { name: user.name })} onClose={() => setPassword("")}><Once label={t("users.password.of", { name: user.name })} value={password} /><footer class="dialog-foot"><Button onClick={() => setPassword("")}>{t("close")}</Button></footer></Dialog>}
      {ended && <Ended of={ended} onClose={() => setEnded(undefined)} />}
    </>
  );
}

/** What ended for a user, and what remains. */
function Ended({ of, onClose }: { of: Offboarded; onClose: () => void }) {
  const rest = of.apps.length + of.apps_before.length + of.enrol_tokens.length + of.work.length + of.streams > 0;
  return (
    <Dialog title={t("ended.title", { name: of.user })} onClose={onClose}>
      <p>{t("ended.text", { sessions: of.ended_sessions, tokens: of.ended_tokens, grants: of.ended_grants })}</p>
      {!rest && <p>{t("ended.nothing")}</p>}
      {rest && <h3>{t("ended.remains")}</h3>}
      <ul class="bullets">
        {of.apps.map((a) => <li key={a}>{t("ended.app", { app: a })} <a href={href("/people", { tab: "apps" })}>{t("people.tab.apps")}</a></li>)}
        {of.apps_before.map((a) => <li key={a}>{t("ended.appBefore", { app: a })} <a href={href("/people", { tab: "apps" })}>{t("people.tab.apps")}</a></li>)}
        {of.enrol_tokens.map((k) => <li key={k.id}>{t("ended.enrol", { id: k.id })} <a href={href("/hosts", { tab: "enrol" })}>{t("enrol.tab")}</a></li>)}
        {of.work.map((w) => <li key={w}>{t("ended.work")} <Text of={w} /></li>)}
        {of.streams > 0 && <li>{t("ended.streams", { n: of.streams })}</li>}
      </ul>
      <footer class="dialog-foot"><Button onClick={onClose}>{t("close")}</Button></footer>
    </Dialog>
  );
}
