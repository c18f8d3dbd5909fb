// The table of all processes: filter, sort, select, and act on what is selected.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { may } from "../api.ts";
import { useActions } from "../keys.ts";
import { matching, parseFilter, type Filter, type SortKey } from "../live/filter.ts";
import { table } from "../live/stream.ts";
import { href, place, setQuery } from "../router.ts";
import { openAction, type ActionName } from "../ui/action.tsx";
import { plain } from "../ui/format.ts";
import { Button, Command, Empty, PageHead } from "../ui/kit.tsx";
import { language, number, t, tOf } from "../words.ts";
import { Chips } from "./processes-chips.tsx";
import { choose, chosen, columns, type Column } from "./processes-columns.ts";
import { Control } from "./processes-control.ts";
import { faultsOf, withoutOne } from "./processes-filter.ts";
import { Grid, openRow } from "./processes-grid.tsx";
import type { Order } from "./processes-view.ts";

/** The order in the address: a column, with - for the largest first. */
function readOrder(text: string): Order {
  const key = text.replace(/^-/, "");
  const known = columns.some((c) => c.sort === key);
  return { key: known ? key as SortKey : "name", down: known && text.startsWith("-") };
}

export default function Processes() {
  const text = place.value.query.get("f") ?? "", sort = place.value.query.get("sort") ?? "";
  const [control] = useState(() => new Control());
  const filter = useMemo(() => parseFilter(text), [text]);
  const order = useMemo(() => readOrder(sort), [sort]);
  const shown = useMemo(() => columns.filter((c) => chosen.value.includes(c.key)), [chosen.value, language.value]);
  const selectable = may("operate") || may("define");
  useLayoutEffect(() => {
    Object.assign(control, { filter, order, columns: shown, selectable });
    control.schedule();
  }, [filter, order, shown, selectable]);
  useKeys(control, selectable);

  const fleet = table.value, { all, matches } = control.counts.value;
  const onSort = (c: Column) => {
    const down = order.key === c.sort ? !order.down : !!c.down;
    setQuery({ sort: c.sort === "name" && !down ? "" : `${down ? "-" : ""}${c.sort}` });
  };
  if (fleet && fleet.count === 0 && all === 0) return <Nothing />;
  return (
    <div class="ps-page">
      <PageHead title={t("nav.processes")}>{may("define") && <a class="button" href={href("/register")}>{t("ps.register")}</a>}</PageHead>
      <FilterBox text={text} states={fleet?.states.filter(Boolean) ?? []} control={control} />
      <Chips text={text} filter={filter} facets={control.facets.value} />
      <Bar control={control} selectable={selectable} />
      <Grid control={control} columns={shown} order={order} selectable={selectable} onSort={onSort} />
      {fleet && matches === 0 && all > 0 && <NoneFit filter={filter} />}
    </div>
  );
}

function useKeys(control: Control, selectable: boolean): void {
  const focus = () => document.querySelector<HTMLElement>(".ps-grid")?.focus({ preventScroll: true });
  useActions([
    { label: t("ps.key.down"), keys: "j", run: () => { focus(); control.move(1); } },
    { label: t("ps.key.up"), keys: "k", run: () => { focus(); control.move(-1); } },
    { label: t("ps.key.open"), keys: "Enter", run: () => openRow(control) },
    ...(selectable ? [
      { label: t("ps.key.select"), keys: "x", run: () => { focus(); control.pick(control.current); } },
      { label: t("ps.key.range"), keys: "X", run: () => { focus(); control.pick(control.current, true); } },
      { label: t("ps.key.all"), keys: "a", run: () => { focus(); control.pickAll(); } },
    ] : []),
    ...(may("operate") ? [{ label: t("ps.key.restart"), keys: "r", run: () => act(control, "restart") }] : []),
  ], [control, selectable, language.value]);
}

/** Acts on what is selected, or on the row of the keyboard if nothing is. */
function act(control: Control, action: ActionName): void {
  const fleet = table.value;
  if (!fleet) return;
  control.picked.settle(fleet);
  if (control.picked.count === 0) {
    if (control.at() < 0) return;
    control.pick(control.current);
  }
  openAction({ action, selection: control.picked.selection(fleet) });
}

function FilterBox({ text, states, control }: { text: string; states: string[]; control: Control }) {
  const [typed, setTyped] = useState(text);
  const [help, setHelp] = useState(false);
  const sent = useRef(text);
  useLayoutEffect(() => { if (text !== sent.current) { sent.current = text; setTyped(text); } }, [text]);
  const type = (value: string) => {
    setTyped(value);
    sent.current = value.trim();
    setQuery({ f: value.trim() });
  };

  const faults = faultsOf(text, states).map((f) => t(f.word, f.values));
  if (control.expressionFault.value) faults.push(t("ps.fault.expression", { why: control.expressionFault.value }));
  return (
    <>
      <div class="ps-filter" role="search">
        <input type="search" aria-label={t("ps.filter")} placeholder={t("ps.filterHint")} value={typed} spellcheck={false} autoComplete="off" maxLength={4000}
          aria-invalid={faults.length ? true : undefined} aria-describedby={faults.length ? "ps-faults" : undefined}
          onInput={(e) => type(e.currentTarget.value)}
          onKeyDown={(e) => { if (e.key === "ArrowDown" || (e.key === "Enter" && !e.isComposing)) { e.preventDefault(); document.querySelector<HTMLElement>(".ps-grid")?.focus(); control.go(Math.max(0, control.current)); } }} />
        {text && <Button kind="quiet" onClick={() => type("")}>{t("ps.clear")}</Button>}
        <Button kind="quiet" aria-expanded={help} onClick={() => setHelp(!help)}>{t("ps.help")}</Button>
        <ColumnChooser />
      </div>
      {faults.length > 0 && <div id="ps-faults" class="fault" role="alert">{faults.map((f) => <p key={f}>{plain(f)}</p>)}</div>}
      {help && <FilterHelp states={states} />}
    </>
  );
}

function FilterHelp({ states }: { states: string[] }) {
  const rows: [string, string][] = [
    ["nginx 10.0.0", t("ps.help.words")], [`state:failed,crash_loop`, `${t("ps.help.state")}${t("mark.colon")}${states.join(", ")}`], ["name:web* ns:shop", t("ps.help.names")],
    ["host:10.0.0.1 cloud:0", t("ps.help.hosts")], ["biz:2 set:gz module:web", t("ps.help.places")], ["managed:no stale:yes", t("ps.help.flags")],
    ["[front, back].*.*.nginx.*", t("ps.help.expression")], ['biz:"My shop"', t("ps.help.quotes")],
  ];
  return <dl class="ps-help">{rows.map(([k, v]) => [<dt key={k}>{k}</dt>, <dd key={`${k} text`}>{v}</dd>])}</dl>;
}

function ColumnChooser() {
  return (
    <details class="ps-facet ps-facet-end" onKeyDown={(e) => { if (e.key === "Escape") e.currentTarget.open = false; }}
      onFocusOut={(e) => { if (e.relatedTarget instanceof Node && !e.currentTarget.contains(e.relatedTarget)) e.currentTarget.open = false; }}>
      <summary class="button button-quiet">{t("ps.columns")} </summary>
      <div class="ps-list" role="group" aria-label={t("ps.columns")}>
        {columns.map((c) => <label key={c.key}><input type="checkbox" checked={chosen.value.includes(c.key)} disabled={c.key === "name"} onChange={(e) => choose(c.key, e.currentTarget.checked)} /> <span>{t(c.word)}</span></label>)}
      </div>
    </details>
  );
}

const offered: ActionName[] = ["restart", "start", "stop", "reload", "kill", "manage", "unmanage"];

/** How many rows there are and are selected, and what can be done with them. */
function Bar({ control, selectable }: { control: Control; selectable: boolean }) {
  const { matches, all, picked, held, lost } = control.counts.value;
  const actions: ActionName[] = [...(may("operate") ? offered : []), ...(may("define") ? ["unregister" as const] : [])];
  return (
    <div class="ps-bar">
      <span role="status">{matches === all ? t("ps.count", { n: all }) : t("ps.counted", { n: matches, all })}{picked > 0 && <> · <strong>{t("ps.selected", { n: picked })}</strong></>}</span>
      {lost && <span class="fault" role="alert">{t("ps.lostSelection")}</span>}
      {selectable && picked < matches && <Button kind="quiet" onClick={() => control.pickAll()}>{t("ps.selectAll", { n: matches })}</Button>}
      {picked > 0 && <Button kind="quiet" onClick={() => control.pickNone()}>{t("ps.selectNone")}</Button>}
      {actions.length > 0 && (
        <div class="row" role="group" aria-label={t("ps.selection")}>
          {actions.map((a) => <Button key={a} disabled={picked === 0} kind={a === "kill" || a === "unregister" ? "danger" : undefined} onClick={() => act(control, a)}>{tOf("action.", a)}</Button>)}
        </div>
      )}
      {held && <span class="dim ps-bar-end" title={t("ps.heldWhy")}>{t("ps.held")}</span>}
    </div>
  );
}

/** Nothing fits: says which part of the filter to leave out. */
function NoneFit({ filter }: { filter: Filter }) {
  const fleet = table.value;
  const parts = fleet && !filter.expression ? withoutOne(filter).map((w) => ({ part: w.part, n: matching(fleet, w.rest).length })).filter((w) => w.n > 0) : [];
  return (
    <Empty title={t("ps.none.title")}>
      {parts.length > 0 && <p>{t("ps.none.text")} {parts.slice(0, 5).map((w) => t("ps.none.without", { part: plain(w.part), n: number(w.n) })).join(" · ")}</p>}
      <Button onClick={() => setQuery({ f: "" })}>{t("ps.clear")}</Button>
    </Empty>
  );
}

/** There is nothing yet: says what to do first. */
function Nothing() {
  const hosts = table.value?.hosts.ip.length ?? 0;
  return (
    <>
      <PageHead title={t("nav.processes")} />
      {may("define") || may("enrol") ? (
        <Empty title={t("ps.empty.title")}>
          <p>{t(hosts ? "ps.empty.text" : "ps.empty.host")}</p>
          <Command text={hosts ? "gozzard run --name web -- python3 -m http.server 9000" : "gozzard token create"} />
          {may("define") && hosts > 0 && <a class="button button-main" href={href("/register")}>{t("ps.register")}</a>}
        </Empty>
      ) : <Empty title={t("ps.empty.title")}><p>{t("ps.empty.rights")}</p></Empty>}
    </>
  );
}
