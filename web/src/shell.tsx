import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { del, may, session } from "./api.ts";
import { beat, connection, lostAt, table } from "./live/stream.ts";
import { stateOrder } from "./live/filter.ts";
import { own, shared, type Action } from "./keys.ts";
import { Palette } from "./palette.tsx";
import { go, href, place } from "./router.ts";
import { nextTheme, setTheme, theme, type Theme } from "./theme.ts";
import { Actions } from "./ui/action.tsx";
import { Button, Dialog, State } from "./ui/kit.tsx";
import { age, now } from "./ui/format.ts";
import { language, number, setLanguage, t, type Word } from "./words.ts";

interface Item { path: string; word: Word; keys: string; shown: () => boolean }

const items: Item[] = [
  { path: "/", word: "nav.overview", keys: "g o", shown: () => true },
  { path: "/processes", word: "nav.processes", keys: "g p", shown: () => true },
  { path: "/businesses", word: "nav.businesses", keys: "g b", shown: () => true },
  { path: "/tasks", word: "nav.tasks", keys: "g t", shown: () => true },
  { path: "/hosts", word: "nav.hosts", keys: "g h", shown: () => true },
  { path: "/people", word: "nav.people", keys: "g u", shown: () => may("users") || may("admin") },
  { path: "/requests", word: "nav.requests", keys: "g r", shown: () => may("approve") },
  { path: "/audit", word: "nav.audit", keys: "g a", shown: () => may("audit") || may("admin") },
  { path: "/server", word: "nav.server", keys: "g s", shown: () => may("admin") },
  { path: "/account", word: "nav.account", keys: "g m", shown: () => true },
];

const badStates = new Set(["crash_loop", "failed", "unhealthy", "backing_off", "unknown"]); // what a phone still counts in its header

export function Shell({ children }: { children: ComponentChildren }) {
  const [open, setOpen] = useState<"" | "palette" | "help">("");
  const pages = items.filter((i) => i.shown());

  useEffect(() => {
    const reached = items.filter((i) => i.shown() || i.path === "/requests"); // that page has also what one has asked for
    const actions: Action[] = reached.map((i) => ({ label: t(i.word), keys: i.keys, run: () => go(href(i.path)) }));
    shared.value = [
      { label: t("key.palette"), keys: "Ctrl-K", run: () => setOpen("palette") },
      { label: t("key.help"), keys: "?", run: () => setOpen("help") },
      { label: t("key.search"), keys: "/", run: () => document.querySelector<HTMLInputElement>("main input[type=search]")?.focus() },
      ...actions,
      ...(may("define") ? [{ label: t("definition.new"), keys: "g n", run: () => go(href("/register")) }] : []),
      { label: t("language"), run: () => setLanguage(language.value === "en" ? "zh" : "en") },
      ...(["system", "light", "dark"] as Theme[]).map((to) => ({ label: t(`theme.${to}`), run: () => setTheme(to) })),
      { label: t("signout"), run: () => { void signOut(); } },
    ];
  }, [language.value, session.value?.id, pages.length]);

  const here = pages.filter((i) => place.value.path === i.path || (i.path !== "/" && place.value.path.startsWith(`${i.path}/`)) || (i.path === "/processes" && place.value.path.startsWith("/process/")))[0];
  useEffect(() => { document.querySelector(".menu [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }); }, [here?.path]);
  useEffect(() => { document.title = here ? `${t(here.word)} - Gozzard` : "Gozzard"; }, [here?.path, language.value]);

  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>{t("skip")}</a>
      <header class="top">
        <a class="brand" href={href("/")}>Gozzard</a>
        <nav aria-label={t("nav")} class="menu">
          {pages.map((i) => <a key={i.path} href={href(i.path)} aria-current={here === i ? "page" : undefined}>{t(i.word)}</a>)}
        </nav>
        <Counters />
        <div class="tools">
          <Button kind="quiet" title="Ctrl-K" onClick={() => setOpen("palette")}>{t("search")}</Button>
          <LanguageSwitch />
          <ThemeSwitch />
          <Button kind="quiet" onClick={() => { void signOut(); }}>{t("signout")}</Button>
        </div>
      </header>
      <Connection />
      <main id="main" tabIndex={-1}>{children}</main>
      <Actions />
      {open === "palette" && <Palette onClose={() => setOpen("")} />}
      {open === "help" && <Help onClose={() => setOpen("")} />}
    </div>
  );
}

async function signOut(): Promise<void> {
  try { await del("/session"); } finally { session.value = null; }
}

/** How many processes are in each state that there is: every number leads to its rows. */
function Counters() {
  beat.value;
  const fleet = table.value;
  if (!fleet) return <div class="counters"><span class="dim">{t("live.loading")}</span></div>;
  const list = stateOrder.map((s) => ({ s, n: fleet.byState[fleet.states.indexOf(s)] ?? 0 })).filter((c) => c.n > 0);
  return (
    <div class="counters">
      {list.map(({ s, n }) => <a key={s} href={href("/processes", { f: `state:${s}` })} class={badStates.has(s) ? "bad" : ""} title={t(`state.${s}` as Word)}><State of={s} bare /> {number(n)}</a>)}
      <span class={`live live-${connection.value}`}>{connection.value === "live" ? t("live.on") : connection.value === "off" ? t("live.offShort") : t("live.loading")}</span>
    </div>
  );
}

/** Says at once that the connection is broken, and how old the page is. */
function Connection() {
  if (connection.value !== "off") return null;
  return <p class="lost" role="alert">{t("live.off", { age: age((now.value - lostAt.value) / 1000) })}</p>;
}

export function LanguageSwitch() {
  return <Button kind="quiet" lang={language.value === "en" ? "zh-CN" : "en"} onClick={() => setLanguage(language.value === "en" ? "zh" : "en")}>{t("language")}</Button>;
}

function ThemeSwitch() {
  const sign: Record<Theme, string> = { system: "◐", light: "☀", dark: "☾" };
  return <Button kind="quiet" aria-label={t(`theme.${theme.value}`)} title={t(`theme.${theme.value}`)} onClick={() => setTheme(nextTheme())}>{sign[theme.value]}</Button>;
}

function Help({ onClose }: { onClose: () => void }) {
  const list = (actions: Action[]) => (
    <dl class="keys">{actions.filter((a) => a.keys).map((a) => <div key={a.keys}><dt><kbd>{a.keys}</kbd></dt><dd>{a.label}</dd></div>)}</dl>
  );
  return (
    <Dialog title={t("help.title")} onClose={onClose}>
      {own.value.some((a) => a.keys) && <><h3>{t("help.page")}</h3>{list(own.value)}</>}
      <h3>{t("help.anywhere")}</h3>
      {list([...shared.value, { label: t("key.close"), keys: "Esc", run: onClose }])}
    </Dialog>
  );
}
