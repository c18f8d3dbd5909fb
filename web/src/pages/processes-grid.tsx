// The frame of the table of processes: its header, and the scrolled area into which the rows are drawn.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { table } from "../live/stream.ts";
import { go } from "../router.ts";
import { t } from "../words.ts";
import { processLink, type Column } from "./processes-columns.ts";
import type { Control } from "./processes-control.ts";
import type { Order } from "./processes-view.ts";

const boxWidth = 36;

/** The narrowest width of a row, in pixels, by the widths of its columns. */
function narrowest(columns: Column[], selectable: boolean): number {
  return columns.reduce((sum, c) => sum + Number(/\d+/.exec(c.width)?.[0] ?? 80), selectable ? boxWidth : 0);
}

export function Grid({ control, columns, order, selectable, onSort }: { control: Control; columns: Column[]; order: Order; selectable: boolean; onSort: (c: Column) => void }) {
  const scroller = useRef<HTMLDivElement>(null), spacer = useRef<HTMLDivElement>(null), head = useRef<HTMLDivElement>(null);
  useEffect(() => control.attach(scroller.current!, spacer.current!, head.current!), [control]);
  useLayoutEffect(() => {
    const style = scroller.current!.style;
    style.setProperty("--ps-columns", [...(selectable ? [`${boxWidth}px`] : []), ...columns.map((c) => c.width)].join(" "));
    style.setProperty("--ps-width", `${narrowest(columns, selectable)}px`);
  }, [columns, selectable]);

  const { matches, picked } = control.counts.value;
  return (
    <div ref={scroller} class="ps-grid" role="grid" tabIndex={0} aria-label={t("ps.table")} aria-rowcount={matches + 1} aria-colcount={columns.length + (selectable ? 1 : 0)}
      aria-multiselectable={selectable ? true : undefined} onKeyDown={(e) => onKey(e, control)} onClick={(e) => onClick(e, control)}>
      <div ref={head} class="ps-head" role="rowgroup">
        <div class="ps-row" role="row" aria-rowindex={1}>
          {selectable && (
            <span class="ps-cell ps-box" role="columnheader">
              <input type="checkbox" aria-label={t("ps.selectAll", { n: matches })} checked={picked > 0 && picked >= matches} ref={(box) => { if (box) box.indeterminate = picked > 0 && picked < matches; }}
                onChange={() => (picked >= matches && picked > 0 ? control.pickNone() : control.pickAll())} />
            </span>
          )}
          {columns.map((c) => (
            <span key={c.key} role="columnheader" class={`ps-cell ${c.number ? "ps-number" : ""}`} aria-sort={c.sort && order.key === c.sort ? (order.down ? "descending" : "ascending") : c.sort ? "none" : undefined}>
              {c.sort ? <button type="button" class="ps-sort" title={c.hint && t(c.hint)} onClick={() => onSort(c)}>{t(c.word)}{order.key === c.sort && <span aria-hidden="true">{order.down ? " ↓" : " ↑"}</span>}</button>
                : <span class="ps-sort">{t(c.word)}</span>}
            </span>
          ))}
        </div>
      </div>
      <div ref={spacer} class="ps-rows" role="rowgroup" />
    </div>
  );
}

/** The keys of the table; letters are actions of the page. */
function onKey(e: KeyboardEvent, control: Control): void {
  if (e.target !== e.currentTarget || e.ctrlKey || e.metaKey || e.altKey) return;
  const steps: Record<string, () => void> = {
    ArrowDown: () => control.move(1, e.shiftKey),
    ArrowUp: () => control.move(-1, e.shiftKey),
    PageDown: () => control.move(control.page(), e.shiftKey),
    PageUp: () => control.move(-control.page(), e.shiftKey),
    Home: () => control.go(0, e.shiftKey),
    End: () => control.go(control.view.ids.length - 1, e.shiftKey),
    " ": () => control.pick(control.current, e.shiftKey),
    Enter: () => openRow(control),
  };
  const step = steps[e.key];
  if (!step) return;
  e.preventDefault();
  step();
}

/** Goes to the process of the row of the keyboard. */
export function openRow(control: Control): void {
  const fleet = table.value, id = control.at();
  if (fleet && id >= 0 && fleet.has(id)) go(processLink(fleet, id));
}

/** A click on a row makes it the row of the keyboard; on its box it selects. */
function onClick(e: MouseEvent, control: Control): void {
  const target = e.target as Element, index = control.indexOf(target);
  if (index < 0 || target.closest("a")) return;
  (e.currentTarget as HTMLElement).focus({ preventScroll: true }); // not the box, so that the keys of the page work
  if (target.closest(".ps-box") || e.ctrlKey || e.metaKey) control.pick(index, e.shiftKey);
  else if (e.shiftKey) control.pick(index, true);
  else control.go(index);
}
