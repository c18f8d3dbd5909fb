import { useEffect, useRef, useState } from "preact/hooks";
import { get, may } from "../api.ts";
import type { EnrolTokenList, HostInfo } from "../api-types.ts";
import { useActions } from "../keys.ts";
import { beat, table } from "../live/stream.ts";
import { href, place, setQuery } from "../router.ts";
import { Button, Command, Empty, PageHead, Problem, Tabs } from "../ui/kit.tsx";
import { useLoad } from "../ui/load.ts";
import { number, t, type Word } from "../words.ts";
import { nameOf, readFleet, sumHosts, type Fleet, type Sum } from "./hosts-data.ts";
import { Enrolment, EnrolDialog } from "./hosts-enrol.tsx";
import { HostTable, sortRows, type Row } from "./hosts-table.tsx";
import { ConfirmRestore, Waiting } from "./hosts-members.tsx";

const every = 15_000; // facts of hosts change seldom; what changes often is in the live table

export default function Hosts() {
  const [enrolling, setEnrolling] = useState(false);
  const fleet = useLoad(readFleet, [], every);
  useSoon(table.value?.hostsVersion ?? 0, fleet.reload);
  const canEnrol = may("enrol") || may("admin");
  const tokens = useLoad(canEnrol ? (s) => get<EnrolTokenList>("/enrol/tokens", undefined, s) : undefined, [], every);
  const works = canEnrol && !!tokens.data && !tokens.failure;
  const tab = works && place.value.query.get("tab") === "enrol" ? "enrol" : "hosts";
  const reload = () => { fleet.reload(); tokens.reload(); };
  useActions(works ? [{ label: t("enrol.title"), keys: "n", run: () => setEnrolling(true) }] : [], [works]);

  return (
    <>
      <PageHead title={t("hosts.title")}>{works && <Button kind="main" onClick={() => setEnrolling(true)}>{t("enrol.title")}</Button>}</PageHead>
      <HostTabs at={tab} enrol={works} />
      <div class="stack">
        {fleet.failure && <Problem of={fleet.failure} retry={fleet.reload} />}
        {fleet.data && may("admin") && fleet.data.restoredFrom && <ConfirmRestore from={fleet.data.restoredFrom} reload={reload} />}
        {fleet.data && canEnrol && <Waiting fleet={fleet.data} reload={reload} />}
        {tab === "enrol" && tokens.data ? <Enrolment tokens={tokens.data.tokens} reload={reload} /> : fleet.data ? <HostList fleet={fleet.data} /> : !fleet.failure && <p class="dim loading" role="status">{t("loading")}</p>}
        {tab === "hosts" && may("admin") && tokens.failure && <p class="hint">{t("enrol.off")}</p>}
      </div>
      {enrolling && <EnrolDialog onClose={() => setEnrolling(false)} onDone={reload} />}
    </>
  );
}

/** Calls f soon after a number has changed, but not for every change. */
function useSoon(version: number, f: () => void): void {
  beat.value;
  const seen = useRef(version);
  const timer = useRef(0);
  if (seen.current !== version && !timer.current) {
    seen.current = version;
    timer.current = window.setTimeout(() => { timer.current = 0; f(); }, 1500);
  }
  useEffect(() => () => clearTimeout(timer.current), []);
}

/** The tabs of hosts and releases: only those that the user may see. */
export function HostTabs({ at, enrol }: { at: string; enrol: boolean }) {
  const items = [{ key: "hosts", label: t("hosts.title"), href: href("/hosts") }];
  if (enrol) items.push({ key: "enrol", label: t("enrol.tab"), href: href("/hosts", { tab: "enrol" }) });
  if (may("admin")) items.push({ key: "releases", label: t("releases.title"), href: href("/releases") });
  return items.length > 1 ? <Tabs items={items} at={at} label={t("hosts.title")} /> : null;
}

const chips: { key: string; word: Word; fits: (r: Row) => boolean }[] = [
  { key: "online", word: "hosts.online", fits: (r) => r.online },
  { key: "offline", word: "hosts.offline", fits: (r) => !r.online },
  { key: "missing", word: "hosts.chip.missing", fits: (r) => (r.host.degraded?.length ?? 0) > 0 },
  { key: "outside", word: "hosts.chip.outside", fits: (r) => !!r.host.trust && r.host.trust !== "active" },
];

function HostList({ fleet }: { fleet: Fleet }) {
  beat.value;
  const sums = sumHosts(table.value);
  const rows = fleet.hosts.map((host): Row => ({ host, name: nameOf(host), sum: sums.get(host.agent), online: isOnline(host, sums) }));
  const asked = (place.value.query.get("q") ?? "").trim().toLowerCase();
  const chosen = chips.find((c) => c.key === place.value.query.get("only"));
  const words = asked.split(/\s+/).filter(Boolean);
  const found = rows.filter((r) => {
    if (chosen && !chosen.fits(r)) return false;
    const text = `${r.name} ${r.host.addrs.map((a) => a.ip).join(" ")} ${r.host.hostname} ${r.host.agent} ${r.host.version} ${r.host.mode ?? ""} ${r.host.trust ?? ""}`.toLowerCase();
    return words.every((w) => text.includes(w));
  });

  if (fleet.hosts.length === 0) return <NoHosts />;
  return (
    <>
      <div class="row">
        <input type="search" aria-label={t("hosts.filter")} placeholder={t("hosts.filter")} value={place.value.query.get("q") ?? ""} onInput={(e) => setQuery({ q: e.currentTarget.value })} />
        {chips.map((c) => ({ ...c, n: rows.filter(c.fits).length })).filter((c) => c.n > 0 || c.key === chosen?.key).map((c) => (
          <button key={c.key} type="button" class="chip" aria-pressed={c.key === chosen?.key} onClick={() => setQuery({ only: c.key === chosen?.key ? "" : c.key })}>{t(c.word)} {number(c.n)}</button>
        ))}
        <span class="dim" role="status">{t("hosts.shown", { n: found.length, all: rows.length })}</span>
      </div>
      {found.length === 0
        ? <Empty title={t("hosts.nothing")}><Button onClick={() => setQuery({ q: "", only: "" })}>{t("hosts.showAll")}</Button></Empty>
        : <HostTable rows={sortRows(found)} table={table.value} enrolled={rows.some((r) => r.host.trust)} />}
    </>
  );
}

/** The live table knows best; a host without processes may not be in it. */
export function isOnline(host: HostInfo, sums: Map<string, Sum>): boolean {
  return sums.get(host.agent)?.online ?? host.online;
}

function NoHosts() {
  if (!may("enrol") && !may("admin")) return <Empty title={t("hosts.none")}><p>{t("empty.rights")}</p></Empty>;
  return <Empty title={t("hosts.none")}><p>{t("hosts.none.text")}</p><Command text="gozzard token create" /></Empty>;
}
