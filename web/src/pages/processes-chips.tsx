// Chips that narrow the table, each with the number of rows that it would show.
import { useState } from "preact/hooks";
import { stateOrder, type Filter } from "../live/filter.ts";
import { setQuery } from "../router.ts";
import { plain } from "../ui/format.ts";
import { State, Text } from "../ui/kit.tsx";
import { number, t, type Word } from "../words.ts";
import type { Facets } from "./processes-facets.ts";
import { asPattern, toggle, toggleManaged, type Facet } from "./processes-filter.ts";

const lists: { facet: Exclude<Facet, "states">; word: Word }[] = [
  { facet: "bizs", word: "ps.chip.biz" }, { facet: "sets", word: "ps.chip.set" }, { facet: "modules", word: "ps.chip.module" },
  { facet: "hosts", word: "ps.chip.host" }, { facet: "clouds", word: "ps.chip.cloud" },
];

export function Chips({ text, filter, facets }: { text: string; filter: Filter; facets: Facets | null }) {
  if (!facets) return null;
  const to = (f: string) => setQuery({ f });
  const states = stateOrder.filter((s) => facets.states.get(s) || filter.states.includes(s));
  return (
    <div class="ps-chips" role="group" aria-label={t("ps.chips")}>
      {states.map((s) => (
        <button key={s} type="button" class="chip" aria-pressed={filter.states.includes(s)} onClick={() => to(toggle(text, "states", s))}>
          <State of={s} /> {number(facets.states.get(s) ?? 0)}
        </button>
      ))}
      {[true, false].map((on) => (facets.managed[on ? 1 : 0] > 0 || filter.managed === on) && (
        <button key={String(on)} type="button" class="chip" aria-pressed={filter.managed === on} onClick={() => to(toggleManaged(text, on))}>
          {t(on ? "ps.chip.managedYes" : "ps.chip.managedNo")} {number(facets.managed[on ? 1 : 0])}
        </button>
      ))}
      {lists.map(({ facet, word }) => (facets[facet].size > 1 || filter[facet].length > 0 || (facet !== "clouds" && facets[facet].size > 0)) && (
        <FacetList key={facet} label={t(word)} chosen={filter[facet]} values={facets[facet]} onToggle={(v) => to(toggle(text, facet, v))} />
      ))}
    </div>
  );
}

const most = 50;

function FacetList({ label, chosen, values, onToggle }: { label: string; chosen: string[]; values: Map<string, number>; onToggle: (v: string) => void }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="ps-facet" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}
      onKeyDown={(e) => { if (e.key === "Escape" && open) { setOpen(false); e.currentTarget.querySelector("summary")?.focus(); e.stopPropagation(); } }}
      onFocusOut={(e) => { if (e.relatedTarget instanceof Node && !e.currentTarget.contains(e.relatedTarget)) setOpen(false); }}>
      <summary class="chip" title={chosen.length > 1 ? chosen.map(plain).join(", ") : undefined}>
        {label}{chosen.length ? <>{t("mark.colon")}<Text of={chosen.length > 1 ? `${chosen[0]} +${chosen.length - 1}` : chosen[0]} class="one-line" /></> : ` ${number(values.size)}`}
      </summary>
      {open && <Values label={label} chosen={chosen} values={values} onToggle={onToggle} />}
    </details>
  );
}

function Values({ label, chosen, values, onToggle }: { label: string; chosen: string[]; values: Map<string, number>; onToggle: (v: string) => void }) {
  const [text, setText] = useState("");
  const all = new Map(chosen.filter((c) => ![...values.keys()].some((v) => asPattern(v) === c)).map((c): [string, number] => [c, 0]));
  for (const [v, n] of values) all.set(v, n);
  const found = [...all].filter(([v]) => v.toLowerCase().includes(text.toLowerCase())).sort((a, b) => b[1] - a[1]);
  return (
    <div class="ps-list" role="group" aria-label={label}>
      {all.size > 8 && <input type="text" aria-label={t("ps.chip.narrow")} placeholder={t("ps.chip.narrow")} value={text} onInput={(e) => setText(e.currentTarget.value)} />}
      {found.slice(0, most).map(([v, n]) => (
        <label key={v}><input type="checkbox" checked={chosen.includes(asPattern(v))} onChange={() => onToggle(v)} /> <Text of={v} class="one-line" /> <span class="dim">{number(n)}</span></label>
      ))}
      {found.length > most && <p class="hint">{t("ps.chip.more", { n: found.length - most })}</p>}
      {found.length === 0 && <p class="hint">{t("ps.chip.none")}</p>}
    </div>
  );
}
