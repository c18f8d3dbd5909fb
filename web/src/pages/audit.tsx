import { useEffect, useRef, useState } from "preact/hooks";
import { Failure, get, may } from "../api.ts";
import type { AuditDetail, AuditPage, AuditRow, AuditVerified } from "../api-types.ts";
import { href, place, setQuery } from "../router.ts";
import { Scroll } from "../ui/act.tsx";
import { Button, CopyButton, Dialog, Empty, Field, Fold, Moment, PageHead, Problem, Text } from "../ui/kit.tsx";
import { exact, plain } from "../ui/format.ts";
import { useLoad } from "../ui/load.ts";
import { number, t, tOf } from "../words.ts";
import { Act as ActWords } from "./audit-act.tsx";
import { knownActs } from "./audit-model.ts";
import { shortTask } from "./task-model.ts";

const fields = ["user", "app", "action", "host", "account"] as const;
const filterKeys = [...fields, "since", "until"] as const;
const pageSize = 100;
const mostRows = 5000; // on one page; the command line lists more

export default function Audit() {
  if (!may("audit") && !may("admin")) return <Empty title={t("empty.rights")} />;
  const row = Number(place.value.query.get("row") ?? 0);
  return (
    <>
      <PageHead title={t("audit.title")} />
      <div class="stack">
        <Verified />
        <Fold active={filterKeys.some((k) => place.value.query.get(k))}><Filters /></Fold>
        <Rows />
      </div>
      {row > 0 && <RowDetail row={row} onClose={() => setQuery({ row: "" })} />}
    </>
  );
}

/** Checks the chain of hashes on the server, part by part, and says how far it is sound. */
function Verified() {
  const [state, setState] = useState<AuditVerified>();
  const [rows, setRows] = useState(0);
  const [failure, setFailure] = useState<Failure>();
  const [busy, setBusy] = useState(false);
  const stop = useRef(new AbortController());
  useEffect(() => {
    void run();
    return () => stop.current.abort();
  }, []);

  async function run(): Promise<void> {
    stop.current.abort();
    const mine = (stop.current = new AbortController());
    setBusy(true);
    setFailure(undefined);
    let from: { after?: number; hash?: string } = {}, sum = 0;
    try {
      for (;;) {
        const part = await get<AuditVerified>("/audit/verify", from, mine.signal);
        sum += part.rows;
        setRows(sum);
        setState(part);
        if (part.done || part.broken) break;
        from = { after: part.verified.seq, hash: part.verified.hash };
      }
    } catch (err) {
      if (err instanceof Failure) setFailure(err);
    }
    if (stop.current === mine) setBusy(false);
  }

  return (
    <section class={`card ${state?.broken ? "problem" : ""}`}>
      <div class="row">
        <strong role="status">
          {state?.broken ? <>✗ {t("audit.broken")}</> : state?.done ? <>✓ {t("audit.sound", { n: rows })}</> : <>{t("audit.checking", { n: rows, all: state?.newest.seq ?? 0 })}</>}
        </strong>
        <span class="members-actions"><Button disabled={busy} onClick={() => { void run(); }}>{t("audit.verify")}</Button></span>
      </div>
      {state?.broken && <p><Text of={state.broken} /></p>}
      {state?.done && !state.broken && state.verified.seq > 0 && <p class="hint">{t("audit.head")} <code class="text">{state.verified.seq}:{state.verified.hash}</code> <CopyButton text={`${state.verified.seq}:${state.verified.hash}`} /></p>}
      {failure && <Problem of={failure} />}
    </section>
  );
}

/** The filters; they are in the address. */
function Filters() {
  const q = place.value.query;
  const local = (key: string) => { const v = q.get(key); return v ? localTime(v) : ""; };
  const time = (key: "since" | "until") => (
    <Field label={t(`audit.${key}`)}>{(a) => <input {...a} type="datetime-local" value={local(key)} onChange={(e) => setQuery({ [key]: e.currentTarget.value ? new Date(e.currentTarget.value).toISOString() : "" })} />}</Field>
  );
  return (
    <form class="audit-filters" role="search" onSubmit={(e) => e.preventDefault()}>
      {fields.map((k) => <Field key={k} label={t(`audit.${k}`)}>{(a) => <input {...a} type="search" autocomplete="off" list={k === "action" ? "audit-acts" : undefined} value={q.get(k) ?? ""} onChange={(e) => setQuery({ [k]: e.currentTarget.value.trim() })} />}</Field>)}
      <datalist id="audit-acts">{knownActs.map((act) => <option key={act} value={act}>{tOf("acts.", act)}</option>)}</datalist>
      {time("since")}
      {time("until")}
      {filterKeys.some((k) => q.get(k)) && <Button onClick={() => setQuery({ user: "", app: "", action: "", host: "", account: "", since: "", until: "" })}>{t("audit.clear")}</Button>}
    </form>
  );
}

/** A moment in the form of the field for dates, in the zone of the viewer. */
function localTime(iso: string): string {
  const d = new Date(iso);
  if (isNaN(d.getTime())) return "";
  return new Date(d.getTime() - d.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function Rows() {
  const q = place.value.query;
  const filter: Record<string, string> = {};
  for (const k of filterKeys) { const v = q.get(k); if (v) filter[k] = v; }
  const first = useLoad((s) => get<AuditPage>("/audit", { ...filter, newest: true, limit: pageSize }, s), [JSON.stringify(filter)]);
  const [more, setMore] = useState<{ of: AuditPage; rows: AuditRow[]; next: number }>(); // what follows a first page; a newer one would leave a gap
  const [failure, setFailure] = useState<Failure>();
  const [busy, setBusy] = useState(false);
  const old = more && more.of === first.data ? more : undefined;
  const rows = [...(first.data?.rows ?? []), ...(old?.rows ?? [])];
  const next = old ? old.next : first.data?.next ?? 0;

  const load = async () => {
    const of = first.data!;
    setBusy(true);
    try {
      const page = await get<AuditPage>("/audit", { ...filter, newest: true, limit: pageSize, before: next });
      setMore({ of, rows: [...(old?.rows ?? []), ...page.rows], next: page.next ?? 0 });
      setFailure(undefined);
    } catch (err) {
      if (err instanceof Failure) setFailure(err);
    }
    setBusy(false);
  };

  if (first.failure) return <Problem of={first.failure} retry={first.reload} />;
  if (!first.data) return <p class="dim loading" role="status">{t("loading")}</p>;
  return (
    <>
      {rows.length === 0 ? (next ? <p class="hint">{t("audit.olderOnly")}</p> : <Empty title={t("audit.none")} />) : (
        <Scroll label={t("audit.title")} class="hosts-scroll stacks">
          <table class="audit-table">
            <thead><tr><th scope="col">{t("audit.row")}</th><th scope="col">{t("host.event.at")}</th><th scope="col">{t("audit.by")}</th><th scope="col">{t("audit.action")}</th><th scope="col" class="right">{t("audit.targets")}</th><th scope="col">{t("audit.result")}</th><th scope="col">{t("audit.from")}</th><th scope="col">{t("audit.task")}</th></tr></thead>
            <tbody>{rows.map((r) => (
              <tr key={r.seq}>
                <th scope="row"><a href={rowLink(r.seq)}>{r.seq}</a></th>
                <td class="nowrap"><Moment at={r.at} /></td>
                <td><By of={r} /></td>
                <td><ActWords of={r.act} /></td>
                <td class="right">{r.targets > 0 ? number(r.targets) : ""}</td>
                <td><Text of={r.result || r.outcome || ""} />{(r.count ?? 1) > 1 && <small class="dim"> {t("audit.times", { n: r.count! })}</small>}</td>
                <td><Text of={r.source ?? ""} /></td>
                <td class="nowrap">{r.task_id && <a href={href(`/tasks/${encodeURIComponent(r.task_id)}`)}><Text of={shortTask(r.task_id)} class="mono" /></a>}</td>
              </tr>
            ))}</tbody>
          </table>
        </Scroll>
      )}
      {failure && <Problem of={failure} />}
      <div class="row">
        <Button disabled={first.loading} onClick={first.reload}>{t("audit.reload")}</Button>
        {next > 0 && rows.length < mostRows && <Button disabled={busy || first.loading} onClick={() => { void load(); }}>{t("more")}</Button>}
      </div>
    </>
  );
}

function rowLink(seq: number): string {
  const query: Record<string, string> = {};
  for (const [k, v] of place.value.query) query[k] = v;
  return href("/audit", { ...query, row: seq });
}

function By({ of }: { of: AuditRow }) {
  return <><Text of={of.user || of.app || "-"} />{of.user && of.app && of.app !== `user:${of.user}` && <small class="dim"> <Text of={of.app} /></small>}{of.asserted && <small class="dim" title={t("audit.asserted.text")}> {t("audit.asserted")}</small>}</>;
}

/** One row with its hosts, actions and definitions. */
function RowDetail({ row, onClose }: { row: number; onClose: () => void }) {
  const detail = useLoad((s) => get<AuditDetail>(`/audit/${row}`, { limit: 100 }, s), [row]);
  const d = detail.data;
  return (
    <Dialog title={t("audit.rowTitle", { row: String(row) })} onClose={onClose} wide>
      {detail.failure && <Problem of={detail.failure} retry={detail.reload} />}
      {d && (
        <div class="stack">
          <dl class="facts">
            <dt>{t("host.event.at")}</dt><dd>{d.row.at ? exact(Date.parse(d.row.at)) : "-"}</dd>
            <dt>{t("audit.by")}</dt><dd><By of={d.row} /></dd>
            <dt>{t("audit.action")}</dt><dd><ActWords of={d.row.act} /> <code class="dim">{plain(d.row.act)}</code></dd>
            {d.text && <><dt>{t("audit.about")}</dt><dd><Text of={d.text} /></dd></>}
            {d.row.outcome && <><dt>{t("audit.outcome")}</dt><dd><Text of={d.row.outcome} /></dd></>}
            {d.row.result && <><dt>{t("audit.result")}</dt><dd><Text of={d.row.result} /></dd></>}
            {d.row.accounts && <><dt>{t("audit.account")}</dt><dd><Text of={d.row.accounts.join(", ")} /></dd></>}
            {d.row.door && <><dt>{t("audit.door")}</dt><dd><Text of={d.row.door} /> <Text of={d.row.source ?? ""} /></dd></>}
            {d.row.request_id && <><dt>{t("audit.request")}</dt><dd><code><Text of={d.row.request_id} /></code></dd></>}
            {d.row.task_id && <><dt>{t("audit.task")}</dt><dd><a href={href(`/tasks/${encodeURIComponent(d.row.task_id)}`)}><Text of={d.row.task_id} /></a></dd></>}
            <dt>{t("audit.hash")}</dt><dd><code class="text">{d.row.hash}</code></dd>
          </dl>
          {d.hosts_total > 0 && <><h3>{t("audit.hosts", { n: d.hosts_total })}</h3><p>{d.hosts.map((h) => <><a key={h.agent} href={href(`/hosts/${encodeURIComponent(h.agent)}`)}><Text of={h.ip || h.agent} /></a> </>)}{d.hosts_total > d.hosts.length && "…"}</p></>}
          {d.missing && <p class="hint"><Text of={d.missing} /></p>}
          {d.items_total > 0 && (
            <>
              <h3>{t("audit.items", { n: d.items_total })}</h3>
              <ul class="stack">{d.items.map((it, i) => (
                <li key={i}>
                  <Text of={Object.entries(it).filter(([k, v]) => k !== "definition" && v !== "" && v !== null && v !== undefined).map(([k, v]) => `${tOf("audit.item.", k)}${t("mark.colon")}${typeof v === "object" ? JSON.stringify(v) : String(v)}`).join(" · ")} />
                  {it.definition && d.definitions[it.definition] !== undefined && <details><summary>{t("audit.definition")}</summary><pre class="audit-definition" tabIndex={0}>{JSON.stringify(d.definitions[it.definition], null, 2)}</pre></details>}
                </li>
              ))}</ul>
            </>
          )}
        </div>
      )}
    </Dialog>
  );
}
