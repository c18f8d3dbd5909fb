// Sessions and tokens of a user.
import { useState } from "preact/hooks";
import { del, session } from "../api.ts";
import type { UserToken } from "../api-types.ts";
import { Act, Scroll } from "../ui/act.tsx";
import { Button, Moment, Text } from "../ui/kit.tsx";
import { t, tOf } from "../words.ts";

/** A list with a button to end each. The session of this page is marked. */
export function Tokens({ user, tokens, sessionsOnly, reload }: { user: string; tokens: UserToken[]; sessionsOnly?: boolean; reload: () => void }) {
  const [ending, setEnding] = useState<UserToken[]>();
  const end = async () => {
    for (const k of [...ending!].sort((a, b) => Number(isOwn(a)) - Number(isOwn(b)))) await del(`/users/${encodeURIComponent(user)}/tokens/${encodeURIComponent(k.id)}`);
  };
  const part = (list: UserToken[], sessions: boolean) => (
    <section class="card">
      <div class="row"><h2>{t(sessions ? "tokens.sessions" : "tokens.tokens")}</h2>{list.length > 1 && <span class="members-actions"><Button kind="danger" onClick={() => setEnding(list)}>{t("tokens.all")}</Button></span>}</div>
      {list.length === 0 ? <p class="hint">{t(sessions ? "tokens.sessions.none" : "tokens.tokens.none")}</p> : (
        <Scroll label={t(sessions ? "tokens.sessions" : "tokens.tokens")}>
          <table>
            <thead><tr><th scope="col">{t("enrol.id")}</th><th scope="col">{t("tokens.kind")}</th><th scope="col">{t("tokens.created")}</th><th scope="col">{t("enrol.expires")}</th><th><span class="unseen">{t("people.actions")}</span></th></tr></thead>
            <tbody>{list.map((k) => (
              <tr key={k.id}>
                <th scope="row"><code><Text of={k.id} /></code> {isOwn(k) && <span class="mark">{t("tokens.this")}</span>} <Text of={k.note ?? ""} /></th>
                <td>{tOf("tokens.kind.", k.kind ?? "any")}{k.app && <> <Text of={k.app} /></>}</td>
                <td><Moment at={k.created} /></td>
                <td><Moment at={k.expires ?? null} /></td>
                <td class="right"><Button kind="danger" onClick={() => setEnding([k])}>{t(sessions ? "tokens.end" : "revoke")}</Button></td>
              </tr>
            ))}</tbody>
          </table>
        </Scroll>
      )}
    </section>
  );
  return (
    <>
      {part(tokens.filter((k) => k.session), true)}
      {!sessionsOnly && part(tokens.filter((k) => !k.session), false)}
      {ending && (
        <Act title={ending[0].session ? t("tokens.end.title", { n: ending.length }) : t("tokens.revoke.title", { n: ending.length })} label={t(ending[0].session ? "tokens.end" : "revoke")} danger run={end} onClose={() => setEnding(undefined)} onDone={reload}>
          <p>{t(ending[0].session ? "tokens.end.text" : "tokens.revoke.text", { user })}</p>
          <ul class="bullets">{ending.slice(0, 20).map((k) => <li key={k.id}><code>{k.id}</code> <Text of={k.note ?? ""} /> {isOwn(k) && t("tokens.this.ends")}</li>)}</ul>
        </Act>
      )}
    </>
  );
}

const isOwn = (k: UserToken) => k.id === session.value?.id;
