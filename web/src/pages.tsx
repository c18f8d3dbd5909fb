// Which page belongs to an address. Every page is loaded when it is first needed.
import type { ComponentType } from "preact";
import { Component } from "preact";
import { useEffect, useState } from "preact/hooks";
import { href, place } from "./router.ts";
import { Button, Empty } from "./ui/kit.tsx";
import { t } from "./words.ts";

type Params = Record<string, string>;
type Load = () => Promise<{ default: ComponentType<{ params: Params }> }>;

/** The pages by pattern; :name stands for one part. */
const routes: [pattern: string, load: Load][] = [
  ["/", () => import("./pages/overview.tsx")],
  ["/processes", () => import("./pages/processes.tsx")],
  ["/process/:space/:name", () => import("./pages/process.tsx")],
  ["/register", () => import("./pages/register.tsx")],
  ["/businesses", () => import("./pages/businesses.tsx")],
  ["/businesses/:biz", () => import("./pages/business.tsx")],
  ["/tasks", () => import("./pages/tasks.tsx")],
  ["/tasks/:id", () => import("./pages/task.tsx")],
  ["/hosts", () => import("./pages/hosts.tsx")],
  ["/hosts/:agent", () => import("./pages/host.tsx")],
  ["/releases", () => import("./pages/releases.tsx")],
  ["/people", () => import("./pages/people.tsx")],
  ["/people/:name", () => import("./pages/person.tsx")],
  ["/requests", () => import("./pages/requests.tsx")],
  ["/audit", () => import("./pages/audit.tsx")],
  ["/server", () => import("./pages/server.tsx")],
  ["/account", () => import("./pages/account.tsx")],
];

function match(path: string): { load: Load; params: Params; pattern: string } | undefined {
  const parts = path.replace(/\/+$/, "").split("/");
  for (const [pattern, load] of routes) {
    const want = pattern.replace(/\/+$/, "").split("/");
    if (want.length !== parts.length) continue;
    const params: Params = {};
    const fits = want.every((w, i) => {
      if (!w.startsWith(":")) return w === parts[i];
      try { params[w.slice(1)] = decodeURIComponent(parts[i]); } catch { return false; }
      return true;
    });
    if (fits) return { load, params, pattern };
  }
  return undefined;
}

const loaded = new Map<Load, ComponentType<{ params: Params }>>();

export function Page() {
  const found = match(place.value.path);
  const [, setRound] = useState(0);
  const [broken, setBroken] = useState(false);
  useEffect(() => {
    setBroken(false);
    if (found && !loaded.has(found.load)) {
      found.load().then((m) => { loaded.set(found.load, m.default); setRound((n) => n + 1); }, () => setBroken(true));
    }
  }, [found?.load]);

  if (!found) return <Empty page title={t("notFound.title")}><a class="button" href={href("/")}>{t("notFound.back")}</a></Empty>;
  if (broken) return <Empty page title={t("error.network")}><Button onClick={() => location.reload()}>{t("retry")}</Button></Empty>;
  const Shown = loaded.get(found.load);
  if (!Shown) return <p class="dim loading" role="status">{t("loading")}</p>;
  return <Fence key={place.value.path}><Shown params={found.params} /></Fence>;
}

/** A page that fails does not take the others with it. */
class Fence extends Component<{ children: preact.ComponentChildren }, { failed: boolean }> {
  override state = { failed: false };
  static override getDerivedStateFromError() { return { failed: true }; }
  override componentDidCatch(err: unknown) { console.error(err); }
  override render() {
    if (this.state.failed) return <Empty page title={t("error.page")}><Button onClick={() => this.setState({ failed: false })}>{t("retry")}</Button></Empty>;
    return this.props.children;
  }
}
