// The parts of an act of the audit.
import { acts } from "../words/acts.ts";

/** The recorded beginnings of acts that have words. */
export const knownActs = Object.keys(acts).map((k) => k.slice("acts.".length));

/** The longest known beginning of an act, and what follows it: a name, a number, a list of actions. */
export function actParts(act: string): { key: string; rest: string } {
  const parts = (/^[a-z_-]+(?::[a-z_-]+)*/.exec(act)?.[0] ?? "").split(":");
  for (; parts.length > 0; parts.pop()) {
    const key = parts.join(":");
    if (knownActs.includes(key)) return { key, rest: act.slice(key.length).replace(/^[: ]+/, "") };
  }
  return { key: "", rest: act };
}
