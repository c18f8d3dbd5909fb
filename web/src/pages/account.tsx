import { useState } from "preact/hooks";
import { del, get, prove, session } from "../api.ts";
import type { CallerInfo, TOTPEnrolment, UserToken, UserTokenList } from "../api-types.ts";
import { Act, Once } from "../ui/act.tsx";
import { Button, Dialog, Field, Moment, PageHead, Problem, Text } from "../ui/kit.tsx";
import { age } from "../ui/format.ts";
import { useLoad } from "../ui/load.ts";
import { t } from "../words.ts";
import { GrantText } from "./people-grant.tsx";
import { Tokens } from "./people-tokens.tsx";

export default function Account() {
  const s = session.value!;
  const person = !s.app;
  const me = useLoad((stop) => get<CallerInfo>("/whoami", undefined, stop), []);
  const tokens = useLoad((stop) => get<UserTokenList>(person ? `/users/${encodeURIComponent(s.user)}/tokens` : "/sessions", undefined, stop), [s.user], 5000);
  const [open, setOpen] = useState<"password" | "totp" | "noTotp" | "token" | "others">();
  const close = () => setOpen(undefined);

  return (
    <>
      <PageHead title={t("account.title", { name: s.user || s.app || "" })} />
      <div class="stack">
        <div class="columns">
          <section class="card">
            <h2>{t("account.session")}</h2>
            <dl class="facts">
              {s.app && <><dt>{t("account.app")}</dt><dd><Text of={s.app} /><br /><span class="hint">{t("account.app.text")}</span></dd></>}
              <dt>{t("account.since")}</dt><dd><Moment at={s.created} /></dd>
              <dt>{t("enrol.expires")}</dt><dd><Moment at={s.expires} /> <span class="hint">{t("account.idle", { age: age(s.idle_seconds) })}</span></dd>
            </dl>
            <div class="row account-buttons"><Button kind="danger" onClick={() => setOpen("others")}>{t("account.others")}</Button></div>
          </section>
          <section class="card">
            <h2>{t("account.rights")}</h2>
            {me.failure && <Problem of={me.failure} retry={me.reload} />}
            {me.data?.grants.length === 0 && <p class="hint">{t("account.rights.none")}</p>}
            <ul class="bullets">{me.data?.grants.map((g, i) => <li key={i}><GrantText of={g} /></li>)}</ul>
          </section>
          {person && (
            <section class="card">
              <h2>{t("account.secrets")}</h2>
              <div class="row account-buttons">
                <Button onClick={() => setOpen("password")}>{t("account.password")}</Button>
                <Button onClick={() => setOpen("totp")}>{t("account.totp")}</Button>
                <Button onClick={() => setOpen("noTotp")}>{t("account.noTotp")}</Button>
                <Button onClick={() => setOpen("token")}>{t("account.token")}</Button>
              </div>
            </section>
          )}
        </div>
        {tokens.failure && <Problem of={tokens.failure} retry={tokens.reload} />}
        {tokens.data && <Tokens user={s.user} tokens={tokens.data.tokens} sessionsOnly={!person} reload={tokens.reload} />}
      </div>
      {open === "password" && <Password user={s.user} onClose={close} />}
      {open === "totp" && <SecondFactor user={s.user} onClose={close} />}
      {open === "noTotp" && <NoSecondFactor user={s.user} onClose={close} />}
      {open === "token" && <NewToken user={s.user} onClose={close} onDone={tokens.reload} />}
      {open === "others" && <Act title={t("account.others")} label={t("account.others")} danger run={() => del("/session/others")} onClose={close} onDone={tokens.reload}><p>{t("account.others.text", { n: (tokens.data?.tokens ?? []).filter((k) => k.session && k.id !== s.id).length })}</p></Act>}
    </>
  );
}

/** The fields by which a person proves itself again. */
function Proof({ value, onChange, code = true }: { value: { password: string; code: string }; onChange: (v: { password: string; code: string }) => void; code?: boolean }) {
  return (
    <>
      <Field label={t("account.present")}>{(a) => <input {...a} type="password" required autocomplete="current-password" value={value.password} onInput={(e) => onChange({ ...value, password: e.currentTarget.value })} />}</Field>
      {code && <Field label={t("signin.code")} hint={t("account.code.hint")}>{(a) => <input {...a} type="text" inputMode="numeric" autocomplete="one-time-code" value={value.code} onInput={(e) => onChange({ ...value, code: e.currentTarget.value.trim() })} />}</Field>}
    </>
  );
}

const none = { password: "", code: "" };
const codeOf = (code: string) => code || undefined;

function Password({ user, onClose }: { user: string; onClose: () => void }) {
  const [proof, setProof] = useState(none);
  const [one, setOne] = useState("");
  const [two, setTwo] = useState("");
  const differs = two !== "" && one !== two;
  return (
    <Act title={t("account.password")} label={t("account.password")} ready={proof.password !== "" && one !== "" && one === two} onClose={onClose} onDone={() => { session.value = null; }}
      run={() => prove("PUT", `/users/${encodeURIComponent(user)}/password`, { old: proof.password, password: one, code: codeOf(proof.code) })}>
      <p>{t("account.password.text")}</p>
      <Proof value={proof} onChange={setProof} />
      <Field label={t("account.new")}>{(a) => <input {...a} type="password" required autocomplete="new-password" value={one} onInput={(e) => setOne(e.currentTarget.value)} />}</Field>
      <Field label={t("account.again")} fault={differs ? t("account.differs") : undefined}>{(a) => <input {...a} type="password" required autocomplete="new-password" value={two} onInput={(e) => setTwo(e.currentTarget.value)} />}</Field>
    </Act>
  );
}

/** Makes a second factor in two steps: the secret, then a code of it. */
function SecondFactor({ user, onClose }: { user: string; onClose: () => void }) {
  const [proof, setProof] = useState(none);
  const [made, setMade] = useState<TOTPEnrolment>();
  const [code, setCode] = useState("");
  if (!made) {
    return (
      <Act title={t("account.totp")} label={t("account.totp.next")} ready={proof.password !== ""} onClose={() => { /* the second step follows */ }} onCancel={onClose}
        run={() => prove<TOTPEnrolment>("POST", "/totp", { user, password: proof.password, code: codeOf(proof.code) })} onDone={(a) => setMade(a as TOTPEnrolment)}>
        <p>{t("account.totp.text")}</p>
        <Proof value={proof} onChange={setProof} />
      </Act>
    );
  }
  return (
    <Act title={t("account.totp")} label={t("account.totp.confirm")} wide ready={code !== ""} onClose={onClose} onDone={() => { session.value = null; }}
      run={() => prove("PUT", "/totp", { user, password: proof.password, code })}>
      <p>{t("account.totp.scan")}</p>
      <Once label={t("account.totp.secret")} value={made.secret} />
      <Once label={t("account.totp.link")} value={made.uri} note={t("account.totp.link.hint")} />
      <Once label={t("account.totp.recovery")} value={made.recovery_codes.join("\n")} note={t("account.totp.recovery.hint")} />
      <Field label={t("account.totp.code")}>{(a) => <input {...a} type="text" inputMode="numeric" required autocomplete="one-time-code" value={code} onInput={(e) => setCode(e.currentTarget.value.trim())} />}</Field>
    </Act>
  );
}

function NoSecondFactor({ user, onClose }: { user: string; onClose: () => void }) {
  const [proof, setProof] = useState(none);
  return (
    <Act title={t("account.noTotp")} label={t("account.noTotp")} danger ready={proof.password !== "" && proof.code !== ""} onClose={onClose} onDone={() => { session.value = null; }}
      run={() => prove("DELETE", `/users/${encodeURIComponent(user)}/totp`, { password: proof.password, code: proof.code })}>
      <p>{t("account.noTotp.text")}</p>
      <Proof value={proof} onChange={setProof} />
    </Act>
  );
}

function NewToken({ user, onClose, onDone }: { user: string; onClose: () => void; onDone: () => void }) {
  const [proof, setProof] = useState(none);
  const [note, setNote] = useState("");
  const [days, setDays] = useState(90);
  const [made, setMade] = useState<UserToken>();
  if (made) return <Dialog title={t("account.token.made")} onClose={onClose}><Once label={t("account.token.label")} value={made.token ?? ""} /><p class="hint">{t("account.token.use")}</p><footer class="dialog-foot"><Button onClick={onClose}>{t("close")}</Button></footer></Dialog>;
  return (
    <Act title={t("account.token")} label={t("account.token")} ready={proof.password !== "" && days >= 1} onClose={() => { /* the token is shown next */ }} onCancel={onClose}
      run={() => prove<UserToken>("POST", `/users/${encodeURIComponent(user)}/tokens`, { note, days, password: proof.password, code: codeOf(proof.code) })}
      onDone={(a) => { onDone(); setMade(a as UserToken); }}>
      <p>{t("account.token.text")}</p>
      <Field label={t("account.note")} hint={t("account.note.hint")}>{(a) => <input {...a} type="text" maxLength={100} value={note} onInput={(e) => setNote(e.currentTarget.value)} />}</Field>
      <Field label={t("account.days")}>{(a) => <input {...a} type="number" min={1} max={3650} required value={days} onInput={(e) => setDays(e.currentTarget.valueAsNumber)} />}</Field>
      <Proof value={proof} onChange={setProof} />
    </Act>
  );
}
