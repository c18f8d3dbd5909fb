// The plan of a change to a business.
import type { Applied, PlanItem } from "../api-types.ts";
import { Text } from "../ui/kit.tsx";
import { t, tOf } from "../words.ts";

const most = 200; // of each kind

export function PlanList({ of }: { of: Applied }) {
  const { added, changed, removed } = of.plan;
  if (added.length + changed.length + removed.length === 0) return <p role="status">{t("apply.same")}</p>;
  return (
    <div class="stack">
      <p role="status"><strong>{t("apply.plan", { added: added.length, changed: changed.length, removed: removed.length })}</strong></p>
      <ul class="biz-plan" tabIndex={0} aria-label={t("apply.plan", { added: added.length, changed: changed.length, removed: removed.length })}>
        <Items sign="+" word={t("apply.added")} list={added} />
        <Items sign="~" word={t("apply.changed")} list={changed} />
        <Items sign="-" word={t("apply.removed")} list={removed} />
      </ul>
    </div>
  );
}

function Items({ sign, word, list }: { sign: string; word: string; list: PlanItem[] }) {
  return (
    <>
      {list.slice(0, most).map((i) => (
        <li key={`${i.kind}${i.id}`} class={`biz-plan-${sign === "+" ? "added" : sign === "-" ? "removed" : "changed"}`}>
          <span aria-hidden="true">{sign}</span><span class="unseen">{word}</span> {tOf("plan.kind.", i.kind)} {i.id} <Text of={i.name} />
          {i.fields && <ul>{i.fields.map((f, n) => <li key={n}><Text of={f.slice(0, 2000)} class="mono" /></li>)}</ul>}
        </li>
      ))}
      {list.length > most && <li class="dim">{sign} {t("apply.morePlan", { n: list.length - most })}</li>}
    </>
  );
}
