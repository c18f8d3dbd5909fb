// Requests that wait for a second person: what is asked for, by which user, and what another person can do about it.
import { useState } from "preact/hooks";
import { Failure, get, may, put, session } from "../api.ts";
import type { Request, RequestList } from "../api-types.ts";
import { Button, Command, Moment, Problem, Text } from "../ui/kit.tsx";
import { plain } from "../ui/format.ts";
import { useLoad } from "../ui/load.ts";
import { t, tOf } from "../words.ts";

const readEvery = 10_000;

export function Requests() {
  const { data, reload } = useLoad((s) => get<RequestList>("/requests", undefined, s), [], readEvery);
  const waiting = data?.requests.filter((r) => r.state === "waiting") ?? [];
  if (waiting.length === 0) return null;
  return (
    <section class="card task-requests" aria-label={t("secondPerson.title")}>
      <h2>{t("secondPerson.title")}</h2>
      <ul class="stack">{waiting.map((r) => <One key={r.id} of={r} done={reload} />)}</ul>
    </section>
  );
}

function One({ of: r, done }: { of: Request; done: () => void }) {
  const [failure, setFailure] = useState<Failure>();
  const [sure, setSure] = useState(false);
  const own = session.value?.user === r.user;
  const decide = (state: "approved" | "rejected") => {
    put<Request>(`/requests/${r.id}`, { state, ...(state === "approved" ? { digest: r.digest } : {}) }).then(done, (err: Failure) => setFailure(err));
  };
  return (
    <li class="stack">
      <p><strong>{tOf("secondPerson.kind.", r.kind)}</strong>{t("mark.colon")}<Text of={r.what.slice(0, 4000)} /></p>
      <p class="dim">{t("secondPerson.asked", { user: plain(r.user) })}{t("mark.list")}<Moment at={r.created} />{t("mark.and")}{t("secondPerson.expires")} <Moment at={r.expires} />{t("mark.end")} {t("secondPerson.who", { user: plain(r.user) })}</p>
      {failure && <Problem of={failure} />}
      {sure && <p>{t("secondPerson.digest")}{t("mark.colon")}<code class="text">{r.digest}</code></p>}
      <div class="row">
        {!own && may("approve") && !sure && <Button onClick={() => setSure(true)}>{t("secondPerson.approve")}</Button>}
        {sure && <Button kind="main" onClick={() => decide("approved")}>{t("secondPerson.sure")}</Button>}
        {(own || may("approve")) && <Button kind="danger" onClick={() => decide("rejected")}>{own ? t("secondPerson.withdraw") : t("secondPerson.reject")}</Button>}
      </div>
      {own && <><p class="dim">{t("secondPerson.command")}</p><Command text={`gozzard request approve ${r.id} ${r.digest}`} /></>}
    </li>
  );
}
