// Values as people read them.
import { signal } from "@preact/signals";
import { locale, t } from "../words.ts";

/** The time, in milliseconds; it ticks every second while the page is seen. */
export const now = signal(Date.now());
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);

/** A length of time in its two largest units. */
export function age(seconds: number): string {
  let s = Math.max(0, Math.floor(seconds));
  const out: string[] = [];
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]] as const) {
    if (s >= size || (unit === "s" && out.length === 0)) {
      out.push(`${Math.floor(s / size)} ${t(`unit.${unit}`)}`);
      s %= size;
    } else if (out.length) break;
    if (out.length === 2) break;
  }
  return out.join(" ");
}

/** A moment beside now: "3 min ago". */
export function ago(ms: number): string {
  const d = (now.value - ms) / 1000;
  if (Math.abs(d) < 1) return t("time.now");
  return d > 0 ? t("time.ago", { age: age(d) }) : t("time.in", { age: age(-d) });
}

/** A start that is planned: "in 3 min", or that it is due. The time is the host's plan, so it stays right while it passes. */
export function nextText(ms: number): string {
  return ms <= now.value ? t("time.due") : ago(ms);
}

/** A moment in the viewer's zone, exactly. */
export function exact(ms: number): string {
  return new Date(ms).toLocaleString(locale.value, { dateStyle: "medium", timeStyle: "long" });
}

export function bytes(n: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

export function percent(p: number): string {
  return `${p >= 100 ? Math.round(p) : p.toFixed(1)} %`;
}

/**
 * A text from outside, safe to show: control characters and marks that change the direction of text become visible
 * signs, so that a name cannot look like another one.
 */
export function plain(s: string): string {
  return s.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (c) => (c === "\n" || c === "\t" ? " " : `\u27e8${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}\u27e9`));
}
