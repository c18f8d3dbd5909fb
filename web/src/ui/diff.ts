// The difference of two texts by lines, and of two documents by fields.

export interface DiffLine { sign: " " | "-" | "+"; text: string }

const maxCells = 4_000_000; // of the table that finds equal lines

/** The lines of two texts: removed, added and equal ones. Texts that are too long and different are shown one after the other. */
export function diffLines(before: string, after: string): DiffLine[] {
  const a = lines(before), b = lines(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;

  const equal = (list: string[]): DiffLine[] => list.map((text) => ({ sign: " ", text }));
  return [
    ...equal(a.slice(0, start)),
    ...between(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...equal(a.slice(a.length - end)),
  ];
}

const lines = (text: string) => text.replace(/\n$/, "").split("\n");

/** The difference of lines without an equal beginning and end, by their longest common subsequence. */
function between(a: string[], b: string[]): DiffLine[] {
  const out: DiffLine[] = [];
  let i = 0, j = 0;
  if (a.length * b.length <= maxCells) {
    const width = b.length + 1;
    const common = new Uint32Array((a.length + 1) * width);
    for (let x = a.length - 1; x >= 0; x--) {
      for (let y = b.length - 1; y >= 0; y--) {
        common[x * width + y] = a[x] === b[y] ? common[(x + 1) * width + y + 1] + 1 : Math.max(common[(x + 1) * width + y], common[x * width + y + 1]);
      }
    }
    while (i < a.length && j < b.length) {
      if (a[i] === b[j]) { out.push({ sign: " ", text: a[i++] }); j++; }
      else if (common[(i + 1) * width + j] >= common[i * width + j + 1]) out.push({ sign: "-", text: a[i++] });
      else out.push({ sign: "+", text: b[j++] });
    }
  }
  while (i < a.length) out.push({ sign: "-", text: a[i++] });
  while (j < b.length) out.push({ sign: "+", text: b[j++] });
  return out;
}

/** The values of a document by their paths, in order. A list is one value. */
export function fieldsOf(document: unknown): [path: string, value: string][] {
  const out: [string, string][] = [];
  const walk = (path: string, v: unknown) => {
    if (v !== null && typeof v === "object" && !Array.isArray(v)) {
      for (const [key, sub] of Object.entries(v)) walk(path ? `${path}.${key}` : key, sub);
    } else {
      out.push([path, typeof v === "string" ? v : JSON.stringify(v)]);
    }
  };
  walk("", document);
  return out;
}

/** A document as lines that can be compared: a field a line, lines of long texts apart. */
export function documentText(document: unknown): string {
  return fieldsOf(document).map(([path, value]) => (value.includes("\n") ? `${path}:\n${value.split("\n").map((l) => `  ${l}`).join("\n")}` : `${path}: ${value}`)).join("\n");
}

/** Whether two documents have the same values; the order of keys does not count. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((v, i) => same(v, b[i]));
  }
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return false;
  const x = a as Record<string, unknown>, y = b as Record<string, unknown>;
  const keys = Object.keys(x);
  return keys.length === Object.keys(y).length && keys.every((k) => k in y && same(x[k], y[k]));
}
