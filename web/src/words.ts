// The words of the page in both languages. A key that lacks one of them fails the type check.
import { signal, computed } from "@preact/signals";
import { shell } from "./words/shell.ts";
import { states } from "./words/states.ts";
import { overview } from "./words/overview.ts";
import { processes } from "./words/processes.ts";
import { process } from "./words/process.ts";
import { definition } from "./words/definition.ts";
import { tasks } from "./words/tasks.ts";
import { hosts } from "./words/hosts.ts";
import { businesses } from "./words/businesses.ts";
import { acts } from "./words/acts.ts";
import { people } from "./words/people.ts";
import { server } from "./words/server.ts";

export type Language = "en" | "zh";

const all = { ...shell, ...states, ...overview, ...processes, ...process, ...definition, ...tasks, ...hosts, ...businesses, ...people, ...server, ...acts };

export type Word = keyof typeof all;

function firstLanguage(): Language {
  const kept = localStorage.getItem("gozzard.language");
  if (kept === "en" || kept === "zh") return kept;
  return navigator.languages.some((l) => l.toLowerCase().startsWith("zh")) ? "zh" : "en";
}

export const language = signal<Language>(firstLanguage());

export const locale = computed(() => (language.value === "zh" ? "zh-CN" : "en-GB"));

export function setLanguage(l: Language): void {
  language.value = l;
  localStorage.setItem("gozzard.language", l);
}

/**
 * The text of a key. {name} stands for a value, and {name|one|many} for a word that follows a number:
 * t("rows", { n: 2 }) with "{n} {n|row|rows}" is "2 rows".
 */
export function t(word: Word, values?: Record<string, string | number>): string {
  const text: string = all[word][language.value];
  if (!values) return text;
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g, (_, name: string, one?: string, many?: string) => {
    const value = values[name] ?? "";
    if (one !== undefined) return (value === 1 ? one : many) ?? "";
    return typeof value === "number" ? number(value) : value;
  });
}

/** The word of a key that the server chose, such as a state; the key itself if the page does not know it. */
export function tOf(prefix: string, key: string): string {
  const word = prefix + key;
  return word in all ? t(word as Word) : key;
}

export function number(n: number): string {
  return n.toLocaleString(locale.value);
}
