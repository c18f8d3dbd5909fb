import { useEffect, useState } from "preact/hooks";
import { Failure, get, post, readSession, session } from "./api.ts";
import type { Session } from "./api.ts";
import { go, href, place } from "./router.ts";
import { Button, Field } from "./ui/kit.tsx";
import { plain } from "./ui/format.ts";
import { LanguageSwitch } from "./shell.tsx";
import { t } from "./words.ts";

interface Ways { password: boolean; provider: boolean; link: boolean }

let hadSession = false; // the session ended while the page was open
session.subscribe((s) => { hadSession ||= Boolean(s); });

/** Asks for name and password, and for the code of the second factor when the server wants it. */
export function SignIn() {
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const [needsCode, setNeedsCode] = useState(false);
  const [said, setSaid] = useState(place.value.query.get("error") ? t("signin.failed") : "");
  const [busy, setBusy] = useState(false);
  const [ways, setWays] = useState<Ways>();
  useEffect(() => { void get<Ways>("/session/ways").then(setWays, () => {}); }, []);
  useEffect(() => { document.title = `${t("signin.title")}`; }, []);

  const submit = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    try {
      session.value = await post<Session>("/session", { user, password, ...(needsCode ? { code } : {}) });
      await readSession();
      if (place.value.path === "/sign-in") go(href("/"), true);
    } catch (err) {
      if (!(err instanceof Failure)) throw err;
      if (err.kind === "code_required" && !needsCode) {
        setNeedsCode(true);
        setSaid("");
      } else setSaid(plain(err.message));
    }
    setBusy(false);
  };

  return (
    <main class="alone">
      <form class="card signin" onSubmit={(e) => { void submit(e); }}>
        <h1>{t("signin.title")}</h1>
        {hadSession && !said && <p role="status">{t("signedOut")}</p>}
        {said && <p class="fault" role="alert">{said}</p>}
        <Field label={t("signin.user")}>{(a) => <input {...a} value={user} autoFocus autocomplete="username" required onInput={(e) => setUser(e.currentTarget.value)} />}</Field>
        <Field label={t("signin.password")}>{(a) => <input {...a} type="password" value={password} autocomplete="current-password" required onInput={(e) => setPassword(e.currentTarget.value)} />}</Field>
        {needsCode && <Field label={t("signin.code")}>{(a) => <input {...a} value={code} autoFocus inputMode="numeric" autocomplete="one-time-code" required onInput={(e) => setCode(e.currentTarget.value)} />}</Field>}
        <Button kind="main" type="submit" disabled={busy}>{t("signin.submit")}</Button>
        {ways?.provider && <a class="button" href="/login/oidc?to=console">{t("signin.provider")}</a>}
        <p class="hint">{ways?.link ? t("signin.link") : t("signin.noLink")}</p>
        <LanguageSwitch />
      </form>
    </main>
  );
}

/** Signs in by the one-time code of a link. */
export function Enter({ code }: { code: string }) {
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    history.replaceState(null, "", href("/enter")); // the code is not kept in the history of the browser
    // The page is loaded again: with a session of before in this browser it may have data of that one already.
    post<Session>("/session/enter", { code }).then(() => location.replace(href("/")), () => setFailed(true));
  }, []);
  return (
    <main class="alone">
      <div class="card signin">
        <h1>Gozzard</h1>
        {failed ? <><p role="alert">{t("enter.failed")}</p><a class="button" href={href("/")}>{t("signin.title")}</a></> : <p role="status">{t("enter.working")}</p>}
      </div>
    </main>
  );
}
