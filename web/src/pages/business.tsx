// One business: its tree with live counts, expressions, drift, and its document.
import { useState } from "preact/hooks";
import { get, may } from "../api.ts";
import type { BusinessList } from "../api-types.ts";
import { href, place } from "../router.ts";
import { Button, Empty, Moment, PageHead, Problem, Tabs, Text } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { t, tOf } from "../words.ts";
import { Apply } from "./business-apply.tsx";
import { DocumentTab } from "./business-document.tsx";
import { Drift } from "./business-drift.tsx";
import { Builder } from "./business-match.tsx";
import { RemoveDialog } from "./business-remove.tsx";
import { TreeTable } from "./business-tree.tsx";

const readEvery = 15_000;
const tabs = ["tree", "drift", "document", "apply"] as const;

export default function BusinessPage({ params }: { params: Record<string, string> }) {
  if (params.biz === "new") return <div class="stack"><PageHead title={t("biz.new")}><a class="button" href={href("/businesses")}>{t("biz.back")}</a></PageHead><Apply biz={0} version={0} /></div>;
  return <One biz={Number(params.biz) || 0} />;
}

function One({ biz }: { biz: number }) {
  const list = useLoad((s) => get<BusinessList>("/topology", undefined, s), [biz], readEvery);
  const [removing, setRemoving] = useState(false);
  const found = list.data?.businesses.find((b) => b.biz === biz);
  if (!list.data) return list.failure ? <Problem of={list.failure} retry={list.reload} /> : <p class="dim loading" role="status">{t("loading")}</p>;
  if (!found) return <Empty title={t("biz.missing")}><a class="button" href={href("/businesses")}>{t("biz.back")}</a></Empty>;

  const shown = tabs.filter((k) => k !== "apply" || may("topology"));
  const at = shown.find((k) => k === place.value.query.get("tab")) ?? "tree";
  const self = `/businesses/${biz}`;
  return (
    <div class="stack">
      <PageHead title={<Text of={found.name || String(biz)} />}>
        <span class="dim">{t("biz.id")} {biz} · {t("biz.version")} {found.version} · {tOf("biz.source.", found.source)} · <Moment at={found.at} /></span>
        <a class="button" href={href("/businesses")}>{t("biz.back")}</a>
        {may("topology") && <Button kind="danger" onClick={() => setRemoving(true)}>{t("remove.button")}</Button>}
      </PageHead>
      <Tabs label={t("biz.tabs")} at={at} items={shown.map((k) => ({ key: k, label: t(`biz.tab.${k}`), href: href(self, { tab: k === "tree" ? "" : k }) }))} />
      {at === "tree" && <><Builder biz={biz} version={found.version} /><TreeTable biz={biz} version={found.version} /></>}
      {at === "drift" && <Drift biz={biz} version={found.version} />}
      {at === "document" && <DocumentTab biz={biz} version={found.version} />}
      {at === "apply" && <Apply biz={biz} version={found.version} source={found.source} onApplied={list.reload} />}
      {removing && <RemoveDialog of={found} onClose={() => setRemoving(false)} />}
    </div>
  );
}
