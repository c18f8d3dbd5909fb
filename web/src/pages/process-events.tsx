// What happened to a process, newest first, and what happens now.
import type { Process } from "../api-types.ts";
import { EventLine } from "../ui/events.tsx";
import { Empty, Problem } from "../ui/kit.tsx";
import { useEvents } from "../ui/use-events.ts";
import { t } from "../words.ts";
import { HostChoice } from "./process-log.tsx";

const most = 1000;

export function Events({ space, name, host, list }: { space: string; name: string; host: string; list: Process[] }) {
  const old = useEvents({ namespace: space, name, host, limit: 200 }, most, (e) => e.namespace === space && e.name === name && (!host || e.host.agent === host));
  if (old.failure && !old.data) return <Problem of={old.failure} retry={old.reload} />;
  if (!old.data) return <p class="dim loading" role="status">{t("loading")}</p>;
  const events = [...old.events].reverse();
  return (
    <div class="stack">
      {list.length > 1 && <HostChoice list={list} host={host} />}
      {events.length === 0 ? <Empty title={t("process.noEvents")} /> : <ul class="card events" aria-live="polite">{events.map((e) => <EventLine key={e.id} event={e} withName={false} />)}</ul>}
    </div>
  );
}
