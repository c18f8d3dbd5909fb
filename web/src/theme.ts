// Light or dark, as the system says or as the person has chosen.
import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const kept = localStorage.getItem("gozzard.theme");
export const theme = signal<Theme>(kept === "light" || kept === "dark" ? kept : "system");

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
