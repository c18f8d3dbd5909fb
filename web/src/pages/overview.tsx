import { useEffect, useState } from "preact/hooks";
import { get, may } from "../api.ts";
import type { TaskPage, TaskSummary } from "../api-types.ts";
import { beat, listen, table } from "../live/stream.ts";
import type { Grouping } from "../live/heat.ts";
import { href, place, setQuery } from "../router.ts";
import { EventLine } from "../ui/events.tsx";
import { HeatMap } from "../ui/heatmap.tsx";
import { Command, Empty, PageHead, Problem } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { ProcessName } from "../ui/process-name.tsx";
import { useEvents } from "../ui/use-events.ts";
import { number, t, tOf } from "../words.ts";
import { EventStrip } from "./overview-strip.tsx";
import { Groups } from "./overview-groups.tsx";
import { Wrong } from "./overview-wrong.tsx";

const groupings: Grouping[] = ["business", "namespace", "host"];
const mostEvents = 1000;

export default function Overview() {
  beat.value;
  const fleet = table.value;
  if (!fleet) return <p class="dim loading" role="status">{t("live.loading")}</p>;
  if (fleet.hosts.ip.length === 0) return <Empty page title={t("overview.noHosts")}><p>{t("overview.noHostsDo")}</p><a class="button button-main" href={href("/hosts")}>{t("nav.hosts")}</a></Empty>;
  if (fleet.count === 0) {
    return (
      <Empty page title={t("overview.noProcesses")}>
        <p>{t("overview.noProcessesDo")}</p>
        <Command text="gozzard run --name web -- python3 -m http.server 9000" />
        {may("define") && <a class="button button-main" href={href("/register")}>{t("overview.register")}</a>}
      </Empty>
    );
  }
  return <Fleet />;
}

function Fleet() {
  const fleet = table.value!;
  const asked = place.value.query.get("by") as Grouping | null;
  const by = asked && groupings.includes(asked) ? asked : fleet.places.length > 1 ? "business" : "namespace";
  let offline = 0, hosts = 0;
  for (const on of fleet.hosts.online) { // 2: the host is gone
    if (on === 0) offline++;
    if (on !== 2) hosts++;
  }

  return (
    <>
      <PageHead title={t("overview.title")}>
        <span>{t("overview.count", { n: fleet.count, hosts })}</span>
        {offline > 0 && <a href={href("/hosts", { only: "offline" })}>{t("overview.offline", { n: offline })}</a>}
      </PageHead>
      <div class="overview">
        <section class="card overview-groups" aria-label={t("overview.groups")}>
          <label class="row"><span>{t("heat.by")}</span>
            <select value={by} onChange={(e) => setQuery({ by: e.currentTarget.value })}>
              {groupings.map((g) => <option key={g} value={g}>{t(`heat.${g}` as const)}</option>)}
            </select>
          </label>
          <Groups by={by} />
        </section>
        <div class="stack overview-middle">
          <section class="card"><h2>{t("overview.map")}</h2><HeatMap by={by} /></section>
          <section class="card"><h2>{t("overview.wrong")}</h2><Wrong /></section>
        </div>
        <div class="stack overview-side">
          <RunningTasks />
          <Events />
        </div>
      </div>
    </>
  );
}

function RunningTasks() {
  const loaded = useLoad((s) => get<TaskPage>("/tasks", { state: "running", limit: 20 }, s), [], 15_000);
  const [changed, setChanged] = useState<Map<string, TaskSummary>>(new Map());
  useEffect(() => listen("tasks", (list) => setChanged((m) => new Map([...m, ...list.map((x) => [x.task_id, x] as const)].slice(-200)))), []);

  const byID = new Map((loaded.data?.tasks ?? []).map((x) => [x.task_id, x]));
  for (const [id, task] of changed) byID.set(id, task);
  const running = [...byID.values()].filter((x) => !x.final).slice(0, 8);
  return (
    <section class="card">
      <h2><a href={href("/tasks")}>{t("overview.tasks")}</a></h2>
      {loaded.failure && !loaded.data && <Problem of={loaded.failure} retry={loaded.reload} />}
      {running.length === 0 && <p class="dim">{t("overview.noTasks")}</p>}
      <ul class="stack">{running.map((x) => <RunningTask key={x.task_id} task={x} />)}</ul>
    </section>
  );
}

function RunningTask({ task }: { task: TaskSummary }) {
  const { done, failed, targets } = task.counts;
  const ended = done + failed;
  return (
    <li>
      <a href={href(`/tasks/${encodeURIComponent(task.task_id)}`)}>{task.actions.map((a) => tOf("action.", a)).join(t("mark.list"))} {task.processes[0] && <ProcessName space={task.processes[0].namespace} name={task.processes[0].name} />}{task.processes.length + (task.more ?? 0) > 1 ? " …" : ""}</a>
      <span class="dim"> {task.user} {number(ended)}/{number(targets)}</span>
      <div class="bar" role="progressbar" aria-label={task.task_id} aria-valuemin={0} aria-valuemax={targets} aria-valuenow={ended}>
        <div style={{ width: `${targets ? (100 * ended) / targets : 0}%` }} />
      </div>
    </li>
  );
}

function Events() {
  const [since] = useState(() => new Date(Date.now() - 3600_000).toISOString());
  const { events: all, ...loaded } = useEvents({ since, limit: mostEvents }, mostEvents, () => true);
  return (
    <section class="card">
      <h2>{t("overview.events")}</h2>
      {loaded.failure && !loaded.data && <Problem of={loaded.failure} retry={loaded.reload} />}
      <EventStrip events={all} cut={all.length >= mostEvents} />
      {loaded.data && all.length === 0 && <p class="dim">{t("overview.noEvents")}</p>}
      <ul class="events">{all.slice(-12).reverse().map((e) => <EventLine key={e.id} event={e} />)}</ul>
    </section>
  );
}
