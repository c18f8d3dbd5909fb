import { useState } from "preact/hooks";
import { get, may, post } from "../api.ts";
import type { AuthorityMove, Keys, ServerState } from "../api-types.ts";
import { Act, Scroll } from "../ui/act.tsx";
import { Button, Empty, Field, Moment, PageHead, Problem, Text } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { t, tOf } from "../words.ts";

export default function Server() {
  const admin = may("admin");
  const state = useLoad(admin ? (s) => get<ServerState>("/server", undefined, s) : undefined, [], 10_000);
  const keys = useLoad(admin ? (s) => get<Keys>("/keys", undefined, s) : undefined, [], 30_000);
  if (!admin) return <Empty title={t("empty.rights")} />;
  return (
    <>
      <PageHead title={t("server.title")} />
      <div class="stack">
        {state.failure && <Problem of={state.failure} retry={state.reload} />}
        {state.data && <Health of={state.data} />}
        {state.data && <Findings of={state.data} />}
        {keys.failure && keys.failure.status !== 404 && <Problem of={keys.failure} retry={keys.reload} />}
        {keys.data && <KeyCards keys={keys.data} reload={keys.reload} />}
      </div>
    </>
  );
}

function Health({ of }: { of: ServerState }) {
  return (
    <section class="card">
      <h2>{of.ready ? <>✓ {t("server.ready")}</> : <>✗ {t("server.notReady")}</>}</h2>
      {of.detail && <p class="fault"><Text of={of.detail} /></p>}
      <dl class="facts">
        <dt>{t("server.version")}</dt><dd><Text of={of.version} /></dd>
        <dt>{t("server.started")}</dt><dd><Moment at={of.started_at} /></dd>
        <dt>{t("server.hosts")}</dt><dd>{t("server.hosts.text", { n: of.hosts_online, all: of.hosts })}</dd>
      </dl>
    </section>
  );
}

/** What the server checked about itself: the same as "gozzard doctor". */
function Findings({ of }: { of: ServerState }) {
  if (!of.findings?.length) return null;
  const order: Record<string, number> = { FAIL: 0, WARN: 1, OK: 2 };
  const list = [...of.findings].sort((a, b) => (order[a.level] ?? 0) - (order[b.level] ?? 0));
  return (
    <section class="card">
      <div class="row"><h2>{t("server.findings")}</h2><span class="dim"><Moment at={of.checked_at ?? null} /></span></div>
      <Scroll label={t("server.findings")} class="stacks">
        <table><thead><tr><th scope="col">{t("server.level")}</th><th scope="col">{t("server.check")}</th><th scope="col">{t("server.finding")}</th></tr></thead>
          <tbody>{list.map((f, i) => <tr key={i}><td><span class={`level level-${f.level.toLowerCase()}`}>{tOf("server.level.", f.level)}</span></td><th scope="row">{tOf("server.check.", f.check)}</th><td><Text of={f.text} /></td></tr>)}</tbody></table>
      </Scroll>
    </section>
  );
}

type Deed = "signing" | "authority" | "finish";

function KeyCards({ keys, reload }: { keys: Keys; reload: () => void }) {
  const [open, setOpen] = useState<Deed>();
  const [typed, setTyped] = useState("");
  const move = keys.authority;
  const cut = (move?.waiting.length ?? 0) + (move?.offline.length ?? 0);
  const close = () => { setOpen(undefined); setTyped(""); };
  return (
    <div class="columns">
      <section class="card">
        <h2>{t("keys.signing")}</h2>
        <p class="hint">{t("keys.signing.text")}</p>
        <Scroll label={t("keys.signing")}>
          <table><thead><tr><th scope="col">{t("keys.epoch")}</th><th scope="col">{t("enrol.id")}</th><th scope="col">{t("keys.made")}</th></tr></thead>
            <tbody>{[...keys.signing].reverse().map((k, i) => <tr key={k.epoch}><td>{k.epoch} {i === 0 && <span class="mark">{t("keys.signs")}</span>}</td><td><code>{k.id}</code></td><td><Moment at={k.made} /></td></tr>)}</tbody></table>
        </Scroll>
        {keys.signing_external ? <p class="hint">{t("keys.external")}</p> : <div class="row account-buttons"><Button onClick={() => setOpen("signing")}>{t("keys.rotate")}</Button></div>}
      </section>
      {move && (
        <section class="card">
          <h2>{t("keys.authority")}</h2>
          <p class="hint">{t("keys.authority.text")}</p>
          <dl class="facts">
            <dt>{t("keys.pin")}</dt><dd><code class="text">{move.authority}</code></dd>
            {move.next && <><dt>{t("keys.next")}</dt><dd><code class="text">{move.next}</code></dd><dt>{t("keys.moved")}</dt><dd>{t("keys.moved.text", { n: move.moved, waiting: move.waiting.length, offline: move.offline.length })}</dd></>}
          </dl>
          <div class="row account-buttons">
            {!move.next && <Button onClick={() => setOpen("authority")}>{t("keys.rotate")}</Button>}
            {move.next && <Button kind="danger" onClick={() => setOpen("finish")}>{t("keys.finish")}</Button>}
          </div>
        </section>
      )}
      {open === "signing" && <Act title={t("keys.signing.rotate")} label={t("keys.rotate")} danger run={() => post("/keys/signing")} onClose={close} onDone={reload}><p>{t("keys.signing.rotate.text")}</p></Act>}
      {open === "authority" && <Act title={t("keys.authority.rotate")} label={t("keys.rotate")} danger run={() => post<AuthorityMove>("/keys/authority")} onClose={close} onDone={reload}><p>{t("keys.authority.rotate.text")}</p></Act>}
      {open === "finish" && (
        <Act title={t("keys.finish.title")} label={t("keys.finish")} danger ready={typed === String(cut)} run={() => post<AuthorityMove>("/keys/authority/finish", { confirm: cut })} onClose={close} onDone={reload}>
          <p>{t("keys.finish.text", { n: cut })}</p>
          <Field label={t("restore.number")}>{(a) => <input {...a} inputMode="numeric" autocomplete="off" value={typed} onInput={(e) => setTyped(e.currentTarget.value.trim())} />}</Field>
        </Act>
      )}
    </div>
  );
}
