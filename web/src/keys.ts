// Keys of the keyboard, and the actions of the palette. A page adds its own while it is shown.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

export interface Action {
  label: string;
  keys?: string; // such as "g p", "/" or "Ctrl-K"
  run: () => void;
}

export const shared = signal<Action[]>([]); // of every page
export const own = signal<Action[]>([]); // of the page that is shown

/** Adds actions while a page is shown. */
export function useActions(actions: Action[], keys: unknown[]): void {
  useEffect(() => {
    own.value = [...own.value, ...actions];
    return () => { own.value = own.value.filter((a) => !actions.includes(a)); };
  }, keys);
}

const typing = (e: Element | null) => !!e?.closest("input, textarea, select, [contenteditable]");

let before = ""; // the first key of two, such as g
let beforeAt = 0;

/** Calls the action of a key. */
export function onKey(e: KeyboardEvent): void {
  if (e.defaultPrevented || e.isComposing) return;
  const control = e.ctrlKey || e.metaKey;
  if (control && e.key.toLowerCase() === "k") return run("Ctrl-K", e);
  if (control || e.altKey || typing(document.activeElement) || document.querySelector("dialog[open]")) return;
  if (e.key.length !== 1) return;

  const two = Date.now() - beforeAt < 1200 ? `${before} ${e.key}` : "";
  if (two && find(two)) {
    before = "";
    return run(two, e);
  }
  before = e.key;
  beforeAt = Date.now();
  run(e.key, e);
}

const find = (keys: string) => [...own.value, ...shared.value].find((a) => a.keys === keys);

function run(keys: string, e: KeyboardEvent): void {
  const action = find(keys);
  if (!action) return;
  e.preventDefault();
  action.run();
}
