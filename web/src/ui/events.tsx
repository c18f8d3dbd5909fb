// Events as people read them, wherever they are listed.
import type { Event as FleetEvent } from "../api-types.ts";
import { href } from "../router.ts";
import { t, tOf } from "../words.ts";
import { Moment, Text } from "./kit.tsx";
import { ProcessName } from "./process-name.tsx";

export const badEvents = new Set(["start_failed", "exited", "process_restart_failed", "process_cancel_restart", "process_resource_limit_exceed",
  "process_group_resource_limit_exceed", "orphaned", "foreign_address", "policy_changed", "topology_left_out"]);

/** Kinds of events that are fully said by their words; the message repeats them. */
const plainKinds = new Set(["started", "exited", "process_restart_success"]);

export function EventLine({ event: e, withName = true }: { event: FleetEvent; withName?: boolean }) {
  const how = e.signal || (e.code !== null && e.kind === "exited" ? t("event.code", { code: String(e.code) }) : "");
  return (
    <li class={`event ${badEvents.has(e.kind) ? "event-bad" : ""}`}>
      <span class="event-at"><Moment at={e.at} /></span>
      <span class="event-what">
        {withName && e.name && <><a href={href(`/process/${encodeURIComponent(e.namespace)}/${encodeURIComponent(e.name)}`)}><ProcessName space={e.namespace} name={e.name} /></a>{" "}</>}
        {tOf("event.", e.kind)}{how && t("mark.colon") + how}{" "}
        <a class="dim" href={href(`/hosts/${encodeURIComponent(e.host.agent)}`)}>{e.host.ip}</a>
        {e.user && <span class="dim"> {t("event.by", { user: e.user })}</span>}
        {e.task_id && <a class="dim" href={href(`/tasks/${encodeURIComponent(e.task_id)}`)} title={e.task_id}> {t("event.task")}</a>}
        {e.message && !(plainKinds.has(e.kind) && (how || e.kind !== "exited")) && <span class="event-message"><Text of={e.message} /></span>}
      </span>
    </li>
  );
}
