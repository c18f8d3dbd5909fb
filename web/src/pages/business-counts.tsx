// Numbers of a business: instances by state, and processes beside instances where both differ.
import { href } from "../router.ts";
import { stateOrder } from "../live/filter.ts";
import { State } from "../ui/kit.tsx";
import { number, t, tOf } from "../words.ts";
import type { StateCounts } from "./business-model.ts";

/** Each number leads to its rows; filter says which rows of the page of processes they are. */
export function States({ of, filter }: { of: StateCounts | undefined; filter?: string }) {
  const list = stateOrder.filter((s) => of?.[s]);
  if (list.length === 0) return <span class="dim">-</span>;
  return (
    <span class="biz-states">
      {list.map((s) => {
        const shown = <><State of={s} bare /> {number(of![s])}</>;
        return filter ? <a key={s} href={href("/processes", { f: `${filter} state:${s}` })} title={tOf("state.", s)}>{shown}</a> : <span key={s} title={tOf("state.", s)}>{shown}</span>;
      })}
    </span>
  );
}

/** "N processes, M instances", or only the first where both are the same. */
export function Size({ p, i }: { p?: number; i?: number }) {
  if (p === undefined) return <>{t("biz.instances", { i: i ?? 0 })}</>;
  if (i === undefined || i === p) return <>{t("biz.processes", { p })}</>;
  return <>{t("biz.both", { p, i })}</>;
}
