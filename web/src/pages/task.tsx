// One task, while it runs and after.
import { useMemo, useState } from "preact/hooks";
import { may } from "../api.ts";
import type { Counts, Task as TaskType } from "../api-types.ts";
import { useActions } from "../keys.ts";
import { href, place, setQuery } from "../router.ts";
import { age, now } from "../ui/format.ts";
import { Button, Empty, Moment, PageHead, Problem, Text } from "../ui/kit.tsx";
import { t, tOf } from "../words.ts";
import { Cells } from "./task-cells.tsx";
import { Errors } from "./task-errors.tsx";
import { hostText, shortTask, speed, type Sample } from "./task-model.ts";
import { useTask } from "./task-read.ts";
import { RetryDialog } from "./task-retry.tsx";
import { AttemptTable } from "./task-table.tsx";
import { Progress } from "./tasks-progress.tsx";

export default function Task({ params }: { params: Record<string, string> }) {
  const { task, counts, samples, failure, at } = useTask(params.id);
  const [retry, setRetry] = useState<{ positions?: number[] }>();
  const again = task && may("operate") ? task.counts.failed : 0;
  useActions(again ? [{ label: t("task.retryFailed", { n: again }), keys: "r", run: () => setRetry({}) }] : [], [again]);

  if (!task) {
    if (failure?.status === 404) return <Empty title={t("task.missing")}><p>{t("task.missingDo")}</p><a class="button" href={href("/tasks")}>{t("task.back")}</a></Empty>;
    if (failure) return <Problem of={failure} />;
    return <p class="dim loading" role="status">{t("loading")}</p>;
  }
  const onRetry = may("operate") ? (positions: number[]) => setRetry({ positions }) : undefined;
  return (
    <div class="stack">
      <Head task={task} onRetry={again ? () => setRetry({}) : undefined} />
      {failure && <p class="task-old" role="alert">{t("task.old", { age: age((now.value - at) / 1000) })}</p>}
      <section class="card stack" aria-label={t("tasks.progress")}>
        <Now task={task} counts={counts ?? task.counts} samples={samples} />
        <Cells attempts={task.attempts} onPick={(a) => setQuery({ q: hostText(a.host), result: "" })} />
      </section>
      <Errors attempts={task.attempts} onRetry={onRetry} />
      <AttemptTable attempts={task.attempts} onRetry={onRetry} />
      {retry && <RetryDialog task={task} positions={retry.positions} onClose={() => setRetry(undefined)} />}
    </div>
  );
}

function Head({ task, onRetry }: { task: TaskType; onRetry?: () => void }) {
  const actions = useMemo(() => [...new Set(task.attempts.map((a) => a.action))], [task]);
  const hosts = useMemo(() => new Set(task.attempts.map((a) => hostText(a.host))).size, [task]);
  const what = actions.slice(0, 3).map((a) => tOf("action.", a)).join(t("mark.list"));
  const of = place.value.query.get("of");
  return (
    <>
      <PageHead title={t("task.title", { what, id: shortTask(task.task_id) })}>
        <a class="button" href={href("/tasks")}>{t("task.back")}</a>
        {onRetry && <Button kind="main" onClick={onRetry}>{t("task.retryFailed", { n: task.counts.failed })}</Button>}
      </PageHead>
      <dl class="facts card">
        <dt>{t("tasks.at")}</dt><dd><Moment at={task.at} /></dd>
        <dt>{t("tasks.by")}</dt><dd><By user={task.user} app={task.app} /></dd>
        <dt>{t("tasks.door")}</dt><dd>{tOf("door.", task.door)}</dd>
        <dt>{t("tasks.processes")}</dt><dd>{t("task.targets", { n: task.counts.targets, hosts })}</dd>
        {of && <><dt>{t("retry.go")}</dt><dd><a href={href(`/tasks/${encodeURIComponent(of)}`)}>{t("task.repeats", { id: shortTask(of) })}</a></dd></>}
      </dl>
    </>
  );
}

/** The person and the app of a request. */
export function By({ user, app }: { user: string; app: string }) {
  return <>{user && <Text of={user} />}{user && app && " "}{app && <span class="dim"><Text of={t("tasks.app.of", { app })} /></span>}</>;
}

function Now({ task, counts, samples }: { task: TaskType; counts: Counts; samples: Sample[] }) {
  const final = task.final;
  const fast = final ? undefined : speed(samples, counts.running, now.value);
  const waits = task.waiting;
  return (
    <>
      <div class="row">
        <strong>{final ? t("task.ended") : t("task.running")}</strong>
        {fast && fast.rate > 0 && <span>{t("task.rate", { rate: fast.rate >= 10 ? Math.round(fast.rate) : fast.rate.toFixed(1) })}</span>}
        {fast?.left !== undefined && <span>{t("task.left", { age: age(fast.left) })}</span>}
      </div>
      <Progress counts={counts} />
      {waits && <p>{t("task.waits", { n: waits.attempts, hosts: waits.hosts, age: age(waits.seconds) })} {waits.named.map((h) => <Text key={hostText(h.host)} of={hostText(h.host)} class="mono" />)}</p>}
    </>
  );
}
