// What happened to a process, newest first, and what happens now.
import { useEffect, useState } from "preact/hooks";
import { get } from "../api.ts";
import type { Event as FleetEvent, EventPage, Process } from "../api-types.ts";
import { listen } from "../live/stream.ts";
import { EventLine } from "../ui/events.tsx";
import { Empty, Problem } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { t } from "../words.ts";
import { HostChoice } from "./process-log.tsx";

const most = 1000;

export function Events({ space, name, host, list }: { space: string; name: string; host: string; list: Process[] }) {
  const [fresh, setFresh] = useState<FleetEvent[]>([]);
  const old = useLoad((signal) => get<EventPage>("/events", { namespace: space, name, host, limit: 200 }, signal), [space, name, host]);
  useEffect(() => {
    setFresh([]);
    return listen("events", (events) => {
      const mine = events.filter((e) => e.namespace === space && e.name === name && (!host || e.host.agent === host));
      if (mine.length) setFresh((before) => [...before, ...mine].slice(-most));
    });
  }, [space, name, host]);

  if (old.failure && !old.data) return <Problem of={old.failure} retry={old.reload} />;
  if (!old.data) return <p class="dim loading" role="status">{t("loading")}</p>;
  const seen = new Map<number, FleetEvent>();
  for (const e of [...old.data.events, ...fresh]) if (e.namespace === space && e.name === name) seen.set(e.id, e);
  const events = [...seen.values()].sort((a, b) => b.id - a.id).slice(0, most);
  return (
    <div class="stack">
      {list.length > 1 && <HostChoice list={list} host={host} />}
      {events.length === 0 ? <Empty title={t("process.noEvents")} /> : <ul class="card events" aria-live="polite">{events.map((e) => <EventLine key={e.id} event={e} withName={false} />)}</ul>}
    </div>
  );
}
