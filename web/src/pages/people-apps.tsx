import { useState } from "preact/hooks";
import { del, get, post, put } from "../api.ts";
import type { App, AppList, AppSecret, Grant } from "../api-types.ts";
import { Act, Once, Scroll } from "../ui/act.tsx";
import { Button, Dialog, Empty, Field, Problem, Text } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { t } from "../words.ts";
import { GrantForm, GrantText } from "./people-grant.tsx";

type Deed = "rotate" | "retire" | "disable" | "enable" | "delete";

const path = (code: string) => `/apps/${encodeURIComponent(code)}`;

export function Apps() {
  const apps = useLoad((s) => get<AppList>("/apps", undefined, s), [], 30_000);
  const [adding, setAdding] = useState(false);
  const [deed, setDeed] = useState<{ app: App; what: Deed }>();
  const [secret, setSecret] = useState<AppSecret>();
  const run = (): Promise<unknown> => {
    const { app, what } = deed!;
    switch (what) {
      case "rotate": return post<AppSecret>(`${path(app.code)}/secrets`);
      case "retire": return del(`${path(app.code)}/secrets`);
      case "delete": return del(path(app.code));
      default: return put(path(app.code), { disabled: what === "disable" });
    }
  };
  const shown = (answer: unknown) => {
    apps.reload();
    const s = answer as Partial<AppSecret>;
    if (s.secret) setSecret(s as AppSecret);
  };

  return (
    <div class="stack">
      <div class="row"><Button kind="main" onClick={() => setAdding(true)}>{t("apps.add")}</Button></div>
      {apps.failure && <Problem of={apps.failure} retry={apps.reload} />}
      {apps.data?.apps.length === 0 && <Empty title={t("apps.none")}><p>{t("apps.none.text")}</p></Empty>}
      {!!apps.data?.apps.length && (
        <Scroll label={t("people.tab.apps")}>
          <table>
            <thead><tr><th scope="col">{t("apps.code")}</th><th scope="col">{t("users.state")}</th><th scope="col">{t("apps.secrets")}</th><th scope="col">{t("apps.users")}</th><th scope="col">{t("people.tab.grants")}</th><th><span class="unseen">{t("people.actions")}</span></th></tr></thead>
            <tbody>{apps.data.apps.map((a) => (
              <tr key={a.code}>
                <th scope="row"><Text of={a.code} /></th>
                <td>{a.disabled ? <span class="mark mark-warn">{t("users.disabled")}</span> : t("users.enabled")}</td>
                <td>{a.secrets}{a.signs && <small class="dim"> {t("apps.signs")}</small>}</td>
                <td>{a.asserts_users ? t("apps.asserts") : t("no")}{a.unknown_users && <div class="hint">{t("apps.unknown")}</div>}</td>
                <td>{a.grants.length === 0 ? <span class="dim">{t("none")}</span> : a.grants.map((g, i) => <div key={i}><GrantText of={g} /></div>)}</td>
                <td><div class="row end">
                  <Button onClick={() => setDeed({ app: a, what: "rotate" })}>{t("apps.rotate")}</Button>
                  {a.secrets > 1 && <Button onClick={() => setDeed({ app: a, what: "retire" })}>{t("apps.retire")}</Button>}
                  <Button onClick={() => setDeed({ app: a, what: a.disabled ? "enable" : "disable" })}>{t(a.disabled ? "apps.enable" : "apps.disable")}</Button>
                  <Button kind="danger" onClick={() => setDeed({ app: a, what: "delete" })}>{t("apps.delete")}</Button>
                </div></td>
              </tr>
            ))}</tbody>
          </table>
        </Scroll>
      )}
      {adding && <AddApp onClose={() => setAdding(false)} onDone={shown} />}
      {deed && (
        <Act title={t(`apps.${deed.what}.title`, { app: deed.app.code })} label={t(`apps.${deed.what}`)} danger={deed.what === "delete" || deed.what === "retire" || deed.what === "disable"} run={run} onClose={() => setDeed(undefined)} onDone={shown}>
          <p>{t(`apps.${deed.what}.text`, { n: deed.app.secrets - 1 })}</p>
        </Act>
      )}
      {secret && <Dialog title={t("apps.secret", { app: secret.code })} onClose={() => setSecret(undefined)}><Once label={t("apps.secret.label")} value={secret.secret} /><footer class="dialog-foot"><Button onClick={() => setSecret(undefined)}>{t("close")}</Button></footer></Dialog>}
    </div>
  );
}

function AddApp({ onClose, onDone }: { onClose: () => void; onDone: (answer: unknown) => void }) {
  const [code, setCode] = useState("");
  const [asserts, setAsserts] = useState(false);
  const [unknown, setUnknown] = useState(false);
  const [signs, setSigns] = useState(false);
  const [grant, setGrant] = useState<Grant>();
  return (
    <Act title={t("apps.add")} label={t("apps.add")} ready={code !== ""} onClose={onClose} onDone={onDone}
      run={() => post<AppSecret>("/apps", { code, asserts_users: asserts, unknown_users: unknown, signs, grants: grant ? [grant] : [] })}>
      <Field label={t("apps.code")} hint={t("apps.code.hint")}>{(a) => <input {...a} type="text" required autocomplete="off" maxLength={64} value={code} onInput={(e) => setCode(e.currentTarget.value.trim())} />}</Field>
      <GrantForm optional onChange={setGrant} />
      <label class="row"><input type="checkbox" checked={asserts} onChange={(e) => setAsserts(e.currentTarget.checked)} /> {t("apps.asserts.ask")}</label>
      {asserts && <label class="row"><input type="checkbox" checked={unknown} onChange={(e) => setUnknown(e.currentTarget.checked)} /> {t("apps.unknown.ask")}</label>}
      <label class="row"><input type="checkbox" checked={signs} onChange={(e) => setSigns(e.currentTarget.checked)} /> {t("apps.signs.ask")}</label>
    </Act>
  );
}
