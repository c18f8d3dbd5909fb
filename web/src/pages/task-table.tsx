// The processes of a task as a table. Only the rows in view are drawn: a task may have 100,000.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Attempt } from "../api-types.ts";
import { wholeName } from "../live/names.ts";
import { table } from "../live/stream.ts";
import { href, place, setQuery } from "../router.ts";
import { Button, CopyButton, Text } from "../ui/kit.tsx";
import { ProcessName } from "../ui/process-name.tsx";
import { number, t, tOf } from "../words.ts";
import { countResults, hostList, hostText, resultOf, results, type Result } from "./task-model.ts";

const usualHeight = 28;
const shownHeight = 480;

/** The positions of the attempts that fit the chips and the words of the address. */
export function fitting(attempts: readonly Attempt[], result: string, words: string): number[] {
  const low = words.toLowerCase().split(/\s+/).filter(Boolean);
  const out: number[] = [];
  attempts.forEach((a, i) => {
    if (result && resultOf(a) !== result) return;
    if (low.length) {
      const text = `${hostText(a.host)} ${a.host.agent} ${a.namespace}/${a.name} ${wholeName(table.value, a.namespace, a.name)} ${a.message ?? ""} ${a.code ?? ""}`.toLowerCase();
      if (!low.every((w) => text.includes(w))) return;
    }
    out.push(i);
  });
  return out;
}

export function AttemptTable({ attempts, onRetry }: { attempts: readonly Attempt[]; onRetry?: (positions: number[]) => void }) {
  const result = place.value.query.get("result") ?? "";
  const words = place.value.query.get("q") ?? "";
  const found = useMemo(() => fitting(attempts, result, words), [attempts, result, words]);
  const counts = useMemo(() => countResults(attempts), [attempts]);
  const rows = useMemo(() => found.map((i) => attempts[i]), [found]);
  const failed = useMemo(() => found.filter((i) => attempts[i].verdict === "failed" && attempts[i].code !== "superseded"), [found]);
  const hosts = useMemo(() => new Set(rows.map((a) => hostText(a.host))).size, [rows]);
  const narrowed = result !== "" || words !== "";

  return (
    <section class="card">
      <h2>{t("task.list")}</h2>
      <div class="row task-filter">
        {results.filter((r) => counts[r] > 0 || r === result).map((r) => <ResultChip key={r} of={r} n={counts[r]} on={r === result} />)}
        <input type="search" aria-label={t("task.find")} placeholder={t("task.find")} value={words} onInput={(e) => setQuery({ q: e.currentTarget.value })} />
        <CopyButton text={() => hostList(rows)} label={t("task.copyHosts", { n: hosts })} />
        {onRetry && narrowed && failed.length > 0 && <Button onClick={() => onRetry(failed)}>{t("task.retryThese", { n: failed.length })}</Button>}
      </div>
      {rows.length === 0 ? <p class="dim">{t("task.nothing")}</p> : <Rows rows={rows} />}
    </section>
  );
}

function ResultChip({ of, n, on }: { of: Result; n: number; on: boolean }) {
  return <button type="button" class="chip" aria-pressed={on} onClick={() => setQuery({ result: on ? "" : of })}><ResultSign of={of} /> {number(n)}</button>;
}

/** A result as shape and word. */
export function ResultSign({ of }: { of: Result }) {
  return <span class={`result result-${of}`}><span class="result-shape" aria-hidden="true" />{tOf("result.", of)}</span>;
}

function Rows({ rows }: { rows: readonly Attempt[] }) {
  const [top, setTop] = useState(0);
  const [rowHeight, setRowHeight] = useState(usualHeight); // fonts and zoom change it
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const height = box.current?.querySelector<HTMLElement>("tr[aria-rowindex]")?.getBoundingClientRect().height;
    if (height && Math.abs(height - rowHeight) > 0.1) setRowHeight(height);
  });
  useEffect(() => { if (top > rows.length * rowHeight) { box.current!.scrollTop = 0; setTop(0); } }, [rows.length]);

  const first = Math.max(0, Math.floor(top / rowHeight) - 10);
  const last = Math.min(rows.length, first + Math.ceil(shownHeight / rowHeight) + 20);
  return (
    <div class="task-rows" ref={box} tabIndex={0} role="region" aria-label={t("task.list")} onScroll={(e) => setTop(e.currentTarget.scrollTop)}>
      <table aria-rowcount={rows.length + 1}>
        <thead><tr><th scope="col">{t("task.result")}</th><th scope="col">{t("tasks.host")}</th><th scope="col">{t("tasks.name")}</th><th scope="col">{t("task.action")}</th><th scope="col">{t("task.message")}</th></tr></thead>
        <tbody>
          {first > 0 && <tr class="task-space" aria-hidden="true"><td colSpan={5} style={{ height: first * rowHeight }} /></tr>}
          {rows.slice(first, last).map((a, i) => <Row key={first + i} of={a} at={first + i + 2} />)}
          {last < rows.length && <tr class="task-space" aria-hidden="true"><td colSpan={5} style={{ height: (rows.length - last) * rowHeight }} /></tr>}
        </tbody>
      </table>
    </div>
  );
}

function Row({ of: a, at }: { of: Attempt; at: number }) {
  return (
    <tr aria-rowindex={at}>
      <td><ResultSign of={resultOf(a)} /></td>
      <td>{a.host.agent ? <a href={href(`/hosts/${encodeURIComponent(a.host.agent)}`)}><Text of={hostText(a.host)} /></a> : <Text of={hostText(a.host)} />}</td>
      <td><a href={href(`/process/${encodeURIComponent(a.namespace)}/${encodeURIComponent(a.name)}`)}><ProcessName space={a.namespace} name={a.name} /></a></td>
      <td>{tOf("action.", a.action)}</td>
      <td class="one-line">{a.code && a.verdict !== "done" && <code>{a.code}</code>} <Text of={a.message ?? ""} />{a.forced && <span class="dim"> {t("task.forced")}</span>}</td>
    </tr>
  );
}
