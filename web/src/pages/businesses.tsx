// The businesses, with live counts.
import { useMemo } from "preact/hooks";
import { get, may } from "../api.ts";
import type { Business, BusinessList, Tree } from "../api-types.ts";
import { beat, table } from "../live/stream.ts";
import { href, place, setQuery } from "../router.ts";
import { Command, Empty, Moment, PageHead, Problem, Text } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { number, t, tOf } from "../words.ts";
import { Size, States } from "./business-counts.tsx";
import { liveCounts, sum, type LiveCounts } from "./business-model.ts";

const readEvery = 15_000;
const mostTrees = 50; // how many businesses are counted by the server too

export default function Businesses() {
  beat.value;
  const fleet = table.value;
  const list = useLoad((s) => get<BusinessList>("/topology", undefined, s), [], readEvery);
  const counts = useMemo(() => (fleet ? liveCounts(fleet) : new Map<number, LiveCounts>()), [fleet, beat.value]);
  const words = (place.value.query.get("q") ?? "").toLowerCase();
  const shown = list.data?.businesses.filter((b) => !words || b.name.toLowerCase().includes(words) || String(b.biz) === words) ?? [];
  const trees = useLoad(shown.length ? (s) => readTrees(shown.slice(0, mostTrees), s) : undefined, [shown.map((b) => `${b.biz}:${b.version}`).join()], readEvery);

  return (
    <div class="stack">
      <PageHead title={t("biz.title")}>{may("topology") && <a class="button" href={href("/businesses/new")}>{t("biz.new")}</a>}</PageHead>
      {list.failure && <Problem of={list.failure} retry={list.reload} />}
      {!list.data && !list.failure && <p class="dim loading" role="status">{t("loading")}</p>}
      {list.data?.count === 0 && <Nothing />}
      {!!list.data?.count && (
        <>
          {list.data.count > 5 && <input type="search" class="biz-find" aria-label={t("biz.find")} placeholder={t("biz.find")} value={words} onInput={(e) => setQuery({ q: e.currentTarget.value })} />}
          <div class="card scroll stacks" tabIndex={0} role="region" aria-label={t("biz.title")}>
            <table class="biz-list">
              <thead><tr>{(["biz.name", "biz.id", "biz.size", "biz.states", "biz.version", "biz.source", "biz.since"] as const).map((w) => <th key={w} scope="col">{t(w)}</th>)}</tr></thead>
              <tbody>{shown.map((b) => <Row key={b.biz} of={b} live={counts.get(b.biz)} tree={trees.data?.get(b.biz)} />)}</tbody>
            </table>
          </div>
        </>
      )}
    </div>
  );
}

async function readTrees(list: Business[], signal: AbortSignal): Promise<Map<number, Tree>> {
  const out = new Map<number, Tree>();
  for (const b of list) out.set(b.biz, await get<Tree>(`/topology/${b.biz}/tree`, undefined, signal));
  return out;
}

function Nothing() {
  return (
    <Empty title={t("biz.none")}>
      <p>{t("biz.noneDo")}</p>
      <Command text="gozzard topology apply -f shop.yaml" />
      {may("topology") && <a class="button button-main" href={href("/businesses/new")}>{t("biz.new")}</a>}
    </Empty>
  );
}

function Row({ of: b, live, tree }: { of: Business; live?: LiveCounts; tree?: Tree }) {
  return (
    <tr>
      <td><a href={href(`/businesses/${b.biz}`)}><Text of={b.name || String(b.biz)} /></a></td>
      <td data-label={t("biz.id")}>{b.biz}</td>
      <td><Size p={tree?.counts.processes} i={sum(live?.biz)} /></td>
      <td><States of={live?.biz} filter={`biz:${b.biz}`} /></td>
      <td data-label={t("biz.version")}>{number(b.version)}</td>
      <td>{tOf("biz.source.", b.source)}</td>
      <td><Moment at={b.at} /></td>
    </tr>
  );
}
