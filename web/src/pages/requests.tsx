import { useState } from "preact/hooks";
import { get, may, put, session } from "../api.ts";
import type { Request, RequestList } from "../api-types.ts";
import { place, setQuery } from "../router.ts";
import { Act, Scroll } from "../ui/act.tsx";
import { Button, Empty, Moment, PageHead, Problem, Text } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { t, tOf } from "../words.ts";

export default function Requests() {
  const requests = useLoad((s) => get<RequestList>("/requests", undefined, s), [], 3000);
  const [deciding, setDeciding] = useState<{ request: Request; state: "approved" | "rejected" }>();
  const all = place.value.query.get("all") === "1";
  const list = (requests.data?.requests ?? []).filter((r) => all || r.state === "waiting");
  const canDecide = (r: Request) => r.state === "waiting" && may("approve");
  return (
    <>
      <PageHead title={t("requests.title")}><button type="button" class="chip" aria-pressed={all} onClick={() => setQuery({ all: all ? "" : "1" })}>{t("requests.all")}</button></PageHead>
      {requests.failure && <Problem of={requests.failure} retry={requests.reload} />}
      {requests.data && list.length === 0 && <Empty title={t("requests.none")}><p>{t("requests.none.text")}</p></Empty>}
      {list.length > 0 && (
        <Scroll label={t("requests.title")}>
          <table>
            <thead><tr><th scope="col">{t("enrol.id")}</th><th scope="col">{t("requests.what")}</th><th scope="col">{t("requests.by")}</th><th scope="col">{t("tokens.created")}</th><th scope="col">{t("enrol.expires")}</th><th scope="col">{t("users.state")}</th><th><span class="unseen">{t("people.actions")}</span></th></tr></thead>
            <tbody>{list.map((r) => (
              <tr key={r.id}>
                <th scope="row">{r.id}</th>
                <td><strong>{tOf("requests.kind.", r.kind)}</strong><br /><Text of={r.what} /></td>
                <td><Text of={r.user || r.app} /></td>
                <td><Moment at={r.created} /></td>
                <td><Moment at={r.expires} /></td>
                <td>{tOf("requests.state.", r.state)}{r.decider && <div class="hint"><Text of={r.decider} /></div>}{r.result && <div class="hint"><Text of={r.result} /></div>}</td>
                <td><div class="row end">
                  {canDecide(r) && r.user !== session.value?.user && <Button kind="main" onClick={() => setDeciding({ request: r, state: "approved" })}>{t("requests.approve")}</Button>}
                  {canDecide(r) && <Button kind="danger" onClick={() => setDeciding({ request: r, state: "rejected" })}>{t("requests.reject")}</Button>}
                </div></td>
              </tr>
            ))}</tbody>
          </table>
        </Scroll>
      )}
      {deciding && <Decide request={deciding.request} state={deciding.state} onClose={() => setDeciding(undefined)} onDone={requests.reload} />}
    </>
  );
}

function Decide({ request, state, onClose, onDone }: { request: Request; state: "approved" | "rejected"; onClose: () => void; onDone: () => void }) {
  const approve = state === "approved";
  return (
    <Act title={t(approve ? "requests.approve.title" : "requests.reject.title", { id: String(request.id) })} label={t(approve ? "requests.approve" : "requests.reject")} danger={!approve}
      run={() => put<Request>(`/requests/${request.id}`, { state, digest: approve ? request.digest : undefined }).then(() => ({}))} onClose={onClose} onDone={onDone}>
      <p><strong>{tOf("requests.kind.", request.kind)}</strong></p>
      <p><Text of={request.what} /></p>
      <dl class="facts">
        <dt>{t("requests.by")}</dt><dd><Text of={request.user} /> <span class="dim"><Text of={request.app} /></span></dd>
        <dt>{t("requests.digest")}</dt><dd><code class="text">{request.digest}</code></dd>
      </dl>
      <p class="hint">{t(approve ? "requests.approve.text" : "requests.reject.text")}</p>
    </Act>
  );
}
