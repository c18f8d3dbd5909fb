// Names of processes as people know them. A process of a business is recorded as GSEKIT_BIZ_7/web_1: the number of the
// business, its name in the document, and which of the equal ones of its host it is.
import type { Table } from "./table.ts";

const businessSpace = /^GSEKIT_BIZ_(\d{1,9})$/;
const numbered = /^(.+)_(\d{1,6})$/;

/** A process of a business: its number, its name in the document, and its number among equal ones; null: it is none. */
export function businessParts(space: string, name: string): { biz: number; alias: string; local: number } | null {
  const s = businessSpace.exec(space), n = numbered.exec(name);
  return s && n ? { biz: Number(s[1]), alias: n[1], local: Number(n[2]) } : null;
}

/** The name inside its place: web, or web #2 for the second one on a host. */
export function ownName(space: string, name: string): string {
  const b = businessParts(space, name);
  if (!b) return name;
  return b.local > 1 ? `${b.alias} #${b.local}` : b.alias;
}

/** The name of a business by its number; the number if no place has it. */
function businessName(t: Table | null, biz: number): string {
  return (t?.places.find((p) => p[0] === biz)?.[1] as string | undefined) || String(biz);
}

/** The namespace as people know it: the name of the business. */
export function ownSpace(t: Table | null, space: string): string {
  const s = businessSpace.exec(space);
  return s ? businessName(t, Number(s[1])) : space;
}

/** The whole name: business/set/module/name with the place of a row, business/name without one, and as it is for others. */
export function wholeName(t: Table | null, space: string, name: string, place = 0): string {
  const b = businessParts(space, name);
  if (!b) return `${space}/${name}`;
  const [biz, , set, module] = t?.places[place] ?? [0, "", "", ""];
  const inside = biz === b.biz ? [set, module].filter(Boolean) : [];
  return [businessName(t, b.biz), ...inside, ownName(space, name)].join("/");
}

/** The one place of all rows of a process; 0 if they have several, or none. */
export function placeOf(t: Table | null, space: string, name: string): number {
  if (!t || !businessSpace.test(space)) return 0;
  const key = t.names.name.findIndex((n, i) => n === name && t.names.space[i] === space);
  let place = 0;
  for (let id = 0; key >= 0 && id < t.top; id++) {
    if (t.name[id] !== key || !t.has(id) || !t.place[id]) continue;
    if (place && place !== t.place[id]) return 0;
    place = t.place[id];
  }
  return place;
}
