// What differs between the document of a business and the fleet. An operation on all of it, as a dry run, compares the
// definitions; the live table shows what the document does not know.
import { Failure, may, post } from "../api.ts";
import type { Preview, PreviewRow } from "../api-types.ts";
import { beat, table } from "../live/stream.ts";
import { href } from "../router.ts";
import { openAction } from "../ui/action.tsx";
import { Button, Empty, Problem, Text } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { t } from "../words.ts";
import { strangers } from "./business-model.ts";

const everything = "*.*.*.*.*";
const most = 200;

export function Drift({ biz, version }: { biz: number; version: number }) {
  const seen = useLoad(async () => {
    try {
      return await post<Preview>("/operations", { action: "start", biz, expression: everything, dry_run: true });
    } catch (err) {
      if (err instanceof Failure && err.status === 404) return empty; // no process at all
      throw err;
    }
  }, [biz, version]);
  beat.value;
  const fleet = table.value;
  const foreign = fleet ? strangers(fleet, biz) : [];
  const p = seen.data;
  const forbidden = seen.failure?.status === 403;
  const rows = (f: (r: PreviewRow) => boolean) => p?.processes.filter(f) ?? [];
  const fresh = rows((r) => r.definition === "new"), changed = rows((r) => r.definition === "changed"), rejected = rows((r) => !!r.code);
  const same = p && p.new + p.changed + p.rejected + foreign.length === 0;

  return (
    <div class="stack">
      <p class="hint">{t("drift.hint")}</p>
      {forbidden && <p class="dim">{t("drift.noRight")}</p>}
      {seen.failure && !forbidden && <Problem of={seen.failure} retry={seen.reload} />}
      {!p && !seen.failure && <p class="dim loading" role="status">{t("loading")}</p>}
      {same && <Empty title={t("drift.none")} />}
      {p && p.targets > p.processes.length && <p class="dim">{t("drift.partly", { n: p.processes.length, all: p.targets })}</p>}
      {p && <Part title={t("drift.changed", { n: p.changed })} n={p.changed} list={changed} />}
      {p && <Part title={t("drift.new", { n: p.new })} n={p.new} list={fresh} />}
      {p && <Part title={t("drift.rejected", { n: p.rejected })} n={p.rejected} list={rejected} />}
      {foreign.length > 0 && fleet && (
        <section class="card">
          <h2>{t("drift.strangers", { n: foreign.length })}</h2>
          <p class="dim">{t("drift.strangersDo")}</p>
          <ul class="biz-drift">
            {foreign.slice(0, most).map((id) => {
              const space = fleet.names.space[fleet.name[id]], name = fleet.names.name[fleet.name[id]], host = fleet.host[id];
              return (
                <li key={id} class="row">
                  <a href={href(`/process/${encodeURIComponent(space)}/${encodeURIComponent(name)}`)}><Text of={name} /></a> <span class="dim">{fleet.hosts.cloud[host]}:{fleet.hosts.ip[host]}</span>
                  {may("define") && <Button kind="quiet" onClick={() => openAction({ action: "unregister", selection: { namespace: space, names: [name], hosts: [{ agent: fleet.hosts.agent[host] }] } })}>{t("drift.unregister")}</Button>}
                </li>
              );
            })}
          </ul>
        </section>
      )}
    </div>
  );
}

const empty: Preview = { targets: 0, rejected: 0, new: 0, changed: 0, unchanged: 0, processes: [] };

function Part({ title, n, list }: { title: string; n: number; list: PreviewRow[] }) {
  if (n === 0) return null;
  return (
    <section class="card">
      <h2>{title}</h2>
      <ul class="biz-drift">
        {list.slice(0, most).map((r, i) => (
          <li key={i}>
            <a href={href(`/process/${encodeURIComponent(r.namespace)}/${encodeURIComponent(r.name)}`)}><Text of={r.name} /></a> <span class="dim">{r.host.cloud}:{r.host.ip}</span> {r.code && <><code>{r.code}</code> <Text of={r.message ?? ""} /></>}
            {r.definition === "changed" && r.fields && <ul>{r.fields.map((f, j) => <li key={j}><Text of={f.slice(0, 2000)} class="mono" /></li>)}</ul>}
          </li>
        ))}
      </ul>
    </section>
  );
}
