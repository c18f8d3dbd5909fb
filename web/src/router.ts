// The address of the page. It always holds the view, so that a link shows the same.
import { signal } from "@preact/signals";

const base = "/console";

export interface Place {
  path: string; // without /console, such as /processes
  query: URLSearchParams;
}

function read(): Place {
  const path = location.pathname.startsWith(base) ? location.pathname.slice(base.length) : location.pathname;
  return { path: path === "" ? "/" : path, query: new URLSearchParams(location.search) };
}

export const place = signal<Place>(read());

/** Set by a page with unsaved changes: it is called with the address instead of leaving the page. */
export const guard: { leave: ((address: string) => void) | null } = { leave: null };

let shown = location.pathname + location.search; // the address of what is on screen

addEventListener("popstate", () => {
  const to = location.pathname + location.search;
  if (guard.leave && read().path !== place.value.path) {
    history.pushState(null, "", shown);
    guard.leave(to);
    return;
  }
  place.value = read();
  shown = to;
});

/** The address of a view, for links. Empty values are left out. */
export function href(path: string, query?: Record<string, string | number | undefined>): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(query ?? {})) if (v !== undefined && v !== "") q.set(k, String(v));
  const text = q.toString();
  return base + path + (text ? `?${text}` : "");
}

/** Goes to an address made by href. */
export function go(address: string, replace = false): void {
  const path = address.split("?")[0];
  if (guard.leave && path !== base + place.value.path) return guard.leave(address);
  if (replace) history.replaceState(null, "", address);
  else if (address !== location.pathname + location.search) history.pushState(null, "", address);
  const before = place.value.path;
  place.value = read();
  shown = location.pathname + location.search;
  if (!replace && before !== place.value.path) scrollTo(0, 0);
}

/** Changes values of the query and stays on the page. An empty value is removed. */
export function setQuery(changes: Record<string, string | undefined>, replace = true): void {
  const q = new URLSearchParams(place.value.query);
  for (const [k, v] of Object.entries(changes)) {
    if (v === undefined || v === "") q.delete(k);
    else q.set(k, v);
  }
  const text = q.toString();
  go(base + place.value.path + (text ? `?${text}` : ""), replace);
}

/** Lets links of the console change the view without loading the page again. */
export function followLinks(): void {
  document.addEventListener("click", (e) => {
    if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    const link = (e.target as Element).closest?.("a");
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (link.pathname !== base && !link.pathname.startsWith(base + "/")) return;
    e.preventDefault();
    go(link.pathname + link.search);
  });
}
