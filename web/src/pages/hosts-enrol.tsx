// Tokens with which hosts enrol: the dialog that makes one and shows what to paste, and the list of them.
import { useState } from "preact/hooks";
import { del, may, post } from "../api.ts";
import type { EnrolToken, EnrolTokenRequest } from "../api-types.ts";
import { Act, heldBy, HeldNote, Once, Scroll } from "../ui/act.tsx";
import { Button, Command, Dialog, Empty, Field, Moment, Text } from "../ui/kit.tsx";
import { t, tOf } from "../words.ts";

const lives = ["15m", "1h", "8h", "24h", "168h"] as const;

/** Makes a token, then shows it with the commands to paste. agent: the token is for this agent alone. */
export function EnrolDialog({ onClose, onDone, agent }: { onClose: () => void; onDone: () => void; agent?: string }) {
  const [made, setMade] = useState<EnrolToken>();
  const [heldToken, setHeldToken] = useState<{ token: string; answer: unknown }>();
  const [ttl, setTTL] = useState("1h");
  const [uses, setUses] = useState(1);
  const [cloud, setCloud] = useState(0);
  const [nets, setNets] = useState("");
  const [approve, setApprove] = useState(false);
  const body: EnrolTokenRequest = { ttl, uses, cloud, approve, cidrs: nets.split(/[\s,]+/).filter(Boolean) };

  if (made) return <Dialog title={t("enrol.made")} onClose={onClose} wide><Paste token={made.token ?? ""} made={made} /><footer class="dialog-foot"><Button onClick={onClose}>{t("enrol.copied")}</Button></footer></Dialog>;
  if (heldToken) {
    const request = heldBy(heldToken.answer)!;
    return <Dialog title={t("enrol.made")} onClose={onClose} wide><HeldNote request={request} /><Paste token={heldToken.token} /><footer class="dialog-foot"><Button onClick={onClose}>{t("enrol.copied")}</Button></footer></Dialog>;
  }
  return (
    <Act title={agent ? t("enrol.again") : t("enrol.title")} label={t("enrol.make")} onClose={() => { /* the token is shown next */ }}
      ready={uses >= 1 && uses <= 1_000_000}
      run={() => post<EnrolToken>("/enrol/tokens", agent ? { ttl, agent } : body)}
      onCancel={onClose}
      onDone={(answer) => {
        onDone();
        if (heldBy(answer)) setHeldToken({ token: (answer as { token?: string }).token ?? "", answer });
        else setMade(answer as EnrolToken);
      }}>
      <p>{agent ? t("enrol.again.text") : t("enrol.text")}</p>
      {agent && <p><code><Text of={agent} /></code></p>}
      <Field label={t("enrol.life")}>{(a) => <select {...a} value={ttl} onChange={(e) => setTTL(e.currentTarget.value)}>{lives.map((l) => <option key={l} value={l}>{t(`enrol.life.${l}`)}</option>)}</select>}</Field>
      {!agent && <>
        <Field label={t("enrol.uses")}>{(a) => <input {...a} type="number" min={1} max={1_000_000} required value={uses} onInput={(e) => setUses(e.currentTarget.valueAsNumber)} />}</Field>
        <Field label={t("enrol.cloud")} hint={t("enrol.cloud.hint")}>{(a) => <input {...a} type="number" min={0} required value={cloud} onInput={(e) => setCloud(e.currentTarget.valueAsNumber || 0)} />}</Field>
        <Field label={t("enrol.nets")} hint={t("enrol.nets.hint")}>{(a) => <input {...a} type="text" placeholder="10.3.0.0/16" value={nets} onInput={(e) => setNets(e.currentTarget.value)} />}</Field>
        <label class="row"><input type="checkbox" checked={approve} onChange={(e) => setApprove(e.currentTarget.checked)} /> {t("enrol.approve")}</label>
      </>}
    </Act>
  );
}

/** What to paste on the host. */
function Paste({ token, made }: { token: string; made?: EnrolToken }) {
  const server = location.origin;
  const tls = location.protocol === "https:";
  return (
    <div class="stack">
      <Once label={t("enrol.token")} value={token} />
      {made && <p>{t("enrol.limits", { n: made.uses })} <Moment at={made.expires} />{t("mark.end")}{made.approve && <> {t("enrol.waits")}</>}</p>}
      <h3>{t("enrol.paste")}</h3>
      <Command text={`curl -fsSL --cacert ca.pem ${server}/join | sudo sh`} />
      <p class="hint">{t("enrol.paste.hint")}</p>
      <h3>{t("enrol.installed")}</h3>
      <Command text={`gozzard agent join --server ${server} --token-file token --data /var/lib/gozzard-agent\nsystemctl enable --now gozzard-agent`} />
      <p class="hint">{t("enrol.installed.hint")}</p>
      {!tls && <p class="fault">{t("enrol.plain")}</p>}
    </div>
  );
}

/** The tokens that were made, and how to end one. */
export function Enrolment({ tokens, reload }: { tokens: EnrolToken[]; reload: () => void }) {
  const [ending, setEnding] = useState<EnrolToken>();
  if (tokens.length === 0) return <Empty title={t("enrol.none")}><p>{t("enrol.none.text")}</p></Empty>;
  return (
    <>
      <Scroll label={t("enrol.tab")}>
        <table>
          <thead><tr><th scope="col">{t("enrol.id")}</th><th scope="col">{t("hosts.state")}</th><th scope="col">{t("enrol.expires")}</th><th scope="col">{t("enrol.used")}</th><th scope="col">{t("enrol.cloud")}</th><th scope="col">{t("enrol.from")}</th><th scope="col">{t("enrol.by")}</th><th><span class="unseen">{t("people.actions")}</span></th></tr></thead>
          <tbody>{tokens.map((k) => (
            <tr key={k.id}>
              <th scope="row"><code>{k.id}</code></th>
              <td>{tOf("enrol.state.", k.state)}{k.approve && <small class="dim"> {t("enrol.approves")}</small>}</td>
              <td><Moment at={k.expires} /></td>
              <td>{k.used}/{k.uses}</td>
              <td>{k.cloud}</td>
              <td><Text of={k.agent ? t("enrol.forAgent", { agent: k.agent }) : (k.cidrs ?? []).join(", ") || t("enrol.anywhere")} /></td>
              <td><Text of={k.created_by} /></td>
              <td class="right">{k.state === "valid" && (may("enrol") || may("admin")) && <Button kind="danger" onClick={() => setEnding(k)}>{t("revoke")}</Button>}</td>
            </tr>
          ))}</tbody>
        </table>
      </Scroll>
      {ending && (
        <Act title={t("enrol.revoke", { id: ending.id })} label={t("revoke")} danger run={() => del(`/enrol/tokens/${encodeURIComponent(ending.id)}`)} onClose={() => setEnding(undefined)} onDone={reload}>
          <p>{t("enrol.revoke.text", { n: ending.uses - ending.used })}</p>
        </Act>
      )}
    </>
  );
}
