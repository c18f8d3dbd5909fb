// Lines of logs: read in parts, of several hosts, merged by time, and bounded.

/** One line of a log. */
export interface LogLine {
  host: string; // the agent
  text: string;
  at: number; // milliseconds: of the line itself if it begins with a time, else when it was read
  id: number; // grows; the order within one host
  gap?: number; // bytes that are missing before it
}

export const maxLines = 5000; // on screen
const maxLength = 4000; // of a line

/** The sequences by which programs set colours, move the cursor or name the window. */
const sequences = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;

/** A line as it is shown: without colours, other control characters as visible signs, and not longer than a screen can show. */
export function cleanLine(text: string): string {
  let clean = text.replace(sequences, "");
  const back = clean.lastIndexOf("\r", clean.length - 2); // a progress bar writes over itself: only its last state counts
  if (clean.endsWith("\r")) clean = clean.slice(0, -1);
  if (back >= 0) clean = clean.slice(back + 1);
  clean = clean.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (c) => `\u27e8${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}\u27e9`);
  return clean.length > maxLength ? `${clean.slice(0, maxLength)} \u2026` : clean;
}

const times = /^[\[(]?(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?/;

/** The time with which a line begins, in milliseconds; undefined if it begins with none. A time without a zone is taken as the viewer's. */
export function timeOf(text: string): number | undefined {
  const m = times.exec(text);
  if (!m) return undefined;
  const [, year, month, day, hour, minute, second, part = "0", zone = ""] = m;
  const colon = zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone;
  const ms = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}.${part.slice(0, 3).padEnd(3, "0")}${colon}`);
  return Number.isNaN(ms) ? undefined : ms;
}

/** Cuts the text of one host into lines; the rest of a line waits for the next part. */
export class Cutter {
  private rest = "";
  private last = 0; // time of the line before
  private next = 0;
  constructor(readonly host: string) {}

  /** The whole lines of a part that was read at `now`. */
  add(text: string, now: number, gap = 0): LogLine[] {
    const parts = (this.rest + text).split("\n");
    this.rest = parts.pop()!;
    if (this.rest.length > 16 * maxLength) { parts.push(this.rest); this.rest = ""; }
    const out: LogLine[] = parts.map((p) => {
      const line = cleanLine(p);
      const own = timeOf(line);
      if (own !== undefined) this.timed = true;
      this.last = Math.max(this.last, own ?? (this.timed ? this.last : now)); // a host's lines stay in their order
      return { host: this.host, text: line, at: this.last, id: this.next++ };
    });
    if (gap > 0 && out.length) out[0].gap = gap;
    return out;
  }
  private timed = false; // a line of this host has begun with a time: lines without one belong to the line before
}

/** Puts new lines in order behind those that are there, and drops the oldest ones above the limit. */
export function mergeLines(old: readonly LogLine[], more: readonly LogLine[], limit = maxLines): LogLine[] {
  if (more.length === 0) return old as LogLine[];
  const sorted = [...more].sort(byTime);
  const out = old.length === 0 || byTime(old[old.length - 1], sorted[0]) <= 0 ? [...old, ...sorted] : [...old, ...sorted].sort(byTime);
  return out.length > limit ? out.slice(out.length - limit) : out;
}

function byTime(a: LogLine, b: LogLine): number {
  if (a.host === b.host) return a.id - b.id;
  return a.at - b.at || (a.host < b.host ? -1 : 1);
}

/** The lines that have a text, without regard to upper and lower case. */
export function searchLines(lines: readonly LogLine[], text: string): readonly LogLine[] {
  const low = text.toLowerCase();
  return low ? lines.filter((l) => l.text.toLowerCase().includes(low)) : lines;
}
