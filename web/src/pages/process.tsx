// One process over all of its hosts.
import { useState } from "preact/hooks";
import { may, session } from "../api.ts";
import type { TaskSummary } from "../api-types.ts";
import { useActions } from "../keys.ts";
import { businessParts, placeOf } from "../live/names.ts";
import { table } from "../live/stream.ts";
import { go, href, place, setQuery } from "../router.ts";
import { openAction, oneProcess, type ActionName } from "../ui/action.tsx";
import { Button, Empty, PageHead, Problem, State, Tabs, Text } from "../ui/kit.tsx";
import { plain } from "../ui/format.ts";
import { ProcessName } from "../ui/process-name.tsx";
import { t, tOf, type Word } from "../words.ts";
import { Charts } from "./process-charts.tsx";
import { useDefinitions, useInstances, useTasks } from "./process-data.ts";
import { DefinitionTab } from "./process-definition.tsx";
import { Events } from "./process-events.tsx";
import { Instances } from "./process-instances.tsx";
import { LogTab } from "./process-log.tsx";

const tabs = ["instances", "charts", "events", "log", "definition"] as const;
export type Tab = (typeof tabs)[number];

const first: ActionName[] = ["start", "stop", "restart", "reload"];
const rest: ActionName[] = ["kill", "manage", "unmanage"];

export default function ProcessPage({ params }: { params: Record<string, string> }) {
  const { space, name } = params;
  const instances = useInstances(space, name);
  const tasks = useTasks(space, name);
  const definitions = useDefinitions(space, name, tasks.ended);
  const at = (tabs as readonly string[]).includes(place.value.query.get("tab") ?? "") ? (place.value.query.get("tab") as Tab) : "instances";
  const host = place.value.query.get("host") ?? "";
  const path = `/process/${encodeURIComponent(space)}/${encodeURIComponent(name)}`;
  const act = (action: ActionName) => openAction({ action, selection: oneProcess(space, name, host || undefined) });

  useActions([
    ...tabs.map((tab, i) => ({ label: t(`process.tab.${tab}`), keys: String(i + 1), run: () => setQuery({ tab: tab === "instances" ? undefined : tab }, false) })),
    ...(may("operate") ? [...first, ...rest].map((a) => ({ label: t(`action.${a}` as Word), keys: a === "restart" ? "r" : undefined, run: () => act(a) })) : []),
    ...(may("define") ? [{ label: t("process.edit"), keys: "e", run: () => go(href("/register", { space, name })) }] : []),
  ], [space, name, host]);

  const list = instances.data;
  if (instances.failure && !list) return <Problem of={instances.failure} retry={instances.reload} />;
  if (list?.length === 0 && definitions.failure && !definitions.data) return <Problem of={definitions.failure} retry={definitions.reload} />;
  if (!list || (list.length === 0 && !definitions.data)) return <p class="dim loading" role="status">{t("loading")}</p>; // no actions on what may not exist
  if (list.length === 0 && definitions.data?.definitions.length === 0) {
    return (
      <Empty title={t("process.none", { name: plain(`${space}/${name}`) })}>
        {may("define") && <a class="button" href={href("/register", { space, name })}>{t("process.register")}</a>}
        <a class="button" href={href("/processes")}>{t("process.back")}</a>
      </Empty>
    );
  }

  return (
    <div class="stack process">
      <PageHead title={businessParts(space, name) ? <ProcessName space={space} name={name} place={placeOf(table.value, space, name)} /> : <><span class="dim"><Text of={space} />/</span><Text of={name} /></>}>
        {may("operate") && <Buttons act={act} />}
        {may("define") && <a class="button" href={href("/register", { space, name })}>{t("process.edit")}</a>}
      </PageHead>
      <Others running={tasks.running} />
      <Summary states={list.map((p) => p.state)} />
      <Tabs label={t("process.tabs")} at={at} items={tabs.map((tab) => ({ key: tab, label: t(`process.tab.${tab}`), href: href(path, { tab: tab === "instances" ? undefined : tab, host }) }))} />
      {at === "instances" && <Instances list={list} definitions={definitions.data?.definitions ?? []} path={path} />}
      {at === "charts" && <Charts list={list} host={host} />}
      {at === "events" && <Events space={space} name={name} host={host} list={list} />}
      {at === "log" && <LogTab space={space} name={name} list={list} host={host} />}
      {at === "definition" && <DefinitionTab space={space} name={name} loaded={definitions} />}
    </div>
  );
}

function Buttons({ act }: { act: (a: ActionName) => void }) {
  const [more, setMore] = useState(false);
  const button = (a: ActionName) => <Button key={a} kind={a === "kill" ? "danger" : undefined} onClick={() => act(a)}>{t(`action.${a}` as Word)}</Button>;
  return (
    <>
      {first.map(button)}
      {more ? rest.map(button) : <Button aria-expanded={false} onClick={() => setMore(true)}>{t("process.more")}</Button>}
    </>
  );
}

/** How many instances are in each state. */
function Summary({ states }: { states: string[] }) {
  const counts = new Map<string, number>();
  for (const s of states) counts.set(s, (counts.get(s) ?? 0) + 1);
  return <div class="row">{[...counts].map(([s, n]) => <span key={s} class="row"><State of={s} /> {states.length > 1 && n}</span>)}</div>;
}

/** What other people, or the viewer, do with this process now. */
function Others({ running }: { running: TaskSummary[] }) {
  return (
    <div aria-live="polite">
      {running.map((task) => (
        <p key={task.task_id} class="note">
          {task.user && task.user === session.value?.user
            ? t("process.youNow", { action: task.actions.map((a) => tOf("action.", a)).join(t("mark.list")) })
            : t("process.otherNow", { user: plain(task.user || task.app), action: task.actions.map((a) => tOf("action.", a)).join(t("mark.list")) })}{" "}
          <a href={href(`/tasks/${encodeURIComponent(task.task_id)}`)}>{t("process.task")}</a>
        </p>
      ))}
    </div>
  );
}
