// The history of tasks, newest first, with its filters in the address.
import { useEffect, useRef, useState } from "preact/hooks";
import { Failure, get } from "../api.ts";
import type { TaskPage, TaskSummary } from "../api-types.ts";
import { connection, listen } from "../live/stream.ts";
import { go, href, place, setQuery } from "../router.ts";
import { Button, Command, Empty, Field, Fold, Moment, PageHead, Problem } from "../ui/kit.tsx";
import { ProcessName } from "../ui/process-name.tsx";
import { t, tOf } from "../words.ts";
import { mergePage, replaceRows, shortTask } from "./task-model.ts";
import { By } from "./task.tsx";
import { Progress } from "./tasks-progress.tsx";
import { Requests } from "./tasks-requests.tsx";

const pageSize = 50;
const spans: Record<string, number> = { "1h": 3600, "24h": 86_400, "7d": 604_800, "30d": 2_592_000 };
const actions = ["start", "stop", "restart", "reload", "kill", "manage", "unmanage", "register", "unregister", "query"];
const fields = ["state", "action", "user", "app", "mine", "namespace", "name", "host", "since"] as const;

type Query = Record<string, string | undefined>;

/** What the address asks the server for. */
function wanted(): Query {
  const q: Query = {};
  for (const f of fields) q[f] = place.value.query.get(f) ?? undefined;
  if (q.since && spans[q.since]) q.since = new Date(Math.floor((Date.now() - spans[q.since] * 1000) / 1000) * 1000).toISOString();
  return q;
}

interface List { rows: TaskSummary[]; next: number; failure?: Failure; loaded: boolean }

/** Keeps the list up to date: rows change as the stream says, a new task makes the first page be read again. */
function useTasks(key: string): List & { older: () => void; reload: () => void } {
  const [list, setList] = useState<List>({ rows: [], next: 0, loaded: false });
  const latest = useRef({ older: () => {}, reload: () => {} });

  useEffect(() => {
    const stop = new AbortController();
    let timer = 0, readAt = 0;
    let current: List = { rows: [], next: 0, loaded: false };
    const show = (l: List) => { current = l; if (!stop.signal.aborted) setList(l); };
    const fail = (err: unknown) => show({ ...current, loaded: true, failure: err instanceof Failure ? err : new Failure(0, { message: String(err) }) });
    const plan = (ms: number) => { clearTimeout(timer); timer = window.setTimeout(read, ms); };
    const read = () => {
      readAt = Date.now();
      get<TaskPage>("/tasks", { ...wanted(), limit: pageSize }, stop.signal).then((page) => {
        const rows = mergePage(current.rows, page.tasks, !!page.next);
        show({ rows, next: rows.length > page.tasks.length ? current.next : page.next ?? 0, loaded: true });
      }, fail).finally(() => { if (!stop.signal.aborted) plan(connection.value === "live" ? 30_000 : 5000); });
    };
    let asked = 0; // a second click must not bring the same tasks again
    const older = () => {
      if (!current.next || asked === current.next) return;
      asked = current.next;
      get<TaskPage>("/tasks", { ...wanted(), limit: pageSize, before: String(current.next) }, stop.signal).then((page) => {
        show({ rows: [...current.rows, ...page.tasks], next: page.next ?? 0, loaded: true });
      }, fail).finally(() => { asked = 0; });
    };

    show(current);
    read();
    latest.current = { reload: read, older };
    const deaf = listen("tasks", (changed) => {
      const r = replaceRows(current.rows, changed);
      show({ ...current, rows: r.list });
      if (r.isNew || changed.some((s) => s.final)) plan(Math.max(200, readAt + 2000 - Date.now()));
    });
    return () => { stop.abort(); clearTimeout(timer); deaf(); };
  }, [key]);

  return { ...list, older: () => latest.current.older(), reload: () => latest.current.reload() };
}

export default function Tasks() {
  const query = place.value.query;
  const key = fields.map((f) => query.get(f) ?? "").join("\u0000");
  const filtered = fields.some((f) => query.get(f));
  const { rows, next, failure, loaded, older, reload } = useTasks(key);
  return (
    <div class="stack">
      <PageHead title={t("tasks.title")}>{filtered && <Button onClick={() => go(href("/tasks"))}>{t("tasks.clear")}</Button>}</PageHead>
      <Requests />
      <Fold active={filtered}><Filters /></Fold>
      {failure && <Problem of={failure} retry={reload} />}
      {!loaded && <p class="dim loading" role="status">{t("loading")}</p>}
      {rows.length > 0 && <Rows rows={rows} />}
      {loaded && !failure && rows.length === 0 && (next ? <p>{t("tasks.looked")}</p> : <Nothing filtered={filtered} />)}
      {next > 0 && <div><Button onClick={older}>{t("tasks.older")}</Button></div>}
    </div>
  );
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title={t("tasks.noneFits")}><Button onClick={() => go(href("/tasks"))}>{t("tasks.clear")}</Button></Empty>;
  return (
    <Empty title={t("tasks.none")}>
      <p>{t("tasks.noneDo")}</p>
      <Command text="gozzard restart NAME" />
      <a class="button" href={href("/processes")}>{t("nav.processes")}</a>
    </Empty>
  );
}

function Filters() {
  const query = place.value.query;
  const choice = (name: string, label: string, values: [string, string][]) => (
    <Field label={label}>{(a) => (
      <select {...a} value={query.get(name) ?? ""} onChange={(e) => setQuery({ [name]: e.currentTarget.value })}>
        <option value="">{t("tasks.any")}</option>
        {values.map(([v, word]) => <option key={v} value={v}>{word}</option>)}
      </select>
    )}</Field>
  );
  const text = (name: string, label: string, hint?: string) => (
    <Field label={label}>{(a) => <input {...a} type="search" value={query.get(name) ?? ""} placeholder={hint} maxLength={300} onChange={(e) => setQuery({ [name]: e.currentTarget.value.trim() })} />}</Field>
  );
  return (
    <form class="card tasks-filters" aria-label={t("tasks.filters")} onSubmit={(e) => e.preventDefault()}>
      {choice("state", t("tasks.state"), (["running", "failed", "done"] as const).map((s) => [s, t(`tasks.state.${s}`)]))}
      {choice("action", t("tasks.action"), actions.map((a) => [a, tOf("action.", a)]))}
      {choice("since", t("tasks.since"), (["1h", "24h", "7d", "30d"] as const).map((s) => [s, t(`tasks.since.${s}`)]))}
      {text("name", t("tasks.name"), t("tasks.patternHint"))}
      {text("namespace", t("tasks.namespace"), t("tasks.patternHint"))}
      {text("host", t("tasks.host"), t("tasks.hostHint"))}
      {text("user", t("tasks.user"))}
      <label class="row tasks-mine"><input type="checkbox" checked={query.get("mine") === "true"} onChange={(e) => setQuery({ mine: e.currentTarget.checked ? "true" : "" })} /> {t("tasks.mine")}</label>
    </form>
  );
}

function Rows({ rows }: { rows: readonly TaskSummary[] }) {
  return (
    <div class="scroll card stacks" tabIndex={0} role="region" aria-label={t("tasks.title")}>
      <table class="tasks-table">
        <thead><tr>{(["tasks.at", "tasks.action", "tasks.processes", "tasks.progress", "tasks.by", "tasks.door", "tasks.id"] as const).map((w) => <th key={w} scope="col">{t(w)}</th>)}</tr></thead>
        <tbody>{rows.map((s) => <Row key={s.task_id} of={s} />)}</tbody>
      </table>
    </div>
  );
}

function Row({ of: s }: { of: TaskSummary }) {
  const to = href(`/tasks/${encodeURIComponent(s.task_id)}`);
  const rest = s.processes.length - 2 + (s.more ?? 0);
  return (
    <tr>
      <td><Moment at={s.at} /></td>
      <td><a href={to}>{s.actions.map((a) => tOf("action.", a)).join(t("mark.list"))}</a></td>
      <td>{s.processes.slice(0, 2).map((p, i) => <span key={i}>{i > 0 && t("mark.list")}<ProcessName space={p.namespace} name={p.name} /></span>)}{rest > 0 && <span class="dim"> {t("tasks.andMore", { n: rest })}</span>}</td>
      <td><Progress counts={s.counts} />{!s.final && <span class="dim">{t("task.running")}</span>}</td>
      <td><By user={s.user} app={s.app} /></td>
      <td>{tOf("door.", s.door)}</td>
      <td><a href={to} class="mono">{shortTask(s.task_id)}</a></td>
    </tr>
  );
}
