// Light or dark, as the system says or as the person has chosen.
import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const kept = localStorage.getItem("gozzard.theme");
export const theme = signal<Theme>(kept === "light" || kept === "dark" ? kept : "system");

/** The theme that a click on the button leads to. It always looks different: the other one of the system's, or back to the system's. */
export function nextTheme(): Theme {
  const [system, other]: Theme[] = matchMedia("(prefers-color-scheme: dark)").matches ? ["dark", "light"] : ["light", "dark"];
  return theme.value === "system" || theme.value === system ? other : "system";
}

export function setTheme(to: Theme): void {
  theme.value = to;
  localStorage.setItem("gozzard.theme", to);
  showTheme();
}

export function showTheme(): void {
  const root = document.documentElement;
  if (theme.value === "system") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", theme.value);
}
