// Ctrl-K: every page, every action of the page, and processes and hosts by name.
import { useMemo, useState } from "preact/hooks";
import { wholeName } from "./live/names.ts";
import { table } from "./live/stream.ts";
import { own, shared, type Action } from "./keys.ts";
import { go, href } from "./router.ts";
import { Dialog } from "./ui/kit.tsx";
import { plain } from "./ui/format.ts";
import { t } from "./words.ts";

const most = 12;

export function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const found = useMemo(() => find(text), [text, own.value, shared.value]);
  const chosen = Math.min(at, found.length - 1);

  const run = (a: Action | undefined) => {
    if (!a) return;
    onClose();
    setTimeout(a.run); // after the dialog is closed, so that the action may open another
  };
  const onKeyDown = (e: KeyboardEvent) => {
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (step) {
      e.preventDefault();
      setAt((chosen + step + found.length) % Math.max(found.length, 1));
    } else if (e.key === "Enter") {
      e.preventDefault();
      run(found[chosen]);
    }
  };

  return (
    <Dialog title={t("palette.title")} onClose={onClose}>
      <input type="text" list={undefined} role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={found.length ? `palette-${chosen}` : undefined}
        aria-label={t("palette.hint")} placeholder={t("palette.hint")} value={text} autoFocus
        onInput={(e) => { setText(e.currentTarget.value); setAt(0); }} onKeyDown={onKeyDown} />
      <ul id="palette-list" role="listbox" aria-label={t("palette.title")} class="palette">
        {found.map((a, i) => (
          <li key={i} id={`palette-${i}`} role="option" aria-selected={i === chosen} onClick={() => run(a)}>
            <span>{a.label}</span>{a.keys && <kbd>{a.keys}</kbd>}
          </li>
        ))}
        {found.length === 0 && <li role="option" aria-selected="false" aria-disabled="true" class="dim">{t("palette.nothing")}</li>}
      </ul>
    </Dialog>
  );
}

/** Actions first, then processes, then hosts. */
function find(text: string): Action[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (s: string) => words.every((w) => s.toLowerCase().includes(w));
  const out = [...own.value, ...shared.value].filter((a) => fits(a.label));
  const fleet = table.value;
  if (!fleet || words.length === 0) return out.slice(0, most);

  for (let i = 0; i < fleet.names.name.length && out.length < most; i++) {
    const label = wholeName(fleet, fleet.names.space[i], fleet.names.name[i]);
    if (fits(label) || fits(`${fleet.names.space[i]}/${fleet.names.name[i]}`)) out.push({ label: plain(label), run: () => go(href(`/process/${encodeURIComponent(fleet.names.space[i])}/${encodeURIComponent(fleet.names.name[i])}`)) });
  }
  for (let i = 0; i < fleet.hosts.ip.length && out.length < most; i++) {
    const label = `${fleet.hosts.cloud[i]}:${fleet.hosts.ip[i]}`;
    if (fits(label)) out.push({ label, run: () => go(href(`/hosts/${encodeURIComponent(fleet.hosts.agent[i])}`)) });
  }
  return out.slice(0, most);
}
