import { useMemo, useRef } from "preact/hooks";
import { may, post } from "../api.ts";
import { slowBeat, table } from "../live/stream.ts";
import { wholeName } from "../live/names.ts";
import { stateOrder } from "../live/filter.ts";
import { href } from "../router.ts";
import { oneProcess, openAction } from "../ui/action.tsx";
import { Button, State, Text } from "../ui/kit.tsx";
import { ProcessName } from "../ui/process-name.tsx";
import { useLoad } from "../ui/load.ts";
import { t } from "../words.ts";

const bad = ["crash_loop", "failed", "unhealthy", "backing_off", "unknown"];
const most = 15;

/** The action that mends a state most often. An unknown one cannot be mended from here. */
const mends: Record<string, "restart" | "start"> = { crash_loop: "restart", failed: "start", unhealthy: "restart", backing_off: "restart" };

interface Row { space: string; name: string; state: string; hosts: string[]; sample: number; place: number }

interface Details { rows: { id: number; message?: string; health_message?: string }[] }

/** Processes that are not well, the worst first. Instances of one process in one state are one line. */
export function Wrong() {
  const rows = useMemo(find, [slowBeat.value, table.value]);
  const shown = rows.slice(0, most);
  const fleet = table.value!;

  // The words of the agent are fetched for what is on screen, and again when other rows are.
  const ids = shown.map((r) => r.sample);
  const key = `${fleet.epoch} ${ids.join(",")} ${shown.map((r) => r.state).join(",")}`;
  const details = useLoad(ids.length ? () => post<Details>("/live/rows", { epoch: fleet.epoch, ids }) : undefined, [key]);
  const words = useRef(new Map<number, string>());
  for (const r of details.data?.rows ?? []) words.current.set(r.id, r.health_message || r.message || "");

  if (rows.length === 0) return <p class="dim">{t("overview.nothingWrong")}</p>;
  return (
    <ul class="wrong">
      {shown.map((r) => (
        <li key={`${r.space}/${r.name} ${r.state}`}>
          <State of={r.state} />
          <a href={href(`/process/${encodeURIComponent(r.space)}/${encodeURIComponent(r.name)}`)} class="wrong-name"><ProcessName space={r.space} name={r.name} place={r.place} /></a>
          <span class="wrong-do">
            <span class="dim">{t("overview.on", { n: r.hosts.length })}</span>
            {may("operate") && mends[r.state] && (
              <Button onClick={() => openAction({ action: mends[r.state], selection: r.hosts.length <= 500 ? { processes: [{ namespace: r.space, name: r.name, agents: r.hosts }] } : oneProcess(r.space, r.name) })}>
                {t(`action.${mends[r.state]}` as const)}<span class="unseen"> {wholeName(fleet, r.space, r.name, r.place)}</span>
              </Button>
            )}
          </span>
          <span class="wrong-why dim"><Text of={words.current.get(r.sample) ?? ""} /></span>
        </li>
      ))}
      {rows.length > most && <li><a href={href("/processes", { f: `state:${bad.join(",")}` })}>{t("overview.moreWrong", { n: rows.length - most })}</a></li>}
    </ul>
  );
}

/** Looks through all rows; a bad one is counted under its name and state. */
function find(): Row[] {
  const fleet = table.value;
  if (!fleet) return [];
  const isBad = Uint8Array.from(fleet.states, (s) => (bad.includes(s) ? 1 : 0));
  const found = new Map<number, Row>();
  for (let id = 0; id < fleet.top; id++) {
    const state = fleet.state[id];
    if (state === 255 || !isBad[state]) continue;
    const key = fleet.name[id] * 32 + state;
    const row = found.get(key);
    const agent = fleet.hosts.agent[fleet.host[id]];
    if (row) {
      row.hosts.push(agent);
      if (row.place !== fleet.place[id]) row.place = 0; // it is in several places
    }
    else found.set(key, { space: fleet.names.space[fleet.name[id]], name: fleet.names.name[fleet.name[id]], state: fleet.states[state], hosts: [agent], sample: id, place: fleet.place[id] });
  }
  return [...found.values()].sort((a, b) => stateOrder.indexOf(a.state) - stateOrder.indexOf(b.state) || b.hosts.length - a.hosts.length || a.name.localeCompare(b.name));
}
