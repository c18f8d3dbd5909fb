// The tree of a business: sets and modules with live counts, and below a module its services and processes.
import { useMemo, useState } from "preact/hooks";
import { get } from "../api.ts";
import type { Process, ProcessPage, Tree } from "../api-types.ts";
import { formatFilter, emptyFilter } from "../live/filter.ts";
import { beat, table } from "../live/stream.ts";
import { href, setQuery } from "../router.ts";
import { Button, Command, Empty, Problem, State, Text } from "../ui/kit.tsx";
import { plain } from "../ui/format.ts";
import { useLoad } from "../ui/load.ts";
import { t, tOf } from "../words.ts";
import { Size, States } from "./business-counts.tsx";
import { joinExpression, liveCounts, moduleKey, sum, type LiveCounts, type StateCounts } from "./business-model.ts";

const readEvery = 5000;
const mostProcesses = 500;

export function TreeTable({ biz, version }: { biz: number; version: number }) {
  const tree = useLoad((s) => get<Tree>(`/topology/${biz}/tree`, undefined, s), [biz, version], readEvery);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  beat.value;
  const fleet = table.value;
  const live = useMemo(() => (fleet ? liveCounts(fleet).get(biz) : undefined), [fleet, beat.value, biz]);

  if (!tree.data) return tree.failure ? <Problem of={tree.failure} retry={tree.reload} /> : <p class="dim loading" role="status">{t("loading")}</p>;
  const { sets, counts } = tree.data;
  if (sets.length === 0) return <Empty title={t("biz.empty")}><p>{t("biz.emptyDo")}</p><Command text="gozzard topology apply -f shop.yaml" /></Empty>;

  const toggle = (key: string) => { const next = new Set(open); if (!next.delete(key)) next.add(key); setOpen(next); };
  const closedByDefault = sets.length > 20; // a large business begins with its sets
  const isOpen = (key: string) => open.has(key) !== (!closedByDefault && !key.includes("/"));
  return (
    <section class="card scroll" tabIndex={0} role="region" aria-label={t("biz.tab.tree")}>
      <table class="biz-tree">
        <thead><tr><th scope="col">{t("tree.node")}</th><th scope="col">{t("biz.size")}</th><th scope="col">{t("biz.states")}</th><th scope="col">{t("expr.title")}</th></tr></thead>
        <tbody>
          <tr><td><Text of={tree.data.name} /></td><td><Size p={counts.processes} i={sum(live?.biz)} /></td><td><States of={live?.biz} filter={`biz:${biz}`} /></td><td /></tr>
          {sets.map((s) => [
            <Node key={`s${s.id}`} level={1} name={s.name} note={tOf("tree.env.", String(s.env))} open={isOpen(String(s.id))} onToggle={() => toggle(String(s.id))}
              size={<Size p={s.counts.processes} i={sum(live?.sets.get(s.name))} />} states={live?.sets.get(s.name)}
              filter={placeFilter(biz, s.name)} expression={[s.name, "*", "*", "*", "*"]} />,
            ...(isOpen(String(s.id)) ? s.modules.map((m) => {
              const key = `${s.id}/${m.id}`;
              return [
                <Node key={key} level={2} name={m.name} note={t("tree.services", { n: m.services })} open={isOpen(key)} onToggle={m.counts.processes ? () => toggle(key) : undefined}
                  size={<Size p={m.counts.processes} i={liveOf(live, s.name, m.name)} />} states={live?.modules.get(moduleKey(s.name, m.name))}
                  filter={placeFilter(biz, s.name, m.name)} expression={[s.name, m.name, "*", "*", "*"]} />,
                isOpen(key) && <Module key={`${key}+`} biz={biz} set={s.name} id={m.id} module={m.name} version={version} />,
              ];
            }) : []),
          ])}
        </tbody>
      </table>
    </section>
  );
}

const liveOf = (live: LiveCounts | undefined, set: string, module: string) => (live ? sum(live.modules.get(moduleKey(set, module))) : undefined);

/** The filter of the page of processes for a place. A name with a comma cannot be written there. */
function placeFilter(biz: number, set: string, module?: string): string | undefined {
  if (/[,"*?]/.test(set + (module ?? ""))) return undefined;
  return formatFilter({ ...emptyFilter(), bizs: [String(biz)], sets: [set], modules: module ? [module] : [] });
}

interface NodeProps {
  level: number;
  name: string;
  note?: string;
  open?: boolean;
  onToggle?: () => void;
  size?: preact.ComponentChildren;
  states?: StateCounts;
  filter?: string;
  expression: string[];
}

function Node({ level, name, note, open, onToggle, size, states, filter, expression }: NodeProps) {
  return (
    <tr>
      <td class={`biz-level-${level}`}>
        {onToggle ? <Button kind="quiet" class="biz-twist" aria-expanded={open} aria-label={t(open ? "tree.collapse" : "tree.expand", { name: plain(name) })} onClick={onToggle}>{open ? "▾" : "▸"}</Button> : <span class="biz-twist" />}
        <Text of={name} /> {note && <span class="dim">{note}</span>}
      </td>
      <td>{size}</td>
      <td><States of={states} filter={filter} /></td>
      <td><Button kind="quiet" onClick={() => setQuery({ e: joinExpression(expression) })}>{t("tree.match")}</Button></td>
    </tr>
  );
}

/** The services and processes of a module, read when it is opened. */
function Module({ biz, set, module, id, version }: { biz: number; set: string; module: string; id: number; version: number }) {
  const page = useLoad((s) => get<ProcessPage>("/processes", { biz, module: id, limit: mostProcesses }, s), [biz, id, version], readEvery);
  if (!page.data) return <tr><td class="biz-level-3 dim" colSpan={4}>{page.failure ? <Problem of={page.failure} retry={page.reload} /> : t("loading")}</td></tr>;
  const services = group(page.data.processes);
  if (services.size === 0) return <tr><td class="biz-level-3 dim" colSpan={4}>{t("tree.none")}</td></tr>;
  return (
    <>
      {[...services].map(([name, processes]) => [
        <Node key={`v${name}`} level={3} name={name} expression={[set, module, name, "*", "*"]} states={states([...processes.values()].flat())}
          size={<Size p={processes.size} i={[...processes.values()].flat().length} />} />,
        ...[...processes].map(([process, list]) => <ProcessRow key={`p${process}`} list={list} expression={[set, module, name, list[0].topology?.alias ?? "*", String(process)]} />),
      ])}
      {page.data.next && <tr><td class="biz-level-3 dim" colSpan={4}>{t("tree.more", { n: mostProcesses, all: page.data.count })}</td></tr>}
    </>
  );
}

function ProcessRow({ list, expression }: { list: Process[]; expression: string[] }) {
  const first = list[0];
  return (
    <tr>
      <td class="biz-level-4"><span class="biz-twist" /><a href={href(`/process/${encodeURIComponent(first.namespace)}/${encodeURIComponent(first.name)}`)}><Text of={first.topology?.alias ?? first.name} /></a> <span class="dim">{first.topology?.process} · {first.host.cloud}:{first.host.ip}</span></td>
      <td><Size p={1} i={list.length} /></td>
      <td>{list.length === 1 ? <State of={first.state} /> : <States of={states(list)} />}</td>
      <td><Button kind="quiet" onClick={() => setQuery({ e: joinExpression(expression) })}>{t("tree.match")}</Button></td>
    </tr>
  );
}

function states(list: Process[]): StateCounts {
  const out: StateCounts = {};
  for (const p of list) out[p.state] = (out[p.state] ?? 0) + 1;
  return out;
}

/** Instances by service and process. */
function group(list: Process[]): Map<string, Map<number, Process[]>> {
  const out = new Map<string, Map<number, Process[]>>();
  for (const p of list) {
    const service = p.topology?.service_name ?? "";
    const processes = out.get(service) ?? new Map<number, Process[]>();
    out.set(service, processes);
    const id = p.topology?.process ?? 0;
    processes.set(id, [...(processes.get(id) ?? []), p]);
  }
  return out;
}
